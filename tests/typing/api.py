"""The public surface as mypy sees it; checked, never run."""

from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import assert_type

import recall
from recall import (
    Change,
    Config,
    Coverage,
    Delivery,
    Drop,
    Encoder,
    Explanation,
    Hit,
    Item,
    Memory,
    MemoryType,
    Origin,
    Outcome,
    Phase,
    Plan,
    Point,
    Prefetch,
    PrefetchEvent,
    Recall,
    RecallEvent,
    Remembered,
    RootStatus,
    Run,
    Scope,
    StalePlanError,
    Stored,
    Strategy,
    SyncReport,
    Topic,
    Trace,
    VectorIndex,
)
from recall.index.base import Vector, Vectors
from recall.index.faiss import FaissIndex
from recall.index.flat import FlatIndex
from recall.index.hashing import HashingEncoder
from recall.index.onnx import OnnxEncoder

# --- every encoder and index is one

hashing: Encoder = HashingEncoder()
shipped: Encoder = OnnxEncoder()
flat: VectorIndex = FlatIndex(3)
faiss: VectorIndex = FaissIndex(3)
assert_type(hashing.encode_documents(["text"]), Vectors)
assert_type(hashing.encode_query("text"), Vector)
assert_type(flat.search(hashing.encode_query("text"), 5), list[tuple[str, float]])
assert_type(FaissIndex.load(Path("folder")), FaissIndex)


# --- opening

Config()
Memory.open()
Memory.open("folder")
Memory.open(Path("folder"), project=".", layout="qwen", user_root="user", config=Config(), encoder=hashing)
Memory.open(encoder="onnx")  # type: ignore[arg-type]  # an encoder, not its name
Memory.open("folder", Config())  # type: ignore[call-arg,arg-type]  # settings go by name


def listen(event: RecallEvent | PrefetchEvent | SyncReport) -> None:
    """Whatever a memory tells."""


with Memory.open("folder", clock=lambda: 0.0, on_event=listen, background=False) as memory:
    assert_type(memory, Memory)


# --- recall

answer = memory.recall("query", k=3, exclude=["a.md"])
assert_type(answer, Recall)
assert_type(answer.hits, tuple[Hit, ...])
assert_type(answer.strategy, Strategy)
assert_type(answer.coverage, Coverage)
assert_type(answer.prompt, str)
answer.prompt = "no"  # type: ignore[misc]  # results never change

hit = answer.hits[0]
assert_type(hit.topic, Topic)
assert_type(hit.score, float)
assert_type(hit.cosine, float | None)
assert_type(hit.topic.scope, Scope)
assert_type(hit.topic.type, MemoryType | None)
assert_type(hit.topic.links, tuple[str, ...])

why = memory.explain("query", k=3, exclude=["a.md"], types=["user"], scopes=[Scope.USER])
assert_type(why, Explanation)
assert_type(why.recall, Recall)
assert_type(why.why_nothing(), str)
assert_type(hit.explain(), tuple[str, ...])

memory.recall("query", 3)  # type: ignore[call-arg]  # k goes by name
memory.recall(b"query")  # type: ignore[arg-type]  # text, not bytes


# --- prefetch

handle = memory.prefetch("query", exclude={"a.md"})
assert_type(handle, Prefetch)
assert_type(handle.first(), Delivery | None)
assert_type(handle.first(0.05), Delivery | None)
assert_type(handle.on_tool_result(), Delivery | None)
assert_type(handle.close(Drop.NEW_QUERY), Drop | None)
assert_type(handle.future, Future[Delivery | None])

delivery = handle.first()
delivery.recall  # type: ignore[union-attr]  # noqa: B018 - nothing may have come in time
assert delivery is not None
assert_type(delivery.phase, Phase)
assert_type(delivery.point, Point)
assert_type(delivery.recall, Recall)


# --- changing it

told = memory.remember("text", type="user", scope=Scope.USER, target="topic", origin="agent")
assert_type(told, Remembered)
assert_type(told.outcome, Outcome)
assert_type(told.file, Path | None)
assert_type(told.notes, tuple[str, ...])
assert_type(memory.remember("text", type=MemoryType.PROJECT), Remembered)
memory.remember("text")  # type: ignore[call-arg]  # the kind has to be said
memory.remember("text", "user")  # type: ignore[call-arg]  # by its name

plan = memory.forget("query", limit=3, scopes=["user"])
assert_type(plan, Plan)
assert_type(bool(plan), bool)
assert_type(plan.changes, tuple[Change, ...])
assert_type(plan.changes[0].after, bytes | None)
assert_type(plan.items, tuple[Item, ...])
assert_type(plan.apply(purge=True), Run)
assert_type(memory.delete("a.md", "b.md:0"), Plan)
assert_type(memory.edit("a.md", "text", seen="before"), Plan)
assert_type(memory.restore(), Plan)
assert_type(memory.restore(plan.apply()), Plan)
assert_type(memory.entries(), list[Stored])
assert_type([one.run for one in memory.runs()], list[Run])
assert_type(StalePlanError([Path("a.md")]).paths, tuple[Path, ...])
plan.apply(True)  # type: ignore[call-arg]  # whether copies are kept goes by name
memory.forget(["a.md"])  # type: ignore[arg-type]  # one request


# --- upkeep


def show(stage: str, done: int, total: int) -> None:
    """A progress bar."""


assert_type(memory.reindex(full=True, on_progress=show), SyncReport)
assert_type(memory.reindex().added, tuple[str, ...])
assert_type(memory.reindex().failed, tuple[tuple[str, str], ...])
assert_type(memory.status(), list[RootStatus])
assert_type(memory.status()[0].problems, Mapping[str, str])
assert_type(memory.topics(), list[Topic])
assert_type(memory.topic("a"), Topic)
assert_type(memory.traces(Scope.USER), list[Trace])
assert_type(memory.recall("a", origin=Origin("mcp", "session")), Recall)
assert_type(memory.prefetch("a", origin=None), Prefetch)
assert_type(memory.note_shown(delivery, Origin()), None)
assert_type(memory.purge_traces(["a.md"]), None)
assert_type(memory.close(), None)


# --- names of the package

assert_type(recall.__version__, str)
recall.Nothing  # type: ignore[attr-defined]  # noqa: B018 - a misspelt name is seen
