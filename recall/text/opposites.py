"""Words that turn a fact round: enable and disable, tabs and spaces, 开启 and 关闭."""

from typing import Final

from recall.text.patterns import pattern

# One pair a line: words of one side | words of the other.
_PAIRS: Final = """
enable enables enabled enabling activated 开启 启用 打开|disable disables disabled disabling deactivated 关闭 禁用 停用
tabs tab 制表符|spaces space 空格
before prior 之前 以前 前先|after afterwards 之后 以后
always 总是 一律 始终 永远|never sometimes 从不 绝不 永不
required mandatory must-have 必须 必填 强制|optional 可选 选填 非必填
increase increased raise raised 增加 提高 调高|decrease decreased reduce reduced lower lowered 减少 降低 调低
uppercase 大写|lowercase 小写
minimum min least 最小 最少 至少 最低 不少于|maximum max most 最大 最多 至多 最高 不超过
public 公开 公有|private 私有
light 浅色 亮色|dark 深色 暗色
true|false
ascending asc 升序|descending desc 降序
sync synchronous synchronously 同步|async asynchronous asynchronously 异步
left 左侧 左边|right 右侧 右边
push 推送|pull 拉取
include includes included 包含 包括|exclude excludes excluded 排除
allow allows allowed permitted 允许|deny denied forbidden forbid 禁止
add adds added 添加 新增|remove removes removed delete deletes deleted 删除 移除
open|close closed
long 长期|short 短期
fast faster 快|slow slower 慢
internal 内部 内网|external 外部 外网
strict strictly 严格|loose lenient 宽松
verbose detailed 详细|concise brief terse short 简洁 简短 简要
manual manually 手动 人工|automatic automatically auto 自动
local locally 本地|remote remotely 远程
single 单引号|double 双引号
online 在线 上线|offline 离线 下线
same 相同 一样|different 不同
likes like loves prefers prefer 喜欢 偏好|dislikes dislike hates hate 讨厌 反感
upgrade upgraded 升级|downgrade downgraded 降级
first 最先|last 最后
inside 里面|outside 外面
client 客户端|server 服务端 服务器端
frontend 前端|backend 后端
read 只读|write 写入
staging 预发 预发布|production prod 生产
success succeeded succeeds pass passes passed 成功 通过|fail fails failed failure 失败
"""
_POLES: Final = {
    word: f"{sign}{number}"
    for number, line in enumerate(_PAIRS.split("\n")[1:-1])
    for sign, side in zip("+-", line.split("|"), strict=True)
    for word in side.split()
}
_LATIN: Final = pattern(r"[a-z][a-z-]*")
_HAN: Final = pattern("|".join(sorted((word for word in _POLES if not word.isascii()), key=len, reverse=True)))


def poles(text: str) -> frozenset[str]:
    """Sides that a text in lower case takes, such as `+3` and `-3`."""
    found = [_POLES[word] for word in _LATIN.findall(text) if word in _POLES]
    return frozenset(found) | {_POLES[word] for word in _HAN.findall(text)}


def opposed(first: frozenset[str], second: frozenset[str]) -> bool:
    """Whether the two take different sides, and only one each."""
    return bool(_turned(first - second) & (second - first)) and not first & _turned(first) & second


def _turned(sides: frozenset[str]) -> frozenset[str]:
    return frozenset(("-" if side[0] == "+" else "+") + side[1:] for side in sides)
