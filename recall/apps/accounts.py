"""Counts the .md files of a memory folder, so that `recall status` can show that each one is accounted for."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from recall.memory.status import RootStatus

_FOLDER_COUNT: Final = re.compile(r", (?:at least )?(\d+) \.md files$")


@dataclass(frozen=True, slots=True)
class Account:
    """One root with its .md files counted apart from the index: files = topics + skipped + failed.

    Attributes:
        status: what the index says of the root.
        files: .md files below it, hidden folders included, links to folders not followed.
        skipped: how many of them the index leaves out.
        failed: how many of them could not be read.
    """

    status: RootStatus
    files: int
    skipped: int
    failed: int

    @property
    def missing(self) -> int:
        """Files that nothing accounts for; below zero when links lead to the same files twice."""
        return self.files - self.status.coverage.topics - self.skipped - self.failed


def account(status: RootStatus) -> Account:
    """Counts what lies in the root, and what the index says of it."""
    return Account(status, count_files(status.root), skipped_files(status.report.skipped), len(status.report.failed))


def count_files(root: Path) -> int:
    """How many .md files, or links named so, lie below the root."""
    return sum(name.endswith(".md") for _, _, names in os.walk(root) for name in names)


def skipped_files(skipped: Sequence[tuple[str, str]]) -> int:
    """How many .md files the reasons stand for; that of a folder says how many lie in it."""
    total = 0
    for path, reason in skipped:
        in_folder = _FOLDER_COUNT.search(reason)
        total += int(in_folder[1]) if in_folder else path.endswith(".md")
    return total
