"""Calls into C++ at the end of the process: none begins, those under way get a moment."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from recall.errors import EncoderError
from recall.index import onnx
from recall.index.native import Gate
from recall.index.onnx import OnnxEncoder

LONG_S = 30.0


def test_a_gate_that_is_shut_waits_for_the_calls_under_way() -> None:
    gate, inside, leave = Gate(), threading.Event(), threading.Event()

    def work() -> None:
        with gate.call():
            inside.set()
            leave.wait()

    worker = threading.Thread(target=work)
    worker.start()
    inside.wait()
    assert not gate.shut(0.0)
    leave.set()
    assert gate.shut(LONG_S)
    worker.join()


def test_once_it_is_shut_the_main_thread_is_told_and_another_goes_home_without_a_word(
    recwarn: pytest.WarningsRecorder, capfd: pytest.CaptureFixture[str]
) -> None:
    gate, went_in, unwound = Gate(), threading.Event(), threading.Event()
    gate.shut(0.0)
    with pytest.raises(EncoderError, match="ending"), gate.call():
        went_in.set()

    def work() -> None:
        try:
            with gate.call():
                went_in.set()
        except Exception:
            went_in.set()
        finally:
            unwound.set()

    worker = threading.Thread(target=work)
    worker.start()
    worker.join()
    assert unwound.is_set()
    assert not went_in.is_set()
    assert not recwarn.list
    assert capfd.readouterr().err == ""


def test_a_gate_that_begins_anew_knows_of_no_earlier_call() -> None:
    gate = Gate()
    with gate.call():
        gate.begin()
        assert gate.shut(0.0)
        gate.begin()
        with gate.call():
            pass


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_waits_for_the_calls_under_way_and_begins_anew_in_the_child() -> None:
    script = """
import os, sys, threading
from recall.index.native import NATIVE

inside, leave = threading.Event(), threading.Event()
steps = []

def work():
    with NATIVE.call():
        inside.set()
        leave.wait()
        steps.append("returned")
    with NATIVE.call():
        pass

os.register_at_fork(before=leave.set)  # runs first
worker = threading.Thread(target=work)
worker.start()
inside.wait()
if not (child := os.fork()):
    with NATIVE.call():
        os._exit(7 if steps == ["returned"] else 1)
worker.join()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=LONG_S, check=False)
    assert (ended.stdout.split(), ended.stderr) == ([b"7"], b"")


class Narrow(Gate):
    """Shut after so many calls."""

    def __init__(self, calls: int) -> None:
        super().__init__()
        self._left = calls

    @contextmanager
    def call(self) -> Iterator[None]:
        with super().call():
            yield
        self._left -= 1
        if not self._left:
            self.shut(0.0)


@pytest.mark.parametrize("calls", [1, 2, 3])
def test_a_model_that_loads_stops_between_its_steps(calls: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx, "NATIVE", Narrow(calls))
    encoder = OnnxEncoder()
    with pytest.raises(EncoderError, match="ending"):
        encoder.warm_up()
    assert not encoder.is_warm
