"""Sizes that the design sets (DESIGN section 2); layers are import-linter's business in scripts/check."""

import ast
import re
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


WRITES_ITSELF = {
    "store/disk.py",
    "store/locks.py",  # a lock file says who holds it, as a courtesy; nothing is built on what it holds
}
CHANGES = {
    "fsync", "fdatasync", "rename", "renames", "unlink", "remove", "removedirs", "rmdir", "rmtree", "move", "copy",
    "copy2", "copyfile", "copytree", "touch", "truncate", "ftruncate", "write_text", "write_bytes", "mkdir", "makedirs",
    "symlink_to", "hardlink_to", "pwrite",
}  # fmt: skip
WRITING_MODE = re.compile(r"[rbt]*[wax+][wax+bt]*")
WRITING_FLAGS = {"O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND"}


def changes_of_files(tree: ast.AST) -> Iterator[str]:
    """Calls that change files, by line; `a.replace(b)` with one argument is that of a path, with two that of a text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in WRITING_FLAGS:
            yield f"line {node.lineno}: {node.attr}"
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
        own = isinstance(receiver, ast.Name) and receiver.id == "disk"
        texts = {value.value for value in ast.walk(node) if isinstance(value, ast.Constant)}
        mode = name == "open" and any(isinstance(text, str) and WRITING_MODE.fullmatch(text) for text in texts)
        path = name == "replace" and receiver is not None and len(node.args) == 1 and not node.keywords
        if not own and (mode or path or (name in CHANGES and not _is_list(name, receiver))):
            yield f"line {node.lineno}: {name}"


def _is_list(name: str, receiver: ast.expr | None) -> bool:
    """`list.remove` and `list.copy`, unlike those of os and shutil."""
    return name in {"remove", "copy"} and not (isinstance(receiver, ast.Name) and receiver.id in {"os", "shutil"})


@pytest.mark.parametrize("layer", ["store", "index"])
def test_files_are_changed_through_one_module_alone(layer: str) -> None:
    """Tests stop after every step that goes through it (tests.power); a step beside it would be one nobody tried."""
    found = {
        name: [*changes_of_files(ast.parse(file.read_text(encoding="utf-8")))]
        for file in sorted((PACKAGE / layer).glob("*.py"))
        if (name := file.relative_to(PACKAGE).as_posix()) not in WRITES_ITSELF
    }
    assert {name: calls for name, calls in found.items() if calls} == {}
    beside = ast.parse('file.unlink()\nopen(x, "ab")\nold.replace(new)\nos.remove(x)\nos.open(x, os.O_CREAT)')
    assert len([*changes_of_files(beside)]) == 5
