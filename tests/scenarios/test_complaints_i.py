"""Complaints from the field, group I: duplicates."""

from collections.abc import Callable

from recall import Config, Memory, Outcome

Open = Callable[..., Memory]

RESTATEMENTS = (
    "The user prefers pnpm over npm for installing packages.",
    "the user prefers pnpm over npm for installing packages",
    "For installing packages the user prefers pnpm over npm.",
    "User prefers pnpm to npm for installing packages.",
    "The user prefers  pnpm over npm for installing  packages!",
    "The user would prefer pnpm over npm for installing packages.",
)
NEGATION = "The user does not prefer pnpm over npm for installing packages."


def test_i48_one_fact_told_six_times_is_one_and_its_negation_is_another(opened: Open, with_model: Config) -> None:
    memory = opened(config=with_model)
    outcomes = [memory.remember(text, type="project").outcome for text in RESTATEMENTS]
    assert outcomes[0] is Outcome.CREATED
    assert set(outcomes[1:]) <= {Outcome.KNOWN, Outcome.UPDATED}
    assert len(memory.topics()) == 1
    memory.remember(NEGATION, type="project")
    hits = memory.recall("does the user prefer pnpm or npm?").hits
    assert len(hits) == 2
    assert NEGATION in hits[0].topic.body
