"""Values of two texts that must be equal for the texts to say one thing."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall.text.facts import Difference, differences, facts, may_be_one

_PIECES = (
    "Deploy on Friday at 15:00|port 5432|周五部署|不要直接推送|three retries|16 GB|2026-03-05|"
    "don't merge without review|"
    "Use tabs|Python 3.11|1,000 rows|下午三点|每天备份|never|开启缓存|50 percent|三次重试|March 5, 2026|两千五百"
)
_SENTENCES = st.lists(st.sampled_from(_PIECES.split("|")), min_size=1, max_size=4).map(", ".join)
_ANY = st.text(max_size=60) | _SENTENCES


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("3 retries", "three retries"),
        ("重试 3 次", "重试三次"),
        ("limit 1,000", "limit 1000"),
        ("16GB of memory", "16 GB of memory"),
        ("上限 1万 条", "上限 10000 条"),
        ("50 percent", "50%"),
        ("百分之五十", "50%"),
        ("25 个", "二十五个"),
        ("2500 元", "两千五百元"),
        ("twenty-five users", "25 users"),
        ("90 minutes", "1.5 hours"),
        ("one retry", "1 retry"),
        ("$5", "5 dollars"),
        ("周五部署", "星期五部署"),
        ("Deploy on Friday", "Deploy Fri"),
        ("每周五发布", "release on Fridays"),
        ("on 2026-03-05", "on March 5, 2026"),
        ("于 2026年3月5日", "on the 5th of March 2026"),
        ("下午3点", "15:00"),
        ("下午三点半", "3:30 pm"),
        ("每天备份", "daily backup"),
        ("Standup every morning at 9:30", "Daily standup at 9:30 am"),
        ("第三季度", "Q3"),
        ("don't push", "do not push"),
        ("禁止推送", "不要推送"),
        ("not only fast", "fast"),
        ("Don't merge without review.", "merge with review"),
        ("不得不用", "必须用"),
        ("不能没有评审", "要有评审"),
        ("Use `pnpm`", "use pnpm"),
        ("GitHub", "github"),
        ("call `parse()` first", "call parse first"),
        ("用户不喜欢表情", "用户讨厌表情"),
        ("The user doesn't like emojis", "The user dislikes emojis"),
    ],
)
def test_values_written_in_another_way_are_equal(first: str, second: str) -> None:
    assert differences(first, second) == frozenset()


@pytest.mark.parametrize(
    ("first", "second", "kind"),
    [
        ("Python 3.11", "Python 3.12", Difference.NUMBER),
        ("Python 3.1", "Python 3.10", Difference.NUMBER),
        ("16 GB", "32 GB", Difference.NUMBER),
        ("16 GB", "16 MB", Difference.NUMBER),
        ("5 minutes", "5 hours", Difference.NUMBER),
        ("3天", "3周", Difference.NUMBER),
        ("端口 5432", "端口 6543", Difference.NUMBER),
        ("三个副本", "五个副本", Difference.NUMBER),
        ("一次批准", "两次批准", Difference.NUMBER),
        ("周五", "周四", Difference.DATE),
        ("Friday", "Thursday", Difference.DATE),
        ("in March", "in April", Difference.DATE),
        ("三月上线", "4月上线", Difference.DATE),
        ("上午3点", "下午3点", Difference.DATE),
        ("2026-03-05", "2026-03-06", Difference.DATE),
        ("daily", "weekly", Difference.DATE),
        ("use X", "don't use X", Difference.NEGATION),
        ("use X", "avoid X", Difference.NEGATION),
        ("no longer used", "used", Difference.NEGATION),
        ("可以提交", "不可以提交", Difference.NEGATION),
        ("用 npm", "别用 npm", Difference.NEGATION),
        ("需要登录", "无需登录", Difference.NEGATION),
        ("Use spaces, not tabs", "Use tabs, not spaces", Difference.NEGATION),
        ("用空格，不要用制表符", "用制表符，不要用空格", Difference.NEGATION),
        ("Never force push; rebase", "Never force push; never rebase", Difference.NEGATION),
        ("config.py", "config.yml", Difference.CODE),
        ("--force", "--no-force", Difference.CODE),
        ("userId", "userID", Difference.CODE),
        ("src/main.py", "src/test.py", Difference.CODE),
        ("@alice", "@bob", Difference.CODE),
        ("a@x.com", "b@x.com", Difference.CODE),
        ("https://a.io/x", "https://a.io/y", Difference.CODE),
        ("DB_HOST", "DB_PORT", Difference.CODE),
        ("`npm`", "`yarn`", Difference.CODE),
        ("/etc/a", "/etc/b", Difference.CODE),
        ("use tabs", "use spaces", Difference.OPPOSITE),
        ("开启缓存", "关闭缓存", Difference.OPPOSITE),
        ("before the merge", "after the merge", Difference.OPPOSITE),
        ("提交前", "提交后", Difference.OPPOSITE),
        ("it is turned on", "it is turned off", Difference.OPPOSITE),
        ("must run", "may run", Difference.OPPOSITE),
        ("用户喜欢表情", "用户不喜欢表情", Difference.OPPOSITE),
    ],
)
def test_another_value_is_named_by_its_kind(first: str, second: str, kind: Difference) -> None:
    assert differences(first, second) == {kind}
    assert not may_be_one(first, second)


@pytest.mark.parametrize(
    "text",
    [
        "特别快",
        "区别在于速度",
        "别名是 pg",
        "无论如何",
        "不仅快",
        "差不多",
        "不错",
        "不断更新",
        "不超过三次",
        "要不要发布",
        "未来计划",
        "not only fast",
        "no-op",
    ],
)
def test_words_that_only_look_like_negation_are_none(text: str) -> None:
    assert not facts(text).negated


@pytest.mark.parametrize(
    "text", ["万一失败", "千万小心", "统一处理", "第一次", "一起做", "一个用户", "one user", "一旦"]
)
def test_numerals_that_are_parts_of_words_are_no_numbers(text: str) -> None:
    assert facts(text).numbers == frozenset()


def test_prose_has_no_code_words() -> None:
    assert facts("Client/server and yes/no, e.g. at 3 p.m. (re-run the end-to-end tests).").codes <= {
        "client/server",
        "yes/no",
    }
    assert facts("Client and server, e.g. at 3 p.m. (re-run the end-to-end tests).").codes == frozenset()


def test_numbers_inside_of_a_code_word_are_its_own() -> None:
    assert facts("see logs/2026-03-05.txt").dates == frozenset()


@given(_ANY, _ANY)
def test_the_order_of_two_texts_does_not_matter(first: str, second: str) -> None:
    assert differences(first, second) == differences(second, first)


@given(_ANY)
def test_a_text_does_not_differ_from_itself(text: str) -> None:
    assert may_be_one(text, text)


@given(_SENTENCES)
def test_blanks_case_width_and_end_marks_do_not_matter(text: str) -> None:
    wide = "".join(
        chr(ord(char) + 0xFEE0) if char in string.ascii_letters + string.digits + "," else char for char in text
    )
    for other in (f"  {text}\n", text.replace(" ", "  "), text.upper(), text.lower(), f"{text}。", f"{text}!", wide):
        assert differences(text, other) == frozenset()


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "1,",
        "1.",
        "一",
        "one ",
        "不",
        "`",
        "don't ",
        "/a",
        "a.",
        "a_",
        "A",
        "a-",
        "1-",
        "=",
        "(",
        "$",
        "周",
        "3月",
        "@",
        "a=",
        "~",
        "[",
        "million ",
        "0a",
        "a:1",
    ],
)
@pytest.mark.timeout(30)
def test_a_long_text_of_anything_is_read(piece: str) -> None:
    text = piece * (100_000 // len(piece))
    assert may_be_one(text, text)
