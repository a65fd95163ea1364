"""A host that forks while threads of the library are at work: a memory that the child opens is not in their way."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

_SCRIPT = """
import os, signal, sys, threading
from pathlib import Path
from recall import Memory
from recall.config import load
from recall.index.encoders import make_encoder
from recall.index.native import NATIVE
from recall.search.workers import ALARM

root, cache = map(Path, sys.argv[1:])
config = load(arguments={"index.cache": str(cache)})
encoder = make_encoder(config.encoder)
held, done = threading.Event(), threading.Event()

def work():  # where a thread that loads the model, or starts a search, may be at the moment of the fork
    with encoder._lock, ALARM._changed:
        held.set()
        done.wait()

threading.Thread(target=work, daemon=True).start()
held.wait()
if not (child := os.fork()):
    signal.alarm(40)
    with Memory.open(root, layout="plain", config=config) as memory:
        found = memory.recall("which backup does the release need?")
        handle = memory.prefetch("which backup does the release need?")
        delivery = handle.first(30)
    sys.exit(5 if found.hits and delivery and delivery.recall.hits else 1)
status = os.waitpid(child, 0)[1]
done.set()
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_opens_a_memory_though_threads_of_the_parent_held_every_lock(tmp_path: Path) -> None:
    root = tmp_path / "memory"
    root.mkdir()
    (root / "release.md").write_text("---\nname: Release\n---\nThe release needs a backup.\n", encoding="utf-8")
    command = [sys.executable, "-c", _SCRIPT, str(root), str(tmp_path / "cache")]
    ended = subprocess.run(command, capture_output=True, timeout=100, check=False)
    assert (ended.returncode, ended.stderr.decode()) == (5, "")
