"""What says the same twice: names that cannot be told apart, bodies and entries that stand in several topics.

Identical means identical as `store.tombstones.folded` compares. What is only nearly the same is not looked for here:
that takes a model, and two facts that differ in one number must not be called one.

Sources: complaints.md 48, data-oddities.md 25 and 26.
"""

import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Final, NamedTuple, TypeVar

from recall.quality.findings import Finding, Kind, Severity
from recall.quality.reading import Contents, TopicFile
from recall.store.tombstones import folded
from recall.store.topics import entry_lines, parse_entries
from recall.text.patterns import pattern
from recall.text.scripts import is_cjk
from recall.text.tokens import normalise

_SHORTEST: Final = 24  # characters of an entry that is a statement of its own; a letter of Chinese counts three
_NOT_WORDS = pattern(r"[\W_]+")

_MOST: Final = 20  # entries of a file that are named

Member = TypeVar("Member")


class _Said(NamedTuple):
    file: TopicFile
    text: str
    number: int = 0  # of the entry


def likeness_findings(contents: Contents) -> Iterator[Finding]:
    """Files of a folder that cannot be told apart or say the same."""
    yield from _by_case(contents)
    files = sorted(contents.files, key=lambda file: file.topic.path)
    standing = [file for file in files if not file.topic.superseded_by]
    yield from _by_title(standing)
    copies = _same([_Said(file, file.topic.body) for file in standing])
    for first, again in copies:
        message = f"says the same as {first.file.topic.path}"
        yield Finding(Kind.SAME_BODY, Severity.WARNING, again.file.topic.path, 1, message)
    copied = {again.file.topic.path for _, again in copies}
    yield from _same_entries([file for file in standing if file.topic.path not in copied])


def _same_entries(files: Sequence[TopicFile]) -> Iterator[Finding]:
    """Entries that stand in two places; of each file the first few."""
    lines = cache(lambda path: entry_lines(texts[path]))
    texts = {file.topic.path: file.text for file in files}
    found: dict[str, int] = defaultdict(int)
    for first, again in _same(_entries(files)):
        (path, line), (other, at) = (
            (one.file.topic.path, lines(one.file.topic.path)[one.number][0]) for one in (first, again)
        )
        found[other] += 1
        if found[other] <= _MOST:
            message = f"says the same as {f'line {line}' if path == other else f'{path}:{line}'}"
            yield Finding(Kind.SAME_ENTRY, Severity.WARNING, other, at, message)
    for path, count in found.items():
        if count > _MOST:
            message = f"{count - _MOST:,} more entries stand elsewhere as well"
            yield Finding(Kind.SAME_ENTRY, Severity.WARNING, path, 1, message)


def _by_case(contents: Contents) -> Iterator[Finding]:
    paths = sorted([file.topic.path for file in contents.files] + [path for path, _ in contents.failed])
    for first, *others in _grouped(paths, lambda path: unicodedata.normalize("NFC", path).casefold()):
        for path in others:
            message = f"differs from {first} by case or form of letters alone; many disks cannot hold both"
            yield Finding(Kind.CASE, Severity.WARNING, path, 1, message)


def _by_title(files: Iterable[TopicFile]) -> Iterator[Finding]:
    """Topics with one title; those that are called after their kind or file have none of their own."""
    titled = [file for file in files if file.front.first("name") or file.front.first("title")]
    for first, *others in _grouped(titled, lambda file: folded(file.topic.title)):
        for file in others:
            message = f"has the title of {first.topic.path}; a link by that title may mean either"
            yield Finding(Kind.TITLE, Severity.NOTE, file.topic.path, 1, message)


def _entries(files: Iterable[TopicFile]) -> Iterator[_Said]:
    for file in files:
        for number, entry in enumerate(parse_entries(file.topic.body)):
            if "\n" not in entry.summary and _weight(entry.summary) >= _SHORTEST:
                yield _Said(file, entry.summary, number)


def _weight(text: str) -> int:
    return sum(3 if is_cjk(char) else 1 for char in text[:_SHORTEST])


def _same(said: Iterable[_Said]) -> list[tuple[_Said, _Said]]:
    """Each text that stands there again with where it stands first, by path."""
    pairs: list[tuple[_Said, _Said]] = []
    # What folds to one has the same letters; to fold a text takes longer than to see that.
    for alike in _grouped(said, lambda one: _NOT_WORDS.sub("", normalise(one.text))):
        for first, *others in _grouped(alike, lambda one: folded(one.text)):
            pairs += [(first, other) for other in others]
    return pairs


def _grouped(members: Iterable[Member], key: Callable[[Member], str]) -> Iterator[list[Member]]:
    """The members with one key, where there are several; those without any belong to nobody."""
    groups: dict[str, list[Member]] = defaultdict(list)
    for member in members:
        groups[key(member)].append(member)
    return (group for name, group in groups.items() if name and len(group) > 1)
