"""What the texts of the best few change: phrases, parts of a list, one fact told many times; with the explanation."""

import os
from collections.abc import Mapping

import pytest

from recall.index.collection import Collection
from recall.index.flat import products
from recall.index.hashing import HashingEncoder
from recall.index.onnx import OnnxEncoder
from recall.index.snapshot import Snapshot
from recall.search.explain import Question, explain
from recall.search.explanation import Rejected, Why
from recall.search.retriever import ALL, Hybrid, fitting
from recall.search.types import Hit, Recall, Strategy
from recall.search.weights import fit

ENCODER = HashingEncoder(256)


def written(index: Collection, notes: Mapping[str, str], *, mtime: int = 1000) -> None:
    for name, body in notes.items():
        file = index.root / f"{name}.md"
        file.write_text(f"---\nname: note\n---\n{body}\n", encoding="utf-8")
        os.utime(file, (mtime, mtime))


def in_step(scopes: list[Collection], encoder: HashingEncoder | OnnxEncoder | None = ENCODER) -> list[Snapshot]:
    for index in scopes:
        index.sync_words()
        if encoder:
            index.sync_vectors(encoder)
    return [index.snapshot() for index in scopes]


def found(snapshots: list[Snapshot], query: str, k: int = 5, *, floor: float = -0.5) -> list[Hit]:
    hybrid = Hybrid(products, floor, ENCODER.fingerprint)
    return list(hybrid.search(snapshots, query, ENCODER.encode_query(query), k).hits)


def names(hits: list[Hit]) -> list[str]:
    return [hit.topic.id.removesuffix(".md") for hit in hits]


def rejected(snapshots: list[Snapshot], query: str, k: int, *, floor: float = -0.5) -> dict[str, Rejected]:
    hybrid, vector = Hybrid(products, floor, ENCODER.fingerprint), ENCODER.encode_query(query)
    hits = hybrid.search(snapshots, query, vector, k).hits
    question = Question(query, k, ALL, snapshots, vector, hybrid, ENCODER.chunk_tokens)
    explanation = explain(Recall(query, hits, Strategy.HYBRID), question)
    return {other.hit.topic.id.removesuffix(".md"): other for other in explanation.rejected}


# --- phrases


def test_of_notes_with_the_same_words_the_one_where_they_stand_together_is_first(scopes: list[Collection]) -> None:
    written(scopes[0], {"apart": "the error had number 404 in a log"}, mtime=2000)
    written(scopes[0], {"joined": "a log had in the number error 404"}, mtime=1000)
    snapshots = in_step(scopes, None)
    assert names(found(snapshots, "error 404")) == ["joined", "apart"]
    first, second = found(snapshots, "error 404")
    assert first.score - second.score == pytest.approx(0.2 * first.phrases)
    assert first.phrases == pytest.approx(0.5)
    assert second.phrases == 0
    assert names(found(snapshots, "404 error")) == ["apart", "joined"]  # the newer


def test_an_exact_identifier_outweighs_more_words(scopes: list[Collection]) -> None:
    written(scopes[0], {f"{name}": f"the parser of {name}" for name in ("ann", "bob")})
    written(scopes[0], {"exact": "release 2.1.7 is out", "more": "parser, then release 7 of 1 of 2"})
    first, second, *_ = found(in_step(scopes, None), "parser release 2.1.7")
    assert names([first, second]) == ["exact", "more"]
    assert second.lexical is not None
    assert first.lexical is not None
    assert second.lexical > first.lexical


def test_the_phrases_of_a_hit_are_named(scopes: list[Collection]) -> None:
    written(scopes[0], {"a": "用微信读书看 error-404 每天"})
    snapshots, query = in_step(scopes), "error-404 微信读书 of nobody"
    hybrid, vector = Hybrid(products, -9, ENCODER.fingerprint), ENCODER.encode_query(query)
    hits = hybrid.search(snapshots, query, vector, 5).hits
    question = Question(query, 5, ALL, snapshots, vector, hybrid, ENCODER.chunk_tokens)
    (hit,) = explain(Recall(query, hits, Strategy.HYBRID), question).recall.hits
    assert hit.evidence is not None
    assert hit.evidence.phrases == ("error 404", "微信读", "信读书")
    assert "standing together: error 404, 微信读, 信读书" in hit.explain()
    assert f"+ 0.2 x phrases {hit.phrases:.3f}" in hit.explain()[0]


