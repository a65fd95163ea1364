"""Typed JSON state beside the memory folder: meta.json and extract-cursor.json, as qwen-code writes them.

A file is changed by reading it, changing the values that this module knows, and putting it back whole. Everything else
in it stays, character by character and in its order: keys of other tools and of other versions, and values that are not
of the kind they should be, which count as absent. A file that is no JSON object is put aside under another name, so
that it neither stops anything for ever nor is lost (deviations V6).

Sources: founding document 000, spec qwen.md section 2, deviations V6 and V14.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar, get_type_hints

import msgspec

from recall.errors import TopicError
from recall.store import disk
from recall.store.files import atomic_write, read_text
from recall.store.locks import exclusive
from recall.store.projects import real_path
from recall.text.patterns import pattern

VERSION: Final = 1

_TIME: Final = float | None  # the type of every value that is a time, and of no other
_LARGEST: Final = 16 * 1024 * 1024
_WAIT_S: Final = 10.0

_BETWEEN: Final = pattern(r"[ \t\r\n,]*")
_COLON: Final = pattern(r"[ \t\r\n]*:[ \t\r\n]*")
_HALF_CHARACTER: Final = pattern(r"[\ud800-\udfff]")
_WORD_START: Final = pattern("_([a-z])")


class Status(StrEnum):
    """Whether an extraction or a dream changed anything."""

    UPDATED = "updated"
    NOOP = "noop"


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    """What every file of state has.

    Attributes:
        warnings: what is wrong with the file, one sentence each; never written.
    """

    warnings: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Meta(_State):
    """What meta.json says of a memory. Every value may be absent; times are seconds since the epoch.

    Attributes:
        version: of the file's form.
        created_at: when the memory was made.
        updated_at: when a topic was changed last.
        last_extraction_at: when topics were last extracted from a conversation.
        last_extraction_session_id: the conversation.
        last_extraction_touched_topics: the types of the topics that were changed.
        last_extraction_status: whether any was.
        last_dream_at: when the memory was last consolidated.
        last_dream_session_id: the conversation after which that happened.
        last_dream_touched_topics: the types of the topics that were changed.
        last_dream_status: whether any was.
        recent_session_ids_since_dream: kept for qwen-code, which only ever empties it.
        project_root: the real folder that the memory belongs to (deviations V14; read by `store.projects` too).
    """

    version: int | None = None
    created_at: float | None = None
    updated_at: float | None = None
    last_extraction_at: float | None = None
    last_extraction_session_id: str | None = None
    last_extraction_touched_topics: tuple[str, ...] | None = None
    last_extraction_status: Status | None = None
    last_dream_at: float | None = None
    last_dream_session_id: str | None = None
    last_dream_touched_topics: tuple[str, ...] | None = None
    last_dream_status: Status | None = None
    recent_session_ids_since_dream: tuple[str, ...] | None = None
    project_root: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor(_State):
    """How far extraction has come (deviations V7).

    Attributes:
        session_id: the conversation.
        processed_offset: number of its messages that are done with.
        updated_at: when that was written, seconds since the epoch.
    """

    session_id: str | None = None
    processed_offset: Annotated[int, msgspec.Meta(ge=0)] | None = None
    updated_at: float | None = None


_S = TypeVar("_S", Meta, Cursor)


def read_meta(file: Path) -> Meta:
    """What the file says; nothing, when it is missing, and with a warning, when it is corrupt. Writes nothing.

    Raises:
        OSError: it is there and cannot be read.
    """
    return _read(file, Meta)


def update_meta(file: Path, change: Callable[[Meta], Meta], *, lock: Path, now: float) -> Meta:
    """Puts back what `change` makes of the file. Processes take turns.

    Args:
        file: meta.json. One that is missing, or corrupt and therefore put aside, begins with version and dates.
        change: from old to new values; None removes a key.
        lock: lock file of this file, made with its folder when missing.
        now: seconds since the epoch, for a new file and the name of one that is put aside.

    Returns:
        The new values, with a warning when a corrupt file was put aside.

    Raises:
        LockedError: another process kept the lock.
        OSError: the file cannot be read or written; it is untouched.
    """
    return _update(file, change, fresh=Meta(version=VERSION, created_at=now, updated_at=now), lock=lock, now=now)


def read_cursor(file: Path) -> Cursor:
    """Like `read_meta`, of extract-cursor.json."""
    return _read(file, Cursor)


def write_cursor(file: Path, cursor: Cursor, *, lock: Path, now: float) -> Cursor:
    """Writes the cursor, dated `now`; keys of others stay. Otherwise like `update_meta`."""
    dated = replace(cursor, updated_at=now, warnings=())
    return _update(file, lambda _: dated, fresh=Cursor(updated_at=now), lock=lock, now=now)


def set_aside(file: Path, *, now: float) -> Path:
    """Renames a file that cannot be used to NAME.corrupt-TIME, a name that nothing has yet, and says which.

    Raises:
        OSError: it cannot be renamed.
    """
    stamp = iso_time(now).replace("-", "").replace(":", "")  # no system forbids such a name
    place, number = file.with_name(f"{file.name}.corrupt-{stamp}"), 1
    while place.is_symlink() or place.exists():
        number += 1
        place = file.with_name(f"{file.name}.corrupt-{stamp}-{number}")
    disk.rename(file, place)
    disk.flush_folder(file.parent)  # before something new takes the old name
    return place


def iso_time(seconds: float) -> str:
    """The moment in UTC as qwen-code writes it, `2026-03-15T12:00:00.000Z`; seconds since the epoch."""
    return datetime.fromtimestamp(round(seconds, 3), UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _read(file: Path, kind: type[_S]) -> _S:
    try:
        return _typed(_members(file), kind)
    except FileNotFoundError:
        return kind()
    except TopicError as error:
        return kind(warnings=(f"{error}; it counts as empty until it is written anew",))


def _update(file: Path, change: Callable[[_S], _S], *, fresh: _S, lock: Path, now: float) -> _S:
    disk.make_folder(lock.parent, mode=0o700)
    disk.make_folder(file.parent)
    kind = type(fresh)
    with exclusive(lock, timeout_s=_WAIT_S):
        members, warnings = _usable(file, now)
        said = _typed(members or {}, kind)
        changed = _changed(members or {}, said, change(fresh if members is None else said))
        if changed != members:
            atomic_write(file, _text(changed))
    return replace(_typed(changed, kind), warnings=warnings)


def _usable(file: Path, now: float) -> tuple[dict[str, str] | None, tuple[str, ...]]:
    """The members of a file that is there, and a sentence when one had to be put aside."""
    try:
        return _members(file), ()
    except FileNotFoundError:
        return None, ()
    except TopicError as error:
        place = set_aside(real_path(file), now=now)  # a link stays, and what is made anew goes where it leads
        return None, (f"{error}; it was renamed to {place.name} and made anew",)


def _members(file: Path) -> dict[str, str]:
    """The members of the object in the file, each with its value as it is written.

    Raises:
        TopicError: there is no JSON object in it, or nothing that could be one.
        OSError: it is missing or cannot be read.
    """
    text, repaired = read_text(file, max_bytes=_LARGEST)
    try:
        whole = json.loads(text, parse_constant=_not_a_number)
    except (ValueError, RecursionError) as error:
        raise TopicError(f"is not valid JSON ({error})", path=file) from error
    if not isinstance(whole, dict):
        raise TopicError("holds no JSON object", path=file)
    if repaired:  # put back, it would no longer be what it was
        raise TopicError(repaired[0], path=file)
    return _spelled(text)


def _spelled(text: str) -> dict[str, str]:
    """The members of an object that is known to be valid, as they are spelled."""
    decoder, members, at = json.JSONDecoder(), dict[str, str](), text.index("{") + 1
    while text[at := _behind(_BETWEEN, text, at)] == '"':
        key, at = decoder.raw_decode(text, at)
        start = _behind(_COLON, text, at)
        _, at = decoder.raw_decode(text, start)
        members[key] = text[start:at]
    return members


def _behind(gap: re.Pattern[str], text: str, at: int) -> int:
    found = gap.match(text, at)
    return found.end() if found else at


def _not_a_number(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _kinds(kind: type[_State]) -> Mapping[str, tuple[str, Any]]:
    """Key in the file and type of every value, by attribute."""
    hints = get_type_hints(kind, include_extras=True)
    names = (one.name for one in fields(kind) if one.name != "warnings")
    return {name: (_WORD_START.sub(lambda match: match[1].upper(), name), hints[name]) for name in names}


def _typed(members: Mapping[str, str], kind: type[_S]) -> _S:
    wanted = {name: (members.get(key), hint) for name, (key, hint) in _kinds(kind).items()}
    return kind(**{name: _value(json.loads(text), hint) for name, (text, hint) in wanted.items() if text is not None})


def _value(plain: object, hint: Any) -> Any:
    """The value as its type has it; None when it is of another kind."""
    if hint == _TIME:
        return _seconds(plain)
    try:
        return msgspec.convert(plain, hint)
    except msgspec.ValidationError:
        return None


def _seconds(plain: object) -> float | None:
    if not isinstance(plain, str):
        return None
    try:
        moment = datetime.fromisoformat(plain)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def _changed(members: Mapping[str, str], said: _S, new: _S) -> dict[str, str]:
    """The members with every value that is not what the file said."""
    result = dict(members)
    for name, (key, hint) in _kinds(type(new)).items():
        value = getattr(new, name)
        if value == getattr(said, name):
            continue
        if value is None:
            del result[key]
        else:
            result[key] = _json(iso_time(value) if hint == _TIME else value)
    return result


def _json(value: object) -> str:
    """The value as JSON.stringify writes it inside an object; half characters, which paths may hold, are escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=2).replace("\n", "\n  ")
    return _HALF_CHARACTER.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _text(members: Mapping[str, str]) -> str:
    lines = ",\n".join(f"  {_json(key)}: {text}" for key, text in members.items())
    return f"{{\n{lines}\n}}\n" if lines else "{}\n"
