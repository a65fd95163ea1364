"""The model folder of the ONNX encoder: its card, its files, and what is said when something is wrong with them."""

import hashlib
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from recall.errors import EncoderError, ModelNotFoundError
from recall.index.onnx import DEFAULT_MODEL, OnnxEncoder, models_folder, read_card

CARD = """
name: tiny
source: made here
licence: MIT
attribution: nobody
sha256:
  model.onnx: {model}
  tokenizer.json: {tokenizer}
dim: 4
max_tokens: 100
end_token: 2
query_prefix: "query: "
document_prefix: "passage: "
"""


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder whose card is right and whose files are no model."""
    for name in ("model.onnx", "tokenizer.json"):
        (tmp_path / name).write_bytes(name.encode())
    text = CARD.format(model=sha256(b"model.onnx"), tokenizer=sha256(b"tokenizer.json"))
    (tmp_path / "model.yaml").write_text(text, encoding="utf-8")
    return tmp_path


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """The shipped model in a folder of its own; the large file is a link."""
    shipped = models_folder() / DEFAULT_MODEL
    for name in ("model.yaml", "tokenizer.json"):
        shutil.copy(shipped / name, tmp_path)
    (tmp_path / "model.onnx").symlink_to(shipped / "model.onnx")
    return tmp_path


@pytest.fixture(scope="module")
def encoder() -> OnnxEncoder:
    return OnnxEncoder()


# --- the card


def test_the_card_says_what_the_encoder_is(folder: Path) -> None:
    encoder = OnnxEncoder(folder)
    assert (encoder.name, encoder.dim, encoder.chunk_tokens, encoder.floor) == ("tiny", 4, 84, 0.205)
    assert not encoder.is_warm


@pytest.mark.parametrize(
    ("field", "other"),
    [
        ("dim: 4", "dim: 8"),
        ("max_tokens: 100", "max_tokens: 90"),
        ("end_token: 2", "end_token: 3"),
        ('query_prefix: "query: "', "query_prefix: ''"),
        ('document_prefix: "passage: "', "document_prefix: ''"),
        (sha256(b"model.onnx"), "f" * 64),
        (sha256(b"tokenizer.json"), "f" * 64),
        ("name: tiny", "name: other"),
    ],
)
def test_whatever_shapes_a_vector_changes_the_fingerprint(folder: Path, field: str, other: str) -> None:
    before = OnnxEncoder(folder).fingerprint
    card = folder / "model.yaml"
    text = card.read_text(encoding="utf-8")
    assert field in text
    card.write_text(text.replace(field, other), encoding="utf-8")
    assert OnnxEncoder(folder).fingerprint != before


def test_what_is_only_told_does_not_change_the_fingerprint(folder: Path) -> None:
    before = OnnxEncoder(folder).fingerprint
    card = folder / "model.yaml"
    card.write_text(card.read_text(encoding="utf-8").replace("nobody", "somebody") + "floor: 0.5\n", encoding="utf-8")
    assert OnnxEncoder(folder).fingerprint == before


def test_a_folder_without_a_card_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError, match="no model card") as caught:
        OnnxEncoder(tmp_path / "nowhere")
    assert caught.value.path == tmp_path / "nowhere" / "model.yaml"
    assert isinstance(caught.value, FileNotFoundError)
    assert isinstance(caught.value, EncoderError)


@pytest.mark.parametrize(
    "text",
    ["", "- a list\n", "name: [\n", "name: tiny\n", CARD.format(model=1, tokenizer=2) + "unheard_of: 1\n", "\x00"],
)
def test_a_card_that_makes_no_sense_is_named(folder: Path, text: str) -> None:
    (folder / "model.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ModelNotFoundError, match="not a model card") as caught:
        read_card(folder)
    assert caught.value.path == folder / "model.yaml"


def test_a_card_that_is_no_text_is_named(folder: Path) -> None:
    (folder / "model.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ModelNotFoundError, match="not a model card"):
        read_card(folder)


# --- the files


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_missing_file_is_named_when_the_model_is_needed(folder: Path, name: str) -> None:
    (folder / name).unlink()
    encoder = OnnxEncoder(folder)
    for call in (encoder.warm_up, lambda: encoder.encode_query("x"), lambda: encoder.encode_documents(["x"])):
        with pytest.raises(ModelNotFoundError, match="cannot be read") as caught:
            call()
        assert caught.value.path == folder / name
    assert not encoder.is_warm


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
@pytest.mark.parametrize("content", [b"", b"cut sho", b"another file"])
def test_a_damaged_file_is_named(folder: Path, name: str, content: bytes) -> None:
    (folder / name).write_bytes(content)
    with pytest.raises(ModelNotFoundError, match="is damaged") as caught:
        OnnxEncoder(folder).warm_up()
    assert caught.value.path == folder / name


def test_files_that_are_no_model_are_an_error_of_the_encoder(folder: Path) -> None:
    with pytest.raises(EncoderError, match="cannot load the model") as caught:
        OnnxEncoder(folder).warm_up()
    assert not isinstance(caught.value, ModelNotFoundError)
    assert str(folder) in str(caught.value)


@pytest.mark.model
def test_a_file_that_is_put_back_is_used(copied: Path) -> None:
    link = copied / "model.onnx"
    target = link.readlink()
    link.unlink()
    encoder = OnnxEncoder(copied)
    with pytest.raises(ModelNotFoundError):
        encoder.encode_query("x")
    link.symlink_to(target)
    assert encoder.encode_query("x").shape == (384,)


# --- encoding


@pytest.mark.model
def test_the_shipped_files_are_those_of_the_card(encoder: OnnxEncoder) -> None:
    encoder.warm_up()
    assert encoder.is_warm
    for name, expected in encoder.card.sha256.items():
        assert sha256((encoder.folder / name).read_bytes()) == expected


@pytest.mark.model
def test_queries_and_documents_get_their_own_prefix(encoder: OnnxEncoder) -> None:
    text = "周五能发布吗"
    query, (document,) = encoder.encode_query(text), encoder.encode_documents([text])
    assert not np.array_equal(query, document)
    assert float(query @ document) > 0.7


@pytest.mark.model
def test_a_query_beyond_the_limit_is_read_up_to_it(encoder: OnnxEncoder) -> None:
    one, other = (encoder.encode_query("go " * 1000 + word) for word in ("left", "right"))
    np.testing.assert_array_equal(one, other)


@pytest.mark.model
def test_a_document_beyond_the_limit_is_read_to_its_end(encoder: OnnxEncoder) -> None:
    padding = "go " * 1000
    plain, about_frost = encoder.encode_documents([padding, padding + "frost on the vaccine trucks " * 40])
    query = encoder.encode_query("frozen vaccine transport")
    assert float(query @ about_frost) > float(query @ plain) + 0.05


@pytest.mark.model
def test_threads_that_come_at_once_get_the_same_vector(copied: Path, encoder: OnnxEncoder) -> None:
    cold = OnnxEncoder(copied)
    found: list[bytes] = []
    start = threading.Barrier(4)

    def work() -> None:
        start.wait()
        found.append(cold.encode_query("周五能发布吗").tobytes())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [encoder.encode_query("周五能发布吗").tobytes()] * 4


def message(*fields: tuple[int, int | bytes]) -> bytes:
    """A protobuf message of small numbers and of byte strings whose length takes two bytes."""
    return b"".join(
        bytes((number << 3, value))
        if isinstance(value, int)
        else bytes((number << 3 | 2, len(value) & 0x7F | 0x80, len(value) >> 7)) + value
        for number, value in fields
    )


def identity_model(*names: bytes) -> bytes:
    """An ONNX file whose graph hands its first input through: a model, but no sentence model."""
    shape = message((1, message((2, b"batch"))), (1, message((2, b"tokens"))))
    kind = message((1, message((1, 7), (2, shape))))  # tensors of int64
    inputs = [(11, message((1, name), (2, kind))) for name in names]
    node = message((1, names[0]), (2, b"out"), (4, b"Identity"))
    graph = message((1, node), (2, b"graph"), *inputs, (12, message((1, b"out"), (2, kind))))
    return message((1, 8), (7, graph), (8, message((2, 13))))


def with_model(folder: Path, content: bytes) -> OnnxEncoder:
    """The shipped card and tokenizer with another model."""
    card = (folder / "model.yaml").read_text(encoding="utf-8")
    before = read_card(folder).sha256["model.onnx"]
    (folder / "model.onnx").unlink()
    (folder / "model.onnx").write_bytes(content)
    (folder / "model.yaml").write_text(card.replace(before, sha256(content)), encoding="utf-8")
    return OnnxEncoder(folder)


def test_a_model_with_other_inputs_is_an_error_of_the_encoder(copied: Path) -> None:
    encoder = with_model(copied, identity_model(b"pixels"))
    with pytest.raises(EncoderError, match="cannot encode") as caught:
        encoder.warm_up()
    assert not isinstance(caught.value, ModelNotFoundError)
    assert not encoder.is_warm


def test_a_model_with_vectors_of_another_length_is_an_error_of_the_encoder(copied: Path) -> None:
    encoder = with_model(copied, identity_model(b"input_ids", b"attention_mask"))
    encoder.warm_up()
    with pytest.raises(EncoderError, match=r"expected vectors of shape \(1, 384\)"):
        encoder.encode_query("deploy")
    with pytest.raises(EncoderError, match=r"expected vectors of shape \(1, 384\)"):
        encoder.encode_documents(["deploy"])


def test_the_library_that_runs_the_model_reports_to_nobody(tmp_path: Path) -> None:
    code = "from recall.index.onnx import OnnxEncoder; OnnxEncoder().encode_query('text'); import os"
    code += "; print(os.environ['ORT_DISABLE_TELEMETRY'])"
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "HOME": str(tmp_path)}
    environment.pop("ORT_DISABLE_TELEMETRY", None)
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
    assert done.stdout.strip() == b"1"
    assert [found.name for found in tmp_path.rglob("*")] == []  # it would leave an id of the machine there
