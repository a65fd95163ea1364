"""What generated notes and requests are glued from.

In braces: w word, i identifier, n name, p path, h hash, e error code, d date, v version, q quantity.
"""

from typing import Final, Literal

Language = Literal["en", "zh"]

SENTENCES: Final[dict[Language, tuple[str, ...]]] = {
    "en": (
        "The {w} {w} must never share a {w} with the {w}.",
        "Since {d} we run {w} {v} on every {w}, and the {w} stays on {v}.",
        "{n} asked to keep {w} and {w} apart because the {w} broke twice.",
        "`{i}` calls `{i}` before the {w} is flushed, see {p}.",
        "Fixed in {h}: the {w} {w} returned {e} whenever a {w} was empty.",
        "Prefer {w} over {w} for anything that touches the {w}.",
        "After {q} failures the {w} falls back to {w} {w}.",
        "Ask {n} before changing the {w}; {n} owns the {w} {w}.",
        "Error {e} means that `{i}` got a stale {w}, not that the {w} is down.",
        "The nightly {w} takes {q} minutes and writes {q} rows into {w}.",
        "Open question: does {w} {w} still need the {w}?",
        "Decided on {d}: no more {w} in {p}.",
        "Set `{i}` to {q} when the {w} is slow, otherwise leave the {w} alone.",
        "User likes short answers about {w}, with the {w} first and no {w}.",
        "Commit {h} renames `{i}`, commit {h} removes it from {w}.",
        "{w} and {w} disagree by {q} percent whenever {w} is late.",
        "Do not run the {w} while {n} restores a {w}.",
        "Reading {p} again: {w} comes from {w}, never from the {w} {w}.",
    ),
    "zh": (
        "{w}和{w}不能放在同一个{w}里。",
        "从{d}起，{w}升级到{v}，{w}仍然停在{v}。",
        "{n}要求把{w}与{w}分开，因为{w}出过两次问题。",
        "`{i}`要在{w}写完之前调用，参见{p}。",
        "{h}已修复：{w}为空时{w}返回{e}。",
        "凡是涉及{w}的地方，优先用{w}而不是{w}。",
        "连续失败{q}次以后，{w}会退回到{w}{w}。",
        "修改{w}之前先问{n}，{w}{w}由{n}负责。",
        "报错{e}说明`{i}`拿到了过期的{w}，并不是{w}挂了。",
        "每晚的{w}大约要{q}分钟，会向{w}写入{q}行。",
        "待确认：{w}{w}还需要{w}吗？",
        "{d}决定：{p}里不再使用{w}。",
        "{w}慢的时候把`{i}`调到{q}，平时不要动{w}。",
        "用户喜欢简短的回答，先说{w}，再说{w}，不要{w}。",
        "提交{h}改了`{i}`的名字，{w}里也要跟着改。",
        "{w}一迟到，{w}和{w}就会差百分之{q}。",
        "{n}恢复{w}的时候不要运行{w}。",
        "重新看了{p}：{w}来自{w}，跟{w}没有关系。",
    ),
}

REQUESTS: Final[dict[Language, tuple[str, ...]]] = {
    "en": (
        "how do we handle {w} in the {w}?",
        "why does {i} fail with {e}",
        "{w} {w}",
        "what did {n} say about the {w} {w}",
        "please update the {w} so that {w} works with {w} again",
        "where is {p} used, and may I change the {w}?",
        "plan the next {w}: {w}, {w} and the {w} for {n}",
    ),
    "zh": (
        "{w}怎么处理{w}？",
        "为什么{i}会报{e}",
        "{w} {w}",
        "{n}对{w}{w}是怎么说的",
        "帮我把{w}改一下，让{w}能继续用{w}",
        "{p}在哪里用到，{w}能不能改？",
        "安排下一次{w}：{w}、{w}，还有给{n}的{w}",
    ),
}

CHATTER: Final[dict[Language, tuple[str, ...]]] = {
    "en": (
        "Good morning! Hope you slept better than me, the trains were a mess again. Anyway, quick one before lunch: ",
        "ok thanks, that helped a lot. one more thing I keep forgetting and it's driving me crazy - ",
        "Sorry for asking twice, I lost the thread yesterday when my laptop died in the middle of everything. ",
    ),
    "zh": (
        "早上好，昨天晚上加班到很晚，今天脑子有点转不动，想先问你一个小问题，问完我就去吃饭。",
        "好的谢谢，刚才那个已经可以了。还有一件事我老是忘，麻烦你再跟我说一遍：",
        "不好意思又来打扰，昨天聊到一半电脑没电了，前面说的都找不到了。",
    ),
}

NONSENSE: Final = (
    "{h} {h}",
    "???",
    "asdf {q} qwer {q} zxcv",
    "哈哈哈哈 {q}",
    "ok",
    "{v} {d} {q}",
    "嗯嗯 {h}",
    "lorem {h} {q}",
)
