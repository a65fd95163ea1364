"""Complaints about capacity, worktrees and projects (spec: complaints, H)."""

import subprocess
from collections.abc import Callable
from pathlib import Path

from recall.store.index_file import load_index

Cli = Callable[..., "subprocess.CompletedProcess[str]"]


def test_h44_what_an_index_of_238_lines_loses_is_named_and_compaction_offered(
    root: Path, write: Callable[..., Path], cli: Cli
) -> None:
    """Past 200 lines entries vanish, the newest first: nobody may lose them without a word."""
    for number in range(1, 239):
        write(f"rule_{number:03}.md", f"Rule number {number}.")
    lines = "".join(f"- [Rule {number}](rule_{number:03}.md) — hook {number}\n" for number in range(1, 239))
    (root / "MEMORY.md").write_text(lines, encoding="utf-8")

    view = load_index(root)
    assert (view.dropped_lines, view.first_dropped_line) == (38, 201)
    assert "hook 201" in view.warning
    assert "below 140 lines" in view.warning

    checked = cli("check")
    assert checked.returncode == 1, checked.stderr
    (told,) = [line for line in checked.stdout.splitlines() if "MEMORY.md" in line]
    assert "MEMORY.md:201: error: " in told
    assert "38 are not, from line 201 on, beginning with: - [Rule 201](rule_201.md) — hook 201" in told
    assert "below 140 lines" in told
    assert (root / "MEMORY.md").read_text(encoding="utf-8") == lines
