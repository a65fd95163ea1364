"""The work of `recall status --check` and `recall doctor`: examines derived data, says what is wrong, mends it.

Each function prints its answer and gives the exit code: 0 when nothing is wrong, 1 when something is.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Final

from recall.apps.console import emit, show
from recall.apps.lines import Line
from recall.apps.options import Opening
from recall.apps.payloads import Payload
from recall.apps.render import Lines, clean
from recall.config import Config
from recall.index.findings import Finding, Kind
from recall.memory import doctor
from recall.memory.caches import UNUSED_DAYS, Abandoned, abandoned, remove_abandoned
from recall.memory.doctor import RootHealth
from recall.memory.opening import make_model, scopes_of

_SHOWN: Final = 10
_ANEW: Final = "embed the topic again"
_COPY: Final = "copy the sound vectors to a new file and make the others again"

REMEDIES: Final[Mapping[Kind, str]] = {
    Kind.CATALOG: "throw the derived data away and make them anew from the memory files",
    Kind.GONE: "take the topic out of the index",
    Kind.STALE: "read the file again",
    Kind.UNINDEXED: "read the file",
    Kind.PENDING: "make the vectors",
    Kind.INCOMPLETE: _ANEW,
    Kind.MISPLACED: _ANEW,
    Kind.VECTOR: _ANEW,
    Kind.STRAY: "take the chunks out of the index",
    Kind.VECTOR_FILE: _COPY,
    Kind.DIGEST: _COPY,
    Kind.GHOSTS: "copy the vectors in use to a new file",
    Kind.LOST: _COPY,
    Kind.MODEL: "make all vectors anew",
    Kind.POSTINGS: "make the postings anew from the stored topics",
    Kind.ORPHAN: "delete the file of derived data",
}
"""What `recall doctor --fix` does about a finding that can be mended."""


def check(opening: Opening) -> int:
    """`recall status --check`: what is wrong with the derived data."""
    roots = _examined(opening, opening.config())
    if opening.as_json:
        emit({"roots": [_root(root) for root in roots]})
    else:
        for root in roots:
            show(_examination(root))
    return _code(roots)


def diagnose(opening: Opening) -> int:
    """`recall doctor`: the same, with what `--fix` would do, and the caches of roots that are gone."""
    config = opening.config()
    roots = _examined(opening, config)
    caches = _caches(roots, config)
    if opening.as_json:
        emit(_report(roots, [], caches, []))
    else:
        for root in roots:
            show(_examination(root, remedies=True))
        show(_cache_lines(caches))
        if any(finding.mendable for root in roots for finding in root.findings):
            show([Line.of(("`recall doctor --fix` does that; it never touches a memory file", "bold"))])
    return _code(roots)


def fix(opening: Opening) -> int:
    """`recall doctor --fix`: mends what can be mended, and looks again."""
    config = opening.config()
    before = _examined(opening, config)
    done, after = _mended(opening, before)
    caches = _caches(after, config)
    removed = remove_abandoned(caches)
    if opening.as_json:
        emit(_report(after, done, caches, removed))
        return _code(after)
    for root in before:
        show(_examination(root))
    show(Line.of(("done: ", "green"), clean(sentence)) for sentence in done)
    if done:
        show([Line.of(("and now", "bold"))])
        for root in after:
            show(_examination(root))
    show(_cache_lines(caches, removed))
    return _code(after)


def _examined(opening: Opening, config: Config) -> list[RootHealth]:
    scopes = scopes_of(opening.place(config), user_root=opening.user_root)
    return doctor.check(scopes, config, make_model(None, config))


def _mended(opening: Opening, before: Sequence[RootHealth]) -> tuple[list[str], list[RootHealth]]:
    """What was done, and what is found afterwards."""
    if not any(finding.mendable for root in before for finding in root.findings):
        return [], list(before)
    with opening.memory() as memory:
        mendings = memory.mend()
    done = [sentence for mending in mendings for sentence in mending.done]
    was_unreadable = any(fault.kind is Kind.CATALOG for root in before for fault in root.faults)
    if was_unreadable and not any(fault.kind is Kind.CATALOG for one in mendings for fault in one.before.faults):
        done.insert(0, "what could not be read was thrown away when the memory was opened")
    return list(dict.fromkeys(done)), [mending.after for mending in mendings]


def _caches(roots: Sequence[RootHealth], config: Config) -> list[Abandoned]:
    return abandoned(config, now=time.time(), keep=[root.folder for root in roots])


def _code(roots: Sequence[RootHealth]) -> int:
    return 0 if all(root.is_sound for root in roots) else 1


# --- as lines


def _examination(root: RootHealth, *, remedies: bool = False) -> Lines:
    counts = root.counts
    yield Line.of((clean(root.root), "bold"), f" ({root.scope})")
    yield Line.of(f"  topics: {counts.topics:,} of {counts.files:,} files, {counts.embedded:,} with vectors")
    share = f" ({counts.unused / counts.vectors:.0%})" if counts.vectors else ""
    yield Line.of(f"  vectors: {counts.vectors:,} for {counts.chunks:,} chunks, {counts.unused:,} unused{share}")
    faults = list(root.faults)
    for name, style, found in (
        ("wrong", "red", faults),
        ("note", "yellow", [finding for finding in root.findings if finding.harmless]),
    ):
        for _, same in groupby(sorted(found, key=_kind), key=_kind):
            yield from _findings(name, style, list(same), remedies=remedies)
    for sentence in root.sampled:
        yield Line.of((f"  {clean(sentence)}", "dim"))
    verdict = ("healthy", "green") if root.is_sound else (f"{len(faults):,} wrong", "bold red")
    yield Line.of("  ", verdict)


def _kind(finding: Finding) -> Kind:
    return finding.kind


def _findings(name: str, style: str, found: Sequence[Finding], *, remedies: bool) -> Iterator[Line]:
    """Findings of one kind, of many the first ones, and what can be done about them."""
    for finding in found[:_SHOWN]:
        yield Line.of((f"  {name}: ", style), (clean(finding.what), "bold"), f": {clean(finding.sentence)}")
    if len(found) > _SHOWN:
        yield Line.of((f"  {name}: ", style), f"and {len(found) - _SHOWN:,} more like it; --json lists all")
    if remedies:
        is_mendable = any(finding.mendable for finding in found)
        yield Line.of(
            f"    --fix would {REMEDIES[found[0].kind]}" if is_mendable else "    --fix can do nothing about it"
        )


def _cache_lines(caches: Sequence[Abandoned], removed: Sequence[Abandoned] = ()) -> Lines:
    for one in caches:
        whose = f"of {clean(one.root)}, which is not there" if one.root else "of an unknown memory folder"
        said = f"{one.bytes / 2**20:.1f} MiB, unused for {one.unused_days:.0f} days"
        if one in removed:
            fate = "removed"
        elif one.is_removable():
            fate = "--fix removes it"
        else:
            fate = f"stays until it has been unused for {UNUSED_DAYS:.0f} days"
        yield Line.of(("cache: ", "dim"), clean(one.folder), f" {whose}: {said}; {fate}")


# --- as data


def _report(
    roots: Sequence[RootHealth], done: Sequence[str], caches: Sequence[Abandoned], removed: Sequence[Abandoned]
) -> Payload:
    return {
        "sound": not _code(roots),
        "roots": [_root(root) for root in roots],
        "done": list(done),
        "caches": [_cache(one, removed) for one in caches],
    }


def _root(root: RootHealth) -> Payload:
    return {
        "root": root.root,
        "scope": root.scope,
        "sound": root.is_sound,
        "counts": asdict(root.counts),
        "findings": [_finding(finding) for finding in root.findings],
        "sampled": list(root.sampled),
        "cache": root.folder,
    }


def _finding(finding: Finding) -> Payload:
    remedy = REMEDIES.get(finding.kind) if finding.mendable else None
    return {
        "kind": finding.kind,
        "what": finding.what,
        "sentence": finding.sentence,
        "harmless": finding.harmless,
        "remedy": remedy,
    }


def _cache(one: Abandoned, removed: Sequence[Abandoned]) -> Payload:
    folder: Path = one.folder
    return {
        "folder": folder,
        "root": one.root or None,
        "bytes": one.bytes,
        "unused_days": round(one.unused_days, 1),
        "removable": one.is_removable(),
        "removed": one in removed,
    }
