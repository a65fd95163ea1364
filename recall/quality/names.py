"""What a name in a link may mean: a path, a file name, a title, with or without its kind, however it is spaced.

Hosts and people write `[[run-it-yourself]]` for `feedback_run_it_yourself.md`; all of that is understood.
"""

import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from recall.store.topics import MemoryType, Topic
from recall.text.patterns import pattern

_GAPS = pattern(r"[\s_-]+")
_KINDS: Final = tuple(f"{kind}-" for kind in MemoryType)


def name_key(text: str) -> str:
    """A name as it is compared: case, form of letters, kind of gaps and the ending `.md` do not matter."""
    plain = unicodedata.normalize("NFKC", text).casefold().strip().removesuffix(".md")
    return _GAPS.sub("-", plain).strip("-")


@dataclass(frozen=True, slots=True)
class Names:
    """The names of all topics of a folder.

    Attributes:
        meant: paths by every key that may mean them.
        by_file: topics by the key of their file name.
    """

    meant: Mapping[str, frozenset[str]]
    by_file: Mapping[str, tuple[Topic, ...]]

    @classmethod
    def of(cls, topics: Sequence[Topic], others: Iterable[str] = ()) -> "Names":
        """The names of these topics, and of other files by their paths."""
        meant: dict[str, set[str]] = defaultdict(set)
        by_file: dict[str, list[Topic]] = defaultdict(list)
        for topic in topics:
            by_file[name_key(_file(topic.path))].append(topic)
            for key in (*_keys(topic.path), *_keys(topic.title)):
                meant[key].add(topic.path)
        for path in others:
            for key in _keys(path):
                meant[key].add(path)
        return cls(
            {key: frozenset(paths) for key, paths in meant.items()},
            {key: tuple(found) for key, found in by_file.items()},
        )

    def find(self, target: str) -> frozenset[str]:
        """The paths that the target of a link may mean; the nearest meaning that there is."""
        return next((found for key in _keys(target) if (found := self.meant.get(key))), frozenset())

    def moved(self, path: str) -> Topic | None:
        """The one topic whose file has the name of a path that is gone; None where there is none or several."""
        found = self.by_file.get(name_key(_file(path)), ())
        return found[0] if len(found) == 1 else None


def _keys(name: str) -> Iterator[str]:
    """What a name may be compared as: whole, its last part, and that without its kind."""
    whole = name_key(name)
    last = name_key(_file(name.removeprefix("user:").removeprefix("project:")))
    yield from dict.fromkeys(key for key in (whole, last, _untyped(last)) if key)


def _file(path: str) -> str:
    return PurePosixPath(path).name or path


def _untyped(key: str) -> str:
    return next((key.removeprefix(kind) for kind in _KINDS if key.startswith(kind)), key)
