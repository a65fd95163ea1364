"""recall: an embedded memory engine for AI agents.

    from recall import Memory

    with Memory.open("path/to/memory") as memory:
        for hit in memory.recall("数据库怎么迁移？").hits:
            print(hit.topic.id, hit.score)

Names are loaded on first use, so that importing the package costs nothing.
"""

TYPE_CHECKING = False  # `typing` itself takes longer to load than all of the hook
if TYPE_CHECKING:
    from recall.config import Config
    from recall.errors import (
        ConfigError,
        EncoderError,
        IndexFormatError,
        LockedError,
        MissingExtraError,
        ModelNotFoundError,
        RecallError,
        StalePlanError,
        TopicError,
        UnsafePathError,
    )
    from recall.index.base import Encoder, VectorIndex
    from recall.index.sync import SyncReport
    from recall.lifecycle.remember import Outcome
    from recall.memory.events import RecallEvent
    from recall.memory.memory import Memory
    from recall.memory.status import RootStatus
    from recall.memory.stored import Remembered, Stored
    from recall.search.explanation import Explanation
    from recall.search.prefetch import Delivery, Prefetch, PrefetchEvent
    from recall.search.types import Coverage, Drop, Hit, Phase, Point, Recall, Strategy
    from recall.store.layout import Layout
    from recall.store.plan import Change, Item, Plan, Run
    from recall.store.topics import Entry, MemoryType, Scope, Topic
    from recall.store.traces import Origin, Trace
    from recall.store.trash import Kept

__version__ = "0.1.0"

_HOMES = {
    "recall.config": ("Config",),
    "recall.errors": (
        "ConfigError",
        "EncoderError",
        "IndexFormatError",
        "LockedError",
        "MissingExtraError",
        "ModelNotFoundError",
        "RecallError",
        "StalePlanError",
        "TopicError",
        "UnsafePathError",
    ),
    "recall.index.base": ("Encoder", "VectorIndex"),
    "recall.index.sync": ("SyncReport",),
    "recall.memory.events": ("RecallEvent",),
    "recall.lifecycle.remember": ("Outcome",),
    "recall.memory.memory": ("Memory",),
    "recall.memory.status": ("RootStatus",),
    "recall.memory.stored": ("Remembered", "Stored"),
    "recall.search.explanation": ("Explanation",),
    "recall.search.prefetch": ("Delivery", "Prefetch", "PrefetchEvent"),
    "recall.search.types": ("Coverage", "Drop", "Hit", "Phase", "Point", "Recall", "Strategy"),
    "recall.store.layout": ("Layout",),
    "recall.store.plan": ("Change", "Item", "Plan", "Run"),
    "recall.store.trash": ("Kept",),
    "recall.store.topics": ("Entry", "MemoryType", "Scope", "Topic"),
    "recall.store.traces": ("Origin", "Trace"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Change",
    "Config",
    "ConfigError",
    "Coverage",
    "Delivery",
    "Drop",
    "Encoder",
    "EncoderError",
    "Entry",
    "Explanation",
    "Hit",
    "IndexFormatError",
    "Item",
    "Kept",
    "Layout",
    "LockedError",
    "Memory",
    "MemoryType",
    "MissingExtraError",
    "ModelNotFoundError",
    "Origin",
    "Outcome",
    "Phase",
    "Plan",
    "Point",
    "Prefetch",
    "PrefetchEvent",
    "Recall",
    "RecallError",
    "RecallEvent",
    "Remembered",
    "RootStatus",
    "Run",
    "Scope",
    "StalePlanError",
    "Stored",
    "Strategy",
    "SyncReport",
    "Topic",
    "TopicError",
    "Trace",
    "UnsafePathError",
    "VectorIndex",
    "__version__",
]


if not TYPE_CHECKING:  # a type checker that saw it would take every misspelt name for one of ours

    def __getattr__(name: str) -> object:
        if name in _HOME_OF:
            from importlib import import_module

            return getattr(import_module(_HOME_OF[name]), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
