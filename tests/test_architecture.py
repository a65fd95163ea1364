"""Sizes that the design sets (DESIGN section 2); layers are import-linter's business in scripts/check."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "recall"
FILES = sorted(PACKAGE.rglob("*.py"))
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef

LONGEST_FILE = 450
LONGEST_FUNCTION = 60
MOST_PARAMETERS = 6
MOST_STORED_PARAMETERS = 10  # of constructors and openers that only store parts
BANNED_NAMES = {"utils", "helpers", "common", "core", "manager"}


def functions(file: Path) -> Iterator[FUNCTION]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, FUNCTION):
            yield node


def body_lines(node: FUNCTION) -> int:
    """Lines without the docstring."""
    first = node.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    docstring = (first.end_lineno or 0) - first.lineno + 1 if documented else 0
    return (node.end_lineno or 0) - node.lineno + 1 - docstring


def parameters(node: FUNCTION) -> int:
    names = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return len([name for name in names if name.arg not in {"self", "cls"}])


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_files_and_functions_stay_small(file: Path) -> None:
    assert len(file.read_text(encoding="utf-8").splitlines()) <= LONGEST_FILE
    too_long = {node.name: body_lines(node) for node in functions(file) if body_lines(node) > LONGEST_FUNCTION}
    assert too_long == {}
    storing = {"__init__", "open", "_topic", "_assemble"}
    wide = {
        node.name: parameters(node)
        for node in functions(file)
        if parameters(node) > (MOST_STORED_PARAMETERS if node.name in storing else MOST_PARAMETERS)
    }
    assert wide == {}


def test_no_module_is_named_after_nothing() -> None:
    assert {file.stem for file in FILES} & BANNED_NAMES == set()


def test_most_functions_are_short() -> None:
    lengths = sorted(body_lines(node) for file in FILES for node in functions(file))
    assert lengths[int(len(lengths) * 0.9)] <= 28
