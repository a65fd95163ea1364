"""Changes of memory files on behalf of a Memory: remember, forget, edit, delete, restore, each by way of a plan.

A plan is made from what the index knows and checked against the files when it is applied. What follows a change -
MEMORY.md, the host's state, tombstones, and for a purge all derived data - follows here.
"""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import product
from typing import Final

from recall.errors import LockedError, RecallError, StalePlanError, TopicError
from recall.index.collection import Collection as Index
from recall.lifecycle.forget import LIMIT, Candidate, by_phrase, candidates, forgetting, removing
from recall.lifecycle.remember import Decision, Fact, Origin, Outcome, decide, fact_of, foldered
from recall.memory.answers import Answers
from recall.memory.instructing import Instructions
from recall.memory.keeper import Keeper
from recall.memory.lookup import Lookup
from recall.memory.model import Model
from recall.memory.stored import Remembered, Stored
from recall.memory.tracing import Tracer
from recall.store import disk
from recall.store.applying import apply, make_trash, writing
from recall.store.editing import Source
from recall.store.journal import PURGING, TRASH, has_pending
from recall.store.locks import exclusive
from recall.store.plan import Change, Folder, Item, Plan, Run, digest, joined, read_bytes
from recall.store.tombstones import Tombstones
from recall.store.topics import MemoryType, Scope, Topic, entry_lines
from recall.store.trash import Kept, expire, kept, purge, restoring, unpurged
from recall.store.upkeep import bring_in_step

logger = logging.getLogger(__name__)

_NOTHING: Final = Plan("delete", ())

