"""Remembering: whether a fact is new, said already, or changes one that is there; and the plan that writes it down.

Sources: DESIGN section 3, seed 000 (topic files), spec complaint I48, deviations V8.
"""

import stat
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Final

from recall.errors import StalePlanError, TopicError
from recall.lifecycle.duplicates import Verdict, judging
from recall.lifecycle.forget import Candidate
from recall.lifecycle.heading import heading, retold
from recall.store.editing import Source, rendered, scalar
from recall.store.frontmatter import parse
from recall.store.plan import Change, Folder, Item, Plan, digest, read_bytes
from recall.store.tombstones import folded
from recall.store.topics import Entry, MemoryType, Scope, js_trim, parse_entries
from recall.text.function_words import FUNCTION_WORDS

_SLUG_BYTES: Final = 40
_STEM_BYTES: Final = 200  # file systems allow 255 of a name
_DEVICES: Final = frozenset({"con", "prn", "aux", "nul"} | {f"{port}{n}" for port in ("com", "lpt") for n in range(10)})
_MAX_BYTES: Final = 64 * 1024  # one fact is no document


class Origin(StrEnum):
    """Where a fact comes from; only what its owner says may bring back what was forgotten."""

    OWNER = "owner"
    AGENT = "agent"
    TOOL = "tool"
    WEB = "web"
    REPO = "repo"


class Outcome(StrEnum):
    """What became of a fact that was to be remembered."""

    CREATED = "created"
    UPDATED = "updated"
    SUPERSEDED = "superseded"
    KNOWN = "known"
    FORGOTTEN = "forgotten"


@dataclass(frozen=True, slots=True)
class Fact:
    """What is to be remembered.

    Attributes:
        entries: what it says; one, unless the text was a list of facts.
        type: the kind of memory.
        origin: where it comes from.
    """

    entries: tuple[Entry, ...]
    type: MemoryType
    origin: Origin = Origin.OWNER

    @property
    def summary(self) -> str:
        """All it says, without reasons."""
        return "\n".join(entry.summary for entry in self.entries)


def fact_of(text: str, kind: MemoryType, origin: Origin) -> Fact:
    """What a text says.

    Raises:
        TopicError: it says nothing, is no text, or is too long for a memory.
    """
    # What a file would have as its title, or as the reason of the fact before, is a fact where it is all that is said.
    entries = tuple(parse_entries(js_trim(text))) or (Entry(" ".join(text.split())),)
    if not any(map(str.isalnum, text)):
        raise TopicError("there is nothing to remember in an empty text", path="remember")
    if "\0" in text or any(unicodedata.category(char) == "Cs" for char in text):
        raise TopicError("the text holds NUL characters or halves of characters; remove them", path="remember")
    if len(text.encode()) > _MAX_BYTES:
        raise TopicError(f"the text is larger than {_MAX_BYTES:,} bytes; remember what matters of it", path="remember")
    return Fact(entries, kind, origin)


