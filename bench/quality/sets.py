"""The retrieval sets of the shared folder, and what each may be used to claim."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.runner import REPOSITORY
from recall.apps.testset import Query

HEADLINE: Final = ("realmem", "vehiclemem", "real_memories", "precisionmembench")
"""Sets that nobody looked at while the model's head was chosen, and that are like memories in use."""

TUNED_ON: Final = frozenset(
    {
        "cmrc2018_zh",
        "drcd_zhtw",
        "locomo_sessions",
        "memorybank_en",
        "memorybank_zh",
        "xquad_en",
        "xquad_en2zh",
        "xquad_zh",
        "xquad_zh2en",
    }
)
"""The head of the shipped model was chosen while looking at these."""

CROSS_LINGUAL: Final = frozenset({"xquad_en2zh", "xquad_zh2en"})
"""Words cannot find anything here: an average with them says little about ranking."""

AT_CEILING: Final = frozenset({"cmrc2018_zh", "drcd_zhtw", "xquad_en", "xquad_zh"})
"""Words find nearly all here: only a loss would show."""

_BY_REPOSITORY: Final = "real_memories"


@dataclass(frozen=True, slots=True)
class QualitySet:
    """One retrieval set on the disk.

    Attributes:
        name: of its folder.
        corpus: the folder that ids are below, or all topics in one JSON Lines file.
        queries: JSON Lines of questions.
    """

    name: str
    corpus: Path
    queries: Path

    def cluster(self, query: Query) -> str:
        """What a query is resampled with: its repository, where authors wrote both notes and questions; else itself."""
        return (query.scope or "").partition("/")[0] if self.name == _BY_REPOSITORY else str(query.line)

    def digest(self) -> str:
        """SHA-256 over names and contents of topics and questions, in the order of their names."""
        notes = sorted(self.corpus.rglob("*.md")) if self.corpus.is_dir() else [self.corpus]
        whole = hashlib.sha256()
        for file in [*notes, self.queries]:
            name = file.relative_to(self.queries.parent).as_posix()
            whole.update(f"{name}\0{hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
        return whole.hexdigest()


def role(name: str) -> str:
    """What a figure of this set is worth, in words for a table."""
    if name in HEADLINE:
        return "headline"
    return "tuned on" if name in TUNED_ON else ""


def shared_folder(named: Path | None) -> Path:
    """The folder of shared data: as named, else $RECALL_SHARED, else `shared` beside the checkout."""
    return named or Path(os.environ.get("RECALL_SHARED") or REPOSITORY.parent / "shared")


def find_sets(shared: Path) -> list[QualitySet]:
    """All retrieval sets below `bench`, by name.

    Raises:
        FileNotFoundError: there are none.
    """
    found = [_read(file) for file in sorted((shared / "bench").glob("*/queries.jsonl"))]
    if not found:
        raise FileNotFoundError(f"{shared / 'bench'} holds no retrieval sets; name the folder by --shared")
    return found


def _read(queries: Path) -> QualitySet:
    folder = queries.parent
    packed, notes = folder / "corpus.jsonl", folder / "corpus"
    corpus = packed if packed.exists() else notes if notes.exists() else folder
    return QualitySet(folder.name, corpus, queries)
