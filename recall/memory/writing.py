"""Changes of memory files on behalf of a Memory: remember, forget, edit, delete, restore, each by way of a plan.

A plan is made from what the index knows and checked against the files when it is applied. What follows a change -
MEMORY.md, the host's state, tombstones, and for a purge all derived data - follows here.
"""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

import numpy as np

from recall.errors import LockedError, RecallError, StalePlanError, TopicError
from recall.lifecycle.forget import LIMIT, Candidate, by_phrase, candidates, forgetting, likely, named
from recall.lifecycle.remember import Decision, Fact, Neighbour, Origin, Outcome, comparable, decide, fact_of, foldered
from recall.memory.answers import Answers
from recall.memory.instructing import Instructions
from recall.memory.keeper import Keeper
from recall.memory.model import Model
from recall.memory.stored import Remembered, Stored
from recall.memory.tracing import Tracer
from recall.search.types import Filter
from recall.store.applying import apply, make_trash, writing
from recall.store.editing import Source
from recall.store.journal import TRASH, has_pending
from recall.store.locks import exclusive
from recall.store.plan import Change, Folder, Item, Plan, Run, digest, read_bytes
from recall.store.tombstones import Tombstones
from recall.store.topics import Entry, MemoryType, Scope, Topic, entry_lines, search_text
from recall.store.trash import Kept, expire, kept, purge, restoring
from recall.store.upkeep import bring_in_step

logger = logging.getLogger(__name__)

_TRIES: Final = 20  # others that write at the same moment are few
_NEIGHBOURS: Final = 8  # topics that may say the same as a new fact
_ENTRIES: Final = 64  # of them that are compared with it
_REMEMBER_WAIT_S: Final = 60.0
_AT_ONCE_S: Final = 0.0


