"""Whether a new fact gives the matter of an old one another value."""

from typing import Final

from recall.lifecycle.pairs import Pair, Reading
from recall.text.alternatives import one_kind
from recall.text.facts import Difference
from recall.text.opposites import are_values
from recall.text.patterns import pattern
from recall.text.wording import form, wording

# The new fact names what it replaces.
_INSTEAD: Final = pattern(
    r"(?<!\bis )(?<!\bare )\b(?:chang|switch|mov|migrat|went|convert)\w* (?:\w+ )?from\b|\binstead of\b|\brather than\b"
    r"|\breplac(?:ed|es) "
    r"|(?:从|由)(.{1,40}?)(?:改|换|迁移|切换|移)|而不是|代替|取代|替换"
)
_NOW: Final = pattern(
    r"\bnow\b|\b(?:moved|switched|changed|renamed|migrated|rewritten|upgraded)\b|现在|改[为成到用由]|换[成到]|搬到|移到"
    r"|迁移到|升级到|调整为|变成|重写"
)
# It lies elsewhere; where it lay.
_MOVED: Final = pattern(r"\b(?:moved|migrated|relocated) to\b|搬到|移到|迁移到")
_LAY: Final = pattern(r"\b(?:in|at|on|under)\b|在")
# Several such things hold at once: who learns Rust may learn Spanish.
_MANY: Final = pattern(
    r"\b(?:learn|speak|know|ha[sd]|have|support|like|love|own|read|want|visit|add|also|work(?:s|ed)? with"
    r"|familiar|import|export|availab\w*|offer|publish)(?:s|ing|ed|es)?\b|\b(?:run|test)\w* (?:on|against|in)\b"
    r"|学|会说|懂|支持|喜欢(?!用)|拥有|还|也|增加|导入|导出|上(?:运行|测试|跑)"
)
# Of such a thing there is one value.
_SINGLE: Final = pattern(
    r"\b(?:name|port|branch|theme|language|address|time ?zone|url|domain|limit|owner|format|default|version|editor"
    r"|account|deadline|provider|backend|host|database|region|locale|license|path|directory|maintainer|manager|lead"
    r"|location|email|framework|boss)\b|名字|端口|分支|主题|语言|地址|时区|域名|负责人|格式|默认|版本|编辑器"
    r"|账号|路径|目录|邮箱|位置|框架|老板|经理|组长"
)
_IS: Final = pattern(r"^(?:.*?(?<![a-z])(?:is|are|(?:changed|switched) to)(?![a-z])|.*?(?:叫|是|为|改[为成]|换成))")
# Beside a name, these say no more than "is".
_LINKS_WORDS: Final = (
    "is are now currently has been changed switched to the a an our 是 为 叫 了 现在 目前 改为 改成 换成 的"
)
_LINKS: Final = frozenset(_LINKS_WORDS.split())
# A name that says of what kind: Carol is French.
_KIND: Final = pattern(r"(?:ch|ish|[ei]an|rman|[cnh]ese|can)\b")
# So are versions that are supported and errors that were fixed.
_EACH: Final = pattern(r"\b(?:support|fix|learn|visit|read|compatib)\w*|支持|兼容|修复|学|读")
_EXTREME: Final = pattern(r"\b(?:min|max|old|new|low|high|lat|least|most|limit|default)\w*|最|上限|下限|默认")
_DATED_FIRST: Final = pattern(
    r"^\W*(?:(?:on|in|every|at|by|since|until) )?(?:mon|tue|wed|thu|fri|sat|sun|jan|feb|mar|apr|may|jun|jul|aug|sep"
    r"|oct|nov|dec|today|tomorrow|\d|q\d)|^\W*(?:每|在)?(?:周|星期|礼拜|今|明|昨|上午|下午|早上|晚上|[一二三四五六七八九十]+月)"
)
# So does one of which something is said: port 80 is blocked.
_SUBJECT: Final = pattern(
    r"(?i)^\W*(?:[a-z]+ ){1,3}#?[a-z]?\d[\d.]* (?:of|is|are|was|were|has|have|had|needs?|must|should|can|will|does|did"
    r"|uses?|runs?|works?|gets?|pays?|passed|failed)\b"
    r"|^[\u3400-\u9fff]{1,6} ?\d+ ?[已被未没不是有需要]"
)
# What was so in one year is not undone by what was so in another.
_YEAR: Final = pattern(r"\b(?:in|since|by|of|from) (?:19|20)\d\d\b|\b[Tt]he (?:19|20)\d\d [a-z]|(?:19|20)\d\d ?年")
# So is what happened: it happens again on another day.
_HAPPENED: Final = pattern(r"\b(?:was|were|ran|took|passed|failed|won|ended|happened|met|visited)\b|\bis booked\b")
_WEEKDAYS_WORDS: Final = "mon tue wed thu fri sat sun"
_WEEKDAYS: Final = frozenset(_WEEKDAYS_WORDS.split())
_HABIT: Final = pattern(r"days\b|\bevery\b|\beach\b|\busers?\b|每|用户")
# An event that has one day.
_EVENT: Final = pattern(r"\b(?:happens?|takes? place|(?:is|are) on|scheduled)\b|安排|定在")
_ONCE: Final = pattern(r"\bdue\b|\bdeadline\b|\bweekly\b|截止")
# It is said what is used; what stands behind such a word is used, or where something lies.
_CHOICE: Final = pattern(r"\buses?\b|\bprefers?\b|\b(?:is|are)\b|\b(?:to|in|with)\b|\bnow\b|用|是|在|到|[改换][为成到]")
_SAYS_WORDS: Final = "is are was were has have"
_SAYS: Final = frozenset(_SAYS_WORDS.split())
_NOT_CHOSEN_WORDS: Final = "from against without like than by about and or 从 被 由 的 和 与 对"
_NOT_CHOSEN: Final = frozenset(_NOT_CHOSEN_WORDS.split())
# A number that tells which one is meant, not how much.
_NUMBERED: Final = pattern(
    r"\b(?:issue|ticket|step|phase|sprint|chapter|pr|bug|task|case|milestone|lesson|part|day|week|round|option|rule|item"
    r"|node|shard|worker|replica|level|stage|team|room|section|table|figure|build|job|error|status|code) ?#?\d|#\d"
    r"|第.{0,3}[步章节阶期个条轮天周]|(?:步骤|任务|工单|问题|阶段|迭代|错误码|状态码) ?\d|\d ?号[^\s,，。]"
)
_CHOSEN: Final = frozenset({form("prefer")})
# Two such things stand side by side where a text begins with the word.
_ADJECTIVES_WORDS: Final = (
    "manual automatic light dark single double sync async synchronous asynchronous strict loose verbose concise short"
    " detailed uppercase lowercase required optional 手动 自动 浅色 深色 同步 异步 必填 可选 选填 大写 小写"
)
_ADJECTIVES: Final = frozenset(_ADJECTIVES_WORDS.split())
_OWN: Final = form("own")
_BY: Final = pattern(r"\bby\b")
_ARTICLES: Final = frozenset({"the", "a", "an", "our", "all"})
_MOST_SWAPPED: Final = 4  # words; more are another sentence
_LEAST_SAID: Final = 3


