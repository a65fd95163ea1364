"""Every exception that recall raises on purpose, under one base.

    RecallError
      ConfigError(ValueError)                a bad key or value; names the source and the key
      TopicError(ValueError)                 a topic or a query that cannot be used; names the file and the line
      UnsafePathError(PermissionError)       a path outside the memory folder
      StalePlanError                         a plan whose files changed after it was made; names them
      LockedError                            somebody else holds a lock; names the file and the process
      IndexFormatError                       derived data of another version, model or dimension, or damaged
      EncoderError                           a model that cannot encode
        ModelNotFoundError(FileNotFoundError)  a model file that is missing or damaged
      MissingExtraError(ImportError)         an optional library that is not installed; names the extra

A gate that says no, a recall that finds nothing and advice to the model are values, never exceptions.
"""

from collections.abc import Sequence
from pathlib import Path


class RecallError(Exception):
    """Base of everything that recall raises on purpose; can be sent to another process."""

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (type(self), self.args, self.__dict__)


def _restored(kind: type[RecallError], args: tuple[object, ...], attributes: dict[str, object]) -> RecallError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(attributes)
    return error


class ConfigError(RecallError, ValueError):
    """A setting that cannot be used.

    Attributes:
        source: where the value came from: a file, an environment variable or "arguments".
        key: the dotted name of the setting, for instance `search.k`.
    """

    def __init__(self, message: str, *, source: str, key: str = "") -> None:
        super().__init__(f"{source}: {key + ': ' if key else ''}{message}")
        self.source = source
        self.key = key


class TopicError(RecallError, ValueError):
    """A topic file, or a request about one, that cannot be used.

    Attributes:
        path: the file concerned.
        line: its line, counted from 1; 0 when no line is to blame.
    """

    def __init__(self, message: str, *, path: Path | str, line: int = 0) -> None:
        super().__init__(f"{path}{f':{line}' if line else ''}: {message}")
        self.path = Path(path)
        self.line = line


class UnsafePathError(RecallError, PermissionError):
    """A path that leaves the folder it has to stay in.

    Attributes:
        path: the offending path as it was given.
        root: the folder that it has to stay in.
    """

    def __init__(self, path: Path | str, root: Path | str) -> None:
        super().__init__(f"{path} lies outside {root}; only paths inside are allowed")
        self.path = Path(path)
        self.root = Path(root)


class StalePlanError(RecallError):
    """A plan that was made for files which have changed since; nothing of it was done.

    Attributes:
        paths: the files that are not as the plan expects.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        super().__init__(f"{', '.join(map(str, paths))}: changed since the plan was made; make a new plan")
        self.paths = tuple(paths)


class LockedError(RecallError):
    """Another process holds the lock.

    Attributes:
        path: the lock file.
        holder: what is known of the holder, for instance `process 4711 on host box`; empty when unknown.
    """

    def __init__(self, path: Path | str, holder: str = "") -> None:
        super().__init__(f"{path} is held by {holder or 'another process'}; wait for it to finish and try again")
        self.path = Path(path)
        self.holder = holder


class IndexFormatError(RecallError):
    """Derived data that is damaged, or belongs to another version, model or dimension; it has to be rebuilt."""


class EncoderError(RecallError):
    """A model that does not encode: not loadable, of the wrong shape, or returning vectors that are no numbers."""


class ModelNotFoundError(EncoderError, FileNotFoundError):
    """A model file that is missing or damaged.

    Attributes:
        path: the file concerned.
    """

    def __init__(self, message: str, *, path: Path | str) -> None:
        super().__init__(f"{path}: {message}")
        self.path = Path(path)


class MissingExtraError(RecallError, ImportError):
    """An optional library that is not installed.

    Attributes:
        extra: the extra of the distribution that brings it.
    """

    def __init__(self, library: str, *, extra: str) -> None:
        super().__init__(f"{library} is not installed; run: pip install 'recall-memory[{extra}]'")
        self.extra = extra
