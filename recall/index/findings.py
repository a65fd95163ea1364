"""What can be wrong with the derived data of a memory root, as records: a check makes them, a doctor mends by them."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from recall.store.topics import Scope


class Kind(StrEnum):
    """What is wrong."""

    ROOT = "root"
    """The memory folder is not there or cannot be listed."""
    CATALOG = "catalog"
    """The SQLite file cannot be read, fails its own check, holds odd values or is of another version."""
    GONE = "gone"
    """A topic whose file is gone."""
    STALE = "stale"
    """A topic whose stored text is not that of its file."""
    UNINDEXED = "unindexed"
    """A file without a topic."""
    PENDING = "pending"
    """Topics that are still to get their vectors."""
    UNUSABLE = "unusable"
    """Topics that the model gave no usable vector for."""
    INCOMPLETE = "incomplete"
    """A topic that is said to have all its vectors and has not, or has too many."""
    MISPLACED = "misplaced"
    """A topic with a chunk that points beyond the vectors or at the vector of another text."""
    STRAY = "stray"
    """Chunks whose topic is gone."""
    VECTOR = "vector"
    """A topic with a vector that is not of unit length or is no number."""
    VECTOR_FILE = "vector_file"
    """The file of vectors is missing, too short or of impossible size."""
    DIGEST = "digest"
    """Texts whose vector lies beyond the rows that there are."""
    GHOSTS = "ghosts"
    """So many vectors that nobody uses that they should have been compacted away."""
    LOST = "lost"
    """A stored vector that a search for it does not find."""
    MODEL = "model"
    """The model cannot be used, or made other vectors than those that are stored."""
    POSTINGS = "postings"
    """A file of postings that is damaged or missing, or does not say of a topic what its text says."""
    ORPHAN = "orphan"
    """A file of derived data that nobody names."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The root to look at.

    Attributes:
        folder: where its derived data lies.
        root: the memory folder.
        scope: whose memory it is.
        max_file_bytes: larger files are no topics.
    """

    folder: Path
    root: Path
    scope: Scope
    max_file_bytes: int


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be.

    Attributes:
        kind: what sort of thing.
        what: path of the topic, or name of the file of derived data.
        sentence: what is wrong with it.
        mendable: whether `mend` can do something about it.
        harmless: whether no answer is the worse for it and ordinary use sets it right; such a finding is no fault.
    """

    kind: Kind
    what: str
    sentence: str
    mendable: bool = True
    harmless: bool = False


@dataclass(frozen=True, slots=True)
class Counts:
    """What there is; all zero where nothing is indexed.

    Attributes:
        files: topic files in the folder.
        topics: topics in the catalog.
        embedded: topics with all their vectors.
        chunks: pieces of topics that have a vector.
        vectors: stored vectors.
        unused: stored vectors that no chunk uses (ghosts): of texts that changed or went, kept in case they return.
        segments: files of postings.
    """

    files: int = 0
    topics: int = 0
    embedded: int = 0
    chunks: int = 0
    vectors: int = 0
    unused: int = 0
    segments: int = 0


@dataclass(frozen=True, slots=True)
class Health:
    """What a check of one root found.

    Attributes:
        findings: all that is not as it should be, faults and harmless things.
        counts: what there is.
        sampled: what was looked at in part only, and what could not be looked at, a sentence each.
    """

    findings: tuple[Finding, ...] = ()
    counts: Counts = Counts()
    sampled: tuple[str, ...] = ()

    @property
    def faults(self) -> tuple[Finding, ...]:
        """The findings that are not harmless."""
        return tuple(finding for finding in self.findings if not finding.harmless)
