"""stub"""

from enum import StrEnum

from recall.text.facts import may_be_one


class Verdict(StrEnum):
    SAME = "same"
    RESTATED = "restated"
    CHANGED = "changed"
    OTHER = "other"


def judge(new: str, old: str, cosine: float) -> Verdict:
    if " ".join(new.split()).casefold() == " ".join(old.split()).casefold():
        return Verdict.SAME
    if cosine > 0.9:
        return Verdict.RESTATED if may_be_one(new, old) else Verdict.CHANGED
    return Verdict.OTHER
