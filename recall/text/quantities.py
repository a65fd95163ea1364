"""Numbers, dates and times of a text in one spelling each, however they are written in English or Chinese."""

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Final

from recall.text.patterns import pattern

_ONES: Final = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
nineteen"""
_TENS: Final = "twenty thirty forty fifty sixty seventy eighty ninety"
_SCALES: Final = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9}
_WORDS: Final = (
    {word: number for number, word in enumerate(_ONES.split())}
    | {word: 10 * number for number, word in enumerate(_TENS.split(), 2)}
    | _SCALES
)
_WORD: Final = "|".join(sorted(_WORDS, key=len, reverse=True))
_SPELT: Final = pattern(rf"(?<![a-z\d])(?<!\d )(?:{_WORD})(?:[ -](?:and )?(?:{_WORD})){{0,9}}(?![a-z])")

_HAN_DIGITS: Final = {"零": 0, "〇": 0, "两": 2} | {
    digit: number for number, digit in enumerate("一二三四五六七八九", 1)
}
_HAN_SCALES: Final = {"十": 10, "百": 100, "千": 1000, "万": 10**4, "亿": 10**8}
_HAN: Final = "".join(_HAN_DIGITS) + "".join(_HAN_SCALES)
# One numeral alone is a number only before what is counted or after 第: 统一, 三方 and 一起 are words.
_COUNTED: Final = (
    "个個台次条條项份位名种種层倍轮步遍级组套张件行列字页章版篇核副周年月号號点點分秒天日小时時块元人路毫季"
)
_HAN_NUMBER: Final = pattern(
    rf"(?<![{_HAN}])(?:[一二两三四五六七八九十][{_HAN}]+|[零〇一二两三四五六七八九十](?=[{_COUNTED}])|(?<=第)[{_HAN}]|(?<=百分之)[{_HAN}]+)"
)

_WEEKDAYS: Final = dict(zip("一二三四五六日天", ("mon", "tue", "wed", "thu", "fri", "sat", "sun", "sun"), strict=True))
_WEEKDAY: Final = pattern(
    r"(?<![a-z])(?:(mon|fri|sun)(?:days?)?|(tue)(?:s|s?days?)?|(wed)(?:s|nesdays?)?|(thu)(?:rs?|rsdays?)?|(sat)(?:urdays?)?)"
    r"(?![a-z])|(?:周|週|星期|礼拜|禮拜)([一二三四五六日天])(?![次个個遍])"
)
_MONTH_NAMES: Final = "jan feb mar apr may jun jul aug sep oct nov dec"
_MONTHS: Final = {name: month for month, name in enumerate(_MONTH_NAMES.split(), 1)}
_MONTH: Final = (
    r"(?<![a-z])(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)(?![a-z])\.?"
)
_DAY: Final = r"(\d{1,2})(?:st|nd|rd|th)?(?![\d:a-z])"
_YEAR: Final = r"(?:,? ?((?:19|20)\d\d)(?!\d))?"
_NUMERIC_DATE: Final = pattern(r"(?<![\d.])((?:19|20)\d\d)[-/.](\d{1,2})[-/.](\d{1,2})(?![\d.-])(?:t(?=\d))?")
_HAN_DATE: Final = pattern(
    r"(?:((?:19|20)\d\d) ?年 ?)?(?<!\d)(\d{1,2}) ?月(?:份|底|初|中旬)?(?: ?(\d{1,2}) ?[日号號])?"
)
_MONTH_FIRST: Final = pattern(rf"{_MONTH} (?:the )?{_DAY}{_YEAR}")
_DAY_FIRST: Final = pattern(rf"(?<![\d.:]){_DAY} (?:of )?{_MONTH}{_YEAR}")
# May and March are other words as well, except behind such a word.
_MONTH_ALONE: Final = pattern(
    rf"(?<![a-z])(?:in|since|until|till|by|from|of|to|through|before|after|early|late|mid) {_MONTH}{_YEAR}"
)
_CLOCK: Final = pattern(r"(?<![\d:.])(\d{1,2}):(\d\d)(?::\d\d(?:\.\d+)?)?(?![\d:])(?: ?([ap])\.?m\b\.?)?")
_HOUR: Final = pattern(r"(?<![\d:.])(\d{1,2}) ?([ap])\.?m\b\.?")
_HAN_PART: Final = "(凌晨|早上|早晨|上午|中午|下午|傍晚|晚上|夜里)"
_HAN_HALF_DAY: Final = pattern(rf"{_HAN_PART} ?(\d{{1,2}}):(\d\d)(?!\d)")
_HAN_CLOCK: Final = pattern(
    rf"{_HAN_PART}? ?(?<![\d:.])(\d{{1,2}}) ?[点點时時](?![间間候区数个])(?:(半)| ?(\d{{1,2}}) ?分?)?"
)
_EVERY: Final = {
    "hour": r"hourly|(?:every|each) hour|每(?:个)?小时",
    "night": r"nightly|(?:every|each) night|每晚",
    "day": r"daily|(?:every|each) day|每天|每日",
    "week": r"weekly|(?:every|each) week|每周(?![一二三四五六日天])|每星期(?![一二三四五六日天])",
    "month": r"monthly|(?:every|each) month|每个?月",
    "quarter": r"quarterly|(?:every|each) quarter|每个?季度",
    "year": r"yearly|annually|(?:every|each) year|每年",
    "weekend": r"weekends?|周末|週末",
    "today": r"today|今天|今日",
    "tomorrow": r"tomorrow|明天|明日",
    "yesterday": r"yesterday|昨天|昨日",
    "afternoon": r"afternoons?|下午",
    "morning": r"mornings?|早上|早晨|上午",
    "evening": r"evenings?|晚上|傍晚",
}
# At nine, every morning, daily: where the hour is said, these say nothing more.
_PARTS: Final = frozenset({"day", "night", "morning", "afternoon", "evening"})
_NAMED: Final = pattern("|".join(f"(?P<{name}>(?<![a-z])(?:{words})(?![a-z]))" for name, words in _EVERY.items()))
_QUARTER: Final = pattern(r"(?<![a-z\d])q([1-4])(?![a-z\d])|第? ?([1-4]) ?季度")

_SECONDS: Final = {
    "ms": Fraction(1, 1000), "millisecond": Fraction(1, 1000), "毫秒": Fraction(1, 1000),
    "s": Fraction(1), "sec": Fraction(1), "second": Fraction(1), "秒": Fraction(1), "秒钟": Fraction(1),
    "min": Fraction(60), "minute": Fraction(60), "分钟": Fraction(60),
    "h": Fraction(3600), "hr": Fraction(3600), "hour": Fraction(3600), "小时": Fraction(3600), "个小时": Fraction(3600),
    "day": Fraction(86400), "天": Fraction(86400), "d": Fraction(86400),
    "week": Fraction(604800), "周": Fraction(604800), "个星期": Fraction(604800), "星期": Fraction(604800),
}  # fmt: skip
_MONTH_UNITS: Final = {"month": 1, "个月": 1, "year": 12, "年": 12}
_OTHER_UNITS: Final = {
    "kb": "kb", "mb": "mb", "gb": "gb", "tb": "tb", "g": "gb", "t": "tb", "m": "m", "kib": "kib", "mib": "mib",
    "gib": "gib", "tib": "tib", "b": "b", "byte": "b", "字节": "b", "%": "%", "percent": "%", "pct": "%",
    "usd": "usd", "dollar": "usd", "美元": "usd", "rmb": "cny", "yuan": "cny", "元": "cny", "cny": "cny", "euro": "eur",
    "px": "px", "像素": "px", "pixel": "px", "em": "em", "rem": "rem", "x": "x", "倍": "x", "hz": "hz", "ghz": "ghz",
    "mhz": "mhz", "qps": "qps", "rps": "rps", "mbps": "mbps", "gbps": "gbps", "km": "km", "cm": "cm", "mm": "mm",
    "kg": "kg", "us": "us", "ns": "ns", "微秒": "us",
}  # fmt: skip
_SCALE: Final = {"k": 1000, "万": 10**4, "亿": 10**8, "千": 1000, "百": 100} | _SCALES
_PLURAL: Final = {"sec", "second", "millisecond", "min", "minute", "hr", "hour", "day", "week", "month", "year"} | {
    "byte", "dollar", "euro", "pixel",
}  # fmt: skip
_UNIT: Final = "|".join(
    f"{unit}s?" if unit in _PLURAL else unit
    for unit in sorted({*_SECONDS, *_MONTH_UNITS, *_OTHER_UNITS}, key=len, reverse=True)
)
_NUMBER: Final = pattern(
    rf"(?P<sign>[$¥€]|百分之)? ?(?P<value>\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?(?!\d)|\d+(?:\.\d+)*)"
    rf"(?:(?:st|nd|rd|th)(?![a-z]))?"
    rf"(?:[ -]?(?P<scale>k|thousand|million|billion|hundred|[万亿千百])(?![a-z]))?"
    rf"(?:[ -]?(?P<unit>{_UNIT})(?![a-z]))?"
)
_SIGNS: Final = {"$": "usd", "¥": "cny", "€": "eur", "百分之": "%"}
_UNITS: Final = (
    {unit: ("s", seconds) for unit, seconds in _SECONDS.items()}
    | {unit: ("month", Fraction(months)) for unit, months in _MONTH_UNITS.items()}
    | {unit: (name, Fraction(1)) for unit, name in _OTHER_UNITS.items()}
)
_LONGEST: Final = 30  # digits that are reckoned with; more are a name


def quantities(text: str) -> tuple[list[str], list[str]]:
    """Numbers and dates of a text in lower case and NFKC.

    Numbers in their order, dates nearly so. Numbers carry their unit, durations are seconds, years months; a lone 1
    counts as the article that it may be (one retry, 一个). Dates are `2026-03-05`, `--03-05`, `--03`, `fri`, `15:00`,
    `week` for weekly, and the like.
    """
    dates: list[str] = []
    text = _taken(text, dates)
    if any(":" in date for date in dates):
        dates = [date for date in dates if date not in _PARTS]
    numbers = (_canonical(*found.group("sign", "value", "scale", "unit")) for found in _NUMBER.finditer(text))
    return [number for number in numbers if number != "1"], dates


def without_quantities(text: str) -> str:
    """A text in lower case and NFKC without its numbers and dates."""
    return _NUMBER.sub(" ", _taken(text, []))


def _taken(text: str, dates: list[str]) -> str:
    """The text without its dates, which are added, and with digits for spelt numbers."""

    def take(pattern_: re.Pattern[str], spelling: Callable[[re.Match[str]], str | None], text: str) -> str:
        def one(found: re.Match[str]) -> str:
            date = spelling(found)
            if date is None:
                return found[0]
            dates.append(date)
            return " ; "

        return pattern_.sub(one, text)

    text = take(_WEEKDAY, _weekday, text)
    text = _HAN_NUMBER.sub(_han, _SPELT.sub(_spelt, text))
    for pattern_, spelling in _DATES:
        text = take(pattern_, spelling, text)
    return text


def _weekday(found: re.Match[str]) -> str:
    return _WEEKDAYS[found[6]] if found[6] else next(name for name in found.groups() if name)


def _date(year: str | None, month: int, day: str | None) -> str | None:
    if not 1 <= month <= 12 or (day and not 1 <= int(day) <= 31):
        return None
    return f"{year or '-'}-{month:02}" + (f"-{int(day):02}" if day else "")


def _clock(hour: str, minute: str | None, half: str) -> str | None:
    """A time of the day; half: `a`, `p` or "" for what it is said to be before or after noon."""
    hours, minutes = int(hour), int(minute or 0)
    if hours > 24 or minutes > 59:
        return None
    if half == "p" and hours < 12:
        hours += 12
    if half == "a" and hours == 12:
        hours = 0
    return f"{hours % 24:02}:{minutes:02}"


def _han_clock(found: re.Match[str]) -> str | None:
    part, hour, half, minute = found.groups()
    return _clock(hour, "30" if half else minute, ("a" if part[0] in "凌早上" else "p") if part else "")


def _month(name: str) -> int:
    return _MONTHS[name[:3]]


_DATES: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str | None]], ...]] = (
    (_NUMERIC_DATE, lambda found: _date(found[1], int(found[2]), found[3])),
    (_HAN_DATE, lambda found: _date(found[1], int(found[2]), found[3])),
    (_MONTH_FIRST, lambda found: _date(found[3], _month(found[1]), found[2])),
    (_DAY_FIRST, lambda found: _date(found[3], _month(found[2]), found[1])),
    (_MONTH_ALONE, lambda found: _date(found[2], _month(found[1]), None)),
    (_HAN_HALF_DAY, lambda found: _clock(found[2], found[3], "a" if found[1][0] in "凌早上" else "p")),
    (_CLOCK, lambda found: _clock(found[1], found[2], found[3] or "")),
    (_HOUR, lambda found: _clock(found[1], None, found[2])),
    (_HAN_CLOCK, _han_clock),
    (_QUARTER, lambda found: f"q{found[1] or found[2]}"),
    (_NAMED, lambda found: found.lastgroup),
)


def _spelt(found: re.Match[str]) -> str:
    total = part = 0
    for word in found[0].replace("-", " ").split():
        number = _WORDS.get(word, 0)
        if word == "hundred":
            part = max(part, 1) * 100
        elif word in _SCALES:
            total, part = total + max(part, 1) * number, 0
        else:
            part += number
    return str(total + part)


def _han(found: re.Match[str]) -> str:
    numeral = found[0]
    if all(char in _HAN_DIGITS for char in numeral):
        return "".join(str(_HAN_DIGITS[char]) for char in numeral)
    total = section = digit = 0
    for char in numeral[:_LONGEST]:
        if char in _HAN_DIGITS:
            digit = _HAN_DIGITS[char]
            continue
        scale = _HAN_SCALES[char]
        if scale >= 10**4:
            total, section = (total + max(section + digit, 1)) * scale, 0
        else:
            section += max(digit, 1) * scale
        digit = 0
    return str(total + section + digit)


def _canonical(sign: str | None, value: str, scale: str | None, unit: str | None) -> str:
    """One spelling of a number; versions stay as they are."""
    value = value.replace(",", "")
    unit = _SIGNS[sign] if sign else unit or ""
    if unit not in _UNITS:
        unit = unit.removesuffix("s")
    if value.count(".") > 1 or len(value) > _LONGEST:
        return value
    if "." in value and not unit and not scale:
        return value  # 3.10 is another version than 3.1
    size = Fraction(value) * _SCALE.get(scale or "", 1)
    name, factor = _UNITS.get(unit, (unit, 1))
    return f"{size * factor} {name}".strip()
