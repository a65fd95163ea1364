"""What is wrong with the memory files of a folder, and the plan that mends what can be mended safely.

Derived data is none of its business: that is the doctor's. Only MEMORY.md is ever changed, never a topic.
"""

from collections.abc import Sequence
from dataclasses import replace

from recall.errors import UnsafePathError
from recall.quality.findings import Finding, Kind, Severity
from recall.quality.index_rules import index_findings, repeated_lines
from recall.quality.likeness import likeness_findings
from recall.quality.links import Fate, Judged, Orphans, dropped_targets, judged_links, orphans_of
from recall.quality.names import Names
from recall.quality.reading import Contents
from recall.quality.topic_rules import topic_findings
from recall.store.capacity import INDEX_NAME
from recall.store.index_file import Put, build_missing, curated, generated
from recall.store.index_links import lines_of
from recall.store.plan import Change, IndexMode, Item, Plan, digest, place_of


def check(contents: Contents) -> list[Finding]:
    """What is wrong with a memory folder, by file and line.

    Args:
        contents: of the folder, from `reading.read_contents`.
    """
    if contents.problem:
        severity = Severity.ERROR if contents.exists else Severity.NOTE
        return [Finding(Kind.FOLDER, severity, "", 1, contents.problem)]
    if not contents.files and not contents.failed and not contents.index.exists:
        return [
            Finding(Kind.FOLDER, Severity.NOTE, "", 1, "holds no memory yet"),
            *topic_findings(contents, Names.of(())),
        ]
    names, links, orphans = _judged(contents)
    found = [
        *index_findings(contents, links, orphans),
        *topic_findings(contents, names),
        *likeness_findings(contents),
    ]
    if contents.folder.index is IndexMode.OFF:  # nobody but its owner writes it
        found = [replace(finding, fix="") for finding in found]
    return sorted(found, key=lambda one: (one.path, one.line, one.kind, one.message))


def fixes(contents: Contents, findings: Sequence[Finding]) -> Plan:
    """The plan that mends what can be mended safely: dead, moved, repeated and missing lines of MEMORY.md.

    Args:
        contents: of the folder.
        findings: from `check` of the same contents.

    Returns:
        A plan of the kind `check`; an empty one when there is nothing to do, or when MEMORY.md cannot be written.
    """
    items = tuple(Item(f"{one.path}:{one.line}", f"{one.message}: {one.fix}") for one in findings if one.fix)
    if not items:
        return Plan("check", ())
    try:
        before = contents.index.data.decode("utf-8")
        place_of(contents.folder, INDEX_NAME)
    except (UnicodeDecodeError, UnsafePathError) as error:
        is_text = isinstance(error, UnsafePathError)
        return Plan("check", (), notes=(str(error) if is_text else f"{INDEX_NAME} is not UTF-8; save it as UTF-8",))
    after = _mended(contents, before).encode()
    there = contents.index.exists
    if after == contents.index.data:
        return Plan("check", ())
    change = Change(contents.folder, INDEX_NAME, digest(contents.index.data if there else None), after)
    return Plan("check", (change,), items)


def _judged(contents: Contents) -> tuple[Names, list[Judged], Orphans]:
    names = Names.of([file.topic for file in contents.files], [skip.path for skip in contents.skipped])
    links = judged_links(contents, names)
    return names, links, orphans_of(contents, links)


def _mended(contents: Contents, before: str) -> str:
    """MEMORY.md as it is to be."""
    if contents.folder.index is IndexMode.GENERATED:
        return generated(contents.standing, before)
    if not contents.index.exists:
        return build_missing(contents.standing)
    _, links, orphans = _judged(contents)
    lines = lines_of(before)
    repeated = repeated_lines(lines)
    text = "".join(line.text for number, line in enumerate(lines, 1) if number not in repeated)
    moved = {judged.link.target: judged.topic for judged in links if judged.fate is Fate.MOVED and judged.topic}
    put = [Put(topic, replace(topic, path=target)) for target, topic in moved.items()]
    return curated(text, put=[*put, *map(Put, orphans.housed)], gone=dropped_targets(links))