# --- parts of a list


def test_a_topic_that_alone_holds_a_part_of_the_query_says_how_much(scopes: list[Collection]) -> None:
    written(scopes[0], {"a": "zebra tiger", "b": "zebra tiger with 7", "c": "lion"})
    alone = {hit.topic.id: hit.alone for hit in found(in_step(scopes), "zebra tiger lion with")}
    assert alone["c.md"] > 1 / 3  # a rarer word says more
    assert max(alone["a.md"], alone["b.md"]) == pytest.approx(1 - alone["c.md"])
    assert min(alone["a.md"], alone["b.md"]) == 0  # `with` tells nothing


def test_who_holds_a_part_of_his_own_may_have_less_than_half_of_the_best_score(scopes: list[Collection]) -> None:
    written(scopes[0], {"a": "zebra", "b": "tiger"})
    first, second = found(in_step(scopes, None), "zebra tiger")
    weak = Hit(second.topic, 0.3 * first.score, cosine=0.1, fit=0.3)
    best = Hit(first.topic, first.score, cosine=0.5, fit=0.5)
    cases = [(0.0, 0.3, False), (0.09, 0.3, False), (0.1, 0.3, True), (0.5, 0.07, True), (0.5, 0.05, False)]
    for alone, fits, shown in cases:
        hit = Hit(weak.topic, weak.score, cosine=0.1, fit=fits, alone=alone)
        assert fitting([best, hit], 0.2) == ((best, hit) if shown else (best,))
    assert fitting([Hit(best.topic, 1.0, cosine=0.1, fit=0.19, alone=1.0)], 0.2) == ()


LISTED = {
    "app": "用户每天用微信读书看小说。",
    "shelf": "客厅新买了一个白色书架。",
    "taste": "他的阅读偏好是科幻和历史。",
}
OTHERS = """
用户爱喝咖啡 项目的部署时间是周五下午 数据库用的是PostgreSQL 用户养了一只叫团子的猫 周末常去爬山 代码缩进用四个空格
会议纪要放在共享文件夹 用户对花生过敏 发布前要跑一遍测试 前端用Vue框架 用户住在西湖边上 每月十五号发工资 周四交周报
接口文档写在飞书里 用户的生日是三月 日志保留三十天 打车一般用滴滴 用户不吃香菜 缓存用Redis 健身房在公司楼下
"""


@pytest.mark.model
@pytest.mark.parametrize("query", ["微信读书 书架 阅读偏好", "微信读书、书架、阅读偏好"])
def test_each_part_of_a_list_finds_its_note_among_twenty_others(scopes: list[Collection], query: str) -> None:
    """Complaints A3."""
    encoder = OnnxEncoder()
    others = {f"other{number}": f"{text}。" for number, text in enumerate(OTHERS.split())}
    assert len(others) == 20
    written(scopes[0], LISTED | others)
    snapshots = in_step(scopes, encoder)
    hybrid = Hybrid(products, encoder.floor, encoder.fingerprint)
    hits = hybrid.search(snapshots, query, encoder.encode_query(query), 5).hits
    assert set(names(list(hits))) == {"app", "shelf", "taste"}


# --- one fact told many times

FACT = {
    "r1": "Deploys go out on Fridays.",
    "r2": "The deploys go out on Fridays.",
    "r3": "Deploy goes out on Friday.",
    "r4": "Deploys go out on Friday.",
    "r5": "Our deploys go out on Fridays.",
    "r6": "So deploys go out on Fridays.",
    "not": "Deploys do not go out on Fridays.",
}
BESIDE = {"keys": "Deploys need keys.", "logs": "Deploys write logs.", "who": "Deploys are announced by Ann."}