class Writer:
    """Writes the memory of all scopes. Thread-safe: each folder has one writer at a time, in whichever process.

    Args:
        folders: where each scope's memory lies.
        instructions: the files of standing instructions beside them.
        keeper: the indexes.
        model: what compares texts.
        answers: what finds entries by meaning.
        tracer: what recalls left behind.
        clock: seconds since the epoch.
    """

    def __init__(  # noqa: PLR0913 - only stores parts
        self,
        folders: Mapping[Scope, Folder],
        instructions: Instructions,
        *,
        keeper: Keeper,
        model: Model,
        answers: Answers,
        tracer: Tracer,
        clock: Callable[[], float],
    ) -> None:
        # What a stopped run left is only carried on when this user began it: the folder may come from anybody.
        self.folders = {scope: replace(folder, key=instructions.key) for scope, folder in folders.items()}
        self.instructions = instructions
        self._keeper = keeper
        self._model = model
        self._answers = answers
        self._tracer = tracer
        self._clock = clock

    def finish(self) -> None:
        """Ends what a process that was stopped had begun; leaves it to the next writer when that cannot be done now."""
        for folder in self.folders.values():
            if has_pending(folder.root):
                with suppress(LockedError):  # it is going on
                    try:
                        with writing(folder, upkeep=bring_in_step, timeout_s=_AT_ONCE_S):
                            logger.info("a change that was stopped half-way in %s was ended", folder.root)
                    except (OSError, RecallError) as error:
                        logger.warning("a change that was stopped half-way cannot be ended yet: %s", error)

    # --- remember

    def told(self, text: str, kind: MemoryType, scope: Scope | None, *, target: str, origin: str) -> Remembered:
        """Remembers as a topic or as an instruction; see `Memory.remember`."""
        if target == "instructions":
            return self.instructions.append(text, scope or self._usual_scope(kind))
        if target != "topic":
            raise ValueError(f"no such target: {target!r}; known are topic and instructions")
        return self.remember(text, kind, scope, Origin(origin))

    def remember(self, text: str, kind: MemoryType, scope: Scope | None, origin: Origin) -> Remembered:
        """Writes a fact down, unless it is known; see `Memory.remember`."""
        fact = fact_of(text, kind, origin)
        folder = self._folder(scope or self._usual_scope(kind))
        refused = self._tombstone(fact, folder)
        if refused:
            return refused
        make_trash_of(folder)
        # Who remembers next shall find what this one wrote: else one fact is written twice.
        with exclusive(folder.root / TRASH / "remember.lock", timeout_s=_REMEMBER_WAIT_S):
            for _ in range(_TRIES):
                try:
                    decision = self._decide(fact, folder)
                    run = self._carry_out(decision.plan)
                except StalePlanError:
                    continue
                return _told(decision, run, folder)
        raise LockedError(folder.root, "somebody who goes on changing the same topics")

    def _usual_scope(self, kind: MemoryType) -> Scope:
        """The user's memory for what is about the user, where there is one (qwen.md section 1)."""
        is_personal = kind in {MemoryType.USER, MemoryType.FEEDBACK}
        return Scope.USER if is_personal and Scope.USER in self.folders else Scope.PROJECT

    def _tombstone(self, fact: Fact, folder: Folder) -> Remembered | None:
        stones = Tombstones(folder.root / TRASH)
        if not any(stones.holds(entry.summary) for entry in fact.entries):
            return None
        if fact.origin is not Origin.OWNER:
            note = "it was forgotten on request; only its owner may bring it back"
            return Remembered(Outcome.FORGOTTEN, "", None, notes=(note,))
        for entry in fact.entries:
            stones.lift_text(entry.summary)
        return None

    def _decide(self, fact: Fact, folder: Folder) -> Decision:
        topics = [topic for topic in self._answers.nearest(fact.summary, _NEIGHBOURS) if not topic.superseded_by]
        found = comparable(fact, candidates(topics)[:_ENTRIES])
        cosines = self._cosines(fact.summary, [one.entry for one in found])
        neighbours = [Neighbour(one, cosine) for one, cosine in zip(found, cosines, strict=True)]
        style = foldered if _has_folders(folder) else None
        return decide(fact, neighbours, folder, now=self._clock(), style=style)

    def _cosines(self, text: str, entries: Sequence[Entry]) -> list[float]:
        """How near each entry is to the text; 0 without a model."""
        encoder = self._model.encoder
        if encoder is None or not entries:
            return [0.0] * len(entries)
        vectors = encoder.encode_documents([text, *(entry.summary for entry in entries)])
        return [float(value) for value in np.nan_to_num(vectors[1:] @ vectors[0])]

    def entries(self) -> list[Stored]:
        """Every entry of every topic, and every instruction (W-MNG-01)."""
        found = [
            Stored(one.id, one.topic.scope, one.topic.file, *lines, one.entry.summary)
            for topic in self._topics(())
            for one, lines in zip(candidates([topic]), _lines(topic), strict=False)
        ]
        return found + self.instructions.entries()

    # --- forget, delete, edit

    def forget(self, query: str, *, limit: int | None, scopes: Collection[Scope]) -> Plan:
        """The plan that removes what a request means; see `Memory.forget`."""
        query = query.strip()
        among = candidates(likely(query, self._topics(scopes)))
        chosen = named(query, among) or by_phrase(query, among, limit=limit or LIMIT)
        if not chosen:
            chosen = self._meant(query, limit or LIMIT, scopes)
        return self._removal(chosen)

    def delete(self, names: Sequence[str]) -> Plan:
        """The plan that removes topics or entries by their ids.

        Raises:
            TopicError: there is none of that name.
        """
        if len(names) == 1 and (plan := self.instructions.deletion(names[0])):
            return replace(plan, _carry_out=self._instruction_gone)
        topics = self._topics(())
        chosen: dict[str, Candidate] = {}
        for name in names:
            found = named(name, candidates(likely(name, topics)))
            if not found:
                raise TopicError("no topic or entry of that name; `recall list` shows all", path=name)
            chosen |= {one.id: one for one in found}
        return replace(self._removal(list(chosen.values())), kind="delete")

    def _instruction_gone(self, plan: Plan, purges: bool) -> Run:
        run = self._carry_out(plan)
        return self._purged(plan, run) if purges else run

    def _removal(self, chosen: Sequence[Candidate]) -> Plan:
        plan = forgetting(chosen, self.folders)

        def carry_out(made: Plan, purges: bool) -> Run:
            for _ in range(_TRIES):
                try:
                    return self._forgotten(made, self._carry_out(made), purges)
                except StalePlanError:
                    # Somebody changed the same file; what was to go may still stand there, word for word.
                    again = forgetting(chosen, self.folders)
                    if again.items != made.items:
                        raise
                    made = replace(made, changes=again.changes)
            raise LockedError(made.changes[0].folder.root, "somebody who goes on changing the same topics")

        return replace(plan, _carry_out=carry_out)

    def _meant(self, query: str, limit: int, scopes: Collection[Scope]) -> list[Candidate]:
        """The entries that fit the request by words and meaning, best topic first; of each topic the nearest."""
        if not query:
            return []
        recall = self._answers.full(query, limit, Filter(scopes=frozenset(scopes)))
        chosen = []
        for hit in recall.hits:
            entries = candidates([hit.topic])
            nearest = self._cosines(query, [one.entry for one in entries])
            if entries:
                chosen.append(max(zip(nearest, entries, strict=True), key=lambda pair: pair[0])[1])
        return chosen

    def _forgotten(self, plan: Plan, run: Run, purges: bool) -> Run:
        for folder in {change.folder for change in plan.changes}:
            texts = [item.text for item in plan.items if _scope_of(item.id) is folder.scope]
            Tombstones(folder.root / TRASH).add(texts, run=run.id, time=run.time)
        return self._purged(plan, run) if purges else run

    def _purged(self, plan: Plan, run: Run) -> Run:
        texts = [item.text for item in plan.items]
        for folder in {change.folder for change in plan.changes}:
            paths = {change.path for change in plan.changes if change.folder == folder and change.after is None}
            purge(folder, [*texts, *(f"]({path})" for path in paths)], paths=paths, runs={run.id})
        for index in self._keeper.indexes:
            index.purge()
        self._tracer.purge({item.id for item in plan.items} | {item.id.rpartition(":")[0] for item in plan.items})
        return replace(run, notes=(*run.notes, "nothing of it is kept"))

    def edit(self, name: str, text: str, seen: str | None) -> Plan:
        """The plan that gives a topic another text; see `Memory.edit`. Line ends and byte order mark stay."""
        topic = next((one for one in self._topics(()) if name in {one.id, one.id.removesuffix(".md")}), None)
        if topic is None:
            raise TopicError("no topic of that name; `recall list` shows all", path=name)
        if not text.strip():
            raise TopicError("an empty text is no memory; use delete", path=name)
        folder = self._folder(topic.scope)
        before = read_bytes(folder, topic.path)
        source = Source.of(topic.path, before or b"")
        if seen is not None and not source.says(seen):
            raise StalePlanError([topic.file])
        change = Change(folder, topic.path, digest(before), source.saying(text).data)
        changes = (change,) if digest(change.after) != change.before else ()
        return Plan("edit", changes, (Item(topic.id, topic.title),), _carry_out=self._kept)

    # --- the trash

    def restore(self, run: str) -> Plan:
        """The plan that undoes a run; see `Memory.restore`."""
        beside = map(self.instructions.folder, self.instructions.files)
        plan = restoring([*self.folders.values(), *beside], run)

        def carry_out(made: Plan, purges: bool) -> Run:
            done = self._kept(made, purges)
            for folder in self.folders.values():
                Tombstones(folder.root / TRASH).lift(made.undoes)
            return done

        return replace(plan, _carry_out=carry_out)

    def runs(self) -> list[Kept]:
        """What can be restored, newest first."""
        beside = map(self.instructions.folder, self.instructions.files)
        found = [one for folder in (*self.folders.values(), *beside) for one in kept(folder)]
        return sorted(found, key=lambda one: one.run.time, reverse=True)

    def expire(self, days: float) -> list[str]:
        """Deletes runs older than so many days; gives their ids."""
        return [run for folder in self.folders.values() for run in expire(folder, now=self._clock(), days=days)]

    def _kept(self, plan: Plan, purges: bool) -> Run:
        """Carries out a plan that always leaves a copy; to be told that it left none would be a lie."""
        if purges:
            raise ValueError(f"a plan to {plan.kind} always keeps a copy; only what is forgotten can be purged")
        return self._carry_out(plan)

    def _carry_out(self, plan: Plan) -> Run:
        run = apply(plan, now=self._clock(), upkeep=bring_in_step)
        if run.id:
            self._keeper.wake()
        return run

    def _folder(self, scope: Scope) -> Folder:
        if scope not in self.folders:
            raise TopicError("this host keeps no memory across projects; name a folder for it", path=str(scope))
        return self.folders[scope]

    def _topics(self, scopes: Collection[Scope]) -> list[Topic]:
        """All topics, user before project, newest first."""
        found = []
        for index in sorted(self._keeper.indexes, key=lambda index: index.scope is Scope.PROJECT):
            if not scopes or index.scope in scopes:
                index.sync_words()
                snapshot = index.snapshot()
                topics = snapshot.topics(range(len(snapshot)))
                found += sorted(topics.values(), key=lambda topic: (-topic.mtime, topic.path))
        return found


def _lines(topic: Topic) -> list[tuple[int, int]]:
    """First and last line of each entry in its file, as it is now."""
    try:
        text = topic.file.read_bytes().decode("utf-8", "replace")
    except OSError:
        return []
    return entry_lines(text)


def _scope_of(name: str) -> Scope:
    return Scope.USER if name.startswith(f"{Scope.USER}:") else Scope.PROJECT


def make_trash_of(folder: Folder) -> None:
    """Makes the folder and its `.trash`, where the locks lie."""
    from recall.store import disk

    disk.make_folder(folder.root)
    make_trash(folder.root)


def _has_folders(folder: Folder) -> bool:
    """Whether the memory keeps each kind in a folder, as the founding layout does."""
    return any((folder.root / kind).is_dir() for kind in MemoryType)


def _told(decision: Decision, run: Run, folder: Folder) -> Remembered:
    other = decision.other
    return Remembered(
        decision.outcome,
        decision.id,
        folder.root / (other.topic.path if other else decision.plan.changes[0].path),
        run.id,
        search_text(other.entry) if other else "",
        (*decision.plan.notes, *run.notes),
    )
