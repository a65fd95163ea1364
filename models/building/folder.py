"""What lies in the folder of a model: its tokenizer, its card, and the ONNX file."""

import hashlib
import json
from pathlib import Path
from typing import Any

import msgspec
import yaml
from tokenizers import Tokenizer

from models.building.refusal import Refusal
from models.building.vocabulary import Json, text_of
from recall.index.onnx import ModelCard


def tokenizer_of(model: Any) -> Json:
    """The content of tokenizer.json for a SentenceTransformer.

    Raises:
        Refusal: no fast tokenizer, or one that does not put one piece before and one after each text, as recall cuts
            long texts by.
    """
    backend = getattr(model.tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise Refusal(f"a {type(model.tokenizer).__name__} has no tokenizer.json and cannot be built")
    tokenizer: Json = json.loads(backend.to_str()) | {"truncation": None, "padding": None}
    frame_of(tokenizer)
    return tokenizer


def frame_of(tokenizer: Json) -> tuple[int, int]:
    """Numbers of the pieces that stand before and after each text.

    Raises:
        Refusal: there are none, or more.
    """
    whole = Tokenizer.from_str(text_of(tokenizer))
    empty, ids = whole.encode("").ids, whole.encode("one text").ids
    if len(empty) != 2 or [ids[0], ids[-1]] != empty:
        raise Refusal("only a tokenizer that puts one piece before and one after each text can be built")
    return empty[0], empty[1]


def write_tokenizer(folder: Path, tokenizer: Json) -> None:
    """Writes tokenizer.json."""
    (folder / "tokenizer.json").write_text(text_of(tokenizer), encoding="utf-8")


def write_card(folder: Path, said: Json) -> ModelCard:
    """Writes model.yaml for the files that are there.

    Args:
        folder: holds model.onnx and tokenizer.json.
        said: fields of the card, without the hashes.
    """
    hashes = {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in ("model.onnx", "tokenizer.json")
    }
    card = msgspec.convert(said | {"sha256": hashes}, ModelCard)
    text = yaml.safe_dump(msgspec.to_builtins(card), sort_keys=False, allow_unicode=True, width=120)
    (folder / "model.yaml").write_text(text, encoding="utf-8")
    return card
