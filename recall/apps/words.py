"""An answer by words alone from the index as it is: what a process that has just started can give within its time.

It opens what is there, reads no array library and no model, and starts no thread. Where that does not do - no index
yet, one that is out of date, very many topics - it says so, and `Memory` has to answer.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from recall.errors import IndexFormatError
from recall.index.catalog import EMBEDDED, Catalog
from recall.index.folder import CATALOG_FILE, cache_folder
from recall.index.plain import PlainIndex
from recall.memory.opening import cache_root, find, load_config, scopes_of
from recall.search.current import current
from recall.search.plain import MOST_TOPICS, coverage_plain, search_plain, search_words
from recall.search.types import Hit, Phase, Recall, Strategy
from recall.store.projects import real_path
from recall.store.scan import Scan, scan
from recall.store.topics import Scope
from recall.text.tokens import bounded

if TYPE_CHECKING:
    from recall.config import Config
    from recall.store.places import Place

Roots = Mapping[Scope, Path]

# The models' own floors, which a quick answer has to reach so that it is silent where nothing fits; without a model it
# is the founding scorer as it was, as in `Memory`. For words alone the shipped model's will do for others.
_FLOOR = 0.205
_FLOORS = {"off": 0.0, "hashing": 0.25}
_TRACE_WAIT_S = 0.01


class Answer(NamedTuple):
    """What words alone found.

    Attributes:
        prompt: the Relevant Memory block, "" for nothing.
        query: what was asked.
        hits: best first.
        scopes: the memory roots.
        config: settings.
    """

    prompt: str
    query: str
    hits: tuple[Hit, ...]
    scopes: Roots
    config: Config

    def shown(self, session: str) -> None:
        """It has reached the model: that leaves a trace, unless others are writing theirs.

        Raises:
            LockedError: others are.
            OSError: it cannot be written.
        """
        if not self.hits or not self.config.traces.enabled:
            return
        from recall.memory.tracing import Note, new_handle, slim, trace_logs, traces_of  # not before the answer is out
        from recall.store.traces import Origin

        origin = Origin("hook", session)
        found = slim(self.hits)
        by_words = self.config.encoder.model == "off"
        strategy = Strategy.HEURISTIC if by_words else Strategy.HYBRID
        note = Note(new_handle(), time.time(), self.query, strategy, Phase.FAST, origin, found, _FLOOR)
        logs = trace_logs(self.scopes, self.config)
        for scope, trace in traces_of(note).items():
            logs[scope].append(trace, wait_s=_TRACE_WAIT_S)


def answer(query: str, *, root: str, project: str, layout: str, user_root: str) -> Answer:
    """What fits in the index as it is; looks at no folder, loads no model.

    What was edited or deleted since it was indexed is left out.

    Args:
        query: what the user asks.
        root: the memory folder itself, "" to find the one of the project.
        project: a folder in the project.
        layout: the host whose folders to use, "" to find out.
        user_root: the folder of memory across projects, "" for the host's.

    Raises:
        ConfigError: a setting cannot be used.
        IndexFormatError: the index is damaged.
        OSError: the index cannot be read.
    """
    config = load_config(Path(project))
    place = find(root or None, project=Path(project), layout=layout or None, config=config).chosen
    scopes, search = scopes_of(place, user_root=Path(user_root) if user_root else None), config.search
    own = _FLOORS.get(config.encoder.model, _FLOOR)
    floor = own if search.floor is None or own == 0 else search.floor
    with ExitStack() as stack:
        indexes = _opened(scopes, config, stack)
        found = (
            search_words(indexes, bounded(query), search.fast_k, floor=floor)
            if own
            else search_plain(indexes, bounded(query), search.fast_k)
        )
        hits, _ = current(found, indexes)
    return Answer(_block(hits, config), bounded(query), hits, scopes, config)


def recall(
    query: str, place: Place, *, config: Config, k: int, exclude: Collection[str] = (), with_prompt: bool = True
) -> Recall | None:
    """What `Memory.recall` answers without a model; None where the index is not there, not up to date, or large.

    Args:
        query: what the user asks.
        place: the memory of the project.
        config: settings.
        k: most hits.
        exclude: ids of topics that may not be found.
        with_prompt: whether to lay out the block for the model, which takes as long as the search; else it is "".
    """
    if not query.strip() or k <= 0:
        return Recall(query)
    start = time.perf_counter()
    roots = scopes_of(place)
    with ExitStack() as stack:
        try:
            indexes = _opened(roots, config, stack)
            if not _will_do(indexes, roots):
                return None
            found = search_plain(indexes, bounded(query), k, exclude=exclude)
        except (IndexFormatError, OSError):
            return None
        coverage = coverage_plain(indexes, embedded=EMBEDDED)
    strategy = Strategy.HEURISTIC if found else Strategy.NONE
    prompt = _block(found, config) if with_prompt else ""
    return Recall(query, found, strategy, prompt, coverage, time.perf_counter() - start)


def _opened(roots: Roots, config: Config, stack: ExitStack) -> list[PlainIndex]:
    """The indexes that there are, project before user; the stack closes them.

    Raises:
        IndexFormatError: one is damaged or of another version.
        OSError: one cannot be read.
    """
    indexes = []
    for scope, root in roots.items():
        folder = cache_folder(cache_root(config), root)
        if (folder / CATALOG_FILE).is_file():
            catalog = stack.enter_context(closing(Catalog(folder, real_path(root), read_only=True)))
            indexes.append(PlainIndex.of(catalog, scope, max_file_bytes=config.index.max_file_bytes))
    return indexes


def _will_do(indexes: Sequence[PlainIndex], roots: Roots) -> bool:
    """Whether every root has an index that shows it as it is, and they are small enough together."""
    if len(indexes) < len(roots) or sum(len(index.rows) for index in indexes) > MOST_TOPICS:
        return False
    return all(_shows(index, scan(roots[index.scope], index.scope)) for index in indexes)


def _shows(index: PlainIndex, found: Scan) -> bool:
    return index.is_true_to(found.files) and (index.scope is Scope.USER or not found.root_problem)


def _block(hits: Sequence[Hit], config: Config) -> str:
    from recall.context.prompt import relevant_memory  # not every answer is wanted as a block

    return relevant_memory(hits, now=time.time(), max_tokens=config.search.prompt_tokens)
