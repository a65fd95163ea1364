"""The conformance vectors for qwen-code's paths and Wave's project ids."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from recall.store.layout import Layout, locate
from recall.store.projects import sanitise, wave_key

pytestmark = pytest.mark.vectors

OVERRIDDEN: dict[str, str] = {}
"""Case id -> row of deviations that is followed instead; none so far."""


def cases(file: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))["cases"]
    return found


def test_every_qwen_path_is_the_hosts(shared: Path, tmp_path: Path) -> None:
    root, base = tmp_path / "root", tmp_path / "base"
    for folder in ("src/deep", ".git", "plain/sub", "inner/.git", "inner/a", "pkg/a", "wt/src"):
        (root / folder).mkdir(parents=True)
    (root / "wt" / ".git").write_text("gitdir: ../.git/worktrees/wt\n", encoding="utf-8")
    plain = tmp_path / "elsewhere"
    wrong = []
    for case in cases(shared / "vectors" / "qwen" / "paths" / "dev.json"):
        if "sanitize" in case["tags"]:
            got, expected = sanitise(case["input"]), case["expected"]
        else:
            # The case without a repository stands apart, because the others need one at $ROOT.
            top = plain if case["id"] == "no-git" else root
            start = Path(case["start"].replace("$ROOT", str(top)))
            env = {"QWEN_CODE_MEMORY_BASE_DIR": str(base), **case["env"]}
            place = locate(start, layout=Layout.QWEN, env=env, home=None).chosen
            got = str(place.root)
            expected = case["expected"].replace("$BASE", str(base)).replace("<sanitized $ROOT>", sanitise(str(top)))
        if got != expected and case["id"] not in OVERRIDDEN:
            wrong.append((case["id"], expected, got))
    assert not wrong


def test_every_wave_project_name_is_the_hosts(shared: Path) -> None:
    found = [case for case in cases(shared / "vectors" / "wave" / "dev" / "project_id.json") if case["cat"] == "encode"]
    assert found
    wrong = [
        (case["id"], case["expected"], wave_key(case["path"]))
        for case in found
        if "ambiguous" not in case and wave_key(case["path"]) != case["expected"]
    ]
    assert not wrong


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_wave_worktrees_of_one_repository_share_one_id(shared: Path, tmp_path: Path) -> None:
    def git(*words: str, at: Path) -> None:
        subprocess.run(
            ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *words],
            cwd=at,
            check=True,
            capture_output=True,
        )

    repo = tmp_path / "repo"
    (repo / "pkg" / "a").mkdir(parents=True)
    (tmp_path / "plain" / "sub").mkdir(parents=True)
    git("init", at=repo)
    git("commit", "--allow-empty", "-m", "x", at=repo)
    git("worktree", "add", str(tmp_path / "wt"), at=repo)

    def folder(name: str) -> Path:
        return locate(tmp_path / name, layout=Layout.WAVE, env={}, home=tmp_path / "home").chosen.root

    checked = 0
    for case in cases(shared / "vectors" / "wave" / "dev" / "project_id.json"):
        if case["cat"] != "git" or "ambiguous" in case:
            continue
        checked += 1
        assert folder(case["directory"]) == folder(case["expected_same_id_as"]), case["id"]
    assert checked
    assert folder("repo") != folder("plain") != folder("plain/sub")