_TRIES: Final = 20  # others that write at the same moment are few
_REMEMBER_WAIT_S: Final = 60.0
_AT_ONCE_S: Final = 0.0
_DAY_S: Final = 86_400.0


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
        keep_days: so long a run can be restored.
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
        keep_days: float,
    ) -> None:
        # What a stopped run left is only carried on when this user began it: the folder may come from anybody.
        self.folders = {scope: replace(folder, key=instructions.key) for scope, folder in folders.items()}
        self.instructions = instructions
        self._keeper = keeper
        self._lookup = Lookup(keeper, model, answers)
        self._tracer = tracer
        self._clock = clock
        self._keep_days = keep_days

    def finish(self) -> None:
        """Ends what a process that was stopped had begun; leaves it to the next writer when that cannot be done now."""
        beside = map(self.instructions.folder, self.instructions.files)
        for folder in (*self.folders.values(), *beside):
            if has_pending(folder.root):
                try:
                    with writing(folder, upkeep=bring_in_step, timeout_s=_AT_ONCE_S):
                        logger.info("a change that was stopped half-way in %s was ended", folder.root)
                    for run, paths in unpurged(folder):
                        self._purge(run.items, {folder: paths}, run.id)
                    disk.delete(folder.root / TRASH / PURGING)
                except LockedError:
                    continue  # it is going on
                except (OSError, RecallError) as error:
                    logger.warning("a change that was stopped half-way cannot be ended yet: %s", error)

    # --- remember

    def told(self, text: str, kind: MemoryType, scope: Scope | None, *, target: str, origin: str) -> Remembered:
        """Remembers as a topic or as an instruction; see `Memory.remember`."""
        if target == "instructions":
            if Origin(origin) not in {Origin.OWNER, Origin.AGENT}:
                raise TopicError(f"what comes from a {origin} is data, never an instruction", path="remember")
            return self.instructions.append(text, scope or self._usual_scope(kind))
        if target != "topic":
            raise ValueError(f"no such target: {target!r}; known are topic and instructions")
        return self.remember(text, kind, scope, Origin(origin))

    def remember(self, text: str, kind: MemoryType, scope: Scope | None, origin: Origin) -> Remembered:
        """Writes a fact down, unless it is known; see `Memory.remember`."""
        fact = fact_of(text, kind, origin)
        folder = self._folder(scope or self._usual_scope(kind))
        if fact.origin is not Origin.OWNER and self._is_forgotten(fact):
            note = "it was forgotten on request; only its owner may bring it back"
            return Remembered(Outcome.FORGOTTEN, "", None, notes=(note,))
        done = self._written(fact, folder)
        if fact.origin is Origin.OWNER:
            for stones, entry in product(self._tombstones(), fact.entries):
                stones.lift_text(entry.summary)
        return done

    def _written(self, fact: Fact, folder: Folder) -> Remembered:
        disk.make_folder(folder.root)
        # Who remembers next shall find what this one wrote: else one fact is written twice.
        with exclusive(make_trash(folder.root) / "remember.lock", timeout_s=_REMEMBER_WAIT_S):
            for _ in range(_TRIES):
                try:
                    decision = self._decide(fact, folder)
                    run = self._carry_out(decision.plan)
                except StalePlanError:
                    continue
                return _told(decision, run, folder)
        raise LockedError(folder.root, "somebody who goes on changing the same topics")

    def _tombstones(self) -> list[Tombstones]:
        return [Tombstones(folder.root / TRASH) for folder in self.folders.values()]

    def _is_forgotten(self, fact: Fact) -> bool:
        """Whether any of it was forgotten, in whatever scope."""
        every = [stones.read() for stones in self._tombstones()]
        return any(known.holds(entry.summary) for known, entry in product(every, fact.entries))

    def _usual_scope(self, kind: MemoryType) -> Scope:
        """The user's memory for what is about the user, where there is one (qwen.md section 1)."""
        is_personal = kind in {MemoryType.USER, MemoryType.FEEDBACK}
        return Scope.USER if is_personal and Scope.USER in self.folders else Scope.PROJECT

    def _decide(self, fact: Fact, folder: Folder) -> Decision:
        style = foldered if _has_folders(folder) else None
        return decide(fact, self._lookup.neighbours(fact), folder, now=self._clock(), style=style)

    def entries(self) -> list[Stored]:
        """Every entry of every topic, and every instruction (W-MNG-01)."""
        found = [
            Stored(one.id, one.topic.scope, one.topic.file, *lines, one.entry.summary)
            for topic in self._lookup.topics()
            for one, lines in zip(candidates([topic]), _lines(topic), strict=False)
        ]
        return found + self.instructions.entries()

    # --- forget, delete, edit

    def forget(self, query: str, *, limit: int | None, scopes: Collection[Scope]) -> Plan:
        """The plan that removes what a request means; see `Memory.forget`."""
        most = limit or LIMIT
        if chosen := self._lookup.named(query.strip(), scopes):
            return self._removal(chosen)
        if found := self._lookup.holding(query, scopes):
            chosen = by_phrase(query, found, limit=most)
            more = len(found) - len(chosen)
            plan = self._removal(chosen)
            note = f"{more} more {'holds' if more == 1 else 'hold'} it; a greater limit takes more"
            return replace(plan, notes=(*plan.notes, *([note] if more else [])))
        plan = self._removal(self._lookup.meant(query, most, scopes))
        note = "none holds the request word for word: these were chosen by what they mean"
        return replace(plan, notes=(*plan.notes, note), is_guess=True) if plan else plan

    def delete(self, names: Sequence[str]) -> Plan:
        """The plan that removes topics, entries or instructions by their ids.

        Raises:
            TopicError: there is none of that name.
        """
        of_instructions = [name for name in names if self.instructions.knows(name)]
        chosen: dict[str, Candidate] = {}
        empty: list[Topic] = []
        for name in (name for name in names if name not in of_instructions):
            found, topic = self._lookup.named(name), self._lookup.topic(name)
            if not found and topic is None:
                raise TopicError("no topic or entry of that name; `recall list` shows all", path=name)
            chosen |= {one.id: one for one in found}
            empty += [topic] if topic is not None and not found else []
        beside = joined(removing(empty, self.folders), self.instructions.deletion(of_instructions))
        return replace(self._removal(list(chosen.values()), beside), kind="delete")

    def _removal(self, chosen: Sequence[Candidate], beside: Plan = _NOTHING) -> Plan:
        """The plan that removes these entries, and does what another one says."""

        def planned() -> Plan:
            return joined(forgetting(chosen, self.folders), beside)

        def carry_out(made: Plan, purges: bool) -> Run:
            for stones in self._tombstones():
                stones.read()  # what cannot be remembered as forgotten is not forgotten halfway
            made = replace(made, purges=purges)
            for folder in {change.folder for change in made.changes} if purges else ():
                (make_trash(folder.root) / PURGING).touch(mode=0o600)  # whoever comes next is to go on
            for _ in range(_TRIES):
                try:
                    return self._forgotten(made, self._carry_out(made), purges)
                except StalePlanError:
                    # Somebody changed the same file; what was to go may still stand there, word for word.
                    again = planned()
                    if again.items != made.items:
                        raise
                    made = replace(made, changes=again.changes)
            raise LockedError(made.changes[0].folder.root, "somebody who goes on changing the same topics")

        return replace(planned(), _carry_out=carry_out)

    def _forgotten(self, plan: Plan, run: Run, purges: bool) -> Run:
        for scope, folder in self.folders.items():
            forgotten = [item for item in plan.items if not self.instructions.knows(item.id)]
            texts = [item.text for item in forgotten if _scope_of(item.id) is scope]
            Tombstones(folder.root / TRASH).add(texts, run=run.id, time=run.time)
        return self._purged(plan, run) if purges else run

    def _purged(self, plan: Plan, run: Run) -> Run:
        gone: dict[Folder, set[str]] = {change.folder: set() for change in plan.changes}
        for change in plan.changes:
            gone[change.folder] |= {change.path} if change.after is None else set()
        self._purge(plan.items, gone, run.id)
        for folder in gone:
            disk.delete(folder.root / TRASH / PURGING)
        return replace(run, notes=(*run.notes, "no copy of it is kept; a file's name may still say what it was about"))

    def _purge(self, items: Sequence[Item], gone: Mapping[Folder, Collection[str]], run: str) -> None:
        """Leaves no copy of what went; does all that it can before it says what it cannot.

        The record of the run goes last: by it another process can go on.
        """
        ids = {item.id for item in items} | {item.id.rpartition(":")[0] for item in items}
        texts = [item.text for item in items]
        parts: list[Callable[[], object]] = [partial(_purge_index, index) for index in self._keeper.indexes]
        parts.append(partial(self._tracer.purge, ids))
        failed = [error for part in parts if (error := _failure(part))]
        if not failed:
            parts = [partial(purge, folder, texts, paths=paths, runs={run}) for folder, paths in gone.items()]
            failed = [error for part in parts if (error := _failure(part))]
        if failed:
            raise failed[0]

    def edit(self, name: str, text: str, seen: str | None) -> Plan:
        """The plan that gives a topic another text; see `Memory.edit`. Line ends and byte order mark stay."""
        topic = self._lookup.topic(name)
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
        return Plan("edit", changes, (Item(topic.id, topic.title),), _carry_out=self._plainly)

    # --- the trash

    def restore(self, run: str) -> Plan:
        """The plan that undoes a run; see `Memory.restore`."""
        beside = map(self.instructions.folder, self.instructions.files)
        plan = restoring([*self.folders.values(), *beside], run)

        def carry_out(made: Plan, purges: bool) -> Run:
            done = self._plainly(made, purges)
            for stones in self._tombstones():
                stones.lift(made.undoes)
            return done

        return replace(plan, _carry_out=carry_out)

    def runs(self) -> list[Kept]:
        """What can be restored, newest first."""
        beside = map(self.instructions.folder, self.instructions.files)
        found = [one for folder in (*self.folders.values(), *beside) for one in kept(folder)]
        return sorted(found, key=lambda one: one.run.time, reverse=True)

    def _plainly(self, plan: Plan, purges: bool) -> Run:
        if purges:
            raise ValueError(f"{plan.kind} always keeps a copy; only what is forgotten or deleted can be purged")
        return self._carry_out(plan)

    def _carry_out(self, plan: Plan) -> Run:
        with self.instructions.held({change.folder.root for change in plan.changes}):
            run = apply(plan, now=self._clock(), upkeep=bring_in_step)
        if run.skipped and not run.paths:  # an edit came at the very last moment
            raise StalePlanError([change.folder.root / change.path for change in plan.changes])
        if run.id:
            self._keeper.wake()
            for folder in {change.folder for change in plan.changes}:
                self._let_go(folder)
        return run

    def _let_go(self, folder: Folder) -> None:
        """Deletes the runs that are kept no longer; the change that was just made holds whether or not it can be."""
        now = self._clock()
        try:
            if _has_older(folder, now - self._keep_days * _DAY_S):
                expire(folder, now=now, days=self._keep_days)
        except (OSError, RecallError) as error:
            logger.warning("what may no longer be restored stays for now: %s", error)

    def _folder(self, scope: Scope) -> Folder:
        if scope not in self.folders:
            raise TopicError(
                "this host keeps no memory across projects; name a folder for it with user_root or --user-root",
                path=str(scope),
            )
        return self.folders[scope]


