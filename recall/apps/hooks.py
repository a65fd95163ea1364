"""What a host runs at every prompt: a client of the resident process that is quick and never fails the host.

`recall-hook prompt` reads the host's JSON from stdin and prints the Relevant Memory block; `recall-hook session` starts
the resident process ahead of the first prompt. Whatever happens, the exit code is 0 and nothing else is printed; what
went wrong stands in `hook.log` in the cache folder.

Only modules of the standard library are loaded, and few of them: everything else is imported where it is used, and
`typing`, which takes a fifth of the whole, not at all.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections import namedtuple

from recall.apps import late, protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from recall.apps.words import Answer

EVENTS = ("prompt", "session")
FORMATS = ("text", "json")
BUDGET_MS = 90.0
"""What a hook may take with a resident process, unless it is told."""
ALONE_MS = 400.0
"""The same without one, as at the first prompt after a pause."""

_HOST_EVENT = "UserPromptSubmit"
_LONGEST_INPUT = 4 * 1024 * 1024
_LONGEST_LOG = 64 * 1024
# A socket of this machine takes or refuses a connection at once; who is late has to learn which of the two.
_CONNECT_S = 0.01
# Of the time left, kept for the way there and back and for printing.
_MARGIN_S = 0.008
# Loading what an answer needs takes longer than this on any machine: with less time left it is not begun.
_LEAST_S = 0.04
# Noting that an answer was shown, where that cannot be left to another process; with less time left it is left out.
_TRACE_S = 0.02
# After these the model has lost what it was told before.
_FORGETTING = ("compact", "clear")


class Options(
    namedtuple(
        "Options",
        ("root", "project", "layout", "user_root", "format", "timeout_ms", "socket", "start"),
        defaults=("", "", "", "", "text", None, "", True),
    )
):
    """What the command line says.

    Attributes:
        root: the memory folder itself, "" to find the one of the project.
        project: a folder in the project, "" for the host's working directory.
        layout: the host whose folders to use, "" to find out.
        user_root: the folder of memory across projects, "" for the host's.
        format: `text` for the bare block, `json` for the form in which hosts take additional context.
        timeout_ms: what the whole may take, counted from the start of this process; None for BUDGET_MS, and ALONE_MS
            without a resident process.
        socket: where the resident process listens, "" for the usual place.
        start: whether to start one when there is none.
    """

    __slots__ = ()


class Asked(namedtuple("Asked", ("prompt", "cwd", "session", "source"), defaults=("", "", "", ""))):
    """What the host hands over.

    Attributes:
        prompt: what the user asks.
        cwd: the host's working directory, "" when it does not say.
        session: the host's name for the conversation, "" when it does not say.
        source: why a session begins, "" when it does not say.
    """

    __slots__ = ()


def parse(words: list[str]) -> tuple[str, Options]:
    """The event and the options; `--name value` or `--name=value`.

    Raises:
        ValueError: something cannot be understood.
    """
    given: dict[str, Any] = {}
    events: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.removeprefix("--").partition("=")
        field = name.replace("-", "_")
        if word == "--no-start":
            given["start"] = False
        elif word.startswith("--") and field in Options._fields and field != "start" and (equals or rest):
            given[field] = value if equals else rest.pop(0)
        elif word in EVENTS:
            events.append(word)
        else:
            raise ValueError(f"cannot understand {word!r}")
    if "timeout_ms" in given:
        given["timeout_ms"] = float(given["timeout_ms"])
    options = Options(**given)
    if len(events) != 1 or options.format not in FORMATS:
        raise ValueError(f"needs one event of {', '.join(EVENTS)} and a format of {', '.join(FORMATS)}")
    return events[0], options


def asked(data: bytes) -> Asked:
    """What the host's bytes say: its JSON object, or the prompt as plain text; a broken object says nothing."""
    text = data.decode("utf-8-sig", "replace").strip()
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        given = "" if text.startswith("{") else text
    if isinstance(given, dict):
        said = [given.get(name) for name in ("submitted_prompt", "prompt", "cwd", "session_id", "source")]
        typed, prompt, cwd, session, source = (value if isinstance(value, str) else "" for value in said)
        # qwen-code tells what the user typed from what it makes of it, with whole files pasted in.
        return Asked(_clean(typed or prompt), cwd if os.path.isabs(cwd) else "", _clean(session)[:200], source)
    return Asked(_clean(given if isinstance(given, str) else text))


def _clean(text: str) -> str:
    """The text at a length that costs no time, without half characters: who cuts an emoji leaves one."""
    return protocol.cut(text).encode("utf-8", "replace").decode("utf-8")


