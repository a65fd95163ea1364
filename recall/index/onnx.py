"""The default encoder: a sentence model in an ONNX file, described by a card beside it. The only user of onnxruntime.

One text a call: the model's int8 scales depend on everything in a batch, so that only single texts give the same vector
every time, and on two cores a batch gains nothing (spec models.md section 5).
"""

import hashlib
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from recall.config import EncoderConfig
from recall.errors import EncoderError, ModelNotFoundError
from recall.index.base import Vector, Vectors, check_vectors
from recall.index.native import NATIVE

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_MODEL: Final = "model.onnx"
_TOKENIZER: Final = "tokenizer.json"
# Raise it when the code below would give the same text another vector.
_VERSION: Final = 1

DEFAULT_MODEL: Final = "e5-small-zhen-int8"

# Of the model's tokens, estimated ones may take this share: the estimate can be a sixth too low, and the prefix counts.
_SAFE_SHARE: Final = 0.84


class ModelCard(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What model.yaml says of the model beside it.

    Attributes:
        name: what people call the model.
        source: where the weights come from.
        licence: licence of the weights.
        attribution: whom to name.
        sha256: of each file by its name, in hexadecimal.
        dim: length of a vector.
        max_tokens: tokens that the model reads of one text.
        end_token: id that closes a text that was cut.
        query_prefix: put before a query.
        document_prefix: put before a document.
        floor: how well the best topic must fit a query for anything to be found (search.weights.fit).
    """

    name: str
    source: str
    licence: str
    attribution: str
    sha256: dict[str, str]
    dim: int
    max_tokens: int
    end_token: int
    query_prefix: str = ""
    document_prefix: str = ""
    floor: float = 0.205


def models_folder() -> Path:
    """Where shipped models lie: inside an installed package, or beside it in a checkout."""
    package = Path(__file__).resolve().parent.parent
    inside = package / "models"
    return inside if inside.is_dir() else package.parent / "models"


def read_card(folder: Path) -> ModelCard:
    """The card of the model in the folder.

    Raises:
        ModelNotFoundError: no card there, or one that cannot be read.
    """
    import yaml

    file = folder / "model.yaml"
    try:
        card = msgspec.convert(yaml.safe_load(file.read_text(encoding="utf-8")), ModelCard)
    except OSError as error:
        raise ModelNotFoundError(
            f"no model card ({error.strerror}); reinstall recall or set encoder.model", path=file
        ) from error
    except (yaml.YAMLError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise ModelNotFoundError(f"not a model card: {error}", path=file) from error
    if missing := {_MODEL, _TOKENIZER} - card.sha256.keys():
        raise ModelNotFoundError(f"not a model card: no sha256 of {', '.join(sorted(missing))}", path=file)
    return card


class OnnxEncoder:
    """A sentence model; loads on first use, or in the background by `warm_up()`. Thread-safe.

    Args:
        folder: holds model.onnx, tokenizer.json and model.yaml.
        threads: threads of one encoding; one on the recall path, so that it never waits for a busy core.
    """

    def __init__(self, folder: Path | None = None, *, threads: int = 1) -> None:
        self.folder = folder or models_folder() / DEFAULT_MODEL
        self.card = read_card(self.folder)
        self.recipe = EncoderConfig(model=str(folder.absolute()) if folder else "onnx", threads=threads)
        self.name = self.card.name
        self.dim = self.card.dim
        self.floor = self.card.floor
        self.chunk_tokens = int(self.card.max_tokens * _SAFE_SHARE)
        self._threads = threads
        self._lock = threading.Lock()
        self._session: Any = None  # onnxruntime ships no types
        self._tokenizer: Tokenizer | None = None

    @property
    def fingerprint(self) -> str:
        """Name of the vector space: the card's name and a hash of all that shapes a vector."""
        card = self.card
        parts = (
            _VERSION,
            card.sha256,
            card.dim,
            card.max_tokens,
            card.end_token,
            card.query_prefix,
            card.document_prefix,
        )
        return f"{card.name}-{hashlib.sha256(repr(parts).encode()).hexdigest()[:12]}"

    @property
    def is_warm(self) -> bool:
        """True once the model is in memory."""
        return self._session is not None

    def warm_up(self) -> None:
        """Loads the model now.

        Raises:
            ModelNotFoundError: a file is missing, or is not the one that the card describes.
            EncoderError: onnxruntime cannot load or run it.
        """
        with self._lock:
            if self._session is not None:
                return
            for name, expected in self.card.sha256.items():
                _verify(self.folder / name, expected)
            tokenizer, session = _load(self.folder, self._threads)
            self._run(session, [self.card.end_token])
            self._tokenizer, self._session = tokenizer, session

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """One row a text, shape (n, dim); a text beyond the model's length is read in parts and gets their mean."""
        if not texts:
            return np.zeros((0, self.dim), np.float32)
        parts = [[self._run(self._session, ids) for ids in self._parts(text)] for text in texts]
        return check_vectors(np.stack([np.mean(part, axis=0) for part in parts]), rows=len(texts), dim=self.dim)

    def encode_query(self, text: str) -> Vector:
        """The query's vector, shape (dim,); what lies beyond the model's length is not read."""
        ids = self._tokens(self.card.query_prefix + text)
        if len(ids) > self.card.max_tokens:
            ids = [*ids[: self.card.max_tokens - 1], self.card.end_token]
        vector: Vector = check_vectors(self._run(self._session, ids)[None], rows=1, dim=self.dim)[0]
        return vector

    def _parts(self, text: str) -> list[list[int]]:
        """The document's tokens in pieces that the model reads whole, each with its frame."""
        first, *inner, last = self._tokens(self.card.document_prefix + text)
        size = self.card.max_tokens - 2
        return [[first, *inner[at : at + size], last] for at in range(0, max(len(inner), 1), size)]

    def _tokens(self, text: str) -> list[int]:
        self.warm_up()
        assert self._tokenizer is not None  # noqa: S101 - warm_up() sets it or raises
        with NATIVE.call():
            # A lone surrogate, which a broken file name or a cut emoji brings, is no text to the tokenizer.
            ids: list[int] = self._tokenizer.encode(text.encode("utf-8", "replace").decode("utf-8")).ids
        return ids

    def _run(self, session: Any, ids: list[int]) -> Vector:
        tokens = np.asarray([ids], np.int64)
        try:
            with NATIVE.call():
                vector: Vector = session.run(None, {"input_ids": tokens, "attention_mask": np.ones_like(tokens)})[0][0]
        except Exception as error:  # onnxruntime raises types of its own that share no base
            raise EncoderError(f"{self.name} cannot encode a text of {len(ids)} tokens: {error}") from error
        return vector


def _verify(file: Path, expected: str) -> None:
    try:
        with file.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise ModelNotFoundError(f"cannot be read ({error.strerror}); reinstall recall", path=file) from error
    if found != expected:
        raise ModelNotFoundError(
            f"is damaged: sha256 {found[:12]}, the card says {expected[:12]}; reinstall recall", path=file
        )


def _load(folder: Path, threads: int) -> tuple["Tokenizer", Any]:
    """Tokenizer and session, step by step: a process that ends waits for the present step."""
    # Since 1.32 it makes an id of the machine and reports to its makers; nothing of recall goes anywhere.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    with NATIVE.call():
        import onnxruntime
        from tokenizers import Tokenizer

        onnxruntime.disable_telemetry_events()
    try:
        with NATIVE.call():
            tokenizer = Tokenizer.from_file(str(folder / _TOKENIZER))
            tokenizer.no_padding()
            tokenizer.no_truncation()
        with NATIVE.call():
            session = onnxruntime.InferenceSession(
                str(folder / _MODEL), _options(threads), providers=["CPUExecutionProvider"]
            )
    except Exception as error:  # both libraries raise bare exceptions
        raise EncoderError(f"cannot load the model in {folder}: {error}") from error
    return tokenizer, session


def _options(threads: int) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # Threads that wait would otherwise spin and eat the second core between calls.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return options