def asks(text: str) -> bool:
    """Whether it is a question, which states nothing."""
    return text.rstrip().endswith(("?", "？"))


def changes(pair: Pair) -> bool:
    """Whether the new text gives the matter of the old one another value.

    Headings, questions and a word or two state nothing that could change.
    """
    if any(one.stated < _LEAST_SAID or one.text.startswith("#") or asks(one.text) for one in pair.readings):
        return False
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
            turned = one.sides ^ other.sides
            return are_values(turned) and len(one.sides - other.sides) == 1 and not any(map(_told_apart, pair.readings))
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
    return not _EACH.search(pair.texts[0]) or _EXTREME.search(pair.texts[0]) is not None


def _dated(pair: Pair) -> bool:
    """Whether the dates may hold at once: who swims on Mondays may swim on Fridays."""
    if _NOW.search(pair.texts[1]) or _ONCE.search(pair.texts[1]):
        return False
    if all(map(_HAPPENED.search, pair.texts)):
        return True
    days = pair.values[0].dates ^ pair.values[1].dates
    habits = any(map(_HABIT.search, pair.texts)) or not all(map(_EVENT.search, pair.texts))
    if days <= _WEEKDAYS and habits:
        return True
    return all(_DATED_FIRST.search(text) for text in pair.texts)


def _numbered(text: str) -> bool:
    return any(found.search(text) for found in (_NUMBERED, _SUBJECT, _YEAR))


def _told_apart(one: Reading) -> bool:
    """Whether the text begins with the word that has an opposite, and so says which things it means: manual backups."""
    first = next((word for word in one.words.words if word not in _ARTICLES), "")
    return first in _ADJECTIVES


