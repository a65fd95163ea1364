"""Whatever lies in the folder, whatever is asked: an answer from what is left, a line for the rest, files untouched."""

import os
import shutil
import socket
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from recall import Config, Memory, ModelNotFoundError, Recall, RootStatus, Strategy
from recall.config import EncoderConfig, IndexConfig, SearchConfig
from recall.index.base import Vector, Vectors
from recall.index.encoders import make_encoder
from recall.index.hashing import HashingEncoder
from recall.index.onnx import DEFAULT_MODEL, models_folder

LONG_S = 60.0  # an upper bound that only a broken implementation reaches

Write = Callable[..., Path]
Open = Callable[..., Memory]


def ids(found: Recall) -> list[str]:
    return [hit.topic.id for hit in found.hits]


def told(status: RootStatus) -> dict[str, str]:
    """Everything that is said about files."""
    return dict(status.report.skipped) | dict(status.problems) | dict(status.report.warnings)


# --- what lies in the folder


@pytest.fixture
def zoo(root: Path, write: Write) -> Path:
    """A folder with everything that people and programs leave in one, and one topic about zebras."""
    write("good.md", "the zebra crossing is here")
    os.mkfifo(root / "pipe.md")
    with socket.socket(socket.AF_UNIX) as listener:
        os.chdir(root)  # names of sockets are short
        listener.bind("socket.md")
    (root / "folder.md").mkdir()
    write("folder.md/inside.md", "a topic in a folder that is named like one")
    (root / "binary.md").write_bytes(bytes(range(256)) * 40)
    (root / "invalid.md").write_bytes("---\nname: 坏\n---\nbroken ".encode() + b"\xff\xfe\xc3 utf tiger")
    (root / "nul.md").write_bytes(b"---\nname: nul\n---\none \0 in a text about lions")
    (root / "empty.md").write_bytes(b"")
    (root / "yaml.md").write_text(
        "---\nname: [unclosed\n  : : {\ntype: *x\n---\nbroken header, giraffe", encoding="utf-8"
    )
    (root / "huge.md").write_bytes(b"")
    os.truncate(root / "huge.md", 50 * 1024 * 1024)
    for number, name in enumerate(("case.md", "Case.md", "CASE.md")):
        write(name, f"written as {name}, spelling {number}")
    for form in ("NFC", "NFD"):
        write(f"{unicodedata.normalize(form, 'é')}.md", f"a name in {form}", title=form)
    write("记忆/项目 🦓.md", "表情符号文件名：斑马线")
    (root / "loop").symlink_to(root)
    (root / "self.md").symlink_to("self.md")
    (root / "nothing.md").symlink_to("no such file")
    (root / "away.md").symlink_to("/etc/hostname")
    (root / "twice.md").symlink_to("good.md")
    return root


@pytest.fixture(autouse=True)
def _stay(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes with names")
def test_every_file_is_found_or_reported(opened: Open, zoo: Path) -> None:
    memory = opened()
    memory.reindex()
    (status,) = memory.status()
    said = told(status)
    for name in (
        "pipe.md",
        "socket.md",
        "binary.md",
        "huge.md",
        "loop",
        "self.md",
        "nothing.md",
        "away.md",
        "twice.md",
    ):
        assert name in said
    assert "NUL" in said["nul.md"]
    assert "UTF-8" in said["invalid.md"]
    assert "16,777,216" in said["huge.md"]
    listed = {topic.path for topic in memory.topics()} | set(said)
    assert {str(path.relative_to(zoo)) for path in zoo.rglob("*.md") if path.name != "folder.md"} <= listed


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("zebra crossing", "good.md"),
        ("utf tiger", "invalid.md"),
        ("text about lions", "nul.md"),
        ("giraffe", "yaml.md"),
        ("斑马线", "记忆/项目 🦓.md"),
        ("folder that is named like one", "folder.md/inside.md"),
        ("written as", "case.md"),
        ("name in NFD", "e\u0301.md"),
        ("name in NFC", "\u00e9.md"),
    ],
)
def test_what_can_be_read_is_found(opened: Open, zoo: Path, query: str, expected: str) -> None:
    assert expected in ids(opened().recall(query))


