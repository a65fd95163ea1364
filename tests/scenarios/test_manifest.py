"""Every complaint has a test or a reason, and every test has its complaint."""

import ast
import re
from pathlib import Path

import pytest

from tests.scenarios.manifest import COMPLAINTS

HERE = Path(__file__).parent
REPOSITORY = HERE.parent.parent

NAME = re.compile(r"test_((?:[a-j][0-9]{2}_)+)")


def covered() -> dict[str, set[str]]:
    """The files that hold a test of each complaint."""
    found: dict[str, set[str]] = {}
    for file in HERE.glob("test_complaints_*.py"):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                named = NAME.match(node.name)
                assert named, f"{node.name} names no complaint"
                for part in named[1].strip("_").split("_"):
                    found.setdefault(f"{part[0].upper()}{int(part[1:])}", set()).add(file.name)
    return found


def test_every_complaint_has_a_test_or_a_reason_and_every_test_its_complaint() -> None:
    assert {name for name, reason in COMPLAINTS.items() if not reason} == set(covered())


def test_a_complaint_is_tested_in_the_file_of_its_group() -> None:
    assert {name: {f"test_complaints_{name[0].lower()}.py"} for name in covered()} == covered()


def test_the_files_that_a_reason_names_are_there() -> None:
    named = {file for reason in COMPLAINTS.values() for file in re.findall(r"tests/\S+\.py", reason)}
    assert named
    assert [file for file in sorted(named) if not (REPOSITORY / file).is_file()] == []


@pytest.mark.vectors
def test_no_complaint_of_the_collection_is_forgotten(shared: Path) -> None:
    group, listed = "", set()
    for line in (shared / "spec" / "complaints.md").read_text(encoding="utf-8").splitlines():
        if heading := re.match(r"\*\*([A-J])\. ", line):
            group = heading[1]
        elif number := re.match(r"([0-9]+)\. ", line):
            listed.add(f"{group}{number[1]}")
    assert listed == set(COMPLAINTS)
