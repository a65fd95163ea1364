"""Forgetting: which entries a request means, and the plan that removes exactly them.

Sources: seed 000 (forget), qwen.md section 8, deviations V11, V12, V20.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from glob import escape
from typing import Final

from recall.errors import TopicError
from recall.lifecycle.heading import retold
from recall.store.editing import Source, without
from recall.store.frontmatter import parse
from recall.store.plan import Change, Folder, Item, Plan, digest, read_bytes
from recall.store.topics import Entry, Scope, Topic, body_of, entry_ids, parse_entries, search_text
from recall.text.scripts import is_cjk

LIMIT: Final = 5
"""Entries that one request forgets, unless it says otherwise."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One entry that may be forgotten.

    Attributes:
        id: its public name, stable as long as the topic's entries are.
        topic: where it stands.
        index: its number in the topic, from 0.
        entry: what it says.
    """

    id: str
    topic: Topic
    index: int
    entry: Entry


def candidates(topics: Iterable[Topic]) -> list[Candidate]:
    """Every entry of every topic, in the order of the topics."""
    return [
        Candidate(name, topic, index, entry)
        for topic in topics
        for index, (name, entry) in enumerate(zip(entry_ids(topic), parse_entries(topic.body), strict=True))
    ]


def likely(query: str, topics: Iterable[Topic]) -> list[Topic]:
    """The topics in which `by_phrase` may find something: a cheap look, to parse few of many."""
    words = query.lower().split()
    return [topic for topic in topics if all(word in topic.body.lower() for word in words)]


def named(name: str, among: Sequence[Candidate]) -> list[Candidate]:
    """The entries that an id means: one entry, or all of a topic, with or without `.md`."""
    return [one for one in among if name in _names(one)]


def _names(one: Candidate) -> set[str]:
    stem = one.topic.id.removesuffix(".md")
    return {one.id, f"{stem}:{one.index}" if one.id != one.topic.id else stem, one.topic.id, stem}


def by_phrase(query: str, among: Sequence[Candidate], *, limit: int = LIMIT) -> list[Candidate]:
    """The entries that hold the whole request, word for word.

    User memory before project memory, which share the limit evenly; what one does not need, the other has. A request
    without two letters or digits, or one character of Chinese, Japanese or Korean, means nothing.
    """
    words = " ".join(query.split()).lower()
    if not _says_something(words):
        return []
    found = [one for one in among if words in search_text(one.entry)]
    of_user = [one for one in found if one.topic.scope is Scope.USER]
    of_project = [one for one in found if one.topic.scope is not Scope.USER]
    share = max((limit + 1) // 2, limit - len(of_project))
    of_user = of_user[:share]
    return of_user + of_project[: limit - len(of_user)]


def _says_something(words: str) -> bool:
    letters = [char for char in words if char.isalnum()]
    return len(letters) > 1 or any(map(is_cjk, letters))


def forgetting(chosen: Sequence[Candidate], folders: Mapping[Scope, Folder]) -> Plan:
    """The plan that removes these entries and nothing else: a topic goes with its last entry.

    Args:
        chosen: the entries; those that are no longer in their file are left out.
        folders: where each scope's memory lies.

    Raises:
        TopicError: a file cannot be edited without changing all of it.
        OSError: a file cannot be read.
    """
    changes: dict[tuple[Scope, str], Change] = {}
    items: dict[str, Item] = {}
    notes: list[str] = []
    for group in _by_file(chosen):
        path = group[0].topic.path
        folder = folders[group[0].topic.scope]
        data = read_bytes(folder, path)
        source = _source(group, path, data)
        indices = _still_there(group, source.shown) if source else {}
        lost = [one for one in group if one.id not in indices]
        notes += [f"{one.id} has been changed or removed by somebody else" for one in lost]
        if source is None or not indices:
            continue
        items |= {one.id: Item(one.id, one.entry.summary) for one in group if one.id in indices}
        left = without(source.entries, set(indices.values()))
        after = _without(source, group, left).data if left else None
        changes[folder.scope, path] = Change(folder, path, digest(data), after)
        for older, item in () if left else _superseded_by(path, folder):
            # It may have been chosen itself.
            changes.setdefault((folder.scope, older.path), older)
            items.setdefault(item.id, item)
    return Plan("forget", tuple(changes.values()), tuple(items.values()), tuple(notes))


def _source(group: Sequence[Candidate], path: str, data: bytes | None) -> Source | None:
    """The file to edit; of one that goes whole no more is asked than that it says what it said."""
    try:
        return None if data is None else Source.of(path, data)
    except TopicError:
        if len(group) < len(parse_entries(group[0].topic.body)):
            raise
        return Source(path, group[0].topic.body)


def removing(topics: Sequence[Topic], folders: Mapping[Scope, Folder]) -> Plan:
    """The plan that removes whole topics, whatever is in them.

    Raises:
        OSError: a file cannot be read.
    """
    changes = [
        Change(folders[topic.scope], topic.path, digest(read_bytes(folders[topic.scope], topic.path)), None)
        for topic in topics
    ]
    return Plan("forget", tuple(changes), tuple(Item(topic.id, topic.body or topic.title) for topic in topics))


def _superseded_by(path: str, folder: Folder) -> list[tuple[Change, Item]]:
    """What removes the earlier states of a topic, which lie beside it: without it they would come up as what holds."""
    place = (folder.root / path).with_suffix("")
    found = []
    for file in sorted(place.parent.glob(f"{escape(place.name)}-until-*.md")):
        older = file.relative_to(folder.root).as_posix()
        data = read_bytes(folder, older)
        front = parse((data or b"").decode("utf-8", "replace"))
        if front.first("superseded_by") == path:
            name = older if folder.scope is Scope.PROJECT else f"{folder.scope}:{older}"
            found.append((Change(folder, older, digest(data), None), Item(name, body_of(front))))
    return found


def _without(source: Source, gone: Sequence[Candidate], left: Sequence[Entry]) -> Source:
    """The file with what is left; what its header tells of the others is told of the first that is."""
    told = retold(source.text, [one.entry.summary for one in gone], left[0].summary)
    after = source.with_entries(left)
    return after.with_fields(told) if told else after


def _by_file(chosen: Sequence[Candidate]) -> list[list[Candidate]]:
    files: dict[tuple[Scope, str], list[Candidate]] = {}
    for one in chosen:
        files.setdefault((one.topic.scope, one.topic.path), []).append(one)
    return list(files.values())


def _still_there(group: Sequence[Candidate], entries: Sequence[Entry]) -> dict[str, int]:
    """Where the entries are in the file now, by id; one that moved is found by what it says."""
    found: dict[str, int] = {}
    for one in group:
        at = one.index if one.index < len(entries) and entries[one.index] == one.entry else None
        if at is None:
            same = (n for n, entry in enumerate(entries) if entry == one.entry and n not in found.values())
            at = next(same, None)
        if at is not None:
            found[one.id] = at
    return found
