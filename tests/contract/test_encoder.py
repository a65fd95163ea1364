"""What every Encoder does, and what only one with a model does: meaning across languages."""

import functools

import numpy as np
import pytest

from recall.index.base import Encoder
from recall.index.hashing import HashingEncoder
from recall.index.onnx import OnnxEncoder
from recall.text.chunks import chunk_topic, encoder_tokens

NOTES = [
    ("每周二和周四可以发布，周五下午不上线", "Releases go out on Tuesdays and Thursdays, never on Friday afternoon"),
    ("我喝咖啡不加糖，只要一点牛奶", "I take my coffee without sugar and with a little milk"),
    ("数据库每晚三点备份到另一个机房", "The database is backed up every night at three to another data centre"),
    ("女儿对花生过敏，出门要带药", "My daughter is allergic to peanuts, carry her medicine when going out"),
    ("代码里的注释请用英文写", "Please write the comments in the code in English"),
    ("上次宕机是因为证书过期没人续", "The last outage happened because nobody renewed the expired certificate"),
    ("老板喜欢简短的周报，三句话就够", "The boss likes short weekly reports, three sentences are enough"),
    ("搬家以后快递寄到公司前台", "Since we moved, parcels go to the front desk of the office"),
]

ODD_TEXTS = {
    "empty": "",
    "blanks": " \n\t ",
    "nul": "部署\x00deploy",
    "lone surrogate": "部署\ud800deploy",
    "reversed surrogates": "\udc00\ud800",
    "emoji": "👍👨‍👩‍👧",
    "combining marks": "e" + "\u0301" * 200,
    "control characters": "".join(map(chr, range(32))),
    "one endless word": "a" * 3_000,
    "very long": "每周二和周四可以发布。 Releases go out. " * 300,
    "private use": "\ue000\U0010ffff\ufffe",
}


@functools.cache
def onnx() -> OnnxEncoder:
    encoder = OnnxEncoder()
    encoder.warm_up()
    return encoder


@pytest.fixture(params=["hashing", pytest.param("onnx", marks=pytest.mark.model)])
def encoder(request: pytest.FixtureRequest) -> Encoder:
    return HashingEncoder() if request.param == "hashing" else onnx()


def test_an_encoder_says_what_it_is(encoder: Encoder) -> None:
    assert isinstance(encoder, Encoder)
    assert encoder.name
    assert encoder.fingerprint.startswith(encoder.name)
    assert encoder.dim > 0
    assert encoder.chunk_tokens > 0
    assert 0 < encoder.floor < 1


def test_documents_get_one_unit_row_each(encoder: Encoder) -> None:
    rows = encoder.encode_documents([text for pair in NOTES for text in pair])
    assert rows.shape == (2 * len(NOTES), encoder.dim)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)


def test_a_query_gets_one_unit_vector(encoder: Encoder) -> None:
    vector = encoder.encode_query("周五能发布吗")
    assert vector.shape == (encoder.dim,)
    assert vector.dtype == np.float32
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


def test_no_documents_get_no_rows(encoder: Encoder) -> None:
    rows = encoder.encode_documents([])
    assert rows.shape == (0, encoder.dim)
    assert rows.dtype == np.float32


def test_the_same_text_gets_the_same_bits_alone_and_in_company(encoder: Encoder) -> None:
    texts = [NOTES[0][0], NOTES[1][1], "", NOTES[0][0]]
    rows = encoder.encode_documents(texts)
    for row, text in zip(rows, texts, strict=True):
        assert row.tobytes() == encoder.encode_documents([text])[0].tobytes()
    assert encoder.encode_query(texts[0]).tobytes() == encoder.encode_query(texts[0]).tobytes()


def test_other_texts_get_other_vectors(encoder: Encoder) -> None:
    rows = encoder.encode_documents([text for pair in NOTES for text in pair])
    assert len({row.tobytes() for row in rows}) == len(rows)


