"""The command line: `recall`, or `python -m recall`."""

import gc
from typing import Final

_RARELY: Final = 50_000


def main() -> None:
    """The console script."""
    gc.set_threshold(_RARELY)  # to load what a command needs makes many objects and no garbage
    from recall.apps import cli

    cli.main()


if __name__ == "__main__":
    main()
