"""What a text is about: its content words in one form each, so that two sentences can be laid side by side.

English words lose their endings, Chinese ones that programmers use become the English word, so that a sentence and its
translation have the same words; other Chinese stays in characters. Words that any sentence may have are left out.
"""

import unicodedata
from dataclasses import dataclass
from typing import Final

from recall.text.function_words import FUNCTION_WORDS
from recall.text.glossary import CHINESE
from recall.text.opposites import side
from recall.text.patterns import pattern
from recall.text.quantities import without_quantities
from recall.text.scripts import CJK, kinds


def _stem(word: str) -> str:
    for ending in ("ings", "ing", "ied", "ies", "ed", "es", "ly", "s", "e", "y"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word.removesuffix(ending)
            break
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word


# Words beyond function words that say how a thing is said, with what others share a meaning: first word stands for all.
_LIGHT: Final = """
allowed ok fine please currently now anymore today always instead switched changed moved replaced migrated became
around about approximately roughly ever required requires require needed needs need supposed must
uses use used using usage done happen happens go goes gone live lives located take takes
set based reachable serves serve serving serve contains contain hold holds avoid never called named call equipped
forbidden prohibited possible makes sure begin equal equals value work works given put via within inside per may
cannot don doesn isn aren didn won don't doesn't isn't aren't didn't won't can't mustn't shouldn't
wasn't weren't couldn't hasn't haven't s t re ll ve planned rather merely simply mean means way thing things
one be
"""
_SAME: Final = """
prefer like likes prefers preferred preference favor favors favour love loves
store stored stores storing save saved saves persisted keep keeps kept keeping retain retains retained retention
run runs ran running execute executes executed running launch
answer answers reply replies response responses respond
short brief concise terse
own owns owned owner responsible
delete deletes deleted remove removes removed deleting removing
write writes written writing
deploy deploys deployed deployment deployments
release releases released
build builds built
start starts started starting begin begins
cause caused causes because
key secret secrets keys
maybe perhaps probably possibly presumably
want wants wanted wish wishes hope hopes
formerly previously
he him his
she her hers
some sometimes usually usual occasionally partly
only solely exclusively
before prior
after afterwards
approve approval approvals approved approves
dislike dislikes hate hates
test tests tested testing
dependency dependencies
minimum min oldest lowest least
maximum max most
repository repo repos
database db
memory ram
config configuration configured
kubernetes k8s
javascript js
typescript ts
directory folder
error errors
daily day
document documents documentation docs doc
format formatted formatting
enable enabled enables
disable disabled disables
review reviews reviewed
or nor
above
below under
until till
many much
more additional extra
less fewer
other another
few
since
still
again
once
up
down
off
out
"""
_ENGLISH_ONE: Final = {
    word: line.split()[0] for line in _SAME.strip().split("\n") for word in line.split()
} | dict.fromkeys(_LIGHT.split(), "")

_CHINESE_ONE: Final = {term: word and _stem(word) for term, word in CHINESE.items()}
_CHINESE: Final = "|".join(sorted(_CHINESE_ONE, key=len, reverse=True))
# Team A is no article.
_LETTER: Final = pattern(r"(?<=[a-z\d] )A(?![\w'])")
# The language, not the verb.
_GO: Final = pattern(r"(?:(?<=\S )Go|(?<=\b[Ii]n )go)(?![\w'])")
# Before merging, do this.
_FRONTED: Final = pattern(
    r"(?i)^\W*((?:in|on|at|for|before|after|when|during|within|inside)\b[^,，.;]*)[,，]\s*([^.;]*)[.;]?$"
)
# 部署之前先跑测试, as 先跑测试之前部署: in the order of the English words.
_FRONTED_HAN: Final = pattern(
    r"^([^，,。;；]{2,}?)((?:之|以)?(?:(?<![目当先提])前(?![端面台缀提者期后])|(?<![最然先背])后(?![端台面缀来者续期果])))"
    r"[，,]?([^，,。;；]+)[。]?$"
)
# Two people, as two.
_PEOPLE: Final = pattern(r"(?<=[\d一二两三四五六七八九十])( ?)[个位名]人")
# Capitals at the beginning of a sentence make no name.
_CAPITAL: Final = pattern(r"(?:(?<=[\w,;:(\"'] )|(?<=\w/))[A-Z][\w'+#-]*")
# In Chinese, Latin letters, and two or three characters at the end that begin with a common family name.
_LATIN: Final = pattern(
    r"[A-Za-z][\w'+#-]*|[王李张刘陈杨赵吴周徐孙朱胡郭何林罗郑梁谢宋唐许韩冯邓曹彭曾肖][\u3400-\u9fff]{1,2}(?=[^\w]*$)"
)
# Words that belong together, as one.
_PHRASE: Final = """
pull-request: pull request, pull requests, merge request, merge requests
timeout: time out, times out
timezone: time zone
enable: turned on, switched on
disable: turned off, switched off
backup: backed up, back up, backs up
in-memory: in memory
minimum: at least, no less than, fall below, drop below, stay above
maximum: at most, up to, no more than, exceed
vscode: vs code
formerly: used to, used to be
dislike: does not like, do not like, doesn't like, don't like
: upgraded to, planned for
"""
_PHRASES: Final = {
    phrase: line.partition(": ")[0] if line[0] != ":" else ""
    for line in _PHRASE.strip().split("\n")
    for phrase in line.partition(": ")[2].split(", ")
}
_UNIT: Final = pattern(
    rf"(?<![a-z])(?:{'|'.join(sorted(_PHRASES, key=len, reverse=True))})(?![a-z])"
    rf"|[a-z][a-z0-9+#]*(?:['-][a-z0-9]+)*|(?:{_CHINESE})|[\u3400-\u9fff\u2600-\u27bf\U0001f300-\U0001faff]|[^\W\d_]+"
)


@dataclass(frozen=True, slots=True)
class Wording:
    """Words of a text in their order.

    Attributes:
        words: as they stand, in lower case.
        forms: what is compared of each; "" for one that says nothing of its own.
        names: forms of what the text writes as names: capitals in English, Latin letters in Chinese.
    """

    words: tuple[str, ...]
    forms: tuple[str, ...]
    names: frozenset[str]

    @property
    def content(self) -> tuple[str, ...]:
        """What it is about."""
        return tuple(filter(None, self.forms))

    @property
    def frame(self) -> frozenset[str]:
        """Its other words, by which one sees how it is built."""
        return frozenset(word for word, one in zip(self.words, self.forms, strict=True) if not one)

    @property
    def sequence(self) -> tuple[str, ...]:
        """Both as they stand."""
        return tuple(one or word for word, one in zip(self.words, self.forms, strict=True))

    def without(self, sides: frozenset[str]) -> "Wording":
        """The same without the words that take these sides of opposites (`text.opposites`)."""
        if not sides:
            return self
        kept = [
            (word, one)
            for word, one in zip(self.words, self.forms, strict=True)
            if side(_PHRASES.get(word, word)) not in sides
        ]
        return Wording(tuple(word for word, _ in kept), tuple(one for _, one in kept), self.names)


def wording(text: str) -> Wording:
    """The words of a text, its numbers and dates left out; "before X, do Y" as "do Y before X"."""
    plain = _GO.sub("Golang", _LETTER.sub("letter-a", unicodedata.normalize("NFKC", text).replace("`", " ")))
    plain = _FRONTED_HAN.sub(r"\3\2\1", _FRONTED.sub(r"\2 \1", _PEOPLE.sub(r"\1个", plain)))
    words = tuple(_UNIT.findall(without_quantities(plain.lower())))
    named = _LATIN if any(CJK in kinds(word) for word in words) else _CAPITAL
    names = frozenset(form(part) for name in named.findall(plain) for part in _UNIT.findall(name.lower()))
    return Wording(words, tuple(map(form, words)), names)


def form(word: str) -> str:
    """The form in which a word is compared; "" for one that says nothing of its own."""
    if not word.isascii():
        return _CHINESE_ONE.get(word, word)
    word = _PHRASES.get(word, word).removesuffix("'s")
    if word in _ENGLISH_ONE:
        return _ENGLISH_ONE[word] and _stem(_ENGLISH_ONE[word])
    return "" if word in FUNCTION_WORDS else _stem(word)
