"""What `import recall` offers, and what it costs."""

import importlib
import inspect
import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

import recall

REPOSITORY = Path(recall.__file__).parents[1]
NAMES = [name for name in recall.__all__ if not name.startswith("_")]
HEAVY = ("numpy", "onnxruntime", "faiss", "tokenizers", "msgspec", "yaml", "regex", "click", "rich", "sqlite3")


def python(script: str) -> str:
    """What the script prints, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        encoding="utf-8",
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_names_are_sorted_and_each_is_there_once() -> None:
    assert recall.__all__ == sorted(set(recall.__all__))


@pytest.mark.parametrize("name", NAMES)
def test_every_name_can_be_imported_and_says_what_it_is(name: str) -> None:
    found = getattr(recall, name)
    assert inspect.getdoc(found)
    assert inspect.isclass(found)
    assert found.__name__ == name


@pytest.mark.parametrize("name", NAMES)
def test_every_public_method_says_what_it_does(name: str) -> None:
    members = vars(getattr(recall, name)).items()
    offered = {member: value for member, value in members if not member.startswith("_")}
    functions = {
        member: value for member, value in offered.items() if inspect.isroutine(value) or isinstance(value, property)
    }
    described_with_the_class = {"Encoder"}  # a protocol of attributes
    bare = [member for member, value in functions.items() if not inspect.getdoc(value)]
    assert bare == [] or name in described_with_the_class


def test_a_star_takes_all_of_them() -> None:
    assert (
        python("from recall import *; print(Memory.__name__, Recall.__name__, len(dir()) > 25)")
        == "Memory Recall True\n"
    )


def test_all_errors_are_public() -> None:
    errors = importlib.import_module("recall.errors")
    raised = {name for name, value in vars(errors).items() if inspect.isclass(value) and issubclass(value, Exception)}
    assert raised <= set(recall.__all__)
    assert all(issubclass(getattr(recall, name), recall.RecallError) for name in raised)


def test_what_public_functions_give_is_public_too() -> None:
    given = {"Recall", "Prefetch", "Delivery", "SyncReport", "RootStatus", "Topic", "Hit", "Coverage", "Config"}
    given |= {"Remembered", "Outcome", "Stored", "Plan", "Run", "Change", "Item", "StalePlanError"}
    assert given | {"RecallEvent", "PrefetchEvent", "Layout", "Strategy", "Phase", "Point", "Drop"} <= set(NAMES)


def test_dir_shows_them_and_an_unknown_name_is_an_attribute_error() -> None:
    assert set(recall.__all__) <= set(dir(recall))
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        recall.Nothing  # type: ignore[attr-defined]  # noqa: B018


def test_importing_it_loads_nothing_heavy() -> None:
    script = f"import recall, sys; print([name for name in {HEAVY} if name in sys.modules])"
    assert python(script) == "[]\n"


def test_naming_the_memory_loads_neither_the_model_nor_the_search_library() -> None:
    heavy = ("onnxruntime", "faiss", "tokenizers", "click", "rich")
    script = f"from recall import Memory; import sys; print([name for name in {heavy} if name in sys.modules])"
    assert python(script) == "[]\n"


def test_its_version_is_that_of_the_distribution() -> None:
    assert recall.__version__.count(".") == 2
    try:
        installed = version("recall-memory")
    except PackageNotFoundError:
        pytest.skip("recall is not installed here, it is run from its checkout")
    assert installed == recall.__version__


def test_its_types_are_announced() -> None:
    assert (Path(recall.__file__).parent / "py.typed").is_file()
