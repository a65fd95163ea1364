"""What a new fact is to an old one. Cosines are such as the shipped model gives to such pairs."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall.index.onnx import OnnxEncoder
from recall.lifecycle.duplicates import LONGEST, Verdict, judge, judging

SAME, RESTATED, CHANGED, OTHER = Verdict

_HAN = re.compile("[\u3400-\u9fff]")


def _judged(old: str, new: str) -> Verdict:
    across = bool(_HAN.search(old)) != bool(_HAN.search(new))
    return judge(new, old, 0.45 if across else 0.85)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The API listens on port 8080", "  the API listens on port 8080."),
        ("数据库端口是 5432", "数据库端口是5432。"),
        ("提交信息用中文写", "提交信息用中文写！"),
        ("Use `pnpm` here", "use pnpm here"),
        ("- Never push to main", "Never push to main!"),
        ("ＡＰＩ 密钥", "API密钥"),
    ],
)
def test_what_is_equal_but_for_case_and_marks_is_the_same(old: str, new: str) -> None:
    assert _judged(old, new) is SAME


def test_identifiers_that_differ_in_case_are_not_the_same() -> None:
    assert _judged("Call getUserId first", "Call getUserID first") is OTHER
    assert _judged("use now here", "use nowhere") is not SAME
    assert _judged("run it with -v", "run it with v") is not SAME


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The retry limit is three attempts", "The retry limit is 3 attempts"),
        ("Deploys happen every Tuesday", "We deploy on Tuesdays"),
        ("Alice owns the billing service", "The billing service is owned by Alice"),
        ("Use pnpm for installing packages", "Packages are installed with pnpm"),
        ("The payment provider is Stripe", "Stripe is our payment provider"),
        ("Never use eval", "Don't use eval"),
        ("Use spaces, not tabs", "Use spaces instead of tabs"),
        ("Before merging, tests must pass", "Tests must pass before merging"),
        ("缓存使用 Redis", "我们用 Redis 做缓存"),
        ("每周五下午发布版本", "版本在每周五下午发布"),
        ("张伟负责支付模块", "支付模块由张伟负责"),
        ("不要在周五部署", "禁止在周五部署"),
        ("日志保留 14 天", "Logs are kept for 14 days"),
        ("Errors are reported to Sentry", "错误上报到 Sentry"),
        ("Server alpha has 16 GB of RAM", "服务器 alpha 有 16GB 内存"),
    ],
)
def test_the_same_said_otherwise_is_restated(old: str, new: str) -> None:
    assert _judged(old, new) is RESTATED
    assert _judged(new, old) is RESTATED


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Deploys happen on Tuesday", "Deploys moved to Thursday"),
        ("数据库端口是 5432", "数据库端口改为 6543"),
        ("Use pnpm for this repo", "Use yarn for this repo"),
        ("Force-pushing to main is allowed", "Force-pushing to main is not allowed"),
        ("server A has 16 GB", "server A has 32 GB"),
        ("Caching is enabled in production", "Caching is disabled in production"),
        ("The user's name is Maria", "The user's name is Marina"),
        ("The payment provider is Stripe", "The payment provider changed from Stripe to Adyen"),
        ("Bug reports go to Linear", "Bug reports go to Jira instead of Linear"),
        ("Use spaces, not tabs", "Use tabs, not spaces"),
        ("Alice owns billing", "Billing is now owned by Bob"),
        ("张伟负责支付模块", "支付模块现在由王芳负责"),
        ("The team standup is at 9:30", "The team standup is at 10:00"),
        ("单元测试需要三分钟", "单元测试需要十分钟"),
        ("不要在周五部署服务", "可以在周五部署服务"),
        ("默认主题是深色", "默认主题是浅色"),
        ("日志保留 14 天", "Logs are kept for 30 days"),
        ("The default theme is dark", "默认主题是浅色"),
    ],
)
def test_another_value_of_the_same_matter_is_a_change(old: str, new: str) -> None:
    assert _judged(old, new) is CHANGED


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("server A has 16 GB", "server B has 32 GB"),
        ("server A has 16 GB", "server B has 16 GB"),
        ("Team A depends on Team B", "Team B depends on Team A"),
        ("甲组依赖乙组发版", "乙组依赖甲组发版"),
        ("Convert dollars to euros", "Convert euros to dollars"),
        (
            "The parser is written in Rust and the formatter in Go",
            "The parser is written in Go and the formatter in Rust",
        ),
        (
            "The limit is 5 GB for free and 50 GB for paying users",
            "The limit is 50 GB for free and 5 GB for paying users",
        ),
        ("Deploy on Friday and freeze on Monday", "Deploy on Monday and freeze on Friday"),
        ("Alice owns the billing service", "Alice owns the search service"),
        ("Alice owns billing", "Alice now owns search"),
        ("User prefers tabs", "User prefers tabs in Go"),
        ("The rate limit is 100 requests", "The rate limit is 100 requests for guests and 1000 for users"),
        ("In 2024 revenue was 5 million", "In 2025 revenue was 6 million"),
        ("Issue 12 is fixed", "Issue 13 is fixed"),
        ("Step 2 uses Docker", "Step 3 uses Docker"),
        ("Python 3.11 is supported", "Python 3.12 is supported"),
        ("PostgreSQL is fast", "MySQL is fast"),
        ("The PostgreSQL container needs 2 GB", "The MySQL container needs 2 GB"),
        ("User is learning Rust", "User is learning Spanish"),
        ("User speaks English", "User speaks Chinese"),
        ("User used to work at Siemens", "User works at Siemens"),
        ("The user prefers tabs", "Maybe the user prefers tabs"),
        ("The API may be slow", "The API is slow"),
        ("All tests run in parallel", "Some tests run in parallel"),
        ("Admins can delete projects", "Only admins can delete projects"),
        ("Tests must pass before merging", "Tests may fail before merging"),
        ("The minimum timeout is 5 seconds", "The maximum timeout is 50 seconds"),
        ("The staging URL is https://a.example.com", "The production URL is https://b.example.com"),
        ("The client library retries", "The server library retries"),
        ("Do not edit files under generated/", "Do not edit files under vendor/"),
        ("周一开会", "周五开会"),
        ("我喜欢简短的回答", "他喜欢简短的回答"),
        ("默认主题是深色", "默认语言是中文"),
        ("The default theme is dark", "默认语言是中文"),
        ("第二步用 Docker", "第三步用 Docker"),
        ("只有管理员能删除项目", "管理员能删除项目"),
        ("The function parse_date ignores the time zone", "The function parse_date ignores the locale"),
        ("Code size is limited to 5 MB", "File size is limited to 5 MB"),
        ("👍 for tabs", "👎 for tabs"),
        ("!!!", "???"),
        ("The limit is 5 GB for 3 users", "The limit is 7 GB for users"),
        ("I like outdoor activities", "Do you like outdoor activities?"),
        ("Switched from TSLint to ESLint", "Note: switched from TSLint to ESLint"),
        ("The database is slow", "The database is encrypted"),
        ("My boss is Carol", "My boss is strict"),
        ("The license is MIT", "The license is displayed in the footer"),
        ("我的经理是王芳", "我的经理是素食者"),
        ("The client provides the token", "The client receives the token"),
        ("Never store user names in logs", "Never store names in logs"),
        ("删除用户文件前询问", "删除文件前询问"),
        ("The job starts the worker", "The job runs the worker"),
        ("Fixed a crash in the vim plugin", "Fixed a crash in the emacs plugin"),
        ("The wiki page on Kafka is outdated", "The wiki page on RabbitMQ is outdated"),
        ("The docs are in English", "The docs are now in Confluence"),
        ("My account manager is Ruth", "My account manager is French"),
        ("Invoices are sent to Acme", "Invoices are sent by Acme"),
        ("Alert when disk usage is above 80%", "Alert when disk usage is below 80%"),
        ("Alice reviews Bob", "Alice is reviewed by Bob"),
        ("The crash causes the restart", "The crash is caused by the restart"),
        ("Before deploying, run the tests", "Deploy before running the tests"),
        ("Run the tests before a release", "运行测试之前发布"),
        ("Manual backups are encrypted", "Automatic backups are encrypted"),
        ("Alice reviews code on Monday", "Alice reviews code on Thursday"),
        ("The key is stored in Vault", "The key was stored in Vault"),
        ("Room 5 is free on Monday", "Room 5 is free on Tuesday"),
        ("Version 3 of the app is stable", "Version 4 of the app is stable"),
        ("任务在 MySQL 上运行", "任务在 Oracle 上运行"),
        ("Port 80 is blocked by us", "Port 443 is blocked by us"),
        ("The user moved house in 2019", "The user moved house in 2021"),
        ("# Deployment on AWS", "# Deployment on GCP"),
        ("Should the API use Redis for sessions?", "Should the API use Memcached for sessions?"),
        ("Standup is at 9:30", "Standup is at 10:00"),
        ("", "Use tabs"),
    ],
)
def test_what_may_be_true_beside_it_is_another_fact(old: str, new: str) -> None:
    assert _judged(old, new) is OTHER
    assert _judged(new, old) is OTHER


def test_one_new_text_beside_many_is_judged_as_beside_each_alone() -> None:
    new, olds = (
        "server A has 32 GB",
        ["server A has 32 GB.", "server A has 16 GB", "server B has 32 GB", "hi " * LONGEST],
    )
    judged = judging(new)
    assert [judged(old, 0.85) for old in olds] == [judge(new, old, 0.85) for old in olds]
    assert [judged(old, 0.85) for old in olds] == [SAME, CHANGED, OTHER, OTHER]


def test_words_alone_do_not_convince_where_the_vectors_are_far_apart() -> None:
    assert judge("We deploy on Tuesdays", "Deploys happen every Tuesday", 0.5) is OTHER
    assert judge("server A has 32 GB", "server A has 16 GB", 0.3) is OTHER


def test_a_text_of_many_facts_is_the_same_to_the_letter_only() -> None:
    long = "The API listens on port 8080. " * (LONGEST // 20)
    assert judge(long, long, 1.0) is SAME
    assert judge(long + " Yes, always so.", long, 1.0) is OTHER


@given(st.text(max_size=80), st.text(max_size=80), st.floats(-1, 1))
def test_any_two_texts_are_judged_and_sameness_has_no_direction(one: str, other: str, cosine: float) -> None:
    assert (judge(one, other, cosine) is SAME) == (judge(other, one, cosine) is SAME)
    assert judge(one, one, cosine) is SAME


@pytest.mark.model
def test_of_six_restatements_and_a_negation_two_facts_stay() -> None:
    """Complaints I48: one fact was kept thirteen times, and its negation was merged away."""
    said = [
        "Deploys happen every Tuesday",
        "We deploy every Tuesday.",
        "Deployments happen on Tuesdays",
        "every Tuesday we deploy",
        "Deploys are on Tuesdays",
        "Deploys happen on Tuesday",
        "Deploys never happen on Tuesday",
    ]
    encoder = OnnxEncoder()
    vectors = encoder.encode_documents(said)
    verdicts = [judge(text, said[0], float(vector @ vectors[0])) for text, vector in zip(said, vectors, strict=True)]
    assert verdicts == [SAME, *[RESTATED] * 5, CHANGED]