def wrapped(block: str, form: str) -> str:
    """The block in the form that the host wants."""
    if form == "text":
        return block
    return json.dumps({"hookSpecificOutput": {"hookEventName": _HOST_EVENT, "additionalContext": block}}) + "\n"


# --- talking to the resident process


class Line:
    """A connection to the resident process; use it as a context manager.

    Raises:
        OSError: there is none, it belongs to somebody else, or it does not answer in time.
    """

    def __init__(self, file: str, *, until: float) -> None:
        self._until = until
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.settimeout(max(_CONNECT_S, until - time.monotonic()))
            self._socket.connect(file)
            if not protocol.is_own(self._socket):
                raise PermissionError(f"{file} is served by another user")
        except OSError:
            self._socket.close()
            raise

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, request: str, **fields: object) -> dict[str, Any]:
        """Sends a request and waits for its reply.

        Raises:
            OSError: no reply in time, or none that can be understood.
        """
        self.tell(request, **fields)
        data = bytearray()
        while not data.endswith(b"\n"):
            self._socket.settimeout(self._left())
            part = self._socket.recv(65536)
            if not part or len(data) > protocol.LONGEST_REPLY:
                raise ConnectionError("the resident process broke off")
            data += part
        try:
            reply = json.loads(data)
        except ValueError:
            reply = None
        if not isinstance(reply, dict) or reply.get("v") != protocol.VERSION:
            raise ConnectionError("the resident process talks another language")
        return reply

    def tell(self, request: str, **fields: object) -> None:
        """Sends a request."""
        self._socket.settimeout(self._left())
        self._socket.sendall(json.dumps({"v": protocol.VERSION, "request": request, **fields}).encode() + b"\n")

    def _left(self) -> float:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError("no time left")
        return left


def start_server(file: str) -> None:
    """Starts a resident process in the background, unless one that was started so is alive.

    The lock goes with it from birth to death, so that of ten hooks at once only one starts one.
    """
    import fcntl

    lock = os.open(f"{file}.start", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return
    import subprocess

    # The folder of the package comes last on the path, and neither the working directory nor anything else is added:
    # the host's working directory is that of a project which anybody may have written.
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    code = "import sys; sys.path.append(sys.argv.pop(1)); from recall.apps.cli import main; main()"
    log = _log()
    subprocess.Popen(  # noqa: S603 - this interpreter and this package
        [sys.executable, "-P", "-c", code, package, "serve", "--socket", file],
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=log,
        pass_fds=(lock,),
        start_new_session=True,
    ).returncode = 0  # nobody will ask how it ended
    os.close(lock)
    os.close(log)


# --- what happens


class Turn(namedtuple("Turn", ("request", "place", "form", "mark"))):
    """One prompt.

    Attributes:
        request: what the host said.
        place: which memory is meant, as the resident process takes it.
        form: one of FORMATS.
        mark: the file that says that the last prompt of this session, or else of this place, got no answer in time.
    """

    __slots__ = ()

    def say(self, block: str) -> None:
        """Prints the block, and what became of the last prompt; all has left this process on return."""
        text = "\n".join(filter(None, (block, f"{late.LATE}\n" if late.take_mark(self.mark) else "")))
        if text:
            sys.stdout.buffer.write(wrapped(text, self.form).encode("utf-8", "replace"))
            sys.stdout.buffer.flush()


def run(event: str, options: Options, *, born: float) -> None:
    """Does what the event asks for.

    Args:
        event: one of EVENTS.
        options: as given on the command line.
        born: when this process began, on the monotonic clock.

    Raises:
        Exception: whatever goes wrong; `main` sees to it that the host never hears of it.
    """
    until, until_alone = (
        born + (limit if options.timeout_ms is None else options.timeout_ms) / 1000 for limit in (BUDGET_MS, ALONE_MS)
    )
    request = asked(_read(until))
    if event == "prompt" and not request.prompt.strip():
        return
    place = _place(options, request)
    has_sockets = hasattr(socket, "AF_UNIX")
    file = (options.socket or protocol.socket_file(os.environ)) if has_sockets else ""
    turn = Turn(request, place, options.format, late.mark_of(file, request.session or repr(sorted(place.items()))))
    try:
        line = Line(file, until=until) if has_sockets else None
    except (FileNotFoundError, ConnectionRefusedError):
        line = None
        if options.start:
            start_server(file)
    if line is None and event == "prompt":
        _answer_here(turn, until_alone)
    elif line is not None:
        with line:
            _prompt(line, turn, until) if event == "prompt" else _session(line, request, place)


def _place(options: Options, request: Asked) -> dict[str, str]:
    return {
        "root": os.path.abspath(options.root) if options.root else "",
        "project": os.path.abspath(options.project) if options.project else request.cwd or os.getcwd(),
        "layout": options.layout,
        "user_root": os.path.abspath(options.user_root) if options.user_root else "",
    }


def _prompt(line: Line, turn: Turn, until: float) -> None:
    timeout_ms = max(0.0, until - time.monotonic() - _MARGIN_S) * 1000
    request = turn.request
    try:
        reply = line.ask("prompt", **turn.place, query=request.prompt, session=request.session, timeout_ms=timeout_ms)
    except TimeoutError:
        late.leave_mark(turn.mark)
        raise
    if reply.get("error"):
        raise RuntimeError(reply["error"])
    if reply.get("late"):
        note("the resident process found nothing in time")
        late.leave_mark(turn.mark)
        return
    turn.say(reply.get("prompt", ""))
    if reply.get("prompt"):
        line.tell("shown")


def _session(line: Line, request: Asked, place: dict[str, str]) -> None:
    if request.source in _FORGETTING and request.session:
        line.ask("compacted", session=request.session)
    line.ask("ping", **place)


def _answer_here(turn: Turn, until: float) -> None:
    found, why = _in_process(turn.request.prompt, turn.place, until)
    if why:
        note(f"no resident process, and {why}")
        late.leave_mark(turn.mark)
    elif found is not None:
        turn.say(found.prompt)
        if found.prompt:
            _leave_trace(found, turn.request.session, until)


def _leave_trace(found: Answer, session: str, until: float) -> None:
    """Notes that the answer was shown, which takes longer than the answer: in a process that no host waits for."""
    if not hasattr(os, "fork"):
        if until - time.monotonic() > _TRACE_S:
            found.shown(session)
        return
    if os.fork():
        return
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):  # hosts read to the end of what is open
        os.dup2(nothing, number)
    found.shown(session)


