"""Results as plain data: what `--json` prints. The fields are described in docs/cli.md."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from recall.store.frontmatter import Frontmatter, joined
from recall.store.topics import Topic, parse_entries
from recall.text.budget import estimate_tokens

if TYPE_CHECKING:  # each command loads what it needs
    from recall.apps.accounts import Account
    from recall.apps.demo import Answer
    from recall.apps.evaluate import Evaluation
    from recall.apps.turn import Turn
    from recall.index.sync import SyncReport
    from recall.memory.stored import Stored
    from recall.search.delivery import Delivery, PrefetchEvent
    from recall.search.explanation import Explanation
    from recall.search.types import Coverage, Hit, Recall
    from recall.store.layout import Located, Place

Payload = dict[str, Any]

QUERY_SHOWN: Final = 1000

# Valid JSON leaves C1 controls, line separators, direction marks and half characters as they are; a terminal does not.
_UNPRINTABLE: Final = re.compile(
    "[\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)


def dumped(data: Payload, *, ascii_only: bool = False) -> str:
    """The data as one line of JSON that is safe to print on a terminal; nothing is lost."""
    text = json.dumps(data, ensure_ascii=ascii_only, default=os.fspath)
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def milliseconds(seconds: float) -> float:
    """Seconds as milliseconds with one decimal."""
    return round(seconds * 1000, 1)


def date(seconds: float) -> str | None:
    """The moment in ISO 8601, in UTC."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    except (OverflowError, ValueError, OSError):  # a time that no calendar has
        return None


def hit(rank: int, found: Hit) -> Payload:
    """One hit of a recall; without its body, which is in the prompt."""
    topic = found.topic
    return {
        "rank": rank,
        "id": topic.id,
        "title": topic.title,
        "description": topic.description,
        "type": topic.type,
        "scope": topic.scope,
        "modified": date(topic.modified),
        "file": topic.file,
        "score": round(found.score, 6),
        "cosine": found.cosine if found.cosine is None else round(found.cosine, 6),
        "lexical": found.lexical if found.lexical is None else round(found.lexical, 6),
        "phrases": round(found.phrases, 6),
        "fit": found.fit if found.fit is None else round(found.fit, 6),
        "chunk": found.chunk,
    }


def hits(found: Sequence[Hit]) -> list[Payload]:
    """The hits with their ranks, from 1."""
    return [hit(rank, one) for rank, one in enumerate(found, start=1)]


def coverage(covered: Coverage) -> Payload:
    """How much of the memory took part."""
    return asdict(covered)


def search(recall: Recall, *, note: str, total_s: float, explanation: Explanation | None = None) -> Payload:
    """The answer of `recall search`."""
    return {
        "query": recall.query[:QUERY_SHOWN],
        "strategy": recall.strategy,
        "hits": hits(recall.hits),
        "prompt": recall.prompt,
        "coverage": coverage(recall.coverage),
        "note": note,
        "search_ms": milliseconds(recall.duration_s),
        "total_ms": milliseconds(total_s),
        "explanation": explanation and _explanation(explanation),
    }


def _explanation(given: Explanation) -> Payload:
    return {
        "floor": given.floor,
        "hits": [_evidence(one) for one in given.recall.hits],
        "rejected": [
            {"why": other.why, "reason": other.reason, "score": round(other.hit.score, 6), **_evidence(other.hit)}
            for other in given.rejected
        ],
        "unmatched": list(given.unmatched),
        "silence": given.silence,
        "why_nothing": given.why_nothing(),
    }


def _evidence(found: Hit) -> Payload:
    evidence = found.evidence
    return {
        "id": found.topic.id,
        "sentences": list(found.explain()),
        "words": [
            {"text": word.text, "fields": list(word.fields), "value": round(word.value, 6)}
            for word in (evidence.words if evidence else ())
        ],
        "bonus": evidence.bonus if evidence else 0,
        "passage": evidence.passage if evidence else "",
        "chunks": evidence.chunks if evidence else 0,
    }


def delivery(given: Delivery | None) -> Payload | None:
    """One delivery of a prefetch, None for none."""
    if given is None:
        return None
    return {
        "phase": given.phase,
        "point": given.point,
        "ms": milliseconds(given.latency_s),
        "strategy": given.recall.strategy,
        "hits": hits(given.recall.hits),
        "tokens": estimate_tokens(given.recall.prompt),
        "prompt": given.recall.prompt,
    }


def end(event: PrefetchEvent) -> Payload:
    """How a prefetch ended."""
    return {
        "point": event.point,
        "drop": event.drop,
        "ms": milliseconds(event.latency_s),
        "fast_ms": None if event.fast_s is None else milliseconds(event.fast_s),
        "refined_ms": None if event.refined_s is None else milliseconds(event.refined_s),
    }


