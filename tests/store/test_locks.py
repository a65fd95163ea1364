"""One holder at a time, whoever it is, and none after its death."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import recall
from recall.errors import LockedError
from recall.store.locks import exclusive

LONG_S = 60.0  # an upper bound that only a broken implementation reaches

HOLDER = """
import sys
from pathlib import Path
from recall.store.locks import exclusive

with exclusive(Path(sys.argv[1]), timeout_s=0):
    print("held", flush=True)
    sys.stdin.readline()
"""


def holder(file: Path) -> subprocess.Popen[str]:
    """Another process that holds the lock until it gets a line."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(file)],
        env=os.environ | {"PYTHONPATH": str(Path(recall.__file__).parents[1])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )
    assert process.stdout
    assert process.stdout.readline() == "held\n"
    return process


def test_a_held_lock_is_refused_at_once_and_free_again_afterwards(tmp_path: Path) -> None:
    file = tmp_path / "some.lock"
    with exclusive(file, timeout_s=0), pytest.raises(LockedError) as refused, exclusive(file, timeout_s=0):
        pass
    assert refused.value.path == file
    assert refused.value.holder == f"process {os.getpid()}"
    with exclusive(file, timeout_s=0):
        pass


def test_another_process_is_named_as_the_holder(tmp_path: Path) -> None:
    file = tmp_path / "some.lock"
    with holder(file) as process:
        with pytest.raises(LockedError, match=f"held by process {process.pid}"), exclusive(file, timeout_s=0):
            pass
        process.communicate("go\n", timeout=LONG_S)
    with exclusive(file, timeout_s=0):
        pass


def test_the_lock_of_a_process_that_was_killed_is_free(tmp_path: Path) -> None:
    file = tmp_path / "some.lock"
    with holder(file) as process:
        process.kill()
        process.wait(LONG_S)
        with exclusive(file, timeout_s=0):
            pass


def test_who_waits_gets_the_lock_when_it_is_let_go(tmp_path: Path) -> None:
    file = tmp_path / "some.lock"
    order: list[str] = []

    def wait() -> None:
        with exclusive(file, timeout_s=LONG_S):
            order.append("second")

    with exclusive(file, timeout_s=0):
        waiter = threading.Thread(target=wait, daemon=True)
        waiter.start()
        order.append("first")
    waiter.join(LONG_S)
    assert order == ["first", "second"]


def test_waiting_ends(tmp_path: Path) -> None:
    file = tmp_path / "some.lock"
    with exclusive(file, timeout_s=0), pytest.raises(LockedError), exclusive(file, timeout_s=0.05):
        pass


def test_an_exception_inside_lets_the_lock_go(tmp_path: Path) -> None:
    file = tmp_path / "some.lock"
    with pytest.raises(ZeroDivisionError), exclusive(file, timeout_s=0):
        _ = 1 / 0
    with exclusive(file, timeout_s=0):
        pass


def test_two_threads_are_never_inside_together(tmp_path: Path) -> None:
    inside, most = 0, 0

    def enter() -> None:
        nonlocal inside, most
        for _ in range(5):
            with exclusive(tmp_path / "some.lock", timeout_s=LONG_S):
                inside += 1
                most = max(most, inside)
                inside -= 1

    threads = [threading.Thread(target=enter, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG_S)
    assert most == 1


def test_locks_of_other_names_are_other_locks(tmp_path: Path) -> None:
    with exclusive(tmp_path / "one.lock", timeout_s=0), exclusive(tmp_path / "two.lock", timeout_s=0):
        pass


def test_a_lock_file_that_holds_no_number_names_nobody(tmp_path: Path) -> None:
    file = tmp_path / "some.lock"
    with exclusive(file, timeout_s=0):
        file.write_bytes(b"\xff\xfe no number")
        with pytest.raises(LockedError, match="another process") as refused, exclusive(file, timeout_s=0):
            pass
    assert refused.value.holder == ""


def test_a_folder_that_is_missing_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), exclusive(tmp_path / "missing" / "some.lock", timeout_s=0):
        pass
