"""What a resident process keeps for all sessions: opened memories, their one model, and what each session was told."""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec

from recall.apps import protocol
from recall.config import Config, EncoderConfig
from recall.errors import EncoderError, RecallError
from recall.index.base import Encoder
from recall.index.encoders import make_encoder
from recall.memory.memory import Memory
from recall.memory.opening import find, load_config
from recall.memory.watch import is_installed
from recall.search.delivery import Delivery, PrefetchSession, ids
from recall.search.types import Drop
from recall.store.traces import Origin

logger = logging.getLogger(__name__)

_MOST_MEMORIES: Final = 8
_MOST_SESSIONS: Final = 256
# How long it is believed that settings and folders are where they were.
_BELIEVED_S: Final = 10.0

Words = Annotated[str, msgspec.Meta(max_length=protocol.LONGEST_QUERY + 1)]
Name = Annotated[str, msgspec.Meta(max_length=4096)]


class Place(msgspec.Struct, frozen=True):
    """Which memory is meant, as `Memory.open` takes it; "" for what was not said."""

    root: Name = ""
    project: Name = ""
    layout: Name = ""
    user_root: Name = ""


class Request(Place, frozen=True, kw_only=True):
    """One line of a client.

    Attributes:
        v: version of the protocol.
        request: what is wanted: `ping` answers, and opens the memory if one is named; `prompt` recalls; `shown` says
            that the last answer of this connection reached the model; `compacted` that a session lost what it was
            told; `shutdown` ends the process.
        query: what the user asks.
        session: the host's name for the conversation; "" for none, which may be told the same again.
        exclude: ids of topics that the model has already.
        timeout_ms: how long the answer may take.
    """

    v: Literal[1]
    request: Literal["ping", "prompt", "shown", "compacted", "shutdown"]
    query: Words = ""
    session: Name = ""
    exclude: tuple[Name, ...] = ()
    timeout_ms: Annotated[float, msgspec.Meta(ge=0, le=60_000)] = 90.0

    @property
    def place(self) -> Place:
        """Which memory is meant."""
        return Place(self.root, self.project, self.layout, self.user_root)


@dataclass(frozen=True, slots=True)
class _Key:
    """What makes two requests ask the same memory."""

    config: Config
    root: Path
    user_root: Path | None


@dataclass(slots=True)
class _Open:
    memory: Memory
    users: int = 0


