"""Regular expressions that cost nothing until they are used.

To compile all patterns of the package takes longer than an answer, and a process that gives one answer uses few of
them.
"""

import re
from typing import Any, cast


class _Lazy:
    """Stands for a pattern and takes over its methods one by one, as they are asked for."""

    def __init__(self, source: str, flags: int) -> None:
        self._source, self._flags = source, flags

    def __getattr__(self, name: str) -> Any:
        value = getattr(re.compile(self._source, self._flags), name)
        self.__dict__[name] = value  # not asked here again
        return value


def pattern(source: str, flags: int = 0) -> re.Pattern[str]:
    """Like `re.compile`, at the first use; a mistake in the source shows only then.

    The result has the methods and attributes of a pattern; it is not one to `isinstance`, and `re` functions do not
    take it.
    """
    return cast("re.Pattern[str]", _Lazy(source, flags))
