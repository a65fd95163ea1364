"""The documents say what the code does: every command, option, JSON field and setting, and none that does not exist."""

import json
import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from recall.apps.cli import cli
from recall.config import PROJECT_KEYS, Config

DOCS = Path(__file__).resolve().parent.parent / "docs"
CLI = (DOCS / "cli.md").read_text(encoding="utf-8")

SECTIONS = {part.partition("\n")[0].strip(): part.partition("\n")[2] for part in CLI.split("\n## ")}
COMMON = "Common options"
COMMANDS = cli.list_commands(click.Context(cli))
CHANGING = ["remember", "forget", "delete", "edit", "restore"]
ON_A_MEMORY = ["search", "prefetch", "reindex", "status", "doctor", "where", "show", "list", "check", *CHANGING]
SAME_FORM = {"delete": "forget", "edit": "forget"}  # whose JSON is described with another command
FOR_PROGRAMS = {"serve", "hook"}  # they print no JSON of this form


def rows(section: str, heading: str) -> list[str]:
    """First cells of the table whose first heading is this one."""
    table = re.search(rf"^\| {heading} \|.*\n\|[-|]+\n((?:\|.*\n)+)", SECTIONS[section] + "\n", re.MULTILINE)
    return [line.split("|")[1].strip() for line in table[1].splitlines()] if table else []


def documented_options(section: str, heading: str = "option") -> set[str]:
    return {option for cell in rows(section, heading) for option in re.findall(r"`(-[-\w]+)", cell)}


def command_of(name: str) -> click.Command:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    return command


def options_of(command: click.Command) -> set[str]:
    return {name for parameter in command.params if isinstance(parameter, click.Option) for name in parameter.opts}


def test_every_command_has_its_section_and_every_section_its_command() -> None:
    assert sorted(set(SECTIONS) - {"# The command line", COMMON}) == COMMANDS


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_documented_and_every_documented_option_exists(name: str) -> None:
    common = documented_options(COMMON) if name in ON_A_MEMORY else set()
    assert documented_options(name) | common == options_of(command_of(name))


def test_the_options_of_recall_itself_are_documented() -> None:
    heading = "option of `recall` itself"
    assert documented_options("# The command line", heading) == options_of(cli) | {"-h", "--help"}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_arguments_of_a_command_are_in_its_usage(name: str) -> None:
    metavars = [parameter.metavar or (parameter.name or "").upper() for parameter in command_of(name).params
                if isinstance(parameter, click.Argument)]  # fmt: skip
    assert f"`{' '.join(['recall', name, *metavars])}`" in SECTIONS[name]


def test_commands_on_a_memory_are_those_with_the_common_options() -> None:
    with_root = sorted(name for name in COMMANDS if {"--root", "--set"} <= options_of(command_of(name)))
    assert with_root == sorted(ON_A_MEMORY)


# --- JSON forms


