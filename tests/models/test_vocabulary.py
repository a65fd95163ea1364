"""Cutting a vocabulary down: what stays, and that texts which need no more are cut as before."""

import json
from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from models.building.folder import frame_of
from models.building.refusal import Refusal
from models.building.vocabulary import kept, pieces, shorter, size_of, text_of, trimmed, unknown_share

WORDS = [
    *("[PAD]", "[unused]", "[UNK]", "[CLS]", "[SEP]", "the", "deploy", "##ment", "##s", "d", "##d", "e", "##e"),
    *("发", "布", "##布", "发布", "привет", "п", "##р", "日本", "に", "café", "x1", "##1", "."),
]


def wordpiece() -> dict[str, Any]:
    whole = Tokenizer(models.WordPiece({word: at for at, word in enumerate(WORDS)}, unk_token="[UNK]"))
    whole.normalizer = normalizers.Lowercase()
    whole.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    whole.add_special_tokens([word for word in WORDS if word.startswith("[") and word != "[unused]"])
    whole.post_processor = processors.BertProcessing(("[SEP]", 4), ("[CLS]", 3))
    tokenizer: dict[str, Any] = json.loads(whole.to_str())
    return tokenizer


def unigram() -> dict[str, Any]:
    found = ["вет", "<s>", "<pad>", "</s>", "<unk>", "▁", "▁the", "▁deploy", "s", "▁при", "发布", "发", "布", "ment"]
    whole = Tokenizer(models.Unigram([(piece, -float(at)) for at, piece in enumerate(found)], unk_id=4))
    whole.pre_tokenizer = pre_tokenizers.Metaspace()
    whole.decoder = decoders.Metaspace()
    whole.add_special_tokens(found[1:5])
    whole.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 1), ("</s>", 3)]
    )
    tokenizer: dict[str, Any] = json.loads(whole.to_str())
    return tokenizer


def cut(tokenizer: dict[str, Any], text: str) -> list[str]:
    tokens: list[str] = Tokenizer.from_str(text_of(tokenizer)).encode(text).tokens
    return tokens


def left(tokenizer: dict[str, Any], **wanted: Any) -> set[str]:
    return {pieces(tokenizer)[number] for number in kept(tokenizer, **wanted)}


def test_special_pieces_and_single_characters_always_stay() -> None:
    always = {
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "##s",
        "d",
        "##d",
        "e",
        "##e",
        "发",
        "布",
        "##布",
        "п",
        "##р",
        "に",
        "##1",
        ".",
    }
    assert left(wordpiece()) == always
    assert left(unigram()) == {"<s>", "<pad>", "</s>", "<unk>", "▁", "s", "发", "布"}


@pytest.mark.parametrize(
    ("languages", "more"),
    [
        (["en"], {"the", "deploy", "##ment", "x1"}),
        (["zh"], {"发布", "日本"}),
        (["fr"], {"the", "deploy", "##ment", "x1", "café"}),
        (["ru"], {"привет"}),
        (["en", "ru"], {"the", "deploy", "##ment", "x1", "привет"}),
    ],
)
def test_what_the_letters_of_a_language_spell_stays(languages: list[str], more: set[str]) -> None:
    words = left(wordpiece(), languages=languages)
    assert words - left(wordpiece()) == more


def test_what_occurs_in_a_text_stays() -> None:
    assert left(wordpiece(), texts=["Deployments"]) - left(wordpiece()) == {"deploy", "##ment"}
    assert left(unigram(), texts=["the deploys 发布"]) - left(unigram()) == {"▁the", "▁deploy", "发布"}


@pytest.mark.parametrize("tokenizer", [wordpiece(), unigram()], ids=["wordpiece", "unigram"])
@pytest.mark.parametrize("text", ["the deployments 发布", "发布", "", "the the s"])
def test_a_text_whose_pieces_stay_is_cut_as_before(tokenizer: dict[str, Any], text: str) -> None:
    keep = kept(tokenizer, texts=[text])
    small = trimmed(tokenizer, keep)
    assert size_of(small) == len(keep) < size_of(tokenizer)
    assert pieces(small) == [pieces(tokenizer)[number] for number in keep]
    assert cut(small, text) == cut(tokenizer, text)
    assert all(pieces(small)[token["id"]] == token["content"] for token in small["added_tokens"])
    assert unknown_share(small, ["猫"]) == unknown_share(tokenizer, ["猫"]) > 0
    before = Tokenizer.from_str(text_of(tokenizer)).encode(text).ids
    assert [keep[number] for number in Tokenizer.from_str(text_of(small)).encode(text).ids] == before


@pytest.mark.parametrize("tokenizer", [wordpiece(), unigram()], ids=["wordpiece", "unigram"])
def test_a_text_whose_pieces_are_gone_falls_into_smaller_ones(tokenizer: dict[str, Any]) -> None:
    small = trimmed(tokenizer, kept(tokenizer, languages=["en"]))
    assert cut(small, "发布")[1:-1][-2:] in (["发", "##布"], ["发", "布"])
    first, last = frame_of(small)
    assert (pieces(small)[first], pieces(small)[last]) in {("[CLS]", "[SEP]"), ("<s>", "</s>")}


def test_the_given_tokenizer_stays_as_it_was() -> None:
    tokenizer = wordpiece()
    trimmed(tokenizer, kept(tokenizer))
    assert tokenizer == wordpiece()


def test_processors_in_a_row_are_numbered_anew() -> None:
    tokenizer = wordpiece()
    inner = tokenizer["post_processor"]
    tokenizer["post_processor"] = {"type": "Sequence", "processors": [inner]}
    small = trimmed(tokenizer, kept(tokenizer))
    assert small["post_processor"]["processors"][0]["sep"] == ["[SEP]", 3]
    assert cut(small, "e") == ["[CLS]", "e", "[SEP]"]


def test_the_share_of_unknown_pieces_is_found() -> None:
    assert unknown_share(wordpiece(), ["the deploy", "слово 猫"]) == 0.5
    assert unknown_share(unigram(), ["the"]) == 0
    assert unknown_share(wordpiece(), []) == 0


def test_texts_that_are_too_long_are_left_out() -> None:
    assert shorter(wordpiece(), ["the", "the deploy", "the the the"], 4) == ["the", "the deploy"]
    with pytest.raises(Refusal, match="none of the texts has at most 2 pieces"):
        shorter(wordpiece(), ["the"], 2)


def test_what_cannot_be_cut_down_is_refused() -> None:
    pairs: dict[str, Any] = json.loads(Tokenizer(models.BPE({"a": 0}, [])).to_str())
    with pytest.raises(Refusal, match="BPE tokenizer cannot be cut down"):
        kept(pairs, languages=["en"])
    with pytest.raises(Refusal, match="unknown language tlh; known are ar, cs, da"):
        kept(wordpiece(), languages=["en", "tlh"])
    gap = wordpiece()
    gap["model"]["vocab"]["late"] = 1000
    with pytest.raises(Refusal, match="gaps"):
        pieces(gap)


def test_a_tokenizer_without_a_frame_is_refused() -> None:
    for processor in (None, processors.TemplateProcessing(single="$A [SEP]", special_tokens=[("[SEP]", 4)])):
        whole = Tokenizer.from_str(text_of(wordpiece()))
        whole.post_processor = processor
        with pytest.raises(Refusal, match="one piece before and one after"):
            frame_of(json.loads(whole.to_str()))
    assert frame_of(wordpiece()) == (3, 4)