def _replaced(pair: Pair) -> bool:
    """The new text says all that the old one says, and what took its place."""
    allowed = {Difference.NEGATION, Difference.CODE, Difference.NUMBER}
    instead = _INSTEAD.search(pair.texts[1])
    return bool(
        instead is not None
        and not _INSTEAD.search(pair.texts[0])
        and len(pair.words[0].content) > 1
        and len(pair.gone) <= (instead[0].endswith("from") or instead[1] is not None)
        and set(wording(instead[1] or pair.texts[1][instead.end() :]).content[:1]) & set(pair.words[0].content)
        and 0 < len(pair.added) <= _MOST_SWAPPED
        and not pair.across
        and pair.differences <= allowed
    )


def _swapped(pair: Pair) -> bool:
    """One word took the place of another, of which only one can hold."""
    gone, added = frozenset(pair.gone), frozenset(pair.added)
    if not gone or not added or pair.differences - {Difference.CODE} or max(len(gone), len(added)) > _MOST_SWAPPED:
        return False
    shared = set(pair.words[0].content) & set(pair.words[1].content)
    if not shared or any(map(_MANY.search, pair.texts)):
        return False
    if one_kind(gone - _CHOSEN, added - _CHOSEN):
        return all(_chosen(*each) for each in zip(pair.readings, (gone - _CHOSEN, added - _CHOSEN), strict=True))
    if any(map(_KIND.search, gone | added)) or not (_named(pair, 0) >= gone and _named(pair, 1) >= added):
        return False
    return _single(pair) or _moved(pair)


def _chosen(one: Reading, tools: frozenset[str]) -> bool:
    """Whether the text says what is used, rather than of a thing that belongs to it: in the Vim plugin."""
    if not _CHOICE.search(one.text.lower()):
        return False
    words = [pair for pair in zip(one.words.words, one.words.forms, strict=True) if pair[0] not in _ARTICLES]
    return all(
        at > 0
        and (not words[at - 1][1] or words[at - 1][1] in _CHOSEN)
        and words[at - 1][0] not in _NOT_CHOSEN
        and (one.han or at + 1 == len(words) or not (words[at + 1][1] or words[at + 1][0] in _SAYS))
        for at, (_, form_) in enumerate(words)
        if form_ in tools
    )


def _named(pair: Pair, which: int) -> frozenset[str]:
    """Words that are names in a text, or parts of a code word that the other one lacks."""
    one, other = pair.values[which], pair.values[1 - which]
    codes = one.codes - other.codes if _both(one.codes, other.codes) else ()
    return pair.words[which].names.union(*(wording(code).content for code in codes))


def _single(pair: Pair) -> bool:
    """What stands before "is" is the same, is a thing of which there is one, and nothing but its name differs."""
    found = [_IS.match(text) for text in pair.texts]
    if found[0] is None or found[1] is None or not all(_SINGLE.search(one[0]) for one in found if one):
        return False
    subjects = [wording(one[0]).content for one in found if one]
    return subjects[0] == subjects[1] and pair.words[0].frame ^ pair.words[1].frame <= _LINKS


def _moved(pair: Pair) -> bool:
    """The new text says where it is now, the old one where it was."""
    now, before = _MOVED.search(pair.texts[1]), _LAY.search(pair.texts[0])
    if now is None or before is None or _MOVED.search(pair.texts[0]):
        return False
    subjects = wording(pair.texts[0][: before.start()]).content, wording(pair.texts[1][: now.start()]).content
    return bool(subjects[0]) and subjects[0] == subjects[1]


def _handed_over(pair: Pair) -> bool:
    """Somebody else owns it now."""
    gone, added = frozenset(pair.gone), frozenset(pair.added)
    if pair.differences or not gone or not added or _NOW.search(pair.texts[1]) is None:
        return False
    return max(len(gone), len(added)) <= _MOST_SWAPPED and _owner(pair, 0) == gone and _owner(pair, 1) == added


def _owner(pair: Pair, which: int) -> frozenset[str]:
    """The words beside the verb that say who owns."""
    words = pair.words[which].content
    if words.count(_OWN) != 1:
        return frozenset()
    at = words.index(_OWN)
    if _BY.search(pair.texts[which]):
        return frozenset(words[at + 1 :])
    other = set(pair.words[1 - which].content)
    return frozenset(word for word in words[:at] if word not in other)
