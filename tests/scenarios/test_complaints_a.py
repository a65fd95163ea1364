"""Complaints from the field, group A: an index and the words that it was made of."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from recall import Config, Memory
from recall.config import EncoderConfig
from recall.index import catalog, postings

Write = Callable[..., Path]
Ask = Callable[[str, str], list[list[str]]]

MODELS = ["off", pytest.param("onnx", marks=pytest.mark.model)]
"""Words alone, and words with the shipped model."""


@pytest.fixture
def ask(opened: Callable[..., Memory], config: Config, with_model: Config) -> Ask:
    """Ids that a recall finds, and those that a prefetch delivers first."""

    def asked(query: str, model: str) -> list[list[str]]:
        settings = with_model if model == "onnx" else replace(config, encoder=EncoderConfig(model=model))
        memory = opened(config=settings)
        memory.reindex()
        delivery = memory.prefetch(query).first()
        assert delivery is not None
        return [[hit.topic.id for hit in found.hits] for found in (memory.recall(query), delivery.recall)]

    return asked


@pytest.mark.parametrize("model", MODELS)
def test_a01_a_phrase_inside_a_chinese_sentence_is_found(ask: Ask, write: Write, model: str) -> None:
    write("zh.md", "今天玩成语接龙游戏")
    others = ("今天去公园散步了", "成都的语言学校明天开学", "接下来升级龙芯的驱动", "The game starts at noon.")
    for number, text in enumerate(others):
        write(f"{number}.md", text)
    for found in ask("成语接龙", model):
        assert found[0] == "zh.md"


@pytest.mark.parametrize("model", MODELS)
def test_a02_the_one_file_with_the_whole_phrase_comes_before_many_with_its_common_half(
    ask: Ask, write: Write, model: str
) -> None:
    for number in range(20):
        write(f"{number:02}.md", f"第{number}次回访时用户说页面打开得太慢，于是我们给用户换了一台服务器。")
    write("phrase.md", "登录之后先核对用户身份，再显示账单。")
    for found in ask("用户身份", model):
        assert found[0] == "phrase.md"


@pytest.mark.parametrize("query", ["微信读书 书架 阅读偏好", "微信读书、书架和阅读偏好"])
@pytest.mark.parametrize("model", MODELS)
def test_a03_of_several_terms_none_is_required(ask: Ask, write: Write, model: str, query: str) -> None:
    write("a.md", "用户用微信读书看书，每天半小时。")
    write("b.md", "用户的书架按作者排序。")
    write("c.md", "用户的阅读偏好是科幻和历史。")
    write("d.md", "数据库在周二凌晨迁移。")
    recalled, _ = ask(query, model)
    assert sorted(recalled) == ["a.md", "b.md", "c.md"]


@pytest.mark.parametrize("model", MODELS)
def test_a04_a_word_of_two_characters_is_found(ask: Ask, write: Write, model: str) -> None:
    write("a.md", "机房的设备清单每季度核对一次")
    write("b.md", "会议室的投影仪坏了")
    write("c.md", "预备队周五集合，设施还没到")  # holds both characters, and not the word
    for found in ask("设备", model):
        assert found == ["a.md"]


def test_a06_an_index_of_another_tokenizer_version_is_made_anew_and_never_mixed(
    opened: Callable[..., Memory], write: Callable[..., Path]
) -> None:
    write("a.md", "今天玩成语接龙游戏")
    with pytest.MonkeyPatch.context() as older:
        older.setattr(catalog, "FORMAT", catalog.FORMAT - 1)
        older.setattr(postings, "terms", lambda text: Counter(f"v1-{word}" for word in text.split()))
        assert opened().reindex().added == ("a.md",)
    memory = opened()
    assert memory.reindex().added == ("a.md",)
    write("b.md", "另一个文件说成语接龙")
    found = memory.recall("成语接龙")
    assert sorted(hit.topic.id for hit in found.hits) == ["a.md", "b.md"]
    assert all(hit.lexical for hit in found.hits)
