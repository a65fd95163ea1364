"""The links of MEMORY.md, each judged by what it leads to, and the topics that none leads to.

Sources: data-oddities.md 28 to 41, deviations V4 (what an index has no room for is recalled all the same), V22.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from pathlib import PurePosixPath

from recall.quality.names import Names
from recall.quality.reading import Contents, inside, is_for_people
from recall.store.capacity import INDEX_CAPS, Size, size_of
from recall.store.index_file import generated
from recall.store.index_lines import CURATED, topic_line
from recall.store.index_links import Line, Link, lines_of
from recall.store.plan import IndexMode
from recall.store.topics import Topic
from recall.text.patterns import pattern

_WORD = pattern(r"[^\W_][\w./-]*")
_PATH = pattern(r"(?:[^\s/]+/)+[^\s/]*|[^\s/]+\.[A-Za-z][A-Za-z0-9]{0,4}")
_CODE = pattern(  # marks and comments have a longest length to keep the search linear
    r"(?<!`)(?P<ticks>`{1,8})(?!`).*?(?<!`)(?P=ticks)(?!`)|<!--.{0,2000}?-->"
)
_FEW = 3  # dead links; in a small index they may well be most of all


class Fate(Enum):
    """What a link leads to."""

    FINE = auto()
    OUTSIDE = auto()
    SUPERSEDED = auto()
    MOVED = auto()
    GONE = auto()
    ELSEWHERE = auto()  # into a folder that the memory does not have: perhaps a path of the project
    AWAY = auto()  # like most others: perhaps a part of the folder is missing here, which takes no line away
    UNWRITTEN = auto()  # a [[name]] among other words; hosts let models write such before there is a topic


@dataclass(frozen=True, slots=True)
class Judged:
    """One link of MEMORY.md.

    Attributes:
        number: of its line, from 1.
        link: the link.
        leads: whether the line begins with it.
        fate: what it leads to.
        reached: the topics that it means.
        topic: of a superseded or moved target the topic.
    """

    number: int
    link: Link
    leads: bool
    fate: Fate
    reached: frozenset[str] = frozenset()
    topic: Topic | None = None


def judged_links(contents: Contents, names: Names) -> list[Judged]:
    """All links of MEMORY.md, in order."""
    topics = {file.topic.path: file.topic for file in contents.files}
    folders = _folders([*topics, *(skip.path for skip in contents.skipped)])
    judge = _Judge(contents, names, topics, folders)
    found = [
        judge.judged(number, link, leads=line.leads and at == 0)
        for number, line in enumerate(lines_of(contents.index.text), 1)
        for at, link in _meant(line)
    ]
    gone = sum(judged.fate is Fate.GONE for judged in found)
    if gone <= _FEW or gone * 2 <= len(found) or contents.folder.index is IndexMode.GENERATED:
        return found
    return [replace(judged, fate=Fate.AWAY) if judged.fate is Fate.GONE else judged for judged in found]


def dropped_targets(links: Iterable[Judged]) -> set[str]:
    """Targets whose lines may go; one that is superseded stays where a sentence links it too, which needs it."""
    found = list(links)
    needed = {judged.link.target for judged in found if judged.fate is Fate.SUPERSEDED and not judged.leads}
    return {judged.link.target for judged in found if judged.fate in {Fate.GONE, Fate.SUPERSEDED}} - needed


def _meant(line: Line) -> Iterator[tuple[int, Link]]:
    """The links of a line with their numbers; those in code or a comment, and `[[ ]]`, show how one is written."""
    if not line.links:
        return
    text = _CODE.sub(lambda match: " " * len(match[0]), line.text)
    for at, link in enumerate(line.links):
        if text[link.start] == "[" and not (link.is_wiki and not link.title.strip()):
            yield at, link


@dataclass(frozen=True, slots=True)
class _Judge:
    contents: Contents
    names: Names
    topics: Mapping[str, Topic]
    folders: frozenset[str]

    def judged(self, number: int, link: Link, *, leads: bool) -> Judged:
        place = inside(link.target, self.contents.folder.root)
        reached = self._reached(link, place)
        fate, topic = self._fate(link, place, reached, leads=leads)
        return Judged(number, link, leads, fate, reached, topic)

    def _reached(self, link: Link, place: str) -> frozenset[str]:
        if place in self.topics:
            return frozenset({place})
        if place in self.folders:
            return frozenset(path for path in self.topics if path.startswith(f"{place}/"))
        return self.names.find(link.target) if link.is_wiki else frozenset()

    def _fate(self, link: Link, place: str, reached: frozenset[str], *, leads: bool) -> tuple[Fate, Topic | None]:
        if not place:
            return Fate.OUTSIDE, None
        if topic := self.topics.get(place):
            return (Fate.SUPERSEDED, topic) if topic.superseded_by else (Fate.FINE, None)
        if reached or place in self.contents.index.present or not (link.is_wiki or _PATH.fullmatch(place)):
            return Fate.FINE, None
        if topic := self.names.moved(place):
            return Fate.MOVED, topic
        if link.is_wiki and not leads:
            return Fate.UNWRITTEN, None
        parent = os.path.dirname(place)  # noqa: PTH120 - a place below the folder, not a path
        return (Fate.GONE if place.endswith(".md") and parent in self.folders else Fate.ELSEWHERE), None


def _folders(paths: Iterable[str]) -> frozenset[str]:
    """The folders that these lie in, the memory folder ("") among them."""
    return frozenset({""} | {str(parent) for path in paths for parent in PurePosixPath(path).parents} - {"."})


# --- topics that no link leads to


@dataclass(frozen=True, slots=True)
class Orphans:
    """Topics without a line in MEMORY.md, newest first.

    Attributes:
        housed: those that there is room for.
        homeless: the others.
    """

    housed: tuple[Topic, ...] = ()
    homeless: tuple[Topic, ...] = ()


def orphans_of(contents: Contents, links: Iterable[Judged]) -> Orphans:
    """The topics that MEMORY.md neither links nor names; superseded ones need no line, and no READMEs."""
    text = contents.index.text
    reached = {path for judged in links for path in (*judged.reached, *_paths(judged.topic))}
    named = set(_WORD.findall(text))
    missing = [
        topic
        for topic in contents.standing
        if topic.path not in reached and not _is_named(topic.path, named) and not is_for_people(topic.path)
    ]
    if contents.folder.index is IndexMode.GENERATED:
        listed = {line.owner for line in lines_of(generated(contents.standing, text))}
        return Orphans(tuple(topic for topic in missing if topic.path in listed))
    return _housed(missing, text)


def _paths(topic: Topic | None) -> Iterator[str]:
    if topic is not None:
        yield topic.path


def _is_named(path: str, words: set[str]) -> bool:
    """Whether a topic is named without a link: by its path, its file, or a stem that is no common word."""
    pure = PurePosixPath(path)
    is_slug = "_" in pure.stem or "-" in pure.stem
    return path in words or pure.name in words or (is_slug and pure.stem in words)


def _housed(missing: Iterable[Topic], text: str) -> Orphans:
    """Housed are as many as leave the index as full as one is made (`build_missing`)."""
    size = size_of(text)
    size = Size(size.lines + 1, size.chars + 1, size.bytes)  # a blank line may come between
    housed: list[Topic] = []
    homeless: list[Topic] = []
    for topic in missing:
        line = topic_line(topic, CURATED)
        larger = Size(size.lines + 1, size.chars + len(line or "") + 1, size.bytes)
        if line is None or any(found > cap for _, found, cap in larger.measured(INDEX_CAPS.target)):
            homeless.append(topic)
        else:
            housed.append(topic)
            size = larger
    return Orphans(tuple(housed), tuple(homeless))
