"""What is wrong with a topic for itself, and with the files beside them that are none.

Sources: wave.md W-CAP-05 and -06, qwen.md section 3, data-oddities.md 1 to 49, deviations V1, V29.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from recall.quality.findings import Finding, Kind, Severity
from recall.quality.names import Names
from recall.quality.reading import Contents, TopicFile, is_for_people
from recall.store.capacity import INDEX_NAME, Level, Occupancy, Unit, topic_reminder
from recall.store.journal import TRASH
from recall.store.scan import Reason
from recall.store.topics import MemoryType, js_trim
from recall.text import secrets

_DESIGNED: Final = frozenset({Reason.INDEX, Reason.DIARY, Reason.DAILY_NOTE})  # lie beside topics on purpose
_SEVERITY: Final[Mapping[Reason, Severity]] = {
    Reason.UNREADABLE: Severity.ERROR,
    Reason.OUTSIDE: Severity.WARNING,
    Reason.DANGLING: Severity.WARNING,
    Reason.LOOP: Severity.WARNING,
    Reason.NOT_A_FILE: Severity.WARNING,
    Reason.NAME: Severity.WARNING,
    Reason.ENDING: Severity.WARNING,
}


def topic_findings(contents: Contents, names: Names) -> Iterator[Finding]:
    """What is wrong with each file of a folder, not looking at the others except for what its links mean."""
    for path, reason in contents.failed:
        yield Finding(Kind.UNREADABLE, Severity.ERROR, path, 1, f"{reason}; it is not recalled")
    for skip in contents.skipped:
        if skip.reason not in _DESIGNED and skip.path.split("/", 1)[0] != TRASH:
            severity = _SEVERITY.get(skip.reason, Severity.NOTE)
            yield Finding(Kind.SKIPPED, severity, skip.path, 1, f"not recalled: {skip.describe()}")
    for file in contents.files:
        yield from _file(file, names)
    for path, text in (
        (INDEX_NAME, contents.index.text),
        *((file.topic.path, file.text) for file in contents.files),
    ):
        yield from _secrets(path, text)


def _file(file: TopicFile, names: Names) -> Iterator[Finding]:
    path = file.topic.path
    for sentence in file.repairs:
        yield Finding(Kind.ENCODING, Severity.WARNING, path, 1, sentence)
    if not js_trim(file.text):
        yield Finding(Kind.HEADER, Severity.WARNING, path, 1, "is empty")
        return
    reminder = topic_reminder(file.text)
    if reminder and reminder.occupancy and reminder.occupancy.level is Level.OVER:
        yield _too_large(path, file.text, reminder.occupancy)
    if not is_for_people(path):
        yield from _header(file, reminder.description if reminder else None)
    yield from _wiki_links(file, names)
    yield from _successor(file, names)


def _too_large(path: str, text: str, found: Occupancy) -> Finding:
    message = (
        f"{found.size:,} {found.unit.word} where hosts show {found.cap:,}; what comes beyond is invisible to whoever "
        "reads it whole. Split it or summarise"
    )
    cut = text.encode("utf-8", "surrogatepass")[: found.cap].count(b"\n") if found.unit is Unit.BYTES else found.cap
    return Finding(Kind.SIZE, Severity.WARNING, path, cut + 1, message)


def _header(file: TopicFile, description: int | None) -> Iterator[Finding]:
    """What its header lacks.

    Args:
        file: the topic.
        description: its length where it needs attention, 0 for one that cannot be used, else None.
    """
    path, front = file.topic.path, file.front
    for sentence in front.warnings:
        yield Finding(Kind.HEADER, Severity.WARNING, path, 1, sentence)
    if not front.has_header:
        if not front.warnings:
            message = "has no header; one with name, description and type says when the memory matters"
            yield Finding(Kind.HEADER, Severity.WARNING, path, 1, message)
        return
    if description == 0:
        message = "has no description that can be used; one sentence says when the memory matters"
        yield Finding(Kind.DESCRIPTION, Severity.WARNING, path, 1, message)
    elif description is not None:
        message = f"the description has {description:,} characters; a line of the index holds about 150"
        yield Finding(Kind.DESCRIPTION, Severity.WARNING, path, _line(file.text, "description"), message)
    if file.topic.type is None:
        stated = front.first("type") or front.metadata.get("type", "")
        known = ", ".join(MemoryType)
        message = f'the type "{stated}" is none of {known}' if stated else f"has no type; known are {known}"
        yield Finding(Kind.TYPE, Severity.NOTE, path, _line(file.text, "type:") if stated else 1, message)


def _wiki_links(file: TopicFile, names: Names) -> Iterator[Finding]:
    for target in file.topic.links:
        if not names.find(target):
            line = _line(file.text, f"[[{target}")
            yield Finding(Kind.WIKI_LINK, Severity.NOTE, file.topic.path, line, f"[[{target}]] means no topic yet")


def _successor(file: TopicFile, names: Names) -> Iterator[Finding]:
    """Whether what took the place of a topic is there."""
    path, successor = file.topic.path, file.topic.superseded_by
    if not successor:
        return
    found = names.find(successor)
    if not found or found == {path}:
        said = "itself" if found else "which is not there"
        message = f"superseded by {successor}, {said}"
        line = _line(file.text, "superseded_by")
        yield Finding(Kind.SUPERSEDED_BY, Severity.WARNING, path, line, message)


def _secrets(path: str, text: str) -> Iterator[Finding]:
    for secret in secrets.find(text):
        line = text.count("\n", 0, secret.start) + 1
        message = f"holds what looks like a credential ({secret.kind}); hosts put memories into prompts"
        yield Finding(Kind.SECRET, Severity.WARNING, path, line, message)


def _line(text: str, needle: str) -> int:
    """The line where something stands first; 1 where it cannot be found as written."""
    at = text.find(needle)
    return text.count("\n", 0, at) + 1 if at >= 0 else 1
