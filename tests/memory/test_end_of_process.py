"""A host that ends in the midst of a search: its process ends as it should, with its own exit status."""

import os
import subprocess
import sys
from pathlib import Path

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


def test_a_host_that_ends_while_threads_search_is_not_aborted(tmp_path: Path) -> None:
    root = tmp_path / "memory"
    root.mkdir()
    for number in range(400):
        body = f"Release {number} of the payment service needs a backup. 发布之前先备份数据库。"
        (root / f"release-{number}.md").write_text(
            f"---\nname: Release {number}\ndescription: 发布 backup\ntype: project\n---\n{body}\n", encoding="utf-8"
        )
    command = [sys.executable, "-c", _SCRIPT, str(root), str(tmp_path / "cache")]
    env = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    ended = [subprocess.run(command, capture_output=True, env=env, timeout=60, check=False) for _ in range(_TIMES)]
    assert [one.stdout.split() for one in ended] == [[b"open"]] * _TIMES
    assert [(one.returncode, one.stderr.decode()) for one in ended] == [(0, "")] * _TIMES