@pytest.fixture
def answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, list[str]]:
    """For every command that needs no model, words that make it print JSON."""
    monkeypatch.setenv("RECALL_INDEX__CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    memory = tmp_path / "memory"
    memory.mkdir()
    topic = "---\nname: Rollout\ndescription: When releases go out\ntype: project\n---\nOn Tuesdays.\n"
    (memory / "a.md").write_text(topic, encoding="utf-8")
    queries = tmp_path / "queries.jsonl"
    queries.write_text('{"id": "q", "text": "rollout", "relevant": ["a"], "kind": "fact"}\n', encoding="utf-8")
    hashing = ["--set", "encoder.model=hashing", "--json"]
    on_memory = ["--root", str(memory), *hashing]
    return {
        "search": ["search", "rollout", *on_memory],
        "prefetch": ["prefetch", "rollout", "--set", "search.budget_ms=20000", *on_memory],
        "reindex": ["reindex", *on_memory],
        "status": ["status", *on_memory],
        "doctor": ["doctor", *on_memory],
        "where": ["where", *on_memory],
        "show": ["show", "a", *on_memory],
        "list": ["list", *on_memory],
        "check": ["check", *on_memory],
        "remember": ["remember", "Backups are copied to Leipzig", *on_memory],
        "forget": ["forget", "Tuesdays", "--yes", *on_memory],
        "delete": ["delete", "a", "--yes", *on_memory],
        "edit": ["edit", "a", "--from-stdin", *on_memory],
        "restore": ["restore", "--list", *on_memory],
        "eval": ["eval", str(memory), str(queries), "--delivered", "--set", "search.budget_ms=20000", *hashing],
        "demo": ["demo", "--json"],
    }


def assert_same_form(documented: Any, real: Any, where: str) -> None:
    """The same keys at every depth; a list is compared by its first item, an empty one or null not at all."""
    if where == ".by_kind":
        assert_same_form(next(iter(documented.values())), next(iter(real.values())), f"{where}[]")
    elif isinstance(documented, dict) and isinstance(real, dict) and where not in {".header", ".metadata"}:
        assert set(documented) == set(real), where
        for key in real:
            assert_same_form(documented[key], real[key], f"{where}.{key}")
    elif isinstance(documented, list) and isinstance(real, list) and documented and real:
        assert_same_form(documented[0], real[0], f"{where}[]")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.model] if name == "demo" else [])
        for name in COMMANDS
        if name not in FOR_PROGRAMS
    ],
)
def test_the_example_and_the_table_of_fields_have_the_form_that_is_printed(
    name: str, answers: Mapping[str, list[str]]
) -> None:
    section = SAME_FORM.get(name, name)
    result = CliRunner().invoke(cli, answers[name], input="On Thursdays.\n")
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    example = re.search(r"```json\n(.*?)```", SECTIONS[section], re.DOTALL)
    assert example is not None
    assert_same_form(json.loads(example[1]), printed, "")
    assert {field for cell in rows(section, "field") for field in re.findall(r"`(\w+)`", cell)} == set(printed)


def test_the_example_of_an_examination_has_the_form_that_is_printed(answers: Mapping[str, list[str]]) -> None:
    result = CliRunner().invoke(cli, ["status", "--check", *answers["status"][1:]])
    assert result.exit_code == 0, result.output
    example = re.findall(r"```json\n(.*?)```", SECTIONS["status"], re.DOTALL)[1]
    assert_same_form(json.loads(example), json.loads(result.stdout), "")


def test_the_example_of_an_explanation_has_the_form_that_is_printed(answers: Mapping[str, list[str]]) -> None:
    example = re.findall(r"```json\n(.*?)```", SECTIONS["search"], re.DOTALL)[1]
    for more in ((), ("--exclude", "a")):  # a hit, and a topic that is kept away
        result = CliRunner().invoke(cli, ["search", "--explain", *more, *answers["search"][1:]])
        assert result.exit_code == 0, result.output
        assert_same_form(json.loads(example), json.loads(result.stdout)["explanation"], "")


def test_the_examples_of_entries_and_of_what_can_be_restored_have_the_form_that_is_printed(
    answers: Mapping[str, list[str]],
) -> None:
    example = re.findall(r"```json\n(.*?)```", SECTIONS["list"], re.DOTALL)[1]
    result = CliRunner().invoke(cli, ["list", "--entries", *answers["list"][1:]])
    assert_same_form(json.loads(example), json.loads(result.stdout), "")
    assert CliRunner().invoke(cli, answers["forget"]).exit_code == 0
    example = re.findall(r"```json\n(.*?)```", SECTIONS["restore"], re.DOTALL)[0]
    printed = json.loads(CliRunner().invoke(cli, answers["restore"]).stdout)
    assert printed["runs"]
    assert_same_form(json.loads(example), printed, "")


# --- settings


def config_keys() -> set[str]:
    config = Config()
    return {f"{section.name}.{key}" for section in fields(config) for key in getattr(config, section.name)._fields}


def test_every_setting_is_documented_and_every_documented_setting_exists() -> None:
    text = (DOCS / "config.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"^\| `([a-z_]+\.[a-z_]+)` \|", text, re.MULTILINE))
    assert documented == config_keys()


def test_settings_that_a_project_may_make_are_documented_as_such() -> None:
    text = (DOCS / "config.md").read_text(encoding="utf-8")
    allowed = re.search(r"it may only set what can do no harm:(.*?)\. ", text, re.DOTALL)
    assert allowed is not None
    assert set(re.findall(r"`([a-z_.]+)`", allowed[1])) == PROJECT_KEYS
