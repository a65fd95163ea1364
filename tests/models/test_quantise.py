"""Tables of one byte a number."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

needs_onnx = pytest.mark.skipif(find_spec("onnx") is None, reason="onnx is not installed: pip install -e '.[build]'")


@needs_onnx
@pytest.mark.filterwarnings("ignore")
def test_rows_of_bytes_stay_within_half_a_step_of_the_row(tmp_path: Path) -> None:
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper, save

    from models.building.quantise import quantise

    random = np.random.default_rng(3)
    table = (random.normal(size=(300, 16)) * np.geomspace(1e-3, 10, 300)[:, None]).astype(np.float32)
    table[7] = 0
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "places"], ["rows"])],
        "look-up",
        [helper.make_tensor_value_info("places", TensorProto.INT64, [1, "n"])],
        [helper.make_tensor_value_info("rows", TensorProto.FLOAT, [1, "n", 16])],
        [numpy_helper.from_array(table, "table")],
    )
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), tmp_path / "full.onnx")
    quantise(tmp_path / "full.onnx", tmp_path / "small.onnx")
    assert (tmp_path / "small.onnx").stat().st_size < 0.4 * (tmp_path / "full.onnx").stat().st_size
    session = onnxruntime.InferenceSession(tmp_path / "small.onnx")
    (found,) = session.run(None, {"places": np.arange(300)[None]})
    steps = np.abs(table).max(axis=1, keepdims=True) / 127
    assert (np.abs(found[0] - table) <= 0.5001 * steps + 1e-30).all()
