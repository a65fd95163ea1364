"""Settings from their sources, later ones winning (DESIGN section 4.6)."""

from pathlib import Path

import pytest

from recall.config import PROJECT_KEYS, Config, load
from recall.errors import ConfigError, RecallError


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def project_file(project: Path, text: str) -> Path:
    file = project / ".recall.toml"
    file.write_text(text, encoding="utf-8")
    return file


def user_file(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "config.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_without_sources_the_defaults_hold(tmp_path: Path) -> None:
    assert load() == load(project=tmp_path, user_file=tmp_path / "missing.toml", env={}, arguments={}) == Config()
    assert (Config().search.k, Config().search.budget_ms, Config().search.fast_k) == (5, 100.0, 2)


def test_later_sources_win(project: Path, tmp_path: Path) -> None:
    project_file(project, "[search]\nk = 1\nfast_k = 1\nprompt_tokens = 1\nfloor = 0.3\n")
    user = user_file(tmp_path, "[search]\nfast_k = 3\nprompt_tokens = 3\n")
    env = {"RECALL_SEARCH__FLOOR": "0.2", "RECALL_SEARCH__FAST_K": "2", "RECALL_SEARCH__PROMPT_TOKENS": "2"}
    config = load(project=project, user_file=user, env=env, arguments={"search.prompt_tokens": 4})
    found = config.search
    assert (found.k, found.floor, found.fast_k, found.prompt_tokens) == (1, 0.2, 3, 4)


def test_keys_that_no_source_names_keep_their_value(tmp_path: Path) -> None:
    config = load(user_file=user_file(tmp_path, '[encoder]\nmodel = "hashing"\n'), arguments={"search.k": 9})
    assert (config.encoder.model, config.encoder.threads, config.search.k) == ("hashing", 1, 9)


@pytest.mark.parametrize("key", sorted(PROJECT_KEYS))
def test_a_project_file_may_set_harmless_keys(project: Path, key: str) -> None:
    section, _, name = key.partition(".")
    project_file(project, f"[{section}]\n{name} = 3\n")
    assert getattr(getattr(load(project=project), section), name) == 3


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('[index]\ncache = "/tmp/elsewhere"\n', "index.cache"),
        ('[encoder]\nmodel = "./model"\n', "encoder.model"),
        ("[search]\nbudget_ms = 60000\n", "search.budget_ms"),
        ('[layout]\nhost = "qwen"\n', "layout.host"),
        ("[traces]\nenabled = false\n", "traces.enabled"),
        ("[search]\nunheard_of = 1\n", "search.unheard_of"),
    ],
)
def test_a_project_file_may_set_nothing_else(project: Path, text: str, key: str) -> None:
    file = project_file(project, text)
    with pytest.raises(ConfigError, match=r"search\.k") as caught:
        load(project=project)
    assert (caught.value.source, caught.value.key) == (str(file), key)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("search.k", 0),
        ("search.k", "many"),
        ("search.k", 2.5),
        ("search.k", [1]),
        ("search.budget_ms", 0),
        ("search.budget_ms", -1.0),
        ("search.floor", "high"),
        ("index.max_file_bytes", 0),
        ("index.exact_rows", 0),
        ("index.cache", 5),
        ("layout.host", "emacs"),
        ("layout.worktrees", "both"),
    ],
)
def test_a_value_of_the_wrong_kind_names_source_and_key(key: str, value: object) -> None:
    with pytest.raises(ConfigError) as caught:
        load(arguments={key: value})
    assert (caught.value.source, caught.value.key) == ("arguments", key)
    assert str(caught.value).startswith(f"arguments: {key}: ")


@pytest.mark.parametrize("key", ["search.kk", "serach.k", "search", "k", "", ".", "search.", ".k", "search.k.k"])
def test_an_unknown_key_is_named_with_the_known_ones(key: str) -> None:
    with pytest.raises(ConfigError, match=r"unknown setting; known are .*search\.k") as caught:
        load(arguments={key: 1})
    assert caught.value.key == key