def picture(root: Path) -> dict[str, tuple[int, int, int, bytes]]:
    """Mode, time, number and content of everything below the root."""
    found = {}
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        found[str(path)] = (status.st_mode, status.st_mtime_ns, status.st_ino, content)
    return found


def test_no_file_of_the_user_is_touched(opened: Open, zoo: Path) -> None:
    for path in zoo.glob("*e.md"):
        if path.is_file():
            os.utime(path, (1000, 1000))
    before, folder_time = picture(zoo), zoo.stat().st_mtime_ns
    memory = opened(background=True)
    memory.recall("zebra")
    memory.prefetch("tiger").first(LONG_S)
    memory.reindex(full=True)
    memory.status()
    memory.close()
    assert picture(zoo) == before
    assert zoo.stat().st_mtime_ns == folder_time


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_reported(opened: Open, write: Write) -> None:
    write("secret.md", "zebra").chmod(0)
    write("open.md", "zebra")
    memory = opened()
    assert ids(memory.recall("zebra")) == ["open.md"]
    assert "secret.md" in told(memory.status()[0])


def test_a_name_that_is_no_text_is_reported(opened: Open, root: Path, write: Write) -> None:
    write("good.md", "zebra")
    descriptor = os.open(os.fsencode(root) + b"/bad\xff.md", os.O_WRONLY | os.O_CREAT)
    os.close(descriptor)
    memory = opened()
    assert ids(memory.recall("zebra")) == ["good.md"]
    assert any("bad" in path for path in told(memory.status()[0]))


def test_half_a_character_in_a_header_keeps_nobody_from_the_index(opened: Open, root: Path, write: Write) -> None:
    write("good.md", "zebra")
    (root / "half.md").write_text('---\nname: "x \\ud83d y"\n---\ntiger', encoding="utf-8")
    memory = opened()
    assert ids(memory.recall("tiger")) == ["half.md"]
    assert ids(memory.recall("zebra")) == ["good.md"]


def test_a_date_in_the_far_future_is_taken(opened: Open, write: Write) -> None:
    os.utime(write("later.md", "zebra"), ns=(13_570_000_000_000_000_000,) * 2)
    os.utime(write("long ago.md", "zebra"), ns=(-5_000_000_000_000_000_000,) * 2)
    memory = opened()
    assert sorted(ids(memory.recall("zebra"))) == ["later.md", "long ago.md"]
    assert memory.recall("zebra").prompt


def test_one_endless_line_among_others_keeps_nobody_from_the_index(
    opened: Open, root: Path, write: Write, config: Config
) -> None:
    (root / "line.md").write_text(" ".join(f"lorem{number}" for number in range(5_000)) + " needle", encoding="utf-8")
    for number in range(3):
        write(f"{number}.md", f"animal{number}")
    memory = opened(config=Config(search=SearchConfig(floor=0.001), index=config.index, encoder=config.encoder))
    assert ids(memory.recall("animal1"))[:1] == ["1.md"]
    report = memory.reindex()
    assert report.embedded > 20
    assert report.unembedded == ()
    assert ids(memory.recall("needle"))[:1] == ["line.md"]


# --- what the folder itself is


def a_file(root: Path) -> None:
    shutil.rmtree(root)
    root.write_text("not a folder", encoding="utf-8")


def a_loop(root: Path) -> None:
    shutil.rmtree(root)
    root.symlink_to(root)


def missing(root: Path) -> None:
    shutil.rmtree(root)


