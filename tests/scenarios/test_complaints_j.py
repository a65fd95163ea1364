"""Complaints from the field, group J: precision, trust, secrets, age."""

import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from recall import Config, Memory, Strategy
from recall.config import EncoderConfig
from recall.search.explanation import Silence

Write = Callable[..., Path]
Open = Callable[..., Memory]
Cli = Callable[..., "subprocess.CompletedProcess[str]"]

NOW = 1_773_576_000.0
DAY = 86_400.0

FACTS = (
    "我们周二发布上线，周五不发布。", "数据库迁移只在凌晨两点执行。", "回答先说结论，再说理由。", "发票按分四舍五入。",
    "用户在上海办公，时区是东八区。", "签名密钥每九十天轮换一次。", "客户反馈先进入 triage。", "用户不喜欢弹窗。",
    "冷库温度超过零下十八度就报警。", "Latency is shown on the Grafana board.",
    "The user drinks tea without milk.", "Integration tests run against a real Postgres.",
    "The staging cluster lives in Frankfurt.", "Commit subjects are imperative and short.",
    "The mobile app works offline for three days.", "Feature flags are removed after one release.",
    "The on-call phone rings on Mondays.",
)  # fmt: skip

NONSENSE = (
    "xqzv blorf wug 93841",
    "鳜鬲龘靐齉",
    "哔哩啪啦咕噜咕噜",
    "colorless green ideas sleep furiously",
    "🦄🦄🦄",
    "!!! ??? 12345",
)

# Written in two halves, so that no scanner of repositories takes them for real.
KEYS = (
    "sk-" + "ant-api03-aB3dE6gH9jK2mN5pQ8sT1vW4-aB3dE6gH9jK2mN5pQ8sT1vW4AA",
    "sk-" + "sp-a1b2c3d4e5f6.g7h8i9j0k1l2",  # the half behind the dot counts
    "3f9a1c07b2d84e65" * 2 + ".aB3dE6gH9jK2mN5p",  # Zhipu
    "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a",
    "AKIA" + "Q3EGRIZ7XTK5UVW2",
)
PROSE = "Ask for an API key before you call the service; API key 放在 1Password 里，密码是必填项。"


@pytest.fixture
def facts(write: Write) -> None:
    for number, fact in enumerate(FACTS):
        write(f"{number:02}.md", fact)


@pytest.mark.model
@pytest.mark.usefixtures("facts")
def test_j52_nonsense_brings_nothing_however_many_facts_there_are(opened: Open, with_model: Config) -> None:
    memory = opened(config=with_model)
    memory.reindex()
    assert memory.recall("什么时候可以发布上线？").hits[0].topic.id == "00.md"
    for query in NONSENSE:
        found = memory.recall(query)
        assert (found.hits, found.strategy, found.prompt) == ((), Strategy.NONE, ""), query
        assert memory.prefetch(query).first() is None, query
        explained = memory.explain(query)
        assert explained.silence is Silence.NO_SHARED_WORD
        assert "the nearest is" in explained.why_nothing()


@pytest.mark.usefixtures("facts")
def test_j52_nonsense_puts_not_one_token_into_a_prompt_without_a_model_either(cli: Cli) -> None:
    off = ("--prompt", "--set", "encoder.model=off")
    assert "09.md" in cli("search", "Grafana", *off).stdout
    for query in NONSENSE[:2]:
        done = cli("search", query, *off)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("key", KEYS)
def test_j54_no_half_of_a_secret_in_a_memory_comes_back_from_a_recall(opened: Open, write: Write, key: str) -> None:
    write("a.md", f"The deployment service is called with {key} from the build machine.")
    memory = opened()
    delivery = memory.prefetch("deployment service").first()
    assert delivery is not None
    hit = memory.explain("deployment service").recall.hits[0]
    shown = (
        memory.recall("deployment service").prompt,
        delivery.recall.prompt,
        " ".join(hit.explain()),
        hit.evidence.passage if hit.evidence else "",
    )
    for text in shown:
        assert "The deployment service is called with" in text
        assert "[masked " in text
        assert not [part for part in (key, *key.split("."), key[-8:]) if part in text]


def test_j54_prose_about_keys_comes_back_as_it_was_written(opened: Open, write: Write) -> None:
    write("a.md", PROSE)
    assert PROSE in opened().recall("API key").prompt


def test_j54_what_is_kept_of_a_question_holds_no_secret(opened: Open, write: Write, config: Config) -> None:
    write("a.md", "The deployment service is called from the build machine.")
    memory = opened(config=replace(config, encoder=EncoderConfig(model="off")))  # finds it whatever else is asked
    for key in KEYS:
        assert memory.recall(f"deployment service with {key}").hits
    asked = [trace.query for trace in memory.traces()]
    assert len(asked) == len(KEYS)
    assert not [key for key in KEYS for query in asked if key in query or key[-8:] in query]


def test_j55_a_memory_that_is_recalled_grows_no_younger(opened: Open, write: Write) -> None:
    file = write("a.md", "The staging cluster lives in Frankfurt.")
    os.utime(file, (NOW - 60 * DAY, NOW - 60 * DAY))
    memory = opened(clock=lambda: NOW)
    for _ in range(3):  # reading it does not reset its age
        found = memory.recall("staging cluster")
        assert found.hits[0].topic.mtime == NOW - 60 * DAY
        assert "Saved 60 days ago." in found.prompt
        assert "This memory is 60 days old." in found.prompt
        delivery = memory.prefetch("staging cluster").first()
        assert delivery is not None
        assert "This memory is 60 days old." in delivery.recall.prompt
        memory.explain("staging cluster")
        memory.topic("a")
        memory.reindex(full=True)
    assert file.stat().st_mtime == NOW - 60 * DAY
    file.write_text("The staging cluster lives in Zurich.", encoding="utf-8")
    os.utime(file, (NOW, NOW))  # somebody wrote it anew
    assert "days old" not in memory.recall("staging cluster").prompt


def test_j55_a_date_that_a_memory_states_counts_more_than_a_fresh_checkout_of_its_file(
    opened: Open, root: Path
) -> None:
    file = root / "a.md"
    file.write_text(
        "---\nname: a\nmodified: 2026-01-14\n---\nThe staging cluster lives in Frankfurt.\n", encoding="utf-8"
    )
    os.utime(file, (NOW, NOW))
    prompt = opened(clock=lambda: NOW).recall("staging cluster").prompt
    assert "This memory is 60 days old." in prompt