@dataclass(frozen=True, slots=True)
class Neighbour:
    """An entry that is there and may say the same.

    Attributes:
        candidate: the entry.
        cosine: of the two texts; 0 where no model can say.
    """

    candidate: Candidate
    cosine: float


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to be done with a fact, and why.

    Attributes:
        outcome: what will have become of it.
        id: of the topic or entry that says it then.
        other: the entry that it is the same as, or that it changes; None for a new fact.
        plan: what would change.
    """

    outcome: Outcome
    id: str
    other: Candidate | None
    plan: Plan


def comparable(fact: Fact, found: Sequence[Candidate]) -> list[Candidate]:
    """The entries that may say the same or be changed; for the others no vector need be made.

    A nearer one is never judged to be more another fact: what is another one at the greatest cosine is so at any.
    """
    if len(fact.entries) > 1:
        return list(found)
    judged = judging(fact.summary)
    return [one for one in found if judged(one.entry.summary, 1.0) is not Verdict.OTHER]


def decide(
    fact: Fact,
    neighbours: Sequence[Neighbour],
    folder: Folder,
    *,
    now: float,
    style: "Callable[[MemoryType, str], str] | None" = None,
) -> Decision:
    """Whether the fact is new, known or a change, and the plan that writes it down.

    Args:
        fact: what is to be remembered.
        neighbours: entries like it, of all scopes.
        folder: where it is to lie.
        now: seconds since the epoch.
        style: makes the path of a new topic from its kind and a slug; None takes `kind_slug.md`.

    Raises:
        OSError: a file cannot be read.
        TopicError: a file cannot be edited.
        StalePlanError: a file changed since the neighbours were found; find them again.
    """
    if whole := _told_whole(fact, neighbours):
        return Decision(Outcome.KNOWN, whole.topic.id, whole, Plan("remember", ()))
    verdict, other = _closest(fact, neighbours, folder)
    if other is None or verdict is Verdict.OTHER:
        return _created(fact, folder, style or _flat)
    if verdict is Verdict.CHANGED:
        return _superseding(fact, other, folder, now=now)
    if verdict is Verdict.SAME or other.topic.scope is not folder.scope or _says_less(fact, other.entry):
        return Decision(Outcome.KNOWN, other.id, other, Plan("remember", ()))
    return _updated(fact, other, folder)


def _told_whole(fact: Fact, neighbours: Sequence[Neighbour]) -> Candidate | None:
    """The first entry of a topic that holds all of several facts already; None for a single fact."""
    if len(fact.entries) < 2:
        return None
    topics: dict[str, list[Candidate]] = {}
    for one in neighbours:
        if not one.candidate.topic.superseded_by:
            topics.setdefault(one.candidate.topic.id, []).append(one.candidate)
    for known in topics.values():
        said = {folded(one.entry.summary) for one in known}
        if all(folded(entry.summary) in said for entry in fact.entries):
            return known[0]
    return None


def _closest(fact: Fact, neighbours: Sequence[Neighbour], folder: Folder) -> tuple[Verdict, Candidate | None]:
    """The entry that matters most for the fact: one that says it, else one that it changes."""
    judged_beside = judging(fact.summary)
    judged = [
        (judged_beside(one.candidate.entry.summary, one.cosine), one)
        for one in neighbours
        if not one.candidate.topic.superseded_by
    ]
    for wanted in (Verdict.SAME, Verdict.RESTATED, Verdict.CHANGED):
        found = [one for verdict, one in judged if verdict is wanted]
        if wanted is Verdict.CHANGED:  # what holds in another scope is not ours to change
            found = [one for one in found if one.candidate.topic.scope is folder.scope]
        if found:
            return wanted, max(found, key=lambda one: one.cosine).candidate
    return Verdict.OTHER, None


def _says_less(fact: Fact, known: Entry) -> bool:
    """Whether the entry has all words of the fact, and more that only say it otherwise."""
    mine, theirs = (set(text.casefold().split()) for text in (fact.summary, known.summary))
    return (
        mine < theirs
        and theirs - mine <= FUNCTION_WORDS
        and not any(entry.why or entry.how_to_apply for entry in fact.entries)
    )


def _flat(kind: MemoryType, slug: str) -> str:
    return f"{kind}_{slug}.md"


def foldered(kind: MemoryType, slug: str) -> str:
    """The path of a new topic where each kind has a folder (seed 000)."""
    return f"{kind}/{slug}.md"


def _created(fact: Fact, folder: Folder, style: Callable[[MemoryType, str], str]) -> Decision:
    path = _free(folder, lambda number: style(fact.type, slug_of(fact.summary, number)))
    fields = {**heading(fact.summary), "type": fact.type.value, "origin": fact.origin.value}
    change = Change(folder, path, "", _topic(fields, fact.entries))
    plan = Plan("remember", (change,), (Item(_id(folder, path), fact.summary),))
    return Decision(Outcome.CREATED, _id(folder, path), None, plan)


def _topic(fields: Mapping[str, str], entries: Sequence[Entry]) -> bytes:
    header = "".join(f"{key}: {scalar(value)}\n" for key, value in fields.items() if value)
    return f"---\n{header}---\n\n{rendered(entries)}\n".encode()


def _updated(fact: Fact, other: Candidate, folder: Folder) -> Decision:
    """The same said otherwise: the newer words take the place of the older ones."""
    change = _replaced(fact, other, folder, {})
    plan = Plan("remember", (change,), (Item(other.id, fact.summary),), (f"was: {other.entry.summary}",))
    return Decision(Outcome.UPDATED, other.id, other, plan)


def _superseding(fact: Fact, other: Candidate, folder: Folder, *, now: float) -> Decision:
    """The fact takes the place of the old one, which is kept beside it, dated, with the time of its file.

    So all that leads to the topic leads to what holds.
    """
    topic, day = other.topic, datetime.fromtimestamp(now, UTC)
    pure = PurePosixPath(topic.path)
    stem = pure.with_name(_cut_bytes(pure.stem, _STEM_BYTES))
    # No date with dashes: it would be taken for the day when the fact was stated.
    path = _free(folder, lambda number: f"{stem}-until-{day:%Y%m%d}{f'-{number}' if number else ''}.md")
    fields = {
        "name": topic.title,
        "description": heading(other.entry.summary)["description"],
        "type": topic.type.value if topic.type else "",
        "origin": _origin(topic.path, folder),
        "superseded_by": topic.path,
        "superseded_on": f"{day:%Y-%m-%d}",
    }
    new = _replaced(fact, other, folder, {"origin": fact.origin.value, "supersedes": path})
    old = Change(
        folder,
        path,
        "",
        _topic(fields, [other.entry]),
        mtime_ns=int(topic.mtime * 1e9),
        mode=stat.S_IMODE((folder.root / topic.path).stat().st_mode),
    )
    items = (Item(other.id, fact.summary), Item(_id(folder, path), other.entry.summary))
    return Decision(Outcome.SUPERSEDED, other.id, other, Plan("remember", (old, new), items))


def _origin(path: str, folder: Folder) -> str:
    return parse((read_bytes(folder, path) or b"").decode("utf-8", "replace")).first("origin")


def _replaced(fact: Fact, other: Candidate, folder: Folder, fields: Mapping[str, str]) -> Change:
    """The file with the fact in the place of the other entry; what its header says of the old one is said anew."""
    data = read_bytes(folder, other.topic.path)
    source = Source.of(other.topic.path, data or b"")
    entries, at = source.entries, other.index
    if source.shown[at : at + 1] != [other.entry]:
        raise StalePlanError([folder.root / other.topic.path])
    fresh = [_kept_reasons(entry, other.entry) for entry in fact.entries]
    changed = source.with_entries([*entries[:at], *fresh, *entries[at + 1 :]])
    told = {**fields, **retold(source.text, [other.entry.summary], fact.summary)}
    if len(entries) == 1:  # what an index says of the topic is the fact
        told["description"] = heading(fact.summary)["description"]
    return Change(folder, other.topic.path, digest(data), changed.with_fields(told).data if told else changed.data)


def _kept_reasons(entry: Entry, old: Entry) -> Entry:
    return Entry(entry.summary, entry.why or old.why, entry.how_to_apply or old.how_to_apply)


def _id(folder: Folder, path: str) -> str:
    return path if folder.scope is Scope.PROJECT else f"{folder.scope}:{path}"


def _free(folder: Folder, path: Callable[[int], str]) -> str:
    """The first path that no file has, in whatever case and spelling: other systems make no difference."""
    beside = (folder.root / path(0)).parent
    taken = {_folded(file.name) for file in beside.iterdir()} if beside.is_dir() else set()
    number = 0
    while _folded(PurePosixPath(path(number)).name) in taken:
        number = number + 1 if number else 2
    return path(number)


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name.casefold())


def slug_of(text: str, number: int = 0) -> str:
    """The part of a file's name that says what is in it: letters and digits of any script, joined by `-`."""
    folded = unicodedata.normalize("NFKC", text).lower()
    slug = ""
    for word in "".join(char if char.isalnum() else " " for char in folded).split():
        longer = f"{slug}-{word}" if slug else _cut_bytes(word, _SLUG_BYTES)
        if len(longer.encode()) > _SLUG_BYTES:
            break
        slug = longer
    if slug in _DEVICES:  # of Windows, with whatever suffix
        slug = f"{slug}-fact"
    return f"{slug or 'memory'}{f'-{number}' if number else ''}"


def _cut_bytes(text: str, size: int) -> str:
    return text.encode()[:size].decode("utf-8", "ignore")
