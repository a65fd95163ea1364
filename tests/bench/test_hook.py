"""What the hook benchmark makes of the answers."""

from bench.hook import shares


def test_the_share_of_full_answers_is_taken_among_the_answers() -> None:
    found = {
        figure.name: figure.values["value"] for figure in shares(["hybrid", "heuristic", "none", "hybrid"], "idle")
    }
    assert found["questions that something was found for, idle"] == 75
    assert round(found["of these by words and meaning, idle"], 1) == 66.7


def test_without_any_answer_there_is_no_share() -> None:
    assert [figure.values["value"] for figure in shares(["none"], "idle")] == [0, 0]
