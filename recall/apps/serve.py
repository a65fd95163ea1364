"""The resident process: one for all sessions of a user, so that no prompt waits for a model to load."""

import logging
import os
import selectors
import signal
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from recall import __version__
from recall.apps import protocol
from recall.apps.residence import Memories, Request, Sessions, Told, recall
from recall.errors import RecallError
from recall.store.locks import exclusive

logger = logging.getLogger(__name__)

_MOST_CLIENTS: Final = 64
_SILENCE_S: Final = 10.0
# How often the process looks whether its socket is still where clients find it.
_LOOK_S: Final = 30.0

Reply = Mapping[str, object]


def usual_socket() -> Path:
    """Where hooks look for the process of this user and these settings.

    Raises:
        RecallError: this system has no Unix sockets.
        OSError: the folder cannot be made, or is not the user's alone.
    """
    _need_unix_sockets()
    return Path(protocol.socket_file(os.environ))


def _need_unix_sockets() -> None:
    if not hasattr(socket, "AF_UNIX"):
        raise RecallError("recall serve needs Unix sockets, which this system does not offer to Python")


def serve(file: Path, *, idle_s: float, on_ready: Callable[[Path], object]) -> None:
    """Answers at the socket until nobody asked for a while, a client or SIGTERM ends it, or the socket is taken away.

    Args:
        file: the socket; its folder has to be the user's alone.
        idle_s: how long to wait for the next request.
        on_ready: told of the socket once clients can connect.

    Raises:
        LockedError: another process serves there; names it.
        RecallError: this system has no Unix sockets.
        OSError: the socket cannot be made.
    """
    _need_unix_sockets()
    protocol.make_private(str(file.parent))
    with exclusive(file.with_name(f"{file.name}.lock"), timeout_s=0):
        with suppress(FileNotFoundError):
            file.unlink()  # nobody listens there: whoever did held the lock
        with Server(file) as server:
            previous = [signal.signal(number, lambda *_: server.stop()) for number in (signal.SIGTERM, signal.SIGINT)]
            try:
                on_ready(file)
                server.run(idle_s)
            finally:
                for number, handler in zip((signal.SIGTERM, signal.SIGINT), previous, strict=True):
                    signal.signal(number, handler)


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """Accepts connections, a daemon thread each."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = _MOST_CLIENTS

    def __init__(self, file: Path) -> None:
        self.memories = Memories()
        self.sessions = Sessions()
        self.active_at = time.monotonic()
        self._file = file
        self._stopped = False
        self._places = threading.Semaphore(_MOST_CLIENTS)
        self._bell, self._ringer = socket.socketpair()
        before = os.umask(0o177)
        try:
            super().__init__(str(file), _Conversation)
        finally:
            os.umask(before)
        self._inode = file.stat().st_ino

    def run(self, idle_s: float, *, look_s: float = _LOOK_S) -> None:
        """Accepts until it is stopped, idle for that long, or out of reach."""
        with selectors.DefaultSelector() as waiting:
            waiting.register(self, selectors.EVENT_READ)
            waiting.register(self._bell, selectors.EVENT_READ)
            while not self._stopped and self._is_reachable():
                left = self.active_at + idle_s - time.monotonic()
                if left <= 0:
                    return
                if any(key.fileobj is self for key, _ in waiting.select(min(left, look_s))):
                    self.handle_request()

    def stop(self) -> None:
        """Ends `run`, from any thread or a signal handler."""
        self._stopped = True
        with suppress(OSError):
            self._ringer.send(b"\0")

    def _is_reachable(self) -> bool:
        with suppress(OSError):
            return self._file.stat().st_ino == self._inode
        return False

    def server_close(self) -> None:
        """Takes the socket away and closes the memories."""
        if self._is_reachable():
            self._file.unlink(missing_ok=True)
        super().server_close()
        self._bell.close()
        self._ringer.close()
        self.memories.close()

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Only processes of this user are heard, and not too many at once."""
        return protocol.is_own(request) and self._places.acquire(blocking=False)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """One connection, on its thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away, or a mistake of ours: the others go on."""
        logger.info("a connection broke", exc_info=True)


class _Conversation(socketserver.StreamRequestHandler):
    """One connection: requests and replies, a line each, until the client goes or falls silent."""

    timeout = _SILENCE_S
    server: Server

    def setup(self) -> None:
        super().setup()
        self._told: Told | None = None
        self._last = False

    def handle(self) -> None:
        with suppress(TimeoutError, ConnectionError):
            while line := self.rfile.readline(protocol.LONGEST_REQUEST):
                whole = line.endswith(b"\n")
                reply = self._answer(line) if whole else {"error": "the request is too long or broke off"}
                if reply is not None:
                    self.wfile.write(msgspec.json.encode({"v": protocol.VERSION, **reply}) + b"\n")
                if self._last:
                    self.server.stop()
                if not whole:
                    return

    def _answer(self, line: bytes) -> Reply | None:
        """The reply; None for what needs none."""
        begun = self.server.active_at = time.monotonic()
        try:
            return self._done(msgspec.json.decode(line, type=Request), begun)
        except msgspec.DecodeError as error:
            return {"error": f"not a request of version {protocol.VERSION}: {error}"}
        except (RecallError, OSError) as error:
            return {"error": str(error)}

    def _done(self, request: Request, begun: float) -> Reply | None:
        server = self.server
        match request.request:
            case "ping":
                if request.project:
                    with server.memories.lease(request.place):
                        pass
                return {"version": __version__, "pid": os.getpid(), "memories": len(server.memories)}
            case "prompt":
                self._told = recall(server.memories, server.sessions, request, begun=begun)
                return self._told.reply()
            case "shown":
                if self._told is not None:
                    server.sessions.note(self._told)
                    self._told.shown()
                    self._told = None
                return None
            case "compacted":
                server.sessions.compacted(request.session)
                return {}
            case "shutdown":
                self._last = True  # the process ends once the client has its reply
                return {}
