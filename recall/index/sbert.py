"""Encoders of sentence-transformers (extra `sbert`): any model of yours, or one of models/presets.yaml.

The only user of sentence-transformers, torch and huggingface_hub. A model is always loaded from a folder: the given
one, or what the hub's cache holds; only a model of the hub that is not there yet is fetched, and never where
HF_HUB_OFFLINE is set. One text a call, as in index.onnx: padding would make a vector depend on its neighbours.
"""

import hashlib
import re
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from math import inf
from pathlib import Path
from typing import Any, Final

import numpy as np

from recall.config import SBERT, EncoderConfig
from recall.errors import EncoderError, MissingExtraError, ModelNotFoundError
from recall.index.base import Vector, Vectors, check_vectors
from recall.index.native import NATIVE
from recall.index.presets import UNMEASURED_FLOOR, Preset, presets

# Raise it when the code below would give the same text another vector.
_VERSION: Final = 1

_HUB_NAME: Final = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?", re.ASCII)
_WEIGHTS: Final = ("*.safetensors", "*.bin")
# Weights in forms that are not loaded here, and what says nothing about vectors.
_UNUSED: Final = ("onnx/*", "openvino/*", "*.onnx", "*.h5", "*.msgpack", "*.ot", "*.md")

# As in index.onnx. Beyond 512 tokens several facts blur into one vector, and a text costs the square of its length.
_SAFE_SHARE: Final = 0.84
_LONGEST_CHUNK: Final = 512


class SbertMissingError(MissingExtraError, EncoderError):
    """The extra is not installed; as an error of the encoder it leaves a memory the search by words."""


@dataclass(frozen=True, slots=True)
class Source:
    """What the settings name.

    Attributes:
        name: last part of the folder's or the model's name.
        folder: None for a model of the hub.
        hub: the model's name there; "" for a folder.
        preset: its row, if it has one.
    """

    name: str
    folder: Path | None
    hub: str
    preset: Preset | None


def find_source(model: str) -> Source:
    """What is meant by the name of a preset, a folder, or the name of a model on the hub.

    A folder named like a preset has its row; a name without an organisation is one of `sentence-transformers/`.

    Raises:
        ModelNotFoundError: no folder, and no name that a model on the hub may have.
    """
    if model in presets():
        return Source(model, None, presets()[model].model, presets()[model])
    try:
        folder = Path(model).expanduser()
    except RuntimeError as error:
        raise ModelNotFoundError(str(error), path=model) from error
    if folder.is_dir():
        folder = folder.absolute()
        return Source(folder.name, folder, "", presets().get(folder.name))
    if not _HUB_NAME.fullmatch(model):
        raise ModelNotFoundError("no such folder, and not the name of a model on the hub", path=folder)
    hub = model if "/" in model else f"sentence-transformers/{model}"
    row = presets().get(name := hub.rpartition("/")[2])
    return Source(name, None, hub, row if row and row.model == hub else None)


