"""Whether a new fact says the same as one that is remembered, changes it, or is another one.

No model of language decides: the words of both are laid side by side (`text.wording`), their values are compared
(`text.facts`), and the cosine of their vectors confirms. Two similar facts side by side are a smaller evil than one
that was merged away or declared outdated: in doubt it is another fact.
"""

import itertools
import unicodedata
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from recall.text.alternatives import one_kind
from recall.text.facts import Difference, Facts, compared, differences, facts
from recall.text.opposites import MAY, are_values
from recall.text.patterns import pattern
from recall.text.scripts import CJK, kinds
from recall.text.wording import WEAK, Wording, form, wording


class Verdict(StrEnum):
    """What a new fact is to an old one."""

    SAME = "same"
    RESTATED = "restated"
    CHANGED = "changed"
    OTHER = "other"


LONGEST: Final = 2000
"""Characters of a fact; a longer text is many facts and is the same as another one only to the letter."""

# Least cosine of the shipped model, within a language and across (docs/duplicates.md).
_RESTATED: Final = (0.65, 0.25)
_ALMOST: Final = (0.65, 0.25)
_CHANGED: Final = (0.5, 0.0)

_NOTHING_SAID: Final = pattern(r"[^\w+#%$@/\\.~<>=&|*-]+|(?<!\S)[-*.]+(?!\S)|[.]+(?!\S)")
_BESIDE_HAN: Final = pattern(r"(?<=[\u3400-\u9fff]) +| +(?=[\u3400-\u9fff])")
# The new fact names what it replaces.
_INSTEAD: Final = pattern(
    r"\b(?:chang|switch|mov|migrat|went|convert)\w* (?:\w+ )?from\b|\binstead of\b|\brather than\b|\breplac(?:ed|es) "
    r"|(?:从|由).{1,40}(?:改|换|迁移|切换|移)|而不是|代替|取代|替换"
)
_NOW: Final = pattern(
    r"\bnow\b|\b(?:moved|switched|changed|renamed|migrated|rewritten|upgraded)\b|现在|改[为成到用由]|换[成到]|搬到|移到"
    r"|迁移到|升级到|调整为|变成|重写"
)
# Several such things hold at once: who learns Rust may learn Spanish.
_MANY: Final = pattern(
    r"\b(?:learn|speak|know|ha[sd]|have|support|like|love|own|read|want|visit|add|also|work(?:s|ed)? with"
    r"|familiar)(?:s|ing|ed|es)?\b"
    r"|学|会说|懂|支持|喜欢(?!用)|拥有|还|也|增加"
)
# Of such a thing there is one value.
_SINGLE: Final = pattern(
    r"\b(?:name|port|branch|theme|language|address|time ?zone|url|domain|limit|owner|format|default|version|editor"
    r"|account|password|deadline|date|provider|backend|host|database|region|locale|license|path|directory|maintainer|manager"
    r"|birthday|location|primary|main|id|email|framework|boss|called|named)\b|名字|端口|分支|主题|语言|地址|时区|域名|负责人|格式|默认|版本|编辑器"
    r"|账号|日期|路径|目录|生日|邮箱|位置|框架|老板|经理|组长|叫"
)
# So are versions that are supported and errors that were fixed.
_EACH: Final = pattern(r"\b(?:support|fix|learn|visit|read|compatib)\w*|支持|兼容|修复|学|读")
_EXTREME: Final = pattern(r"\b(?:min|max|old|new|low|high|lat|least|most|limit|default)\w*|最|上限|下限|默认")
_DATED_FIRST: Final = pattern(
    r"^\W*(?:(?:on|in|every|at|by|since|until) )?(?:mon|tue|wed|thu|fri|sat|sun|jan|feb|mar|apr|may|jun|jul|aug|sep"
    r"|oct|nov|dec|today|tomorrow|\d|q\d)|^\W*(?:每|在)?(?:周|星期|礼拜|今|明|昨|上午|下午|早上|晚上|[一二三四五六七八九十]+月)"
)
# Where it is the subject, such a thing may have others beside it.
_USED: Final = pattern(r"\b(?:is|are) (?:used|our|the)\b|作为")
_COPULA: Final = pattern(
    r"\b(?:is|are|was|were|called|named|lives?|to|in|on|uses?)\b|是|叫|为|成|到|在|改?用(?![户于])"
)
# A number that tells which one is meant, not how much.
_NUMBERED: Final = pattern(
    r"\b(?:issue|ticket|step|phase|sprint|chapter|pr|bug|task|case|milestone|lesson|part|day|week|round|option|rule|item"
    r"|node|shard|worker|replica|level|stage|team|room|section|table|figure|build|job|error|status|code) ?#?\d|#\d"
    r"|第.{0,3}[步章节阶期个条轮天周]|(?:步骤|任务|工单|问题|阶段|迭代|错误码|状态码) ?\d|\d ?号[^\s,，。]"
)
_PASSIVE: Final = pattern(r"\b(?:is|are|was|were|be|been) (?:\w+ )?\w+(?:ed|en|wn|lt|pt|nt)\b(?! to\b)|\bby\b|由|被")
_FRONTED: Final = pattern(r"^\W*(?:in|on|at|for|before|after|when|during|within|inside)\b")
# In Chinese, such a word stands behind what it belongs to.
_CHOSEN: Final = frozenset({form("prefer")})
_OWN: Final = form("own")
_BY: Final = pattern(r"\bby\b")
_TURNED: Final = frozenset(map(form, ("before", "after")))
# X is Y and Y is X say the same.
_EVEN: Final = frozenset(["is", "are", "was", "were", "the", "a", "an", "our", "是", "的", "and", "和"])
_LONGEST_COMPARED: Final = 40  # words whose order is compared