class Memories:
    """Opened memories, those used last kept open. Thread-safe.

    Args:
        most: how many stay open while nobody uses them.
        clock: seconds, growing.
    """

    def __init__(self, most: int = _MOST_MEMORIES, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._lock = threading.Lock()
        self._open: OrderedDict[_Key, _Open] = OrderedDict()
        self._believed: OrderedDict[Place, tuple[float, _Key]] = OrderedDict()
        self._encoders: dict[EncoderConfig, Encoder | None] = {}

    def __len__(self) -> int:
        return len(self._open)

    @contextmanager
    def lease(self, place: Place) -> Iterator[Memory]:
        """The memory of the place, which stays open for the block.

        Raises:
            ConfigError: a setting cannot be used.
            RecallError: the place does not say where.
        """
        key = self._key(place)
        with self._lock:
            held = self._open.get(key) or self._opened(key, place)
            self._open[key] = held
            self._open.move_to_end(key)
            held.users += 1
        try:
            yield held.memory
        finally:
            with self._lock:
                held.users -= 1
                dropped = self._surplus()
            for memory in dropped:
                memory.close()

    def close(self) -> None:
        """Closes all; each waits two seconds at most, all at once."""
        with self._lock:
            held, self._open = list(self._open.values()), OrderedDict()
        closing = [threading.Thread(target=one.memory.close, daemon=True) for one in held]
        for thread in closing:
            thread.start()
        for thread in closing:
            thread.join(2.5)

    def _key(self, place: Place) -> _Key:
        with self._lock:
            checked, key = self._believed.get(place, (0.0, None))
        if key is None or self._clock() - checked > _BELIEVED_S:
            key = _resolved(place)
            with self._lock:
                self._believed[place] = (self._clock(), key)
                while len(self._believed) > 8 * self._most:
                    self._believed.popitem(last=False)
        return key

    def _opened(self, key: _Key, place: Place) -> _Open:
        config = _watching(key.config)
        if config.encoder not in self._encoders:
            self._encoders[config.encoder] = _encoder(config.encoder)
        memory = Memory.open(
            place.root or None,
            project=place.project,
            layout=place.layout or None,
            user_root=place.user_root or None,
            config=config,
            encoder=self._encoders[config.encoder],
        )
        return _Open(memory)

    def _surplus(self) -> list[Memory]:
        """Takes out the memories that nobody uses, longest unused first, until few enough are left."""
        idle = [key for key, held in self._open.items() if not held.users]
        return [self._open.pop(key).memory for key in idle[: max(0, len(self._open) - self._most)]]


def _resolved(place: Place) -> _Key:
    project = Path(place.project)
    if not project.is_absolute() or any(
        name and not Path(name).is_absolute() for name in (place.root, place.user_root)
    ):
        raise RecallError("a request names a project, and all folders from the root on")
    config = load_config(project)
    chosen = find(place.root or None, project=project, layout=place.layout or None, config=config).chosen
    return _Key(config, chosen.root, Path(place.user_root) if place.user_root else chosen.user_root)


def _watching(config: Config) -> Config:
    """The settings, with changes watched where that is possible and nobody said otherwise."""
    if config.index.watch is not None or not is_installed():
        return config
    return replace(config, index=config.index._replace(watch=True))


def _encoder(config: EncoderConfig) -> Encoder | None:
    try:
        return make_encoder(config)
    except EncoderError:
        return None  # each memory finds out by itself, and says why


@dataclass(frozen=True, slots=True)
class Told:
    """What a prompt brought, and to whom.

    Attributes:
        delivery: None for nothing.
        session: the host's name for the conversation.
        root: the memory that answered.
        ms: how long it took.
        memory: what notes that it was shown.
        late: whether there is no delivery because the time did not suffice for one.
    """

    delivery: Delivery | None
    session: str
    root: Path
    ms: float
    memory: Memory | None = None
    late: bool = False

    def shown(self) -> None:
        """It has reached the model: that leaves a trace."""
        if self.memory is not None and self.delivery is not None:
            self.memory.note_shown(self.delivery, Origin("hook", self.session))

    def reply(self) -> dict[str, object]:
        """The reply to the client."""
        if self.delivery is None:
            return {"prompt": "", "phase": None, "strategy": "none", "ids": [], "ms": self.ms, "late": self.late}
        recall = self.delivery.recall
        found = [hit.topic.id for hit in recall.hits]
        return {
            "prompt": recall.prompt,
            "phase": self.delivery.phase,
            "strategy": recall.strategy,
            "ids": found,
            "ms": self.ms,
        }


class Sessions:
    """What each session of a host was told, so that nothing comes twice while the model has it. Thread-safe."""

    def __init__(self, most: int = _MOST_SESSIONS) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[str, Path], PrefetchSession] = OrderedDict()

    def surfaced(self, session: str, root: Path) -> frozenset[str]:
        """Ids of the topics that the session was told and still has."""
        with self._lock:
            known = self._known.get((session, root))
        return known.surfaced if known else frozenset()

    def note(self, told: Told) -> None:
        """What was told has reached the model."""
        if not told.session or told.delivery is None:
            return
        key = (told.session, told.root)
        with self._lock:
            known = self._known.pop(key, PrefetchSession())
            self._known[key] = replace(known, surfaced=known.surfaced | ids(told.delivery.recall))
            while len(self._known) > self._most:
                self._known.popitem(last=False)

    def compacted(self, session: str) -> None:
        """The host cut out what the session was told: all of it may come again (deviations V16)."""
        with self._lock:
            for key, known in self._known.items():
                if key[0] == session:
                    self._known[key] = known.compacted(known.surfaced)


def recall(memories: Memories, sessions: Sessions, request: Request, *, begun: float) -> Told:
    """Answers a prompt within its time.

    Args:
        memories: where to look.
        sessions: what need not come again.
        request: of kind `prompt`.
        begun: when the request came, by time.monotonic().

    Raises:
        RecallError: the memory cannot be opened.
        OSError: the memory cannot be opened.
    """
    with memories.lease(request.place) as memory:
        root = memory.located.chosen.root
        exclude = sessions.surfaced(request.session, root).union(request.exclude)
        handle = memory.prefetch(request.query, exclude=exclude, origin=None)  # `shown` follows, or not
        try:
            delivery = handle.first(max(0.0, request.timeout_ms / 1000 - (time.monotonic() - begun)))
        finally:
            drop = handle.close()
    late = delivery is None and drop is Drop.NO_SAFE_DELIVERY_POINT  # a search that found nothing ends by itself
    return Told(delivery, request.session, root, round((time.monotonic() - begun) * 1000, 1), memory, late)