@pytest.mark.parametrize("become", [a_file, a_loop, missing])
def test_a_memory_that_is_no_folder_is_an_empty_one_that_is_named(
    opened: Open, root: Path, become: Callable[[Path], None]
) -> None:
    become(root)
    memory = opened()
    found = memory.recall("zebra")
    assert (found.hits, found.strategy) == ((), Strategy.NONE)
    assert str(root) in found.coverage.note
    assert str(root) in memory.reindex().note
    assert str(root) in memory.status()[0].note
    assert memory.prefetch("zebra").first(LONG_S) is None
    assert memory.topics() == []


def test_a_memory_that_goes_and_comes_back_asks_the_model_for_nothing(opened: Open, root: Path, write: Write) -> None:
    write("a.md", "zebra")
    memory = opened()
    memory.reindex()
    root.rename(root.with_name("aside"))
    assert memory.recall("zebra").hits == ()
    root.with_name("aside").rename(root)
    assert ids(memory.recall("zebra")) == ["a.md"]
    assert memory.reindex().embedded == 0


def test_a_memory_in_a_folder_whose_name_is_no_text_works(opened: Open, tmp_path: Path, write: Write) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/m\xff"))
    write("a.md", "zebra", folder=folder)
    assert ids(opened(folder).recall("zebra")) == ["a.md"]


def test_an_empty_memory_answers_nothing(opened: Open) -> None:
    memory = opened()
    found = memory.recall("zebra")
    assert (found.hits, found.prompt, found.strategy, found.coverage.topics) == ((), "", Strategy.NONE, 0)
    assert memory.reindex().embedded == 0


# --- what is asked


@pytest.mark.parametrize("query", ["", " ", "\n\t\u3000\u00a0", "？！…", "\0", "👍", "\ud800", "a"])
def test_a_query_that_says_nothing_finds_nothing(opened: Open, write: Write, query: str) -> None:
    write("good.md", "the zebra crossing is here", title="title")
    memory = opened()
    assert memory.recall(query).hits == ()
    assert memory.prefetch(query).first(LONG_S) is None


@pytest.mark.parametrize("k", [0, -1, -(10**9)])
def test_who_wants_no_hits_gets_none(opened: Open, write: Write, k: int) -> None:
    write("good.md", "zebra")
    assert opened().recall("zebra", k=k) == Recall("zebra")


def test_of_a_query_without_end_beginning_and_end_count(opened: Open, write: Write) -> None:
    write("first.md", "zebra crossing")
    write("last.md", "tiger crossing")
    memory = opened()
    assert ids(memory.recall("zebra crossing " + "x" * 4_000_000 + " ok"))[:1] == ["first.md"]
    delivery = memory.prefetch("y" * 4_000_000 + " tiger crossing").first(LONG_S)
    assert delivery is not None
    assert ids(delivery.recall)[:1] == ["last.md"]


@pytest.mark.parametrize(
    "query", ["zebra \ud800", "zebra\0crossing", "ＺＥＢＲＡ", "zebra'; crossing) --", 'zebra\\%_*"[']
)
def test_a_strange_query_is_a_query(opened: Open, write: Write, query: str) -> None:
    write("good.md", "the zebra crossing is here")
    assert ids(opened().recall(query)) == ["good.md"]


# --- a model that is missing or fails


@pytest.fixture
def damaged_model(tmp_path: Path) -> Path:
    """A copy of the shipped model without its weights."""
    folder = tmp_path / "model"
    folder.mkdir()
    for name in ("model.yaml", "tokenizer.json"):
        shutil.copy(models_folder() / DEFAULT_MODEL / name, folder)
    return folder


def assert_words_answer(memory: Memory, file: Path) -> None:
    found = memory.recall("zebra crossing")
    assert (ids(found), found.strategy) == (["good.md"], Strategy.HEURISTIC)
    assert str(file) in found.coverage.note
    assert str(file) in memory.reindex().note
    assert str(file) in memory.status()[0].note
    delivery = memory.prefetch("zebra crossing").first(LONG_S)
    assert delivery is not None
    assert delivery.recall.strategy is Strategy.HEURISTIC


