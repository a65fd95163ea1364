import numpy as np
import pytest

from bench.bootstrap import Interval, paired


def test_the_interval_is_that_of_the_mean_and_close_to_the_normal_one_on_many_values() -> None:
    values = np.random.default_rng(1).normal(0.3, 1.0, 2_000)
    found = paired(values.tolist(), seed=2)
    assert found is not None
    half = 1.96 * values.std() / np.sqrt(len(values))
    assert found.mean == pytest.approx(values.mean())
    assert found.low == pytest.approx(values.mean() - half, abs=0.1 * half)
    assert found.high == pytest.approx(values.mean() + half, abs=0.1 * half)


def test_about_95_of_100_samples_have_the_true_mean_inside() -> None:
    rng = np.random.default_rng(3)
    found = [paired(rng.normal(0.2, 0.5, 60).tolist(), seed=at, resamples=500) for at in range(200)]
    covered = [one for one in found if one is not None and one.low <= 0.2 <= one.high]
    assert 0.9 <= len(covered) / len(found) <= 0.99


def test_clusters_are_drawn_as_wholes_with_all_their_values() -> None:
    """Two clusters can be drawn as (a, a), (a, b), (b, b) alone: means 1, 1/4, 0, each end in a quarter of them."""
    assert paired([1.0, 0.0, 0.0, 0.0], clusters=["a", "b", "b", "b"], seed=1) == Interval(0.25, 0.0, 1.0)


def test_values_that_stay_together_make_the_interval_wider() -> None:
    values = [float(at % 10 < 5) for at in range(400)]
    alone = paired(values, seed=1)
    together = paired(values, clusters=[str(at % 10) for at in range(400)], seed=1)
    assert alone is not None
    assert together is not None
    assert together.high - together.low > 4 * (alone.high - alone.low)


def test_clusters_need_not_stand_together() -> None:
    apart = paired([1.0, 2.0, 3.0, 4.0], clusters=["a", "b", "a", "b"], seed=1)
    sorted_ones = paired([1.0, 3.0, 2.0, 4.0], clusters=["a", "a", "b", "b"], seed=1)
    assert apart == sorted_ones


def test_the_same_seed_gives_the_same_interval_and_another_one_another() -> None:
    values = np.random.default_rng(1).normal(size=50).tolist()
    assert paired(values, seed=1) == paired(values, seed=1)
    assert paired(values, seed=1) != paired(values, seed=2)


@pytest.mark.parametrize(("values", "clusters"), [([], None), ([1.0], None), ([1.0, 2.0], ["a", "a"])])
def test_nothing_can_be_said_of_less_than_two_things(values: list[float], clusters: list[str] | None) -> None:
    assert paired(values, seed=1, clusters=clusters) is None
