"""Words that turn a fact round: enable and disable, tabs and spaces, 开启 and 关闭."""

from typing import Final

from recall.text.patterns import pattern

# One pair a line: words of one side | words of the other. First what is said of a thing, then what tells things apart.
_VALUES: Final = """
enable enables enabled enabling activated 开启 启用 打开|disable disables disabled disabling deactivated 关闭 禁用 停用
tabs tab 制表符|spaces space 空格
always 总是 一律 始终 永远|sometimes 有时 偶尔
required mandatory 必填 强制|optional 可选 选填 非必填
must should shall 必须 应该 应当 务必|may can could might 可以
uppercase 大写|lowercase 小写
light 浅色 亮色|dark 深色 暗色
true|false
ascending asc 升序|descending desc 降序
allow allows allowed permitted 允许|deny denied 拒绝
strict strictly 严格|loose lenient 宽松
verbose detailed 详细 详尽|concise brief terse short 简洁 简短 简要
manual manually 手动 人工|automatic automatically auto 自动
likes like loves prefers prefer 喜欢 偏好 喜爱|dislikes dislike hates hate 讨厌 反感 不喜欢
single 单引号|double 双引号
sync synchronous synchronously 同步|async asynchronous asynchronously 异步
"""
_SCOPES: Final = """
before 之前 以前 前|after afterwards 之后 以后 后
increase increased raise raised 增加 提高 调高|decrease decreased reduce reduced lower lowered 减少 降低 调低
open|close closed
fast faster|slow slower
upgrade upgraded 升级|downgrade downgraded 降级
success succeeded succeeds pass passes passed 成功 通过|fail fails failed failure 失败
include includes included 包含 包括|exclude excludes excluded 排除
small smaller|large larger big bigger
minimum min least 最小 最少 至少 最低 不少于 不低于|maximum max most 最大 最多 至多 最高 不超过
public 公开 公有|private 私有
left 左侧 左边|right 右侧 右边
push 推送|pull 拉取
add adds added 添加 新增|remove removes removed delete deletes deleted 删除 移除
internal 内部 内网|external 外部 外网
local locally 本地|remote remotely 远程
online 在线|offline 离线
same 相同 一样|different 不同
first 最先|last 最后
inside 里面 境内|outside 外面 境外
client 客户端|server 服务端 服务器端
frontend 前端|backend 后端
staging 预发 预发布|production prod 生产
import 导入|export 导出
upload 上传|download 下载
login 登录|logout 登出 退出
"""
_SIDES: Final = (_VALUES + _SCOPES.lstrip()).strip().split("\n")
_VALUE_PAIRS: Final = _VALUES.strip().count("\n") + 1
_POLES: Final = {
    word: f"{sign}{number}"
    for number, line in enumerate(_SIDES)
    for sign, side in zip("+-", line.split("|"), strict=True)
    for word in side.split()
}
_SWITCH: Final = pattern(
    r"(?<![a-z])(?:turn(?:s|ed|ing)?|switch(?:es|ed)?|(?:is|are)(?= o(?:n|ff)(?: by default| in |[ .,;]*$)))"
    r" (on|off)(?![a-z])"
)
_DISLIKE: Final = pattern(r"(?:not|n't) (?:like|love)(?![a-z])")
# One character of which many words are made.
_AROUND: Final = {
    "前": "(?<![目当以之先])前(?![端面台缀提者期后])",
    "后": "(?<![以之最然先背])后(?![端台面缀来者续期果])",
}
# A modal with "not" behind it forbids, whichever it is.
_LATIN: Final = pattern(r"[a-z][a-z'-]*(?! not)(?![a-z'-])")
_HAN: Final = pattern(
    "|".join(
        _AROUND.get(word, f"(?<![不非]){word}") for word in sorted(_POLES, key=len, reverse=True) if not word.isascii()
    )
)


MAY: Final = _POLES["may"]
"""The side of what is possible or allowed."""


def poles(text: str) -> frozenset[str]:
    """Sides that a text in lower case takes, such as `+3` and `-3`."""
    text = _DISLIKE.sub(" dislikes", text)
    text = _SWITCH.sub(lambda found: "enabled" if found[1] == "on" else "disabled", text)
    found = [_POLES[word] for word in _LATIN.findall(text) if word in _POLES]
    return frozenset(found) | {_POLES[word] for word in _HAN.findall(text)}


def side(word: str) -> str:
    """The side that a word in lower case takes; "" for none."""
    return _POLES.get(word, "")


def are_values(sides: frozenset[str]) -> bool:
    """Whether such sides are said of a thing (enabled), rather than tell it from another one (staging)."""
    return all(int(side[1:]) < _VALUE_PAIRS for side in sides)


def opposed(first: frozenset[str], second: frozenset[str]) -> bool:
    """Whether the two take different sides, and only one each."""
    return bool(_turned(first - second) & (second - first))


def _turned(sides: frozenset[str]) -> frozenset[str]:
    return frozenset(("-" if side[0] == "+" else "+") + side[1:] for side in sides)