def test_without_its_weights_a_model_is_named_and_words_answer(
    opened: Open, write: Write, config: Config, damaged_model: Path
) -> None:
    write("good.md", "the zebra crossing is here")
    settings = Config(index=config.index, encoder=EncoderConfig(model=str(damaged_model)))
    assert_words_answer(opened(config=settings), damaged_model / "model.onnx")


def test_weights_that_were_damaged_are_named_and_words_answer(
    opened: Open, write: Write, config: Config, damaged_model: Path
) -> None:
    write("good.md", "the zebra crossing is here")
    (damaged_model / "model.onnx").write_bytes(b"nonsense" * 1000)
    settings = Config(index=config.index, encoder=EncoderConfig(model=str(damaged_model)))
    assert_words_answer(opened(config=settings), damaged_model / "model.onnx")


def test_a_folder_without_a_model_is_named_and_words_answer(
    opened: Open, write: Write, config: Config, tmp_path: Path
) -> None:
    write("good.md", "the zebra crossing is here")
    settings = EncoderConfig(model=str(tmp_path / "none"))
    with pytest.raises(ModelNotFoundError, match="none"):
        make_encoder(settings)
    assert_words_answer(opened(config=Config(index=config.index, encoder=settings)), tmp_path / "none" / "model.yaml")


class Failing(HashingEncoder):
    """Fails at documents, or at queries but the first, with errors of its own or with vectors that are no numbers."""

    def __init__(self, at: str, error: Exception | None) -> None:
        super().__init__()
        self.at, self.error, self.queries = at, error, 0

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        return self._fail(len(texts)) if self.at == "documents" else super().encode_documents(texts)

    def encode_query(self, text: str) -> Vector:
        self.queries += 1
        vector: Vector = super().encode_documents([text])[0]
        return self._fail(1)[0] if self.at == "queries" and self.queries > 1 else vector

    def _fail(self, count: int) -> Vectors:
        if self.error:
            raise self.error
        return np.full((count, self.dim), np.nan, np.float32)


@pytest.mark.parametrize("at", ["documents", "queries"])
@pytest.mark.parametrize("error", [RuntimeError("boom"), MemoryError(), None], ids=repr)
def test_an_encoder_that_fails_leaves_the_words(opened: Open, write: Write, at: str, error: Exception | None) -> None:
    write("good.md", "the zebra crossing is here")
    write("other.md", "something else")
    memory = opened(encoder=Failing(at, error))
    assert ids(memory.recall("zebra crossing")) == ["good.md"]
    delivery = memory.prefetch("zebra crossing").first(LONG_S)
    assert delivery is not None
    assert ids(delivery.recall) == ["good.md"]
    if at == "documents":
        assert set(memory.status()[0].problems) == {"good.md", "other.md"}
        assert memory.recall("zebra").coverage.note


def test_zero_vectors_leave_the_words(opened: Open, write: Write) -> None:
    class Empty(HashingEncoder):
        def encode_documents(self, texts: Sequence[str]) -> Vectors:
            return np.zeros((len(texts), self.dim), np.float32)

    write("good.md", "the zebra crossing is here")
    memory = opened(encoder=Empty())
    found = memory.recall("zebra crossing")
    assert ids(found) == ["good.md"]
    assert (found.coverage.topics, found.coverage.embedded) == (1, 0)
    assert list(memory.status()[0].problems) == ["good.md"]


def test_a_cache_that_cannot_be_made_costs_only_a_note(opened: Open, write: Write, tmp_path: Path) -> None:
    write("good.md", "zebra")
    (tmp_path / "file").write_text("", encoding="utf-8")
    settings = Config(index=IndexConfig(cache=str(tmp_path / "file" / "below")), encoder=EncoderConfig(model="hashing"))
    memory = opened(config=settings)
    assert ids(memory.recall("zebra")) == ["good.md"]
    assert str(tmp_path / "file") in memory.recall("zebra").coverage.note
    assert memory.reindex().embedded == 0
