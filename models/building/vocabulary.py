"""Cuts the vocabulary of a tokenizer down to what some languages or texts need; pure functions over tokenizer.json.

A tokenizer chooses the longest pieces that it knows, or those with the best scores, so that a text all of whose pieces
are kept is cut as before; any other falls into shorter pieces, at worst single characters, which all stay.
"""

import copy
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import regex
from tokenizers import Tokenizer

from models.building.refusal import Refusal

Json = dict[str, Any]

_LATIN: Final = "cs da de es et fi fr hr hu it lt lv nb nl pl pt ro sk sl sv tr vi"
LETTERS: Final = {
    "ar": r"\p{Arabic}",
    "el": r"\p{Greek}",
    "en": "A-Za-z",
    "he": r"\p{Hebrew}",
    "hi": r"\p{Devanagari}",
    "ja": r"\p{Han}\p{Hiragana}\p{Katakana}ー",
    "ko": r"\p{Hangul}",
    "ru": r"\p{Cyrillic}",
    "th": r"\p{Thai}",
    "uk": r"\p{Cyrillic}",
    "zh": r"\p{Han}\p{Bopomofo}",
} | dict.fromkeys(_LATIN.split(), r"\p{Latin}")
"""What a language is written with, as the inside of a class of characters."""

_MARKS: Final = ("##", "▁")


def pieces(tokenizer: Json) -> list[str]:
    """All pieces by their number.

    Raises:
        Refusal: a kind of tokenizer that cannot be cut down, or numbers with gaps.
    """
    model = tokenizer["model"]
    if model["type"] == "WordPiece":
        numbered = {number: piece for piece, number in model["vocab"].items()}
    elif model["type"] == "Unigram":
        numbered = {number: piece for number, (piece, _) in enumerate(model["vocab"])}
    else:
        raise Refusal(
            f"the vocabulary of a {model['type']} tokenizer cannot be cut down; leave out languages and texts"
        )
    if sorted(numbered) != [*range(len(numbered))]:
        raise Refusal("the numbers of the vocabulary have gaps")
    return [numbered[number] for number in range(len(numbered))]


def size_of(tokenizer: Json) -> int:
    """How many pieces it has."""
    return int(Tokenizer.from_str(text_of(tokenizer)).get_vocab_size())


def unknown_share(tokenizer: Json, texts: Sequence[str]) -> float:
    """Share of the texts' pieces that are none of its own."""
    whole, model = Tokenizer.from_str(text_of(tokenizer)), tokenizer["model"]
    unknown: int | None = model["unk_id"] if "unk_id" in model else whole.token_to_id(model.get("unk_token") or "")
    found = [number for text in whole.encode_batch([*texts], add_special_tokens=False) for number in text.ids]
    return sum(number == unknown for number in found) / max(len(found), 1)


def shorter(tokenizer: Json, texts: Sequence[str], most: int) -> list[str]:
    """The texts of at most so many pieces.

    Raises:
        Refusal: there are none.
    """
    found = Tokenizer.from_str(text_of(tokenizer)).encode_batch([*texts])
    short = [text for text, encoding in zip(texts, found, strict=True) if len(encoding.ids) <= most]
    if not short:
        raise Refusal(f"none of the texts has at most {most} pieces, so that source and result could be compared")
    return short


def kept(tokenizer: Json, *, languages: Sequence[str] = (), texts: Iterable[str] = ()) -> list[int]:
    """Numbers of the pieces that the languages' letters can spell, or that occur in the texts, in rising order.

    Special pieces and single characters are always among them.

    Raises:
        Refusal: an unknown language, or a kind of tokenizer that cannot be cut down.
    """
    if unknown := [language for language in languages if language not in LETTERS]:
        raise Refusal(f"unknown language {', '.join(unknown)}; known are {', '.join(sorted(LETTERS))}")
    held = regex.compile(r"\[unused\d*\]")  # places that BERT's makers left free
    special = {token["id"] for token in tokenizer["added_tokens"]}
    used = {
        number for encoding in Tokenizer.from_str(text_of(tokenizer)).encode_batch([*texts]) for number in encoding.ids
    }
    letters = "".join(LETTERS[language] for language in languages)
    spelt = regex.compile(rf"(?:[{letters}]|\P{{L}})+") if letters else regex.compile("(?!)")
    return [
        number
        for number, piece in enumerate(pieces(tokenizer))
        if number in special
        or number in used
        or len(bare := _bare(piece)) <= 1
        or (spelt.fullmatch(bare) and not held.fullmatch(bare))
    ]


def _bare(piece: str) -> str:
    for mark in _MARKS:
        piece = piece.removeprefix(mark)
    return piece


def text_of(tokenizer: Json) -> str:
    """As it stands in tokenizer.json."""
    return json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":"))


def trimmed(tokenizer: Json, keep: Sequence[int]) -> Json:
    """The tokenizer with these pieces only, numbered anew in their order.

    Args:
        tokenizer: content of tokenizer.json, of kind WordPiece or Unigram.
        keep: in rising order, special pieces among them.
    """
    new = {number: at for at, number in enumerate(keep)}
    cut = copy.deepcopy(tokenizer)
    for token in cut["added_tokens"]:
        token["id"] = new[token["id"]]
    model = cut["model"]
    if model["type"] == "WordPiece":
        model["vocab"] = {piece: new[number] for piece, number in model["vocab"].items() if number in new}
    else:
        model["vocab"] = [model["vocab"][number] for number in keep]
        model["unk_id"] = new[model["unk_id"]]
    if cut["post_processor"]:
        cut["post_processor"] = _renumbered(cut["post_processor"], new.__getitem__)
    return cut


def _renumbered(processor: Json, new: Callable[[int], int]) -> Json:
    """A post-processor, which frames a text, with new numbers of the special pieces."""
    kind = processor["type"]
    if kind == "Sequence":
        return processor | {"processors": [_renumbered(part, new) for part in processor["processors"]]}
    if kind == "TemplateProcessing":
        special = {
            name: token | {"ids": [new(number) for number in token["ids"]]}
            for name, token in processor["special_tokens"].items()
        }
        return processor | {"special_tokens": special}
    if kind in {"BertProcessing", "RobertaProcessing"}:
        return processor | {end: [processor[end][0], new(processor[end][1])] for end in ("sep", "cls")}
    return processor