@dataclass(frozen=True, slots=True)
class _Pair:
    """Both texts and what was found of them, the old one first."""

    texts: tuple[str, str]
    values: tuple[Facts, Facts]
    words: tuple[Wording, Wording]
    differences: frozenset[Difference]
    cosine: float

    @property
    def across(self) -> bool:
        """Whether they are in two languages."""
        return len({CJK in kinds(text) for text in self.texts}) == 2

    @property
    def gone(self) -> list[str]:
        """Content words of the old one that the new one lacks."""
        return _less(self.words[0], self.words[1])

    @property
    def added(self) -> list[str]:
        """Content words of the new one that the old one lacks."""
        return _less(self.words[1], self.words[0])

    @property
    def framed(self) -> bool:
        """Whether both are about the same, whatever they say of it."""
        return bool(self.words[0].content) and not (set(self.gone) | set(self.added)) - WEAK

    def reaches(self, least: tuple[float, float]) -> bool:
        return self.cosine >= least[self.across]


def judge(new: str, old: str, cosine: float) -> Verdict:
    """What the new fact is to the old one.

    Args:
        new: one or a few sentences, English or Chinese.
        old: such a text that is remembered.
        cosine: of the vectors that the shipped model gives the two as documents.
    """
    if _folded(new) == _folded(old):
        return Verdict.OTHER if Difference.CODE in differences(new, old) else Verdict.SAME
    if max(len(new), len(old)) > LONGEST:
        return Verdict.OTHER
    pair = _pair(new.strip(), old.strip(), cosine)
    if _restates(pair):
        return Verdict.RESTATED
    return Verdict.CHANGED if pair.reaches(_CHANGED) and _changes(pair) else Verdict.OTHER


def _folded(text: str) -> str:
    words = _NOTHING_SAID.sub(" ", unicodedata.normalize("NFKC", text).lower())
    return _BESIDE_HAN.sub("", " ".join(words.split()))


def _pair(new: str, old: str, cosine: float) -> _Pair:
    values = facts(old), facts(new)
    found = compared(*values)
    turned = values[0].sides ^ values[1].sides if Difference.OPPOSITE in found else frozenset()
    words = tuple(wording(text, without=turned) for text in (old, new))
    return _Pair((old, new), values, (words[0], words[1]), found, cosine)


def _less(one: Wording, other: Wording) -> list[str]:
    return list((Counter(one.content) - Counter(other.content)).elements())


def _restates(pair: _Pair) -> bool:
    may = [MAY in values.sides for values in pair.values]
    if pair.differences or not pair.framed or may[0] != may[1] or not _same_roles(pair):
        return False
    return pair.reaches(_ALMOST if pair.gone or pair.added else _RESTATED)


def _same_roles(pair: _Pair) -> bool:
    """False where two words changed places round a third: A depends on B, B depends on A."""
    if pair.words[0].content == pair.words[1].content and pair.values[0].order != pair.values[1].order:
        return False
    if any(len({bool(built.search(text.lower())) for text in pair.texts}) == 2 for built in (_PASSIVE, _FRONTED)):
        return True
    one, other = (words.sequence for words in pair.words)
    if len(one) > _LONGEST_COMPARED or len(other) > _LONGEST_COMPARED:
        return one == other
    first, second = _places(one), _places(other)
    both = [word for word in first if word in second]
    content = [word for word in both if word in pair.words[0].content]
    pivots = [word for word in both if word not in _EVEN and not (pair.across and word in _TURNED)]
    return not any(
        _between(first, left, pivot, right) and _between(second, right, pivot, left)
        for left, right in itertools.permutations(content, 2)
        if first[left] < first[right] and second[right] < second[left]
        for pivot in pivots
    )