@pytest.mark.parametrize("text", ODD_TEXTS.values(), ids=ODD_TEXTS)
def test_odd_texts_get_a_unit_vector_or_a_zero_one(encoder: Encoder, text: str) -> None:
    for vector in (encoder.encode_query(text), *encoder.encode_documents([text])):
        assert np.isfinite(vector).all()
        assert np.linalg.norm(vector) == pytest.approx(1 if vector.any() else 0, abs=1e-5)


@pytest.mark.parametrize("odd", ["\ud800", "\x00"])
def test_a_broken_character_does_not_spoil_the_words_around_it(encoder: Encoder, odd: str) -> None:
    whole, broken, other = encoder.encode_documents(
        ["deploy on Tuesdays, backup on Mondays", f"deploy on Tuesdays,{odd} backup on Mondays", "peanut allergy"]
    )
    assert float(whole @ broken) > 0.8 > float(whole @ other)


@pytest.mark.parametrize(
    "sentence",
    [
        pytest.param("The reconciliation service rereads the entire clearing table. ", id="english"),
        pytest.param("生产环境每周二、周四可以发布，周五下午不发布。", id="chinese"),
        pytest.param("用 kubectl 查 pod 状态，超过 500ms 就 rollback。", id="mixed"),
        pytest.param("    for key, value in sorted(rows.items()): total += value * 2\n", id="code"),
        pytest.param("| gateway | 12 | ok | 2024-05-01 |\n", id="table"),
        pytest.param("https://grafana.example.com/d/pods/overview?from=now-6h\n", id="addresses"),
        pytest.param("Сервис сверки каждую ночь перечитывает таблицу. ", id="cyrillic"),
        pytest.param("照合サービスは毎晩テーブル全体を読み直します。", id="japanese"),
        pytest.param("정산 서비스는 매일 밤 테이블을 다시 읽습니다. ", id="korean"),
        pytest.param("👍🎉🚀🎯📦🔥\n", id="emoji"),
    ],
)
def test_a_chunk_of_the_size_that_the_encoder_names_is_read_to_its_end(encoder: Encoder, sentence: str) -> None:
    """Otherwise the tail of a topic is invisible to the search by meaning, and nobody is told."""
    first, *_ = chunk_topic("Title", "what it is about", sentence * 400, budget=encoder.chunk_tokens)
    assert encoder_tokens(first.text) > 0.85 * encoder.chunk_tokens
    changed = f"{first.text[:-2].rstrip()} 花生"
    assert encoder_tokens(changed) <= encoder.chunk_tokens + 2
    one, other = encoder.encode_documents([first.text, changed])
    assert not np.array_equal(one, other)


def test_a_fingerprint_is_the_same_for_everybody(encoder: Encoder) -> None:
    again: Encoder = HashingEncoder() if isinstance(encoder, HashingEncoder) else OnnxEncoder()
    assert again.fingerprint == encoder.fingerprint


@pytest.mark.model
def test_a_note_lies_nearest_to_its_translation() -> None:
    chinese = onnx().encode_documents([zh for zh, _ in NOTES])
    english = onnx().encode_documents([en for _, en in NOTES])
    cosines = chinese @ english.T
    right = cosines.diagonal()
    wrong = np.where(np.eye(len(NOTES), dtype=np.bool_), -1, cosines)
    assert (right > wrong.max(axis=1)).all()  # Chinese to English
    assert (right > wrong.max(axis=0)).all()  # English to Chinese


@pytest.mark.model
@pytest.mark.parametrize(
    ("query", "number"),
    [
        ("can we ship on Friday", 0),
        ("周五能上线吗", 0),
        ("how does the user like coffee", 1),
        ("食物过敏", 3),
        ("what language should comments be in", 4),
        ("why did production go down", 5),
        ("包裹寄到哪里", 7),
    ],
)
def test_a_query_finds_its_note_in_either_language(query: str, number: int) -> None:
    vector = onnx().encode_query(query)
    for notes in zip(*NOTES, strict=True):
        assert int(np.argmax(onnx().encode_documents(notes) @ vector)) == number
