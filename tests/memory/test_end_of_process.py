"""A host that ends in the midst of the work: its process ends as it should, with its own exit status and in silence."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

_SCRIPT = """
import sys, threading, time
from pathlib import Path
from recall import Memory
from recall.config import load

root, cache = map(Path, sys.argv[1:])
config = load(arguments={"index.cache": str(cache), "encoder.model": "off"})
memory = Memory.open(root, layout="plain", config=config)
memory.recall("warm up")
print("open", flush=True)

def search():
    while True:
        memory.recall("which backup does the release of the payment service need? 发布之前为什么要备份", origin=None)

for _ in range(8):
    threading.Thread(target=search, daemon=True).start()
time.sleep(0.05)
"""
_TIMES = 16

_VECTORS = """
import atexit, sys, threading
from pathlib import Path

@atexit.register  # before those of the library, so that it comes after them
def wait():
    for thread in threading.enumerate():
        if thread.name == "recall-vectors":
            thread.join(20)
            print("still there" if thread.is_alive() else "", end="")

from recall import Memory
from recall.config import load

root, cache = map(Path, sys.argv[1:])
memory = Memory.open(root, layout="plain", config=load(arguments={"index.cache": str(cache), "index.workers": 0}))
while not any(root.coverage.embedded for root in memory.status()):
    memory.prefetch("which backup does the release need?").first()
sys.exit(7)
"""


@pytest.fixture(autouse=True)
def _memory(tmp_path: Path) -> None:
    root = tmp_path / "memory"
    root.mkdir()
    for number in range(400):
        body = f"Release {number} of the payment service needs a backup. 发布之前先备份数据库。"
        (root / f"release-{number}.md").write_text(
            f"---\nname: Release {number}\ndescription: 发布 backup\ntype: project\n---\n{body}\n", encoding="utf-8"
        )


def _run(script: str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-c", script, str(folder / "memory"), str(folder / "cache")]
    env = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(command, capture_output=True, env=env, timeout=60, check=False)


def test_a_host_that_ends_while_threads_search_is_not_aborted(tmp_path: Path) -> None:
    ended = [_run(_SCRIPT, tmp_path) for _ in range(_TIMES)]
    assert [one.stdout.split() for one in ended] == [[b"open"]] * _TIMES
    assert [(one.returncode, one.stderr.decode()) for one in ended] == [(0, "")] * _TIMES


def test_a_host_that_ends_while_vectors_are_made_says_nothing_of_it(tmp_path: Path) -> None:
    ended = _run(_VECTORS, tmp_path)
    assert (ended.returncode, ended.stdout.decode(), ended.stderr.decode()) == (7, "", "")