def _in_process(query: str, place: dict[str, str], until: float) -> tuple[Answer | None, str]:
    """What words alone find in the index as it is, and why that could not be had in time, "" when it could."""
    left = until - time.monotonic()
    if left < _LEAST_S:
        return None, "no time for an answer without one"
    import threading

    found: list[Answer] = []

    def search() -> None:
        try:
            from recall.apps.words import answer

            found.append(answer(query, **place))
        except Exception as error:
            note(repr(error))

    worker = threading.Thread(target=search, daemon=True)
    worker.start()
    worker.join(left)
    if found:
        return found[0], ""
    return None, "the time did not suffice for an answer without one" if worker.is_alive() else ""


def _read(until: float) -> bytes:
    """What the host writes to stdin, up to its end; "" from a terminal.

    Raises:
        TimeoutError: the host does not come to an end.
    """
    if sys.stdin is None or sys.stdin.isatty():
        return b""
    number = sys.stdin.fileno()
    if sys.platform == "win32":
        return os.read(number, _LONGEST_INPUT)
    import select

    data = bytearray()
    while select.select([number], [], [], max(0.0, until - time.monotonic()))[0]:
        part = os.read(number, 65536)
        if not part:
            return bytes(data)
        data += part[: _LONGEST_INPUT - len(data)]  # the rest is read as well, or the host's write would fail
    raise TimeoutError("the host did not finish its request")


def note(message: str) -> None:
    """Writes a line to the log; what cannot be written is lost."""
    try:
        number = _log()
        os.write(number, f"{time.strftime('%Y-%m-%dT%H:%M:%S')} {message[:500]}\n".encode("utf-8", "replace"))
        os.close(number)
    except OSError:
        pass


def _log() -> int:
    """The log, open for appending; what is old goes to `hook.log.1`, and what is older is gone."""
    folder = protocol.cache_folder(os.environ)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    file = os.path.join(folder, "hook.log")
    try:
        if os.stat(file).st_size > _LONGEST_LOG:
            os.replace(file, f"{file}.1")
    except FileNotFoundError:
        pass
    return os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


def main(words: list[str] | None = None) -> NoReturn:
    """The console script."""
    try:
        # What the interpreter took to come up counts too; it was busy all the time.
        born = time.monotonic() - time.process_time()
        event, options = parse(sys.argv[1:] if words is None else words)
        run(event, options, born=born)
    except BaseException as error:  # a host must never see its hook fail
        note(repr(error))
    os._exit(0)  # at once, whatever threads and libraries are at


if __name__ == "__main__":
    main()
