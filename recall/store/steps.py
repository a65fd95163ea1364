"""One change of a file on its way, in such a way that it can be done again after every stop, and taken back."""

import errno
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from recall.store import disk
from recall.store.files import replace_exactly
from recall.store.plan import Change, content, digest

_NO_LINKS: Final = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}  # of some file systems


@dataclass(frozen=True, slots=True)
class Step:
    """One change on its way.

    Attributes:
        path: place of the file below the memory folder.
        before: hash of what the file must hold, "" when it must not be there.
        after: hash of what it is to hold, "" when it is to go.
        mtime_ns: modification time of what was there; 0 for nothing.
        target: the real file.
        new: where the new content waits.
        old: where the old content goes.
        mode: permission bits of what was there; 0 where they are not known.
    """

    path: str
    before: str
    after: str
    mtime_ns: int
    target: Path
    new: Path
    old: Path
    mode: int = 0

    def stage(self, change: Change) -> None:
        """Lays out all that the change needs, flushed; changes no memory file."""
        if change.after is None:
            return
        mode = self.mode if self.before else change.mode
        if self.before:
            disk.create(self.old, [self.target.read_bytes()], mode=0o600)
        disk.make_folder(self.target.parent)
        disk.create(self.new, [change.after], mode=0o666 if mode is None else 0o600)
        if mode is not None:
            self.new.chmod(mode)  # whatever the umask says
        if change.mtime_ns is not None:
            os.utime(self.new, ns=(change.mtime_ns, change.mtime_ns))

    def carry_out(self) -> bool:
        """Changes the file; False when somebody else changed it at this moment, and it was left alone.

        May be done again after a stop, also where a loss of power left both names of a file that was renamed.
        """
        if not self.after:
            return self._remove()
        if not self.new.exists():
            return True
        if _seen(self.target) == self.after:
            return self._tidied()
        return self._exchange() if self.before else self._put()

    def _tidied(self) -> bool:
        """What is left when the target has its new content."""
        if _seen(self.new) in {self.before, self.after}:
            disk.delete(self.new)
            return True
        # A stop came when somebody's edit had been taken out, before it was put back.
        if not disk.exchange(self.new, self.target):
            disk.rename(self.new, self.target)
        disk.flush_folder(self.target.parent)
        return False

    def _exchange(self) -> bool:
        if _seen(self.target) != self.before:
            return False
        before, after = content(self.old), content(self.new)
        if before is None or after is None or (digest(before), digest(after)) != (self.before, self.after):
            return False  # somebody wrote into what is kept, or waits
        if not replace_exactly(self.target, before, after, new=self.new):
            return False
        disk.delete(self.new)
        return True

    def _put(self) -> bool:
        if _seen(self.new) != self.after:
            return False
        try:
            _link(self.new, self.target)
        except FileExistsError:
            return False
        disk.flush_folder(self.target.parent)
        disk.delete(self.new)
        return True

    def _remove(self) -> bool:
        if not self.old.exists():
            try:
                disk.rename(self.target, self.old)  # whatever it holds by now, it is kept
            except FileNotFoundError:
                return True
        elif self.target.exists():
            if not self.before == _seen(self.target) == _seen(self.old):
                return False
            disk.delete(self.target)
        if _seen(self.old) != self.before:
            with suppress(FileExistsError):  # by now there is a newer one, and this one is kept where it is
                self._put_back()
            return False
        disk.flush_folder(self.old.parent)
        disk.flush_folder(self.target.parent)
        return True

    def _put_back(self) -> None:
        """Gives the file that was moved away its name again, unless something else has it by now."""
        _link(self.old, self.target)
        disk.flush_folder(self.target.parent)
        disk.delete(self.old)

    def undo(self) -> None:
        """Takes back what was done, in such a way that it can be done again.

        Raises:
            OSError: it cannot be taken back, for instance because somebody else has changed the file since.
        """
        now = _seen(self.target)
        if not self.after:
            if self.old.exists() and now != self.before:
                self._put_back()
        elif now == self.after:
            self._undo_writing()
        elif now != self.before and not self.new.exists():
            raise FileExistsError(errno.EEXIST, "somebody else has changed it since", str(self.target))

    def _undo_writing(self) -> None:
        if self.before:
            was, old, now = self.target.stat(), content(self.old), content(self.target)
            if old is None or now is None or digest(old) != self.before:
                raise FileNotFoundError(errno.ENOENT, "what it held is not kept any more", str(self.old))
            if _seen(self.new) != self.after:
                _copy(now, self.new, mode=stat.S_IMODE(was.st_mode), mtime_ns=was.st_mtime_ns)
            spare = self.old.with_name(f"{self.old.name}.undo")
            _copy(old, spare, mode=stat.S_IMODE(was.st_mode), mtime_ns=self.mtime_ns)
            disk.flush_folder(self.new.parent)
            if not replace_exactly(self.target, now, old, new=spare):
                raise FileExistsError(errno.EEXIST, "somebody else has changed it since", str(self.target))
        elif self.new.exists():
            disk.delete(self.target)
        else:
            disk.rename(self.target, self.new)
            disk.flush_folder(self.new.parent)
        disk.flush_folder(self.target.parent)

    def described(self) -> dict[str, Any]:
        """For the journal and the record."""
        return {
            "path": self.path,
            "before": self.before,
            "after": self.after,
            "mtime_ns": self.mtime_ns,
            "mode": self.mode,
            "old": self.old.name,
            "new": self.new.name,
        }


def _copy(data: bytes, to: Path, *, mode: int, mtime_ns: int) -> None:
    """Makes the file, which has its name only once it is whole."""
    draft = to.with_name(f"{to.name}.draft")
    disk.delete(draft)  # of an earlier try
    disk.create(draft, [data], mode=0o600)
    draft.chmod(mode)
    os.utime(draft, ns=(mtime_ns, mtime_ns))
    disk.rename(draft, to)


def _link(file: Path, name: Path) -> None:
    """Gives the file a name that nothing has; where the file system knows no second names, it loses its own.

    Raises:
        FileExistsError: something has that name.
    """
    try:
        disk.link(file, name)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if name.exists():
            raise FileExistsError(errno.EEXIST, "something has that name", str(name)) from error
        disk.rename(file, name)


def _seen(file: Path) -> str:
    """The hash of what a file holds, "" for no file; no hash at all for a folder, which is none of ours."""
    try:
        return digest(content(file))
    except (IsADirectoryError, NotADirectoryError):
        return "a folder"
