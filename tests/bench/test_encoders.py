import numpy as np
import pytest

from bench.encoders import Hanging, Metered, Standin
from recall.index.hashing import HashingEncoder

TEXTS = ["发布之前要备份 release first", "another text about caches", "another text about caches"]


def test_stand_in_vectors_are_unit_long_and_depend_on_the_text_alone() -> None:
    encoder = Standin()
    rows = encoder.encode_documents(TEXTS)
    assert rows.shape == (3, encoder.dim)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    assert np.array_equal(rows[1], rows[2])
    assert np.array_equal(Standin().encode_documents(TEXTS[:1])[0], rows[0])
    assert abs(float(rows[0] @ rows[1])) < 0.5


def test_the_stand_in_is_no_vector_space_of_a_real_model() -> None:
    assert Standin().fingerprint.startswith("standin-")


@pytest.mark.model
def test_queries_of_the_stand_in_are_those_of_the_real_model() -> None:
    from recall.index.onnx import OnnxEncoder

    assert np.array_equal(Standin().encode_query("缓存 cache"), OnnxEncoder().encode_query("缓存 cache"))


def test_a_metered_encoder_counts_documents_and_gives_what_the_real_one_gives() -> None:
    encoder = Metered(HashingEncoder())
    rows = [encoder.encode_documents(TEXTS[:2]), encoder.encode_documents(TEXTS[2:])]
    assert np.array_equal(np.concatenate(rows), HashingEncoder().encode_documents(TEXTS))
    assert encoder.texts == 3
    assert encoder.cpu_s > 0


@pytest.mark.parametrize(("share", "hung"), [(0.0, 0), (1.0, 2)])
def test_a_hanging_encoder_hangs_as_often_as_it_should_and_then_answers(share: float, hung: int) -> None:
    encoder = Hanging(HashingEncoder(), share=share, longest_s=0.0, seed=1)
    encoder.encode_query("warm-up")
    assert np.array_equal(encoder.encode_query("cache"), HashingEncoder().encode_query("cache"))
    assert np.array_equal(encoder.encode_documents(TEXTS), HashingEncoder().encode_documents(TEXTS))
    assert encoder.hung == hung