def turn(state: str, played: Turn) -> Payload:
    """One turn of `recall prefetch`."""
    return {
        "state": state,
        "first": delivery(played.first),
        "tool_result": delivery(played.later),
        "end": end(played.end),
    }


def report(done: SyncReport) -> Payload:
    """The answer of `recall reindex`."""

    def reasons(pairs: Sequence[tuple[str, str]]) -> list[Payload]:
        return [{"path": path, "reason": reason} for path, reason in pairs]

    return {
        "added": list(done.added),
        "changed": list(done.changed),
        "moved": list(done.moved),
        "kept": done.kept,
        "removed": list(done.removed),
        "skipped": reasons(done.skipped),
        "failed": reasons(done.failed),
        "warnings": reasons(done.warnings),
        "unembedded": reasons(done.unembedded),
        "embedded": done.embedded,
        "reused": done.reused,
        "note": done.note,
        "seconds": round(done.duration_s, 3),
    }


def account(one: Account) -> Payload:
    """One root of `recall status`."""
    status = one.status
    return {
        "root": status.root,
        "scope": status.scope,
        "files": one.files,
        "topics": status.coverage.topics,
        "skipped": one.skipped,
        "failed": one.failed,
        "embedded": status.coverage.embedded,
        "skips": [{"path": path, "reason": reason} for path, reason in status.report.skipped],
        "problems": [{"path": path, "reason": reason} for path, reason in sorted(status.problems.items())],
        "warnings": [{"path": path, "reason": reason} for path, reason in status.report.warnings],
        "encoder": status.encoder,
        "cache": status.folder,
        "cache_bytes": status.bytes,
        "traced": status.traced,
        "traced_since": date(status.traced_since) if status.traced_since is not None else None,
        "note": status.note,
    }


def located(found: Located) -> Payload:
    """The answer of `recall where`."""
    return {
        "chosen": _place(found.chosen),
        "why": found.note,
        "candidates": [_place(candidate) for candidate in found.candidates],
    }


def _place(place: Place) -> Payload:
    return {
        "layout": place.layout,
        "root": place.root,
        "user_root": place.user_root,
        "exists": place.exists,
        "enabled": place.enabled,
        "newest": date(newest) if (newest := place.newest) else None,
        "reasons": list(place.reasons),
    }


def topic(shown: Topic, front: Frontmatter) -> Payload:
    """The answer of `recall show`."""
    return {
        "id": shown.id,
        "file": shown.file,
        "title": shown.title,
        "description": shown.description,
        "type": shown.type,
        "scope": shown.scope,
        "modified": date(shown.modified),
        "mtime": date(shown.mtime),
        "header": {key: joined(value) for key, value in front.fields.items()},
        "metadata": dict(front.metadata),
        "links": list(shown.links),
        "entries": [asdict(entry) for entry in parse_entries(shown.body)],
        "body": shown.body,
    }


def evaluation(done: Evaluation, *, ranking: str, seconds: float) -> Payload:
    """The answer of `recall eval`."""
    from recall.apps.evaluate import injection_stats
    from recall.apps.metrics import by_kind, measure

    kinds = by_kind(done.judged)
    return {
        "queries": len(done.judged),
        "metrics": measure(done.judged),
        "by_kind": {kind: {"queries": len(judged), **measure(judged)} for kind, judged in kinds.items()},
        "strategy": ranking,
        "floor": done.floor,
        "delivered": injection_stats(done.injected) if done.injected else None,
        "topics": done.topics,
        "unknown_ids": list(done.unknown),
        "seconds": round(seconds, 3),
    }


def demo(answers: Sequence[Answer], *, indexed: SyncReport, folder: Path | None) -> Payload:
    """The answer of `recall demo`."""
    return {
        "questions": [
            {
                "text": answer.question.text,
                "about": answer.question.about,
                "expected": answer.question.expected,
                "found": answer.found,
                "right": answer.is_right,
                **turn("cold" if answer.is_cold else "warm", answer.turn),
            }
            for answer in answers
        ],
        "right": sum(answer.is_right for answer in answers),
        "topics": len(indexed.added),
        "index_ms": milliseconds(indexed.duration_s),
        "folder": folder,
    }


def topics(listed: Sequence[Topic]) -> Payload:
    """All topics; without their bodies."""
    return {
        "topics": [
            {
                "id": one.id,
                "scope": one.scope,
                "type": one.type,
                "title": one.title,
                "description": one.description,
                "modified": date(one.modified),
                "entries": len(parse_entries(one.body)),
                "superseded_by": one.superseded_by or None,
            }
            for one in listed
        ]
    }


def stored(listed: Sequence[Stored]) -> Payload:
    """Every entry with its place."""
    return {"entries": [asdict(one) for one in listed]}