class SbertEncoder:
    """A model of sentence-transformers; loads on first use, or in the background by `warm_up()`. Thread-safe.

    Its prefixes are those of its preset, else those that the model itself names.

    Args:
        model: see `find_source`.
        threads: threads of one encoding. Torch has one such number for the whole process, so it only holds where nobody
            else has loaded torch before.

    Raises:
        MissingExtraError: sentence-transformers is not installed.
        ModelNotFoundError: no folder, and no name that a model on the hub may have.
    """

    def __init__(self, model: str, *, threads: int = 1) -> None:
        if find_spec("sentence_transformers") is None:
            raise SbertMissingError("sentence-transformers", extra="sbert")
        self.source = find_source(model)
        self.preset = self.source.preset
        self.name = self.source.name
        self.recipe = EncoderConfig(model=f"{SBERT}{self.source.folder or model}", threads=threads)
        measured = self.preset.floor if self.preset else None
        self.floor = UNMEASURED_FLOOR if measured is None else measured
        self._threads = threads
        self._loading = threading.Lock()
        self._encoding = threading.Lock()  # a fast tokenizer keeps settings that each call changes
        self._model: Any = None  # a SentenceTransformer; by its name, every check of types would need the extra
        self._width = 0

    @cached_property
    def folder(self) -> Path:
        """Where the model lies; a model of the hub that is not on this machine is fetched.

        Raises:
            EncoderError: it cannot be had.
        """
        return self.source.folder or _from_hub(self.source.hub)

    @cached_property
    def fingerprint(self) -> str:
        """Name of the vector space: the model's name, and a hash of its revision on the hub or its files, and its row.

        Raises:
            EncoderError: the model cannot be had.
        """
        is_cached = self.folder.parent.name == "snapshots"  # of the hub: the folder's name is the revision
        identity = self.folder.name if is_cached else _hash_of(self.folder)
        row = self.preset
        shape = row and (row.query_prefix, row.document_prefix, row.pooling, row.dim, row.max_tokens)
        return f"{self.name}-{hashlib.sha256(repr((_VERSION, identity, shape)).encode()).hexdigest()[:12]}"

    @property
    def dim(self) -> int:
        """Length of a vector; a model without a preset is loaded to know it."""
        if self.preset:
            return self.preset.dim
        self.warm_up()
        return self._width

    @property
    def query_prefix(self) -> str:
        """Put before a query; a model without a preset is loaded to know it."""
        return self.preset.query_prefix if self.preset else _prompt(self.loaded(), "query")

    @property
    def document_prefix(self) -> str:
        """Put before a document; a model without a preset is loaded to know it."""
        return self.preset.document_prefix if self.preset else _prompt(self.loaded(), "document", "passage", "corpus")

    @property
    def chunk_tokens(self) -> int:
        """Estimated tokens that a text should have at most; a model without a preset is loaded to know it."""
        limit = (self.preset.max_tokens or inf) if self.preset else _limit(self.loaded())
        return int(min(limit, _LONGEST_CHUNK) * _SAFE_SHARE)

    @property
    def is_warm(self) -> bool:
        """True once the model is in memory."""
        return self._model is not None

    def warm_up(self) -> None:
        """Loads the model now.

        Raises:
            ModelNotFoundError: the folder holds no weights, or the hub's model is not here and must not be fetched.
            EncoderError: it cannot be fetched, loaded or run, or is not what its preset says.
        """
        with self._loading:
            if self._model is not None:
                return
            with NATIVE.call():
                model = _load(self.folder, self._threads, self.preset)
            self._width = len(_run(model, "warm-up", "", name=self.name))
            if self.preset and self._width != self.preset.dim:
                raise EncoderError(f"{self.folder} gives vectors of {self._width}, its preset says {self.preset.dim}")
            self._model = model

    def loaded(self) -> Any:
        """The SentenceTransformer, loaded if need be; see `warm_up` for what may go wrong."""
        self.warm_up()
        return self._model

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """One row a text, shape (n, dim); a text beyond the model's length is read in parts and gets their mean."""
        if not texts:
            return np.zeros((0, self.dim), np.float32)
        prefix = self.document_prefix
        rows = [np.mean([self._run(part, prefix) for part in self._parts(text, prefix)], axis=0) for text in texts]
        return check_vectors(np.stack(rows), rows=len(texts), dim=self.dim)

    def encode_query(self, text: str) -> Vector:
        """The query's vector, shape (dim,); what lies beyond the model's length is not read."""
        row = self._run(_clean(text), self.query_prefix, as_query=True)
        vector: Vector = check_vectors(row[None], rows=1, dim=self.dim)[0]
        return vector

    def _parts(self, text: str, prefix: str) -> list[str]:
        """The document in pieces that the model reads whole, found by halving what is too long."""
        model, parts, left = self.loaded(), [], [_clean(text)]
        limit = _limit(model)
        while left:
            part = left.pop()
            with self._encoding:
                is_long = len(part) > 1 and limit < inf and _tokens(model, prefix + part) > limit
            if is_long:
                left += [part[len(part) // 2 :], part[: len(part) // 2]]
            else:
                parts.append(part)
        return parts

    def _run(self, text: str, prefix: str, *, as_query: bool = False) -> Vector:
        model = self.loaded()
        with self._encoding:
            return _run(model, text, prefix, name=self.name, as_query=as_query)


def _run(model: Any, text: str, prefix: str, *, name: str, as_query: bool = False) -> Vector:
    """The vector of a text, shape (dim,)."""
    encode = model.encode_query if as_query else model.encode_document
    try:
        with NATIVE.call():
            rows = encode([text], prompt=prefix, batch_size=1, show_progress_bar=False, normalize_embeddings=True)
    except EncoderError:  # the process is ending
        raise
    except Exception as error:  # torch and the model's own code raise anything
        raise EncoderError(f"{name} cannot encode a text of {len(text)} characters: {error}") from error
    vector: Vector = np.asarray(rows[0], np.float32)
    return vector


def _clean(text: str) -> str:
    """The text without lone surrogates, which are no text to a tokenizer (as in index.onnx)."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _prompt(model: Any, *names: str) -> str:
    """The first of these prompts that the model names, "" when it names none."""
    return next((model.prompts[name] for name in names if model.prompts.get(name)), "")


def _limit(model: Any) -> float:
    """Tokens that the model reads of one text; infinite when it has no limit."""
    return float(model.max_seq_length or inf)


def _tokens(model: Any, text: str) -> int:
    """The model's tokens of a whole text, with its frame."""
    return len(model.tokenizer(text, truncation=False, verbose=False)["input_ids"])


def _load(folder: Path, threads: int, preset: Preset | None) -> Any:
    """The model in the folder; nothing is fetched, unless it brings code that lies elsewhere on the hub."""
    if not any(_weights(folder)):
        raise ModelNotFoundError(f"no weights in it ({' or '.join(_WEIGHTS)})", path=folder)
    is_first = "torch" not in sys.modules
    with_code = bool(preset and preset.trust_remote_code)
    try:
        import torch
        from huggingface_hub import constants
        from sentence_transformers import SentenceTransformer

        if is_first:
            torch.set_num_threads(threads)
        with _without_progress():
            model = SentenceTransformer(
                str(folder), trust_remote_code=with_code, local_files_only=constants.HF_HUB_OFFLINE or not with_code
            )
    except Exception as error:  # the libraries raise anything, also while they are imported
        raise EncoderError(f"cannot load the model in {folder}: {error}") from error
    found = _pooling(model)
    if preset and found != preset.pooling:
        raise EncoderError(
            f"the model in {folder} pools by {found}, the preset by {preset.pooling}; is modules.json lost?"
        )
    return model


@contextmanager
def _without_progress() -> Iterator[None]:
    """No bars on the standard error output of a program that uses recall."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def _pooling(model: Any) -> str:
    """How the tokens' vectors become one, as presets.yaml calls it; "static" when there is no such step."""
    for module in model:
        if hasattr(module, "get_pooling_mode_str"):  # sentence-transformers 5
            return str(module.get_pooling_mode_str())
        if hasattr(module, "pooling_mode"):
            return str(module.pooling_mode)
    return "static"


def _from_hub(name: str) -> Path:
    """The folder of a model of the hub: what the cache holds, else fetched."""
    from huggingface_hub import constants, snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(name, local_files_only=True))
        if any(_weights(folder)):
            return folder
    except LocalEntryNotFoundError:
        folder = Path(constants.HF_HUB_CACHE)
    if constants.HF_HUB_OFFLINE:
        raise ModelNotFoundError(f"does not hold {name}, and HF_HUB_OFFLINE forbids to fetch it", path=folder)
    try:
        with _without_progress():
            return Path(snapshot_download(name, ignore_patterns=[*_UNUSED]))
    except Exception as error:  # of the network, of the hub, of the disk
        raise EncoderError(f"{name} cannot be fetched: {error}") from error


def _weights(folder: Path) -> Iterator[Path]:
    return (file for pattern in _WEIGHTS for file in folder.rglob(pattern))


def _hash_of(folder: Path) -> str:
    """One hash of all files of a model, by name and content."""
    whole = hashlib.sha256()
    try:
        for file in sorted(folder.rglob("*")):
            place = file.relative_to(folder)
            is_hidden = any(part.startswith(".") for part in place.parts)
            if file.is_file() and not is_hidden and not any(place.match(pattern) for pattern in _UNUSED):
                with file.open("rb") as stream:
                    whole.update(f"{place.as_posix()} {hashlib.file_digest(stream, 'sha256').hexdigest()}\n".encode())
    except OSError as error:
        raise ModelNotFoundError(f"cannot be read ({error.strerror})", path=folder) from error
    return whole.hexdigest()
