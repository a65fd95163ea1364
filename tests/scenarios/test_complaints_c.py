"""Complaints from the field, group C: the model that made the vectors is not the one that asks."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from recall import Memory
from recall.index.hashing import HashingEncoder
from recall.index.onnx import DEFAULT_MODEL, models_folder

Write = Callable[..., Path]
Open = Callable[..., Memory]
Held = Callable[[Path], "subprocess.Popen[str]"]

COUNT = 20  # more than an answer gives vectors to


class Other(HashingEncoder):
    """A model of the same width whose vectors mean something else."""

    def __init__(self) -> None:
        super().__init__(384)
        self.name, self.fingerprint = "other", "other-384"


@pytest.fixture
def indexed(opened: Open, write: Write) -> Memory:
    """Twenty topics with vectors of the first model, 384 wide."""
    for number in range(COUNT):
        write(f"{number}.md", f"words of animal{number}")
    memory = opened(encoder=HashingEncoder(384))
    assert memory.reindex().embedded == COUNT
    return memory


@pytest.mark.parametrize("other", [HashingEncoder(768), Other()], ids=["c18, another width", "c20, the same width"])
def test_c18_c20_vectors_of_another_model_are_not_searched_words_answer_and_both_models_are_named(
    indexed: Memory, opened: Open, other: HashingEncoder, held: Held
) -> None:
    """While somebody else keeps the vectors from being made anew, which else the answer itself begins with."""
    (status,) = indexed.status()
    assert status.encoder == HashingEncoder(384).fingerprint
    held(status.folder / "vectors.lock")
    found = opened(encoder=other).recall("animal3")
    assert [hit.topic.id for hit in found.hits] == ["3.md"]
    assert (found.hits[0].cosine or 0.0) == 0.0
    assert found.hits[0].lexical is not None
    assert HashingEncoder(384).fingerprint in found.coverage.note
    assert other.fingerprint in found.coverage.note


@pytest.mark.parametrize("other", [HashingEncoder(768), Other()], ids=["another width", "the same width"])
def test_c19_c21_a_reindex_after_a_change_of_model_makes_all_vectors_anew_in_the_place_of_the_old(
    indexed: Memory, opened: Open, other: HashingEncoder
) -> None:
    memory = opened(encoder=other)
    report = memory.reindex()
    assert (report.embedded, report.kept, report.unembedded) == (COUNT, COUNT, ())
    (status,) = memory.status()
    assert (status.encoder, status.coverage.embedded, status.note) == (other.fingerprint, COUNT, "")
    cosines = {hit.topic.id: hit.cosine for hit in memory.recall("animal3 words", k=COUNT).hits}
    right = other.encode_documents(["3\nwords of animal3"])[0] @ other.encode_query("animal3 words")
    assert cosines["3.md"] == pytest.approx(float(right), abs=1e-3)


@pytest.mark.model
def test_c22_a_model_whose_width_is_not_what_its_card_says_is_named_and_counted(
    write: Write, tmp_path: Path, cli: Callable[..., "subprocess.CompletedProcess[str]"]
) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    for name in ("model.onnx", "tokenizer.json"):
        (folder / name).symlink_to(models_folder() / DEFAULT_MODEL / name)
    card = (models_folder() / DEFAULT_MODEL / "model.yaml").read_text(encoding="utf-8")
    assert "dim: 384" in card
    (folder / "model.yaml").write_text(card.replace("dim: 384", "dim: 768"), encoding="utf-8")
    for number in range(3):
        write(f"{number}.md", f"words of animal{number}")
    found = cli("search", "animal2", "--set", f"encoder.model={folder}")
    assert found.returncode == 0
    assert "2.md" in found.stdout
    assert "0 of 3 topics with vectors" in found.stdout
    assert "384" in found.stdout  # what the model really gives
    assert "vectors: 0 of 3 topics" in cli("status", "--set", f"encoder.model={folder}").stdout
    assert cli("reindex", "--set", f"encoder.model={folder}").returncode == 1
