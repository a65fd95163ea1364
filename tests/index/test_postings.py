"""Segments of the inverted index, against the documents they were built from."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recall.errors import IndexFormatError
from recall.index.bundle import write_bundle
from recall.index.postings import DESCRIPTION, HEAD, HEAD_CHARS, TITLE, Document, Segment, body_head
from recall.text.tokens import terms

PIECES = [
    "deploy",
    "deployment",
    "部署",
    "流程",
    "中",
    " ",
    " ",
    "、",
    "k8s",
    "go",
    "café",
    "𠮷野",
    "👍",
    "\u0301",
    "ระบบ",
    "x" * 30,
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
DOCUMENTS = st.lists(st.tuples(TEXTS, TEXTS, TEXTS), max_size=5)

few = settings(max_examples=30, deadline=None)


def documents(texts: Iterable[tuple[str, str, str]], first: int = 10) -> list[Document]:
    return [
        Document.of(first + number, title=title, description=description, body=body)
        for number, (title, description, body) in enumerate(texts)
    ]


def contents(segment: Segment) -> dict[str, dict[int, tuple[int, int]]]:
    """Every term with its documents: count and fields."""
    found = {}
    every = segment.terms()
    numbers = segment.find(every)
    assert list(numbers) == list(range(len(every)))
    for place, term in enumerate(every):
        number = numbers[place]
        slots, counts, fields, _ = segment.postings([number])
        places = zip(segment.docs[slots].tolist(), counts.tolist(), fields.tolist(), strict=True)
        found[term] = {doc: (count, field) for doc, count, field in places}
    return found


def expected(of: Iterable[Document]) -> dict[str, dict[int, tuple[int, int]]]:
    found: dict[str, dict[int, tuple[int, int]]] = {}
    for document in of:
        for term, fields in document.fields.items():
            found.setdefault(term, {})[document.doc] = (document.counts[term], fields)
    return found


# --- documents


def test_a_document_says_where_its_terms_stand_and_how_often() -> None:
    document = Document.of(1, title="Deploy 部署", description="deploy rules", body="rules of 部署 deploy")
    assert document.fields == {
        "deploy": TITLE | DESCRIPTION | HEAD,
        "部署": TITLE | HEAD,
        "rules": DESCRIPTION | HEAD,
        "of": HEAD,
    }
    assert document.counts == {"deploy": 3, "部署": 2, "rules": 2, "of": 1}


def test_a_term_behind_the_head_counts_but_stands_in_no_field() -> None:
    document = Document.of(1, title="", description="", body="early " + "x" * HEAD_CHARS + " late")
    assert document.fields["early"] == HEAD
    assert document.fields["late"] == 0
    assert document.counts["late"] == 1


def test_a_word_that_the_head_cuts_stands_there_as_its_beginning() -> None:
    document = Document.of(1, title="", description="", body=" " * (HEAD_CHARS - 4) + "deployment")
    assert document.fields == {"depl": HEAD, "deployment": 0}
    assert (document.counts["depl"], document.counts["deployment"]) == (0, 1)


def test_the_head_is_counted_in_characters() -> None:
    """Deviations V2: an emoji is one character, not two units."""
    assert body_head("👍" * HEAD_CHARS + "late") == "👍" * HEAD_CHARS


def test_a_body_that_says_that_there_is_none_has_no_head() -> None:
    assert body_head("_No entries yet._") == ""
    assert body_head("_No entries yet._ But soon.") == "_No entries yet._ But soon."


# --- segments


def test_a_segment_of_nothing_is_empty() -> None:
    segment = Segment.build([])
    assert (len(segment.docs), segment.size, segment.terms()) == (0, 0, [])
    assert segment.find(["deploy"]) == {}
    assert segment.containing("deploy").tolist() == []


@few
@given(texts=DOCUMENTS)
def test_a_segment_holds_what_its_documents_hold(texts: list[tuple[str, str, str]]) -> None:
    of = documents(texts)
    segment = Segment.build(of)
    assert contents(segment) == expected(of)
    assert segment.docs.tolist() == [document.doc for document in of]
    assert segment.lengths.tolist() == [document.counts.total() for document in of]


@few
@given(texts=DOCUMENTS)
def test_terms_are_in_byte_order_and_slots_rise(texts: list[tuple[str, str, str]]) -> None:
    segment = Segment.build(documents(texts))
    encoded = [term.encode() for term in segment.terms()]
    assert encoded == sorted(set(encoded))
    for number in range(segment.size):
        slots = segment.postings([number]).slots.tolist()
        assert slots
        assert slots == sorted(set(slots))


@few
@given(texts=DOCUMENTS, part=st.sampled_from(["plo", "deploy", "xxx", "afé", "บบร", "𠮷野𠮷", "nothing", "k8s"]))
def test_containing_finds_every_term_with_that_part(texts: list[tuple[str, str, str]], part: str) -> None:
    segment = Segment.build(documents(texts))
    vocabulary = segment.terms()
    assert [vocabulary[number] for number in segment.containing(part).tolist()] == [
        term for term in vocabulary if part in term
    ]


def test_a_part_longer_than_all_terms_that_have_its_trigrams_is_nowhere() -> None:
    segment = Segment.build([Document.of(0, title="aaaa", description="", body="")])
    for length in range(3, 12):
        assert segment.containing("a" * length).tolist() == ([0] if length < 5 else [])


def test_all_trigrams_of_a_part_in_a_term_do_not_make_it_a_part() -> None:
    segment = Segment.build(documents([("abcxbcd bcdabc", "", "")]))
    assert segment.containing("abcd").tolist() == []


@few
@given(texts=DOCUMENTS)
def test_a_written_segment_is_read_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, texts: list[tuple[str, str, str]]
) -> None:
    file = tmp_path_factory.mktemp("segment") / "abc.postings"
    built = Segment.build(documents(texts))
    built.write(file)
    opened = Segment.open(file)
    assert (opened.name, opened.nbytes) == ("abc", built.nbytes)
    assert contents(opened) == contents(built)
    assert opened.lengths.tolist() == built.lengths.tolist()
    assert [opened.containing(term).tolist() for term in built.terms()] == [
        built.containing(term).tolist() for term in built.terms()
    ]


@few
@given(parts=st.lists(DOCUMENTS, min_size=1, max_size=3), data=st.data())
def test_a_merged_segment_equals_one_built_of_the_living(
    parts: list[list[tuple[str, str, str]]], data: st.DataObject
) -> None:
    of = [documents(texts, first=100 * number) for number, texts in enumerate(parts)]
    alive = [np.asarray(data.draw(st.lists(st.booleans(), min_size=len(d), max_size=len(d))), np.bool_) for d in of]
    merged = Segment.merge([(Segment.build(d), flags) for d, flags in zip(of, alive, strict=True)])
    living = [doc for d, flags in zip(of, alive, strict=True) for doc, flag in zip(d, flags, strict=True) if flag]
    built = Segment.build(living)
    assert contents(merged) == contents(built) == expected(living)
    assert merged.docs.tolist() == built.docs.tolist()
    assert merged.lengths.tolist() == built.lengths.tolist()
    assert [merged.containing(term).tolist() for term in built.terms()] == [
        built.containing(term).tolist() for term in built.terms()
    ]


def test_counts_stop_where_sixteen_bits_end() -> None:
    segment = Segment.build(documents([("", "", "go " * 70_000)]))
    assert segment.postings(list(segment.find(["go"]).values())).counts.tolist() == [65_535]
    assert segment.lengths.tolist() == [70_000]


def test_a_lone_surrogate_does_no_harm() -> None:
    segment = Segment.build(documents([("abc\ud800def", "\udfff", "")]))
    assert segment.terms() == ["abc", "def"]
    assert segment.containing("ab\ud800").tolist() == []
    assert segment.find(["\ud800"]) == {}


@few
@given(text=TEXTS)
def test_every_term_of_a_text_is_found(text: str) -> None:
    segment = Segment.build(documents([(text, "", "")]))
    wanted = list(terms(text))
    assert [segment.terms()[number] for number in segment.find(wanted).values()] == wanted


def test_terms_that_begin_alike_are_told_apart_and_absent_ones_are_left_out() -> None:
    segment = Segment.build(documents([("abcdefgh abcdefghi abcdefghij 数据 数据库", "", "")]))
    wanted = ["abcdefghij", "abcdefg", "abcdefgh", "abcdefghia", "数据", "zz", "abcdefghi", "", "据库", "abcdefghij"]
    found = segment.find(wanted)
    assert {place: segment.terms()[number] for place, number in found.items()} == {
        place: wanted[place] for place in (0, 2, 4, 6, 8, 9)
    }


@pytest.mark.parametrize("content", [None, b"", b"no segment at all"])
def test_a_file_that_is_no_segment_has_to_be_made_anew(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "abc.postings"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(IndexFormatError, match=r"abc\.postings"):
        Segment.open(file)


@pytest.mark.parametrize("missing", ["docs", "lengths"])
def test_a_bundle_of_other_arrays_is_no_segment(tmp_path: Path, missing: str) -> None:
    built = Segment.build(documents([("deploy", "", "")]))
    write_bundle(tmp_path / "abc.postings", {name: array for name, array in built._arrays.items() if name != missing})
    with pytest.raises(IndexFormatError, match=missing):
        Segment.open(tmp_path / "abc.postings")
