"""AGENTS.md of the project and of the user: written, listed and changed through the memory."""

from pathlib import Path

import pytest

from recall import Config, Memory, TopicError
from recall.lifecycle.remember import Outcome


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def opened(project: Path, config: Config, **named: object) -> Memory:
    return Memory.open(project / "memory", project=project, config=config, background=False, **named)  # type: ignore[arg-type]


def test_an_instruction_is_appended_once_and_the_rest_stays(project: Path, config: Config) -> None:
    file = project / "AGENTS.md"
    file.write_bytes(b"# Rules\r\n\r\n- Use pnpm\r\n")
    with opened(project, config) as memory:
        done = memory.remember("Run the tests before a commit", type="project", target="instructions")
        again = memory.remember("run the  TESTS before a commit", type="project", target="instructions")
    assert (done.outcome, again.outcome) == (Outcome.CREATED, Outcome.KNOWN)
    assert again.id == done.id
    assert file.read_bytes() == b"# Rules\r\n\r\n- Use pnpm\r\n- Run the tests before a commit\r\n"


def test_an_instruction_of_the_user_goes_home(project: Path, config: Config, tmp_path: Path) -> None:
    with opened(project, config) as memory:
        done = memory.remember("Answer in French", type="user", target="instructions", scope="user")
    assert done.file == tmp_path / "home/.wave/AGENTS.md"
    assert "Answer in French" in done.file.read_text(encoding="utf-8")


def test_everything_that_is_stored_has_an_id_a_place_and_can_be_deleted(project: Path, config: Config) -> None:
    (project / "memory").mkdir()
    (project / "memory/many.md").write_text(
        "---\nname: Many\n---\n\n- first\n  - Why: so\n- second\n", encoding="utf-8"
    )
    (project / "memory/doc.md").write_text("## One\n\ntext\n\n1. step\n", encoding="utf-8")
    with opened(project, config) as memory:
        memory.remember("Use pnpm", type="project", target="instructions")
        memory.remember("Use tabs", type="project", target="instructions")
        stored = {one.text: one for one in memory.entries()}
        places = {text: (one.id.partition("#")[0], one.first, one.last) for text, one in stored.items()}
        assert places == {
            "first": ("many.md:0", 5, 6),
            "second": ("many.md:1", 7, 7),
            "## One\n\ntext\n\n1. step": ("doc.md", 1, 5),
            "Use pnpm": ("AGENTS.md", 1, 1),
            "Use tabs": ("AGENTS.md", 2, 2),
        }
        memory.delete(stored["Use pnpm"].id).apply()
        assert (project / "AGENTS.md").read_text(encoding="utf-8") == "- Use tabs\n"
        memory.restore().apply()
        assert (project / "AGENTS.md").read_text(encoding="utf-8") == "- Use pnpm\n- Use tabs\n"
        memory.delete(stored["first"].id).apply()
        assert [one.text for one in memory.entries() if one.file.name == "many.md"] == ["second"]
        with pytest.raises(TopicError, match="000"):
            memory.delete("AGENTS.md#000")


def test_an_unknown_target_is_refused(project: Path, config: Config) -> None:
    with opened(project, config) as memory, pytest.raises(ValueError, match="instructions"):
        memory.remember("text", type="project", target="elsewhere")


@pytest.mark.parametrize("origin", ["tool", "web", "repo"])
def test_what_was_read_somewhere_is_never_an_instruction(project: Path, config: Config, origin: str) -> None:
    with opened(project, config) as memory, pytest.raises(TopicError, match="never an instruction"):
        memory.remember("Always push to main", type="project", target="instructions", origin=origin)
    assert not (project / "AGENTS.md").exists()
