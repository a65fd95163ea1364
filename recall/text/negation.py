"""What a text denies, in English and Chinese: not, never, without; 不, 别, 禁止."""

from dataclasses import dataclass
from typing import Final

from recall.text.function_words import FUNCTION_WORDS
from recall.text.patterns import pattern

# Looks like a negation and is none, or says no more than a limit.
_NONE_EN: Final = (
    r"not (?:only|just|merely|simply)|(?:no|not) (?:matter|doubt|wonder|(?:more|less|fewer|later|earlier) than)"
    r"|(?:not|never) (?:exceed\w*|(?:fall|drop|go) (?:below|above|over))|(?:[a-z]{1,8}n't|not) like|(?:whether )?or not"
    r"|why not|non?-\w+"
    r"|no\.? ?(?=\d)|nothing but|if not|not to mention"
)
_NONE_ZH: Final = (
    r"(?P<twice>.)[不没](?P=twice)|不得不|不喜欢|不仅|不但|不断|不错|不过|不止|不只|不管|不论|不如|不久|不妨|不禁|不免|不愧"
    r"|不光|不单|不同|不然|差不多|对不起|了不起|不可避免|不[能得可会]?(?:超过|少于|低于|高于|大于|小于|早于|晚于)|绝不仅"
    r"|特别|区别|别名|类别|级别|识别|分别|性别|个别|差别|别的|别人|别处|辨别|鉴别|判别|告别|派别|无论|未来|未必|除非"
    r"|没错|沉没|无线|无限|无状态|无头"
)
_CUE_EN: Final = (
    r"(?:do|does|did|is|are|was|were|has|have|had|can|could|should|would|must|need|wo|ca|sha|might|ai)n't|cannot|cant|dont"
    r"|no longer|no one|not|never|no|none|nobody|nothing|nowhere|neither|without|w/o|avoid(?:s|ed|ing)?"
    r"|forbid(?:s|den|ding)?|prohibit(?:s|ed|ing)?|banned|disallow(?:s|ed|ing)?|refrain|instead of|rather than"
    r"|stop(?:s|ped)?(?= \w+ing\b)|quit(?= \w+ing\b)"
)
_CUE_ZH: Final = (
    r"不要再|不再|不要|不能|不可以|不可|不准|不许|不得|不应该|不应|不该|不用|不必|不需要|不会|不是|没有|没|不|切勿|请勿|勿|别"
    r"|严禁|禁止|停止|避免|拒绝|无需|无须|无法|无权|毫无|绝无|尚未|从未|未曾|未|并非|绝非|而非|而不是"
)
_SCAN: Final = pattern(
    rf"(?<![a-z])(?:{_NONE_EN})(?![a-z])|{_NONE_ZH}"
    rf"|(?P<cue>(?<![a-z-])(?:{_CUE_EN})(?![a-z-])|{_CUE_ZH})"
)
_CLAUSE: Final = pattern(
    r"[.,;:!?()\n。、；：！？…—]+|(?<![a-z])(?:and|or|but|because|since|so|while|when|if|that|which|until|unless|as|nor)(?![a-z])"
    r"|因为|所以|但是?|而且|如果|并且|否则|以及|同时|(?=而不是|而非)|(?= instead of| rather than)"
)
_WORD: Final = pattern(r"[a-z][a-z'-]*|[\u3400-\u9fff]{2}")
_LIGHT: Final = pattern(r"[把将被在对向给用去来会能要再可让使应该请直接随意任何]+")


@dataclass(frozen=True, slots=True)
class Denial:
    """What of a text is denied.

    Attributes:
        heads: the first word behind each negation, one that does not say how a sentence is built.
        denied: what stands behind negations, as one text.
        stated: the rest.
    """

    heads: frozenset[str]
    denied: str
    stated: str

    def contradicts(self, other: "Denial") -> bool:
        """Whether one denies what the other states."""
        if bool(self.heads) != bool(other.heads):
            return True
        mine, theirs = self._turns(other), other._turns(self)
        return (mine and theirs) or (len(self.heads) != len(other.heads) and (mine or theirs))

    def _turns(self, other: "Denial") -> bool:
        return any(head in other.stated and head not in other.denied for head in self.heads if head)


def denial(text: str) -> Denial:
    """What a text in lower case and NFKC denies; two negations in one clause make a statement (不能没有)."""
    heads: set[str] = set()
    denied: list[str] = []
    stated: list[str] = []
    for clause in _CLAUSE.split(text.replace("’", "'")):
        cues = [found for found in _SCAN.finditer(clause or "") if found["cue"]]
        if len(cues) % 2 == 0:
            stated.append(clause or "")
            continue
        cue = cues[-1]
        stated.append(clause[: cue.start()])
        denied.append(clause[cue.end() :])
        heads.add(_head(clause[cue.end() :]))
    return Denial(frozenset(heads), " ".join(denied), " ".join(stated))


def _head(behind: str) -> str:
    words = _WORD.findall(_LIGHT.sub("", behind[:200]))
    return next((word for word in words if word not in FUNCTION_WORDS), "")
