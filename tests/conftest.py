"""Fixtures that every folder of tests shares."""

import os
from pathlib import Path

import hypothesis
import pytest

# This process has taken note of it; in the processes that tests start, a library's warning would only soil the output.
os.environ.pop("PYTHONWARNDEFAULTENCODING", None)

# How long an example takes says nothing on a busy machine.
hypothesis.settings.register_profile("recall", deadline=None)
hypothesis.settings.load_profile("recall")

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder of conformance vectors and data: $RECALL_SHARED, else ../shared beside the checkout, else skip."""
    named = os.environ.get("RECALL_SHARED")
    folder = Path(named) if named else REPOSITORY.parent / "shared"
    if not (folder / "vectors").is_dir():
        pytest.skip(f"no conformance vectors: {folder} does not exist; set RECALL_SHARED to the folder that holds them")
    return folder
