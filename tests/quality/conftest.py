"""A memory folder made of texts, looked at and mended."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from recall.quality.check import check, fixes
from recall.quality.findings import Finding, Kind
from recall.quality.reading import Contents, read_contents
from recall.store.plan import Folder, IndexMode, Plan

MAX_BYTES = 1 << 20


def topic(body: str = "A fact.", **fields: str) -> str:
    header = {"name": "", "description": "When it matters.", "type": "project"} | fields
    return "---\n" + "".join(f"{key}: {value}\n" for key, value in header.items() if value) + f"---\n\n{body}\n"


class Looked(NamedTuple):
    """A folder that was looked at."""

    contents: Contents
    findings: list[Finding]

    def of(self, kind: Kind) -> list[Finding]:
        return [finding for finding in self.findings if finding.kind is kind]

    def places(self, kind: Kind) -> list[tuple[str, int]]:
        return [(finding.path, finding.line) for finding in self.of(kind)]

    @property
    def plan(self) -> Plan:
        return fixes(self.contents, self.findings)

    @property
    def after(self) -> str:
        """MEMORY.md as it is to be."""
        change, *others = self.plan.changes
        assert not others
        assert change.path == "MEMORY.md"
        assert change.after is not None
        return change.after.decode()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "memory"
    folder.mkdir()
    return folder


@pytest.fixture
def looked(root: Path) -> Callable[..., Looked]:
    """Writes files below the folder and looks at it."""

    def look(files: Mapping[str, str | bytes], mode: IndexMode = IndexMode.CURATED) -> Looked:
        for name, text in files.items():
            file = root / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text if isinstance(text, bytes) else text.encode())
        contents = read_contents(Folder(root, index=mode), max_file_bytes=MAX_BYTES)
        return Looked(contents, check(contents))

    return look