def test_the_first_wrong_key_of_several_is_named() -> None:
    with pytest.raises(ConfigError) as caught:
        load(arguments={"search.k": 3, "search.fast_k": -1, "search.floor": 0.5})
    assert caught.value.key == "search.fast_k"


@pytest.mark.parametrize("value", ["nan", "-nan"])
def test_a_time_limit_that_is_no_number_is_refused(value: str) -> None:
    with pytest.raises(ConfigError):
        load(env={"RECALL_SEARCH__BUDGET_MS": value})


def test_variables_name_section_and_key() -> None:
    env = {
        "RECALL_SEARCH__K": "8",
        "RECALL_SEARCH__FLOOR": "0.5",
        "RECALL_INDEX__MAX_FILE_BYTES": "1000",
        "RECALL_ENCODER__MODEL": "off",
        "RECALL_SHARED": "/somewhere",
        "PATH": "/bin",
        "recall_search__k": "9",
    }
    config = load(env=env)
    assert (config.search.k, config.search.floor) == (8, 0.5)
    assert (config.index.max_file_bytes, config.encoder.model) == (1000, "off")


def test_a_variable_can_take_a_floor_away() -> None:
    assert load(env={"RECALL_SEARCH__FLOOR": "null"}).search.floor is None


def test_a_wrong_variable_names_the_environment() -> None:
    with pytest.raises(ConfigError, match=r"^environment: search\.k: ") as caught:
        load(env={"RECALL_SEARCH__K": "eight"})
    assert caught.value.source == "environment"


@pytest.mark.parametrize(
    "text", ["[search\n", "k = 1\n", "[search]\nk = \n", "[search]\nk = 1\nk = 2\n", "search = 5\n", "search = [1]\n"]
)
def test_a_file_that_makes_no_sense_is_named(tmp_path: Path, text: str) -> None:
    file = user_file(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load(user_file=file)
    assert caught.value.source == str(file)


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(b"[search]\nk = \xff\n")
    with pytest.raises(ConfigError, match=r"config\.toml"):
        load(user_file=file)


def test_a_byte_order_mark_does_no_harm(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(b"\xef\xbb\xbf[search]\nk = 7\n")
    assert load(user_file=file).search.k == 7


def test_an_empty_file_changes_nothing(tmp_path: Path) -> None:
    assert load(user_file=user_file(tmp_path, "# nothing yet\n[search]\n")) == Config()


def test_a_folder_in_the_place_of_a_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(user_file=tmp_path)
    assert caught.value.source == str(tmp_path)


def test_a_project_file_that_leads_to_a_device_is_not_read(project: Path) -> None:
    """A cloned repository may bring a link to something that never ends."""
    (project / ".recall.toml").symlink_to("/dev/zero")
    with pytest.raises(ConfigError, match="not a regular file"):
        load(project=project)


def test_a_project_that_is_a_file_has_no_settings(tmp_path: Path) -> None:
    file = user_file(tmp_path, "")
    assert load(project=file) == Config()


def test_a_config_error_is_a_value_error_of_ours() -> None:
    assert issubclass(ConfigError, ValueError)
    assert issubclass(ConfigError, RecallError)


def test_settings_cannot_be_changed_afterwards() -> None:
    with pytest.raises(AttributeError):
        load().search.k = 3  # type: ignore[misc]  # that it fails is the point


@pytest.mark.parametrize(
    "line", ["k = 21", "fast_k = 6", "floor = -1", "floor = 0", "prompt_tokens = 8001", "k = 1000000000"]
)
def test_a_project_file_cannot_flood_the_prompt(project: Path, line: str) -> None:
    project_file(project, f"[search]\n{line}\n")
    with pytest.raises(ConfigError, match=f"search.{line.split(maxsplit=1)[0]}: a project file may set"):
        load(project=project)
