r"""Finding credentials in text and masking them; the kind stays readable (spec complaints.md 54).

Two sorts are known: shapes that say themselves what they are (`ghp_...`, a private key block), and values that stand
behind a word such as `password:` or `密钥：`. Every pattern begins with a literal, so that a text without it costs one
substring search, and none goes over the same characters twice: time is linear whatever the text holds.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True, slots=True)
class Secret:
    """One credential: text[start:end] is what has to be hidden."""

    kind: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Shape:
    """How one kind of credential looks.

    Attributes:
        kind: what the mask says.
        literal: what the pattern begins with; in lower case when `folded`.
        rest: the pattern behind it; its group `value`, else all that matched, is the credential.
        real: tells a credential from a placeholder, a word or a piece of code.
        folded: whether the case of ASCII letters is ignored.
        before: characters in front of the literal that belong to the credential.
    """

    kind: str
    literal: str
    rest: str
    real: Callable[[str], bool]
    folded: bool = False
    before: int = 0


# --- credential or placeholder -------------------------------------------------------------------------------------

_PLACEHOLDER = r"""(?ix)
      example | placeholder | change[-_]?me | redacted | dummy
    | (?: your | my )[-_]? (?: own | api | key | token | secret | pass )
    | (?: ^ | [-_.] ) (?: your | my | fake | sample | insert | replace | todo | here ) (?: [-_.] | $ )
    | ([x*_•])\1{4,} | (?: ^ | [-_.] ) x{3,} | \*{3} | \.{3} | …
    | ^ [<\[{(] | ^ \$ [\w{(] | ^ % [a-z(]
"""
_EXAMPLE_WORD = (
    r"(?i)(?:pass(?:word|wd|wort)?|pwd|secret|token|key|test|admin|root|guest|user|demo|foo|bar|abc|xyz|postgres|mysql|"
    r"string|str|none|null|nil|true|false|undefined|required|optional|hidden|unknown)[\d!]{0,4}|123456(?:7(?:8(?:90?)?)?)?|(\d)\1*"
)
_WORD = r"(?a)[A-Za-z]{1,20}\d{0,3}|\d{0,4}|(?:Ed|X)(?:25519|448)[A-Za-z]*"
_SEPARATOR = r"[-_./:@+=#,~]"
_TECHNICAL = (
    r"(?i)(?:base|sha|md|aes|des|rsa|dsa|ed|ecdsa|argon|pbkdf|bcrypt|scrypt|oauth|utf|ipv|http|x|v|hs|rs|es|min|max|len|"
    r"win|node|py|python|phase|step|page|line|version)[-_]?\d{1,5}"
)
_CODE = r"(?a)[(){}\[\]<>\\]|://|^[/~.!&|@-]|^\w+@[\w.-]+$|^\d{4}-\d\d-\d\d"


def _placeholder(value: str) -> bool:
    return re.search(_PLACEHOLDER, value) is not None or re.fullmatch(_EXAMPLE_WORD, value) is not None


def _wordy(value: str) -> bool:
    """Whether a value reads like a name: words and short numbers, as in `sha256-hash` or `config.api_key`."""
    return all(re.fullmatch(_WORD, piece) for piece in re.split(_SEPARATOR, value))


def _lettered_and_numbered(value: str) -> bool:
    return any(char.isdigit() for char in value) and any(char.isalpha() for char in value)


def _real_token(value: str) -> bool:
    return not _placeholder(value) and not _wordy(value)


def _real_key(value: str) -> bool:
    """For a value behind a word such as `token`: long, mixed, no name and no code."""
    return len(value) >= 12 and _lettered_and_numbered(value) and not re.search(_CODE, value) and _real_token(value)


def _real_password(value: str) -> bool:
    """For a value behind `password:` itself: six characters that are no mere word."""
    if len(value) < 6 or _placeholder(value) or re.search(_CODE, value) or re.fullmatch(_TECHNICAL, value):
        return False
    if _wordy(value) and re.search(_SEPARATOR, value):
        return False
    return value.isdigit() or _lettered_and_numbered(value) or re.search(r"\w[!@#$%^&*]", value) is not None


def _real_mentioned(value: str) -> bool:
    """For a value that only a verb or a space ties to the word: `the password is ...`, `密码 ...`."""
    return _real_password(value) and not (_wordy(value) and not value.isdigit())


def _real_url_password(value: str) -> bool:
    return not _placeholder(value)


def _always(_value: str) -> bool:
    return True


# --- the table -----------------------------------------------------------------------------------------------------

_PEM = (
    r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:\s|\\[nrt]|[\"'+,>]|[A-Z][A-Za-z-]{1,20}: [^\n\\]{1,80})*+"  # line ends as text or escaped, quotes, headers
    r"[A-Za-z0-9+/=]{16,}+(?:(?:\s|\\[nrt]|[\"'+,>])++[A-Za-z0-9+/=]{16,}+)*+"
    r"(?:(?:\s|\\[nrt]|[\"'+,>])*+[A-Za-z0-9+/=]{0,64}(?:\s|\\[nrt]|[\"'+,>])*-----END [A-Z0-9 ]{0,48}-----)?"
)
_OPEN = r"(?:[ \t]?[（(][^（）()\n]{0,20}[)）])?[ \t\"'`*“]{0,6}(?:=>|[:=：＝]{1,2}|[ \t]\|)[ \t\"'`*“「]{0,6}"
# ASCII but quotes, | and <; a separator only where no next field follows, as in a=1&b=2
_VALUE = r"(?P<value>(?:[!#-%(-+\--:=-_a-{}~]|[,;&](?![A-Za-z_]\w*[=:])){6,}+)"


def _token(kind: str, *literals: str, rest: str, real: Callable[[str], bool] = _real_token) -> Iterator[_Shape]:
    """Shapes that begin with one of the literals, at the beginning of a word."""
    for literal in literals:
        yield _Shape(kind, literal, rf"(?<![A-Za-z0-9]{re.escape(literal)}){rest}", real)


def _assigned(kind: str, *words: str, real: Callable[[str], bool]) -> Iterator[_Shape]:
    """Values behind a word and `:` or `=`; a word is a literal, or a literal and a pattern joined by `|`."""
    for word in words:
        literal, _, ending = word.partition("|")
        yield _Shape(kind, literal, f"{ending}{_OPEN}{_VALUE}", real, folded=True)


def _mentioned(kind: str, *words: str, verb: str) -> Iterator[_Shape]:
    for word in words:
        yield _Shape(kind, word, f"{verb}[\"'`*“「]{{0,3}}{_VALUE}", _real_mentioned, folded=True)


_END = r"(?![A-Za-z0-9])"
_SHAPES: tuple[_Shape, ...] = (
    _Shape("private key", "-----BEGIN ", _PEM, _always),
    *_token("aws key id", "AKIA", "ASIA", rest=rf"[0-9A-Z]{{16}}{_END}"),
    *_token("alibaba key id", "LTAI", rest=rf"[0-9A-Za-z]{{12,26}}{_END}"),
    *_token("tencent key id", "AKID", rest=rf"[0-9A-Za-z]{{32}}{_END}"),
    *_token("google key", "AIza", rest=r"[\w-]{30,}"),
    *_token("google token", "ya29.", rest=r"[\w-]{20,}"),
    *_token("anthropic key", "sk-ant-", rest=r"[\w-]{16,}"),
    *_token("openai key", "sk-proj-", "sk-svcacct-", "sk-admin-", rest=r"[\w-]{16,}"),
    *_token("openrouter key", "sk-or-", rest=r"[\w-]{16,}"),
    *_token("dashscope key", "sk-sp-", rest=r"(?=[\w.-]{12})[\w-]+(?:\.[\w-]+)*+"),
    *_token("api key", "sk-", rest=r"[\w-]{16,}+(?:\.[\w-]+)*+"),
    *_token("huggingface token", "hf_", rest=r"[A-Za-z0-9]{30,}"),
    *_token("github token", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", rest=r"[A-Za-z0-9]{30,}"),
    *_token("github token", "github_pat_", rest=r"\w{22,}"),
    *_token("gitlab token", "glpat-", rest=r"[\w-]{20,}+(?:\.[\w-]+)*+"),
    *_token("slack token", "xox", rest=r"[a-z](?:\.xox[a-z])?-[\w-]{10,}"),
    *_token("slack token", "xapp-", rest=r"[\w-]{20,}"),
    *_token("webhook", "hooks.slack.com/", rest=r"(?P<value>(?:services|workflows|triggers)/[\w/+-]{20,})"),
    *_token("webhook", "discord.com/api/webhooks/", "discordapp.com/api/webhooks/", rest=r"(?P<value>\d+/[\w-]{30,})"),
    *_token("webhook", "open.feishu.cn/open-apis/bot/v2/hook/", rest=r"(?P<value>[\w-]{20,})"),
    *_token("webhook", "qyapi.weixin.qq.com/cgi-bin/webhook/send?key=", rest=r"(?P<value>[\w-]{20,})"),
    *_token("sendgrid key", "SG.", rest=r"[\w-]{16,}+\.[\w-]{16,}"),
    *_token("npm token", "npm_", rest=rf"[A-Za-z0-9]{{30,}}{_END}"),
    *_token("pypi token", "pypi-", rest=r"[\w-]{50,}"),
    *_token("stripe key", "sk_live_", "rk_live_", "whsec_", rest=r"[A-Za-z0-9+/=]{16,}"),
    *_token("groq key", "gsk_", rest=r"[A-Za-z0-9]{40,}"),
    *_token("xai key", "xai-", rest=r"[A-Za-z0-9]{40,}"),
    *_token("tavily key", "tvly-", rest=r"[\w-]{20,}"),
    *_token("age key", "AGE-SECRET-KEY-1", rest=r"[0-9A-Z]{40,}"),
    _Shape("telegram token", ":AA", r"(?<=\d{8}:AA)[\w-]{32,}", _real_token),
    _Shape("jwt", "eyJ", r"(?<![\w-]eyJ)[\w-]{8,}+\.eyJ[\w-]{8,}+\.[\w-]{8,}", _real_token),
    # 32 hexadecimal digits, a dot, 16 letters or digits: Zhipu (BigModel)
    _Shape(
        "zhipu key",
        ".",
        rf"(?<=[0-9a-f]{{32}}\.)(?<![0-9A-Za-z][0-9a-f]{{32}}\.)[A-Za-z0-9]{{16}}{_END}",
        _real_token,
        before=32,
    ),
    _Shape(
        "password", "://", r"[^\s/@:\"'<>`\[\]]*+:(?P<value>[^\s/@\"'<>`\[\]]{3,}+)@(?!sha256:)", _real_url_password
    ),
    _Shape("bearer token", "bearer", r"[ \t]{1,3}[\"'`]?(?P<value>[a-z0-9._~+/=-]{16,})", _real_key, folded=True),
    _Shape(
        "basic credentials",
        "authorization",
        r"[\"']?\s*+[:=]\s*+[\"']?basic\s++(?P<value>[a-z0-9+/=]{12,})",
        _real_token,
        folded=True,
    ),
    *_assigned(
        "password",
        *("password", "passwd", "passphrase", "passcode", "pwd", "_pass"),
        *("密码", "密碼", "口令", "パスワード", "비밀번호"),
        real=_real_password,
    ),
    *_mentioned("password", "password", "passphrase", verb=r"[ \t](?:is|was)[ \t]"),
    *_mentioned("password", "密码", "密碼", "口令", verb=r"[ \t]?(?:是|为|為)?[ \t]?"),
    *_assigned(
        "secret",
        *("secret|(?:[_ -]?(?:access[_ -]?)?key)?", "token|(?<!publickeytoken)", "api|[_ -]?(?:key|token|secret)"),
        *("access|[_ -]?key(?:[_ -]?secret)?", "密钥", "密鑰", "秘钥", "金鑰", "令牌"),
        *(f"{what}|[_ -]?key" for what in ("private", "signing", "encryption", "auth", "master")),
        real=_real_key,
    ),
)
_RANK = {kind: rank for rank, kind in enumerate(dict.fromkeys(shape.kind for shape in _SHAPES))}
_JUDGED = 256  # characters of a value that are looked at; a real one shows within them what it is
_CLOSING = frozenset(".,;:)]}>*\\")


# --- finding -------------------------------------------------------------------------------------------------------


def find(text: str) -> list[Secret]:
    """The credentials of a text in order, none overlapping another.

    Placeholders (`<your-key>`, `sk-xxxx`, `$TOKEN`, `...`), hashes, identifiers and prose about keys are none.
    """
    merged: list[Secret] = []
    for secret in sorted(_found(text), key=lambda secret: (secret.start, secret.end)):
        if merged and secret.start < merged[-1].end:
            last = merged[-1]
            kind = min(last.kind, secret.kind, key=_RANK.__getitem__)
            merged[-1] = Secret(kind, last.start, max(last.end, secret.end))
        else:
            merged.append(secret)
    return merged


def mask(text: str) -> str:
    """Replace every credential by `[masked KIND]`; what surrounds it stays, and masking twice changes nothing."""
    pieces: list[str] = []
    done = 0
    for secret in find(text):
        pieces += (text[done : secret.start], f"[masked {secret.kind}]")
        done = secret.end
    return "".join((*pieces, text[done:]))


def _found(text: str) -> Iterator[Secret]:
    folded = text.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")  # ASCII only: same length
    for shape in _SHAPES:
        searched = folded if shape.folded else text
        if shape.literal not in searched:
            continue
        for match in _pattern(shape).finditer(searched):
            start, end = match.span("value")
            start -= shape.before
            while end > start and text[end - 1] in _CLOSING:
                end -= 1
            if shape.real(text[start : min(end, start + _JUDGED)]):
                yield Secret(shape.kind, start, end)


@cache
def _pattern(shape: _Shape) -> re.Pattern[str]:
    literal = re.escape(shape.literal)
    named = "(?P<value>" in shape.rest
    return re.compile(f"{literal}{shape.rest}" if named else f"(?P<value>{literal}{shape.rest})", re.ASCII)
