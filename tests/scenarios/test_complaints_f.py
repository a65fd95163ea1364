"""Complaints from the field, group F: size and time."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from recall import Config, Delivery, Memory, Phase, Point, PrefetchEvent
from recall.index.base import Vector, Vectors
from recall.index.hashing import HashingEncoder
from recall.memory.events import Event
from recall.search.types import Drop

LONG_S = 60.0

Write = Callable[..., Path]
Open = Callable[..., Memory]


class Recorded(HashingEncoder):
    """Remembers the texts that it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        self.texts += texts
        return super().encode_documents(texts)


def test_f32_one_endless_line_is_read_in_bounded_pieces_and_holds_up_no_other_file(
    opened: Open, write: Write, root: Path
) -> None:
    write("zebra.md", "zebra crossing")
    write("tiger.md", "tiger in the garden")
    for file in root.iterdir():
        os.utime(file, (1_000_000_000, 1_000_000_000))
    write("long.md", "abcdefgh" * 625_000)  # the newest, which else comes first
    (write("broken.md", "")).write_bytes(b"\0" * 999)
    encoder = Recorded()
    memory = opened(encoder=encoder)
    report = memory.reindex()
    assert sorted(report.added) == ["long.md", "tiger.md", "zebra.md"]
    assert [path for path, _ in report.failed] == ["broken.md"]
    assert report.unembedded == ()
    assert report.duration_s > 0
    assert max(map(len, encoder.texts)) < 4000
    short = [at for at, text in enumerate(encoder.texts) if "zebra" in text or "tiger" in text]
    endless = [at for at, text in enumerate(encoder.texts) if "abcdefgh" in text]
    assert len(short) == 2
    assert max(short) < min(endless)
    for word, path in (("zebra", "zebra.md"), ("long", "long.md"), ("tiger", "tiger.md")):
        assert [hit.topic.id for hit in memory.recall(word, k=1).hits] == [path]


# --- hooks

SPY = """
import os, sys

def note(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "subprocess.Popen", "os.exec", "os.posix_spawn"):
        where = arguments[1] if event == "socket.connect" else ""
        if not isinstance(where, (str, bytes)) or not where:  # a path is a socket of this machine
            with open(os.environ["SPY"], "a", encoding="utf-8") as log:
                log.write(event + "\\n")

sys.addaudithook(note)
"""


