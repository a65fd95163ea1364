"""From a model of sentence-transformers to an ONNX file: tokens in, a unit vector out. Needs torch and onnx."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import onnx
import torch

from models.building.head import Head
from models.building.refusal import Refusal

# What onnxruntime 1.20, the oldest that recall takes, can read.
_OPSET: Final = 20
_IR_VERSION: Final = 10

_POOLINGS: Final = ("mean", "cls")


class Sentence(torch.nn.Module):  # type: ignore[misc]  # torch is optional, its types unknown
    """Transformer, pooling, dense layers and head as one module over a single text without padding.

    Args:
        model: a SentenceTransformer that `check` accepts.
        head: applied to the vector; None for none.
    """

    def __init__(self, model: Any, head: Head | None) -> None:
        super().__init__()
        first, pooling, *rest = model
        self.transformer = first.auto_model
        self.pools_mean = pooling_of(pooling) == "mean"
        self.dense = torch.nn.ModuleList([part for part in rest if type(part).__name__ == "Dense"])
        self.has_head = head is not None
        if head is not None:
            self.register_buffer("mean", torch.tensor(head.mean, dtype=torch.float32))
            self.register_buffer("projection", torch.tensor(head.projection, dtype=torch.float32))

    def forward(self, input_ids: Any, attention_mask: Any) -> Any:
        """The vector, shape (1, dim), of one text's tokens, shape (1, n)."""
        tokens = self.transformer(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        vector = tokens.mean(dim=1) if self.pools_mean else tokens[:, 0]
        for layer in self.dense:
            vector = layer({"sentence_embedding": vector})["sentence_embedding"]
        vector = torch.nn.functional.normalize(vector, dim=-1)
        if self.has_head:
            vector = torch.nn.functional.normalize((vector - self.mean) @ self.projection, dim=-1)
        return vector


def pooling_of(module: Any) -> str:
    """How the module makes one vector of many: `mean`, `cls`, ...; "" when it is no pooling."""
    found = getattr(module, "get_pooling_mode_str", None)  # sentence-transformers 5
    return str(found() if found else getattr(module, "pooling_mode", ""))


def check(model: Any) -> None:
    """Whether `export` can build it.

    Raises:
        Refusal: it holds a part that cannot be built, or pools in a way that cannot.
    """
    kinds = [type(module).__name__ for module in model]
    if kinds[:2] != ["Transformer", "Pooling"] or set(kinds[2:]) - {"Dense", "Normalize"}:
        raise Refusal(f"only Transformer, Pooling, Dense and Normalize can be built, not {' > '.join(kinds)}")
    if (pooling := pooling_of(model[1])) not in _POOLINGS:
        raise Refusal(f"only pooling by {' or '.join(_POOLINGS)} can be built, not by {pooling}")
    if not model[1].include_prompt:
        raise Refusal("a model that leaves its prompt out of the pooling cannot be built")
    if getattr(model[0], "do_lower_case", False):
        raise Refusal("a model whose texts are lowered outside its tokenizer cannot be built")


def shrink(model: Any, keep: Sequence[int]) -> None:
    """Leaves only these rows of the model's table of pieces, in place.

    Raises:
        Refusal: the piece that stands for padding would get another number, from which some models count positions.
    """
    transformer = model[0].auto_model
    table = transformer.get_input_embeddings()
    padding = table.padding_idx
    if padding is not None and (padding >= len(keep) or keep[padding] != padding):
        raise Refusal(f"the padding piece, number {padding}, would get another number")
    rows = table.weight.detach()[torch.tensor(keep)].clone()
    transformer.set_input_embeddings(torch.nn.Embedding.from_pretrained(rows, padding_idx=padding))
    transformer.config.vocab_size = len(keep)


def export(model: Any, head: Head | None, file: Path) -> None:
    """Writes the model with its head as an ONNX file of full precision.

    Raises:
        Refusal: torch cannot turn it into a graph.
    """
    sentence = Sentence(model, head).eval()
    example = torch.arange(3, 10)[None] % model[0].auto_model.config.vocab_size
    tokens = {1: torch.export.Dim("tokens", min=1, max=int(model.max_seq_length))}
    try:
        with torch.no_grad():
            program = torch.onnx.export(
                sentence,
                (example, torch.ones_like(example)),
                input_names=["input_ids", "attention_mask"],
                output_names=["vector"],
                opset_version=_OPSET,
                dynamo=True,
                dynamic_shapes=(tokens, tokens),
                verbose=False,
            )
    except Exception as error:  # of the exporter, or of the model's own code
        raise Refusal(f"torch cannot turn the model into a graph: {error}") from error
    proto = program.model_proto
    proto.ir_version = min(proto.ir_version, _IR_VERSION)
    onnx.save(proto, file)