def _lines(topic: Topic) -> list[tuple[int, int]]:
    """First and last line of each entry in its file, as it is now."""
    try:
        text = topic.file.read_bytes().decode("utf-8", "replace")
    except OSError:
        return []
    return entry_lines(text)


def _purge_index(index: Index) -> None:
    """Takes what files no longer say out of the derived data.

    Raises:
        OSError: the cache folder cannot be written, and may still hold it.
    """
    index.purge()
    if index.is_temporary:
        raise OSError(f"{index.note}: what lies there may still hold what was forgotten; delete that folder")


def _failure(part: Callable[[], object]) -> Exception | None:
    """Runs it; what went wrong."""
    try:
        part()
    except (OSError, RecallError) as error:
        return error
    return None


def _scope_of(name: str) -> Scope:
    return Scope.USER if name.startswith(f"{Scope.USER}:") else Scope.PROJECT


def _has_older(folder: Folder, oldest: float) -> bool:
    """Whether a run from before `oldest` (seconds since the epoch) may be there, by the time that begins its name."""
    if oldest <= 0:
        return False
    name = f"{datetime.fromtimestamp(oldest, UTC):%Y-%m-%dT%H-%M-%S}"
    return any(place.name < name for place in (folder.root / TRASH).glob("[0-9]*"))


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
        other.entry.summary if other else "",
        (*decision.plan.notes, *run.notes),
    )
