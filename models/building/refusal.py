"""What cannot be built."""


class Refusal(Exception):  # noqa: N818 - an answer to who asks, not a failure
    """Says what cannot be built, and what can be done about it."""