def test_a_fact_told_six_times_is_shown_once_beside_its_denial_and_others(scopes: list[Collection]) -> None:
    """Complaints I48."""
    written(scopes[0], FACT | BESIDE)
    snapshots, query = in_step(scopes), "deploys"
    for k in (5, 10):
        shown = names(found(snapshots, query, k))
        assert set(shown[:5]) >= {"not", *BESIDE}
        assert len({"r1", "r2", "r4", "r5", "r6"} & set(shown)) == 1
    why = rejected(snapshots, query, 5)
    alike = {name: other for name, other in why.items() if other.why is Why.ALIKE}
    assert alike
    (one,) = {"r1", "r2", "r4", "r5", "r6"} & set(names(found(snapshots, query)))
    assert {other.reason for other in alike.values()} == {f"nearly the same as {one}.md"}
    assert not set(alike) & {"not", *BESIDE, one}


def test_places_of_repetitions_are_taken_by_what_comes_next(scopes: list[Collection]) -> None:
    fillers = ("", "so", "just", "really", "also", "very", "the", "our", "please")
    same = {f"same{number}": f"{filler} zebra crossing on the road" for number, filler in enumerate(fillers)}
    other = {f"other{number}": f"zebra number {number} in the wood" for number in range(5)}
    written(scopes[0], same | other)
    shown = names(found(in_step(scopes), "zebra"))
    assert len([name for name in shown if name.startswith("same")]) == 1
    assert len(shown) == 5


def test_what_is_superseded_takes_no_place_of_what_it_repeats_and_stays_behind(scopes: list[Collection]) -> None:
    notes = {"now": "zebra crossing on roads", "road": "zebra crossings on main streets", "far": "zebra 9 in woods"}
    written(scopes[0], notes)
    old = scopes[0].root / "old.md"
    old.write_text("---\nname: note\nsuperseded_by: now.md\n---\nzebra crossing on busy roads\n", encoding="utf-8")
    shown = names(found(in_step(scopes), "zebra crossing on busy roads"))
    assert "now" in shown
    assert "old" not in shown[:-1]


def test_what_is_superseded_comes_even_behind_what_is_nearly_told_already(scopes: list[Collection]) -> None:
    written(scopes[0], {"main": "zebra crossings on main roads", "big": "zebra crossings on big roads"})
    old = scopes[0].root / "old.md"
    old.write_text("---\nname: lion\nsuperseded_by: big.md\n---\nzebra and lion 5\n", encoding="utf-8")
    snapshots = in_step(scopes)
    assert {name for name, other in rejected(snapshots, "zebra", 1).items() if other.why is Why.ALIKE} & {"main", "big"}
    assert names(found(snapshots, "zebra"))[2:] == ["old"]


def test_without_a_floor_nothing_is_held_back(scopes: list[Collection]) -> None:
    written(scopes[0], FACT)
    assert len(found(in_step(scopes), "when do deploys go out", 9, floor=-1.0)) == 7


def test_the_same_note_in_both_memories_is_shown_once_as_the_projects(scopes: list[Collection]) -> None:
    written(scopes[0], {"here": "deploys go out on Fridays"}, mtime=1000)
    written(scopes[1], {"there": "deploys go out on Fridays"}, mtime=9000)
    for encoder in (None, ENCODER):
        snapshots = in_step(scopes, encoder)
        assert names(found(snapshots, "deploys on Fridays")) == ["here"]
        assert rejected(snapshots, "deploys on Fridays", 5)["user:there"].reason == "nearly the same as here.md"


# --- both memories together


def test_what_any_topic_shows_is_taken_of_both_memories(scopes: list[Collection]) -> None:
    """A note of the user fits as well as the same words of the project, however alike the rest of its memory is."""
    rest = {f"{number}": f"cats eat fish in garden{number}" for number in range(20)}
    written(scopes[0], {**rest, "a": "cats eat fish with Ann"})
    written(scopes[1], {"b": "cats eat fish with Bob"})
    fits = {hit.topic.id: hit for hit in found(in_step(scopes), "cats eat fish with", 30, floor=-1.0)}
    one, other = fits["a.md"], fits["user:b.md"]
    assert one.cosine is not None
    assert other.cosine is not None
    assert one.fit is not None
    assert other.fit is not None
    assert len(fits) == 22
    mean = (sum(hit.cosine or 0.0 for hit in fits.values()) + 10 * 0.06) / (22 + 10)
    for hit in (one, other):
        assert hit.fit == pytest.approx(fit(hit.cosine or 0.0, hit.lexical or 0.0, 3, usual=mean), abs=1e-5)