def _places(words: tuple[str, ...]) -> dict[str, int]:
    """Where the words stand that occur once."""
    counts = Counter(words)
    return {word: place for place, word in enumerate(words) if counts[word] == 1}


def _between(places: dict[str, int], left: str, pivot: str, right: str) -> bool:
    return places[left] < places[pivot] < places[right]


def _changes(pair: _Pair) -> bool:
    """Whether the new text gives the matter of the old one another value."""
    return _value_changed(pair) or _replaced(pair) or _swapped(pair) or _handed_over(pair)


def _value_changed(pair: _Pair) -> bool:
    """The same words, and one kind of value that is another one."""
    if len(pair.differences) != 1 or not pair.framed:
        return False
    one, other = pair.values
    match next(iter(pair.differences)):
        case Difference.NUMBER:
            return _one_number(pair)
        case Difference.DATE:
            return _both(one.dates, other.dates) and not _dated(pair)
        case Difference.NEGATION:
            return one.negated != other.negated or len(one.denial.heads) == len(other.denial.heads)
        case Difference.OPPOSITE:
            return are_values(one.sides ^ other.sides) and len(one.sides - other.sides) == 1
        case Difference.CODE:
            return False


def _both(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether each has what the other has not: a value was replaced, not added."""
    return bool(one - other) and bool(other - one)


def _one_number(pair: _Pair) -> bool:
    """Whether one number took the place of another, and does not tell which thing is meant."""
    one, other = (values.numbers for values in pair.values)
    if len(one - other) != 1 or len(other - one) != 1 or any(map(_numbered, pair.texts)):
        return False
    return not _EACH.search(pair.texts[0].lower()) or _EXTREME.search(pair.texts[0].lower()) is not None


def _dated(pair: _Pair) -> bool:
    """Whether both begin with their dates: what is on Mondays does not end what is on Fridays."""
    moved = _NOW.search(pair.texts[1].lower())
    return not moved and all(_DATED_FIRST.search(text.lower()) for text in pair.texts)


def _numbered(text: str) -> bool:
    return _NUMBERED.search(text.lower()) is not None


def _replaced(pair: _Pair) -> bool:
    """The new text says all that the old one says, and what took its place."""
    allowed = {Difference.NEGATION, Difference.CODE, Difference.NUMBER}
    return (
        bool(pair.words[0].content)
        and not set(pair.gone) - WEAK
        and bool(pair.added)
        and pair.differences <= allowed
        and _INSTEAD.search(pair.texts[1].lower()) is not None
    )


def _swapped(pair: _Pair) -> bool:
    """One word took the place of another, of which only one can hold."""
    gone, added = frozenset(pair.gone) - WEAK, frozenset(pair.added) - WEAK
    if not gone or not added or pair.differences - {Difference.CODE} or max(len(gone), len(added)) > 3:
        return False
    if any(_MANY.search(text.lower()) for text in pair.texts) or not set(pair.words[0].content) & set(
        pair.words[1].content
    ):
        return False
    if one_kind(gone - _CHOSEN, added - _CHOSEN):
        first = [next((word for word in words.sequence if word not in _EVEN), "") for words in pair.words]
        return not (first[0] in gone and first[1] in added) or all(_USED.search(text.lower()) for text in pair.texts)
    subjects = [_subject(text) for text in pair.texts]
    if not subjects[0] or subjects[0] != subjects[1]:
        return False
    return _NOW.search(pair.texts[1].lower()) is not None or all(_SINGLE.search(text.lower()) for text in pair.texts)


def _handed_over(pair: _Pair) -> bool:
    """Somebody else owns it now."""
    gone, added = frozenset(pair.gone), frozenset(pair.added)
    if (
        pair.differences
        or not gone
        or not added
        or max(len(gone), len(added)) > 3
        or not _NOW.search(pair.texts[1].lower())
    ):
        return False
    return _owner(pair, 0) == gone and _owner(pair, 1) == added


def _owner(pair: _Pair, which: int) -> frozenset[str]:
    """The words beside the verb that say who owns."""
    words = pair.words[which].content
    if words.count(_OWN) != 1:
        return frozenset()
    at = words.index(_OWN)
    if _BY.search(pair.texts[which].lower()):
        return frozenset(words[at + 1 :])
    other = set(pair.words[1 - which].content)
    return frozenset(word for word in words[:at] if word not in other)


def _subject(text: str) -> frozenset[str]:
    """Content words before the first verb that only links."""
    copula = _COPULA.search(text.lower())
    return frozenset(wording(text[: copula.start()]).content) if copula else frozenset()
