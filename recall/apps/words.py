"""An answer by words alone from the index as it is, for a hook that finds no resident process."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from recall.config import Config
from recall.context.prompt import relevant_memory
from recall.index.collection import Collection
from recall.memory.opening import cache_root, find, load_config
from recall.search.current import current
from recall.search.retriever import bounded, search_heuristic
from recall.search.types import Hit, Phase, Strategy
from recall.store.topics import Scope

# The shipped model's floor, which a quick answer has to reach so that it is silent where nothing fits.
_FLOOR = 0.25
_TRACE_WAIT_S = 0.01


@dataclass(frozen=True, slots=True)
class Answer:
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
    scopes: Mapping[Scope, Path]
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
        note = Note(new_handle(), time.time(), self.query, Strategy.HEURISTIC, Phase.FAST, origin, found, _FLOOR)
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
        OSError: the cache folder cannot be used.
    """
    config = load_config(Path(project))
    place = find(root or None, project=Path(project), layout=layout or None, config=config).chosen
    user = Path(user_root) if user_root else place.user_root
    scopes = {Scope.PROJECT: place.root} | ({Scope.USER: user} if user and user != place.root else {})
    indexes = [
        Collection(folder, scope, cache=cache_root(config), max_file_bytes=config.index.max_file_bytes, optional=True)
        for scope, folder in scopes.items()
    ]
    search = config.search
    # Without a model it is the founding scorer as it was, as in `Memory`.
    floor = 0.0 if config.encoder.model == "off" else _FLOOR if search.floor is None else search.floor
    snapshots = [index.snapshot() for index in indexes]
    found = search_heuristic(snapshots, bounded(query), search.fast_k, floor=floor)
    hits, _ = current(found.hits, indexes)
    prompt = relevant_memory(hits, now=time.time(), max_tokens=search.prompt_tokens)
    return Answer(prompt, bounded(query), hits, scopes, config)
