"""Standing instructions, AGENTS.md of the project and of the user, as part of what a memory remembers and lists."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from recall.errors import TopicError
from recall.lifecycle.remember import Outcome
from recall.memory.stored import Remembered, Stored
from recall.store import disk
from recall.store.instructions import Item as Line
from recall.store.instructions import append_instruction, items, items_of, without_item
from recall.store.locks import exclusive
from recall.store.plan import Change, Folder, IndexMode, Item, Plan, digest, read_bytes
from recall.store.projects import real_path
from recall.store.seals import Key
from recall.store.topics import Scope

_MARK: Final = "#"
_WAIT_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Instructions:
    """The files of instructions by whose they are.

    Attributes:
        files: of the project and, where there is a home, of the user; need not exist.
        locks: folder of lock files, the user's own.
        key: the user's secret, or the folder where it lies, by which his own journals are known.
    """

    files: Mapping[Scope, Path]
    locks: Path
    key: Key = Path()

    def append(self, text: str, scope: Scope) -> Remembered:
        """Writes one item, unless it is there (W-PRJ-01, W-USR-01, W-EDG-02).

        Raises:
            TopicError: there is no such file for a user without a home, or the text cannot be an item.
            UnsafePathError: the project's file is a link out of the project.
            LockedError: another process kept writing.
            OSError: the file cannot be written.
        """
        if scope not in self.files:
            raise TopicError("there is no home folder for the user's instructions", path=str(scope))
        file = self.files[scope]
        root = file.parent if scope is Scope.PROJECT else None
        done = append_instruction(file, text, lock=self._lock(scope), root=root)
        item = next(one for one in items(file) if one.first == done.line)
        outcome = Outcome.KNOWN if done.duplicate else Outcome.CREATED
        return Remembered(outcome, self._id(scope, item), file, other=item.text if done.duplicate else "")

    def entries(self) -> list[Stored]:
        """Every item of every file that is there (W-MNG-01)."""
        return [
            Stored(self._id(scope, item), scope, file, item.first, item.last, item.text)
            for scope, file in self.files.items()
            if file.is_file()
            for item in items(file)
        ]

    @contextmanager
    def held(self, folders: Collection[Path]) -> Iterator[None]:
        """Holds the files that lie in these folders for the block: an append and a deletion take turns."""
        with ExitStack() as stack:
            for scope in self.files:
                if self._place(scope).parent in folders:
                    lock = self._lock(scope)
                    disk.make_folder(lock.parent, mode=0o700)
                    stack.enter_context(exclusive(lock, timeout_s=_WAIT_S))
            yield

    def _lock(self, scope: Scope) -> Path:
        name = str(real_path(self.files[scope])).encode("utf-8", "surrogateescape")
        return self.locks / f"{sha256(name).hexdigest()[:32]}.lock"

    def knows(self, name: str) -> bool:
        """Whether an id has the form of an item's."""
        scope, rest = _parted(name)
        return scope in self.files and rest.startswith(f"{self.files[scope].name}{_MARK}")

    def deletion(self, names: Sequence[str]) -> Plan:
        """The plan that removes these items and nothing else (W-MNG-02).

        Raises:
            TopicError: the file has no such item.
            UnsafePathError: the project's file is a link out of the project.
        """
        changes: list[Change] = []
        items: list[Item] = []
        for scope, file in self.files.items():
            keys = {name: _parted(name)[1].partition(_MARK)[2] for name in names if _parted(name)[0] is scope}
            if not keys:
                continue
            folder, place = self.folder(scope), self._place(scope).name
            before = read_bytes(folder, place)
            text = (before or b"").decode("utf-8", "surrogateescape")
            said = {item.id: item.text for item in items_of(text)}
            # From the last one on: the id of one of two equal items says which of them it is.
            for key in sorted(keys.values(), reverse=True):
                text = without_item(text, key, file=file)
            changes.append(Change(folder, place, digest(before), text.encode("utf-8", "surrogateescape")))
            items += [Item(name, said[key]) for name, key in keys.items()]
        return Plan("delete", tuple(changes), tuple(items))

    def folder(self, scope: Scope) -> Folder:
        """Where the file lies, as a folder that plans change; its `.trash` keeps what was removed."""
        return Folder(self._place(scope).parent, scope, IndexMode.OFF, key=self.key)

    def _place(self, scope: Scope) -> Path:
        """The file; for the user's own the one that a link leads to, wherever that is."""
        return real_path(self.files[scope]) if scope is Scope.USER else self.files[scope]

    def _id(self, scope: Scope, item: Line) -> str:
        name = f"{self.files[scope].name}{_MARK}{item.id}"
        return name if scope is Scope.PROJECT else f"{scope}:{name}"


def _parted(name: str) -> tuple[Scope, str]:
    """Whose an item is, and the rest of its id."""
    prefix = f"{Scope.USER}:"
    return (Scope.USER, name.removeprefix(prefix)) if name.startswith(prefix) else (Scope.PROJECT, name)
