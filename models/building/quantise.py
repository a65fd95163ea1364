"""From weights of four bytes to weights of one, in an ONNX file. Needs onnx and onnxruntime."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic


def quantise(file: Path, out: Path) -> None:
    """Writes the model with matrices and tables of one byte a number.

    Matrices get a scale a column and seven bits, since eight overflow on processors without VNNI; what they are
    multiplied with is brought to eight bits as it comes. Tables get a scale a row and eight bits.
    """
    model = onnx.load(file)
    _quantise_tables(model.graph)
    onnx.save(model, out)
    quantize_dynamic(
        out,
        out,
        op_types_to_quantize=["MatMul", "Gemm"],
        per_channel=True,
        reduce_range=True,
        weight_type=QuantType.QInt8,
        extra_options={"MatMulConstBOnly": True},
    )


def _quantise_tables(graph: onnx.GraphProto) -> None:
    """Rewrites each look-up of rows in a constant table: rows of bytes, and their scales, are looked up instead."""
    tables = {tensor.name: tensor for tensor in graph.initializer if tensor.data_type == TensorProto.FLOAT}
    nodes: list[onnx.NodeProto] = []
    small: dict[str, bool] = {}
    for node in graph.node:
        table = tables.get(node.input[0]) if node.op_type == "Gather" else None
        if table is None or len(table.dims) != 2 or any(name.name == "axis" and name.i for name in node.attribute):
            nodes.append(node)
            continue
        small[table.name] = True
        nodes += _looked_up(node, table.name)
    users = {name for node in nodes for name in node.input}
    initializers = [tensor for tensor in graph.initializer if tensor.name not in small or tensor.name in users]
    initializers += [part for name in small for part in rows_of_bytes(tables[name])]
    del graph.node[:], graph.initializer[:]
    graph.node.extend(nodes)
    graph.initializer.extend(initializers)


def _looked_up(node: onnx.NodeProto, table: str) -> list[onnx.NodeProto]:
    """What takes the place of a look-up: the same output from bytes and scales."""
    out, places = node.output[0], node.input[1]
    return [
        helper.make_node("Gather", [f"{table}_bytes", places], [f"{out}_bytes"]),
        helper.make_node("Cast", [f"{out}_bytes"], [f"{out}_numbers"], to=TensorProto.FLOAT),
        helper.make_node("Gather", [f"{table}_scales", places], [f"{out}_scales"]),
        helper.make_node("Mul", [f"{out}_numbers", f"{out}_scales"], [out]),
    ]


def rows_of_bytes(table: onnx.TensorProto) -> tuple[onnx.TensorProto, onnx.TensorProto]:
    """A table of floats, shape (n, dim), as bytes of the same shape and scales, shape (n, 1)."""
    rows = numpy_helper.to_array(table).astype(np.float32)
    scales = np.maximum(np.abs(rows).max(axis=1, keepdims=True), np.finfo(np.float32).tiny) / 127
    numbers = np.clip(np.rint(rows / scales), -127, 127).astype(np.int8)
    return (
        numpy_helper.from_array(numbers, f"{table.name}_bytes"),
        numpy_helper.from_array(scales.astype(np.float32), f"{table.name}_scales"),
    )
