"""From a model of sentence-transformers to a folder that recall's encoder loads."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

from models.building import graph, vocabulary
from models.building.folder import frame_of, tokenizer_of, write_card, write_tokenizer
from models.building.head import Head, fit, pairs
from models.building.parity import Parity, compare, vectors
from models.building.quantise import quantise
from models.building.refusal import Refusal
from models.building.vocabulary import Json
from recall.index.onnx import OnnxEncoder
from recall.index.sbert import SbertEncoder

# A language of whose pieces the model does not know this share has no place in its space.
_MOST_UNKNOWN: Final = 0.1
# Of the given texts, so many are compared.
_MOST_SAMPLES: Final = 200
# Tokens for a prefix.
_ROOM: Final = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is to be built.

    Attributes:
        out: folder that is made.
        languages: whose pieces stay in the vocabulary; where neither languages nor texts are named, all stay.
        texts: whose pieces stay in the vocabulary.
        head: `neutral` subtracts the mean and projects directions out, `mean` only subtracts.
        directions: of the neutral head.
        bytes_a_weight: 1 or 4.
        licence: of the weights; "" takes the preset's.
        attribution: whom to name; "" names the source.
        floor: how well the best topic must fit a query for anything to be found.
        parity: cosine that each text has to reach.
    """

    out: Path
    languages: Sequence[str] = ()
    texts: Sequence[str] = ()
    head: Literal["neutral", "mean", "none"] = "neutral"
    directions: int = 3
    bytes_a_weight: Literal[1, 4] = 1
    licence: str = ""
    attribution: str = ""
    floor: float = 0.205
    parity: float = 0.98


@dataclass(frozen=True, slots=True)
class Built:
    """What came of an order.

    Attributes:
        folder: where it lies.
        pieces: in the vocabulary, before and after.
        parity: with its source.
    """

    folder: Path
    pieces: tuple[int, int]
    parity: Parity


def build(encoder: SbertEncoder, order: Order) -> Built:
    """Makes the folder; the encoder is used up by it.

    Raises:
        Refusal: it cannot be built of this source, or the result is not like it; then there is no folder.
        EncoderError: the source cannot be loaded.
    """
    if order.out.exists():
        raise Refusal(f"{order.out} is there already")
    order = replace(order, licence=order.licence or (encoder.preset.licence if encoder.preset else ""))
    if not order.licence:
        raise Refusal("the licence of the weights is not known; name it with --licence")
    graph.check(encoder.loaded())
    tokenizer = tokenizer_of(encoder.loaded())
    before = vocabulary.size_of(tokenizer)
    head = head_for(encoder, tokenizer, order)
    # What is too long to be read whole is cut elsewhere than sentence-transformers cuts it.
    samples = vocabulary.shorter(tokenizer, samples_for(order), encoder.loaded().max_seq_length - _ROOM)
    wanted = vectors(encoder, samples)
    prefixes = {"query_prefix": encoder.query_prefix, "document_prefix": encoder.document_prefix}
    parent = order.out.absolute().parent
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent, prefix=".build-") as name:
        made = Path(name) / "model"
        made.mkdir()
        if order.languages or order.texts:
            keep = vocabulary.kept(tokenizer, languages=order.languages, texts=order.texts)
            tokenizer = vocabulary.trimmed(tokenizer, keep)
            graph.shrink(encoder.loaded(), keep)
        write_tokenizer(made, tokenizer)
        _write_model(encoder.loaded(), head, made / "model.onnx", order=order)
        write_card(made, prefixes | _said(encoder, tokenizer, order))
        found = compare(head(wanted) if head else wanted, vectors(OnnxEncoder(made), samples), samples)
        if found.least < order.parity:
            raise Refusal(
                f"the result is not like its source: cosine {found.least:.4f} for {found.worst!r} "
                f"(mean {found.mean:.4f}), wanted {order.parity}"
            )
        made.rename(order.out)
    return Built(order.out, (before, vocabulary.size_of(tokenizer)), found)


def head_for(encoder: SbertEncoder, tokenizer: Json, order: Order) -> Head | None:
    """The head that the order wants, fitted on vectors of the source.

    Raises:
        Refusal: a language-neutral head is wanted of a model that cannot read the languages.
    """
    if order.head == "none":
        return None
    chinese, english = pairs()
    if order.head == "neutral":
        for language, texts in (("Chinese", chinese), ("English", english)):
            if (share := vocabulary.unknown_share(tokenizer, texts)) > _MOST_UNKNOWN:
                raise Refusal(
                    f"the model does not know {share:.0%} of the pieces of {language} text, so that no head can bring "
                    "its languages together; take --head mean or none"
                )
        return fit(vectors(encoder, chinese), vectors(encoder, english), directions=order.directions)
    texts = samples_for(order)
    both = vectors(encoder, texts)
    return fit(both, both, directions=0)


def samples_for(order: Order) -> list[str]:
    """Texts that source and result are compared by: those given, and our own in the languages named."""
    chinese, english = pairs()
    languages = order.languages or (() if order.texts else ("zh", "en"))
    ours = [text for language, texts in (("zh", chinese), ("en", english)) if language in languages for text in texts]
    samples = [*order.texts[:: len(order.texts) // _MOST_SAMPLES + 1], *ours]
    if not samples:
        raise Refusal("there is no text of ours in these languages; give some with --text")
    return samples


def _write_model(model: Any, head: Head | None, file: Path, *, order: Order) -> None:
    graph.export(model, head, file)
    if order.bytes_a_weight == 1:
        quantise(file, file)


def _said(encoder: SbertEncoder, tokenizer: Json, order: Order) -> Json:
    """Fields of the card."""
    source = encoder.preset.model if encoder.preset else encoder.source.hub or encoder.name
    made = (
        f"{source} ({order.licence}), {vocabulary.size_of(tokenizer):,} pieces, converted to ONNX; head: {order.head}"
    )
    return {
        "name": order.out.name,
        "source": source,
        "licence": order.licence,
        "attribution": order.attribution or made,
        "dim": encoder.dim,
        "max_tokens": int(encoder.loaded().max_seq_length),
        "end_token": frame_of(tokenizer)[1],
        "floor": order.floor,
    }
