"""Whether a new fact gives the matter of an old one another value."""

from typing import Final

from recall.lifecycle.pairs import Pair
from recall.text.alternatives import one_kind
from recall.text.facts import Difference
from recall.text.opposites import are_values
from recall.text.patterns import pattern
from recall.text.wording import WEAK, form, wording

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
_CHOSEN: Final = frozenset({form("prefer")})
_OWN: Final = form("own")
_BY: Final = pattern(r"\bby\b")
_ARTICLES: Final = frozenset({"the", "a", "an", "our"})
_MOST_SWAPPED: Final = 4  # words; more are another sentence


def changes(pair: Pair) -> bool:
    """Whether the new text gives the matter of the old one another value."""
    return _value_changed(pair) or _replaced(pair) or _swapped(pair) or _handed_over(pair)


def _value_changed(pair: Pair) -> bool:
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


def _one_number(pair: Pair) -> bool:
    """Whether one number took the place of another, and does not tell which thing is meant."""
    one, other = (values.numbers for values in pair.values)
    if len(one - other) != 1 or len(other - one) != 1 or any(map(_numbered, pair.texts)):
        return False
    return not _EACH.search(pair.texts[0].lower()) or _EXTREME.search(pair.texts[0].lower()) is not None


def _dated(pair: Pair) -> bool:
    """Whether both begin with their dates: what is on Mondays does not end what is on Fridays."""
    moved = _NOW.search(pair.texts[1].lower())
    return not moved and all(_DATED_FIRST.search(text.lower()) for text in pair.texts)


def _numbered(text: str) -> bool:
    return _NUMBERED.search(text.lower()) is not None


def _replaced(pair: Pair) -> bool:
    """The new text says all that the old one says, and what took its place."""
    allowed = {Difference.NEGATION, Difference.CODE, Difference.NUMBER}
    return (
        len(pair.words[0].content) > 1
        and not set(pair.gone) - WEAK
        and 0 < len(pair.added) <= _MOST_SWAPPED
        and not pair.across
        and pair.differences <= allowed
        and [_INSTEAD.search(text.lower()) is not None for text in pair.texts] == [False, True]
    )


def _swapped(pair: Pair) -> bool:
    """One word took the place of another, of which only one can hold."""
    gone, added = frozenset(pair.gone) - WEAK, frozenset(pair.added) - WEAK
    if not gone or not added or pair.differences - {Difference.CODE} or max(len(gone), len(added)) > _MOST_SWAPPED:
        return False
    shared = set(pair.words[0].content) & set(pair.words[1].content)
    if not shared or any(_MANY.search(text.lower()) for text in pair.texts):
        return False
    if one_kind(gone - _CHOSEN, added - _CHOSEN):
        first = [next((word for word in words.sequence if word not in _ARTICLES), "") for words in pair.words]
        return not (first[0] in gone and first[1] in added) or all(_USED.search(text.lower()) for text in pair.texts)
    subjects = [_subject(text.lower()) for text in pair.texts]
    if not all(subjects) or wording(subjects[0]).content != wording(subjects[1]).content:
        return False
    return _NOW.search(pair.texts[1].lower()) is not None or _SINGLE.search(subjects[0]) is not None


def _subject(text: str) -> str:
    """What stands before the first word that only links, and that word."""
    copula = _COPULA.search(text)
    return text[: copula.end()] if copula and wording(text[: copula.start()]).content else ""


def _handed_over(pair: Pair) -> bool:
    """Somebody else owns it now."""
    gone, added = frozenset(pair.gone), frozenset(pair.added)
    if pair.differences or not gone or not added or _NOW.search(pair.texts[1].lower()) is None:
        return False
    return max(len(gone), len(added)) <= _MOST_SWAPPED and _owner(pair, 0) == gone and _owner(pair, 1) == added


def _owner(pair: Pair, which: int) -> frozenset[str]:
    """The words beside the verb that say who owns."""
    words = pair.words[which].content
    if words.count(_OWN) != 1:
        return frozenset()
    at = words.index(_OWN)
    if _BY.search(pair.texts[which].lower()):
        return frozenset(words[at + 1 :])
    other = set(pair.words[1 - which].content)
    return frozenset(word for word in words[:at] if word not in other)