@pytest.fixture
def spied(surroundings: dict[str, str], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which every connection to elsewhere and every start of a process is noted in $SPY."""
    (tmp_path / "spy").mkdir()
    (tmp_path / "spy" / "sitecustomize.py").write_text(SPY, encoding="utf-8")
    short = tmp_path_factory.mktemp("h")  # for the socket
    more = {
        "PYTHONPATH": f"{tmp_path / 'spy'}{os.pathsep}{surroundings['PYTHONPATH']}",
        "SPY": str(tmp_path / "spy" / "log"),
        "RECALL_ENCODER__MODEL": "hashing",
        "HOME": str(short),
        "XDG_RUNTIME_DIR": str(short),
    }
    return surroundings | more


def noted(environment: dict[str, str]) -> str:
    log = Path(environment["SPY"])
    return log.read_text(encoding="utf-8") if log.exists() else ""


def hook(event: str, root: Path, environment: dict[str, str], *words: str, prompt: str = "zebra crossing") -> str:
    """Runs a hook, which must neither fail nor complain; gives what it says."""
    said = json.dumps({"session_id": "s", "cwd": str(root), "prompt": prompt, "source": "startup"})
    done = subprocess.run(
        [sys.executable, "-m", "recall.apps.hooks", event, "--root", str(root), *words],
        env=environment, input=said, capture_output=True, encoding="utf-8", timeout=LONG_S,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_f34_the_session_hook_asks_no_network_and_starts_no_second_process(
    write: Write, root: Path, spied: dict[str, str]
) -> None:
    write("a.md", "zebra crossing")
    command = [sys.executable, "-m", "recall", "serve"]
    quiet = spied | {"SPY": os.devnull}
    with subprocess.Popen(command, env=quiet, stdout=subprocess.PIPE, encoding="utf-8") as resident:
        assert resident.stdout is not None
        assert resident.stdout.readline().startswith("ready ")
        hook("session", root, spied, "--timeout-ms", "20000")
        block = hook("prompt", root, spied, "--timeout-ms", "20000")
        resident.terminate()
    assert "zebra crossing" in block
    assert noted(spied) == ""
    subprocess.run([sys.executable, "-c", "import subprocess; subprocess.run(['true'])"], env=spied, check=True)
    assert noted(spied) == "subprocess.Popen\n"  # it would have been noted


def test_f34_a_hook_that_may_start_nothing_starts_nothing_and_asks_no_network(
    write: Write, root: Path, spied: dict[str, str]
) -> None:
    write("a.md", "zebra crossing")
    hook("session", root, spied, "--no-start")
    assert noted(spied) == ""


def log(environment: dict[str, str]) -> str:
    """What hooks noted."""
    return (Path(environment["HOME"]) / ".cache" / "recall" / "hook.log").read_text(encoding="utf-8")


def test_f34_a_hook_over_its_budget_gives_the_part_that_is_there_and_the_rest_leaves_a_trace(
    opened: Open, write: Write, root: Path, spied: dict[str, str]
) -> None:
    """The model does not load: the resident process answers by words, or notes that it has nothing."""
    write("a.md", "zebra crossing")
    opened().reindex()
    command = [sys.executable, "-c", HANGING, "serve"]
    with subprocess.Popen(command, env=spied, stdout=subprocess.PIPE, encoding="utf-8") as resident:
        assert resident.stdout is not None
        assert resident.stdout.readline().startswith("ready ")
        hook("session", root, spied, "--timeout-ms", "20000")  # opens the memory
        assert "zebra crossing" in hook("prompt", root, spied, "--timeout-ms", "5000")
        assert not Path(spied["HOME"], ".cache", "recall", "hook.log").exists()
        assert hook("prompt", root, spied, "--timeout-ms", "700", prompt="walrus") == ""
        resident.kill()
    assert "found nothing in time" in log(spied)


HANGING = """
import threading
from recall.apps.cli import main
from recall.index.hashing import HashingEncoder

HashingEncoder.encode_query = lambda self, text: threading.Event().wait()
main()
"""


def test_f34_f36_a_hook_that_is_out_of_time_leaves_a_trace_and_the_next_turn_is_told_once(
    opened: Open, write: Write, root: Path, spied: dict[str, str]
) -> None:
    write("a.md", "zebra crossing")
    opened().reindex()
    assert hook("prompt", root, spied, "--no-start", "--timeout-ms", "1") == ""
    assert "no time for an answer" in log(spied)
    told = "The last prompt was answered without memories: the time did not suffice."
    answers = [hook("prompt", root, spied, "--no-start", "--timeout-ms", "20000") for _ in range(2)]
    assert all("zebra crossing" in answer for answer in answers)
    assert [told in answer for answer in answers] == [True, False]


# --- prefetch


class Sleeping(HashingEncoder):
    """Answers queries only once it is woken."""

    def __init__(self) -> None:
        super().__init__()
        self.asleep, self.entered, self.woken = False, threading.Event(), threading.Event()

    def encode_query(self, text: str) -> Vector:
        if self.asleep:
            self.entered.set()
            assert self.woken.wait(LONG_S)
        vector: Vector = super().encode_documents([text])[0]
        return vector


@pytest.fixture
def sleeping() -> Iterator[Sleeping]:
    encoder = Sleeping()
    yield encoder
    encoder.woken.set()


class Ends:
    """The last event of each handle."""

    def __init__(self) -> None:
        self.events: list[PrefetchEvent] = []
        self._news = threading.Condition()

    def __call__(self, event: Event) -> None:
        if isinstance(event, PrefetchEvent) and event.terminal:
            with self._news:
                self.events.append(event)
                self._news.notify_all()


@pytest.fixture
def ends() -> Ends:
    return Ends()


@pytest.fixture
def asleep(opened: Open, write: Write, sleeping: Sleeping, ends: Ends) -> Memory:
    """A memory of four topics under the usual budget, whose encoder sleeps from now on."""
    for number in range(4):
        write(f"{number}.md", f"zebra number {number}")
    memory = opened(encoder=sleeping, on_event=ends, config=Config())
    memory.reindex()
    sleeping.asleep = True
    return memory


def found(delivery: Delivery | None) -> set[str]:
    return {hit.topic.id for hit in delivery.recall.hits} if delivery else set()


def test_f35_a_recall_whose_encoder_is_busy_returns_with_the_fast_result(asleep: Memory, sleeping: Sleeping) -> None:
    handle = asleep.prefetch("zebra number")
    assert sleeping.entered.wait(LONG_S)
    delivery = handle.first(LONG_S)  # with the result of words, long before that
    assert delivery is not None
    assert (delivery.phase, len(delivery.recall.hits)) == (Phase.FAST, 2)
    assert not sleeping.woken.is_set()


def test_f36_a_recall_that_is_out_of_time_is_recorded_and_the_next_turn_can_be_told(
    asleep: Memory, sleeping: Sleeping, ends: Ends
) -> None:
    handle = asleep.prefetch("zebra number", exclude=["0.md", "1.md", "2.md", "3.md"])
    assert handle.first(0.0) is None
    assert handle.close() is Drop.NO_SAFE_DELIVERY_POINT
    (event,) = ends.events
    assert (event.drop, event.point, event.refined_s) == (Drop.NO_SAFE_DELIVERY_POINT, Point.DISCARDED, None)
    sleeping.woken.set()
    assert found(asleep.prefetch("zebra number").first(LONG_S))


def test_f37_fast_late_and_lost_results_each_end_in_exactly_one_record(
    asleep: Memory, sleeping: Sleeping, ends: Ends
) -> None:
    late, lost = asleep.prefetch("zebra number"), asleep.prefetch("number zebra")
    assert sleeping.entered.wait(LONG_S)
    fast = late.first(LONG_S)
    assert fast is not None
    assert fast.phase is Phase.FAST
    lost.first(0.0)
    lost.close(Drop.ABORT)
    lost.close()
    sleeping.woken.set()
    pause = threading.Event()  # between two tool results
    refined = next(filter(None, (late.on_tool_result() for _ in iter(lambda: pause.wait(0.01), True))))
    assert (refined.phase, refined.point) == (Phase.REFINED, Point.TOOL_RESULT)
    assert not found(fast) & found(refined)
    late.close()
    assert late.on_tool_result() is None
    assert [(event.drop, event.point) for event in ends.events] == [
        (Drop.ABORT, Point.DISCARDED),
        (None, Point.TOOL_RESULT),
    ]


def test_f39_without_a_model_everything_starts_words_answer_and_the_missing_model_is_named(
    write: Write, root: Path, spied: dict[str, str], tmp_path: Path
) -> None:
    write("a.md", "zebra crossing")
    missing = tmp_path / "no such model"
    done = subprocess.run(
        [sys.executable, "-m", "recall", "search", "zebra", "--root", str(root), "--json",
         "--set", f"encoder.model={missing}"],
        env=spied, capture_output=True, encoding="utf-8", timeout=LONG_S,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    answer = json.loads(done.stdout)
    assert ([hit["id"] for hit in answer["hits"]], answer["strategy"]) == (["a.md"], "heuristic")
    assert str(missing) in answer["coverage"]["note"]
    assert noted(spied) == ""
