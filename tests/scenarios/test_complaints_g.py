"""Complaints from the field, group G: files as people write them."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from recall import Memory

Write = Callable[..., Path]
Open = Callable[..., Memory]

CLEAN = "---\nname: 数据库迁移\ndescription: use it: when the schema changes\ntype: project\n---\nRun it twice.\n"
VARIANTS = {
    "byte order mark": "\ufeff" + CLEAN,
    "carriage returns": CLEAN.replace("\n", "\r\n"),
    "both": "\ufeff" + CLEAN.replace("\n", "\r\n"),
    "double quotes": CLEAN.replace("use it: when the schema changes", '"use it: when the schema changes"'),
    "single quotes": CLEAN.replace("数据库迁移", "'数据库迁移'"),
    "folded": CLEAN.replace("use it: when the schema changes", ">\n  use it: when\n  the schema changes"),
    "folded, stripped": CLEAN.replace("use it: when the schema changes", ">-\n  use it: when the\n  schema changes"),
    "folded, carriage returns": CLEAN.replace("use it: when", ">-\n  use it: when").replace("\n", "\r\n"),
    "blanks": CLEAN.replace("name: 数", "name:    数").replace("移\n", "移  \n"),
}


@pytest.mark.parametrize("text", VARIANTS.values(), ids=VARIANTS)
def test_g41_however_a_header_is_written_it_says_the_same(opened: Open, root: Path, text: str) -> None:
    (root / "odd.md").write_bytes(text.encode("utf-8"))
    (root / "clean.md").write_bytes(CLEAN.encode("utf-8"))
    memory = opened()
    odd, clean = memory.topic("odd"), memory.topic("clean")
    assert (clean.title, clean.description) == ("数据库迁移", "use it: when the schema changes")
    assert (odd.title, odd.description, odd.type, odd.body) == (clean.title, clean.description, clean.type, clean.body)


def test_g42_a_link_is_one_document_or_reported_and_a_loop_ends(
    opened: Open, write: Write, root: Path, tmp_path: Path
) -> None:
    write("a.md", "zebra crossing")
    outside = write("outside.md", "zebra far away", folder=tmp_path / "elsewhere")
    (root / "sub").mkdir()
    (root / "inside.md").symlink_to(root / "a.md")
    (root / "outside.md").symlink_to(outside)
    (root / "sub" / "loop").symlink_to(root)
    (root / "sub" / "self.md").symlink_to(root / "sub" / "self.md")
    memory = opened()
    memory.reindex()
    assert [hit.topic.id for hit in memory.recall("zebra").hits] == ["a.md"]
    skipped = dict(memory.status()[0].report.skipped)
    assert set(skipped) == {"inside.md", "outside.md", "sub/loop", "sub/self.md"}
    assert str(outside) in skipped["outside.md"]


@pytest.mark.skipif(sys.platform == "win32", reason="names that Windows does not allow")
def test_g43_a_project_with_blanks_dots_and_colons_in_its_path_has_one_memory_and_other_spellings_are_told(
    tmp_path: Path, surroundings: dict[str, str]
) -> None:
    project = tmp_path / "C:\\Users\\x\\One Drive" / "a.b_c"
    project.mkdir(parents=True)
    store = tmp_path / "home" / ".claude" / "projects"
    right = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in str(project))
    naive = [str(project).replace("/", "-").replace("\\", "-")]
    naive.append(naive[0].replace(".", "-"))
    for name in (right, *naive):
        (store / name / "memory").mkdir(parents=True)
        (store / name / "memory" / "a.md").write_text(name, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "recall", "where", "--json", "--layout", "claude", "--project", str(project)],
        env=surroundings, capture_output=True, encoding="utf-8",
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    chosen = json.loads(done.stdout)["chosen"]
    assert chosen["root"] == str(store / right / "memory")
    assert right.endswith("-C--Users-x-One-Drive-a-b-c")
    assert all(any(str(store / name) in reason for reason in chosen["reasons"]) for name in naive)
