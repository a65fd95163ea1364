"""What a text is about: its content words in one form each, so that two sentences can be laid side by side.

English words lose their endings, Chinese ones that programmers use become the English word, so that a sentence and its
translation have the same words; other Chinese stays in characters. Words that any sentence may have are left out.
"""

import unicodedata
from dataclasses import dataclass
from typing import Final

from recall.text.code_words import code_words
from recall.text.function_words import FUNCTION_WORDS
from recall.text.opposites import side
from recall.text.patterns import pattern
from recall.text.quantities import without_quantities


def _stem(word: str) -> str:
    for ending in ("ings", "ing", "ied", "ies", "ers", "ed", "es", "er", "ly", "s", "e", "y"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word.removesuffix(ending)
            break
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word


# Words beyond function words that say how a thing is said, with what others share a meaning: first word stands for all.
_LIGHT: Final = """
allowed ok fine please currently now anymore today always instead switched changed moved replaced migrated became new
previously around about approximately roughly ever required requires require needed needs need supposed must
uses use used using usage done happen happens go goes gone live lives located take takes kept keep keeps
set based reachable serves serve serving serve contains contain hold holds avoid never called named call equipped
forbidden prohibited possible makes sure begin equal equals value work works given put via within inside per may code cannot
don doesn isn aren didn won s t re ll ve planned rather merely simply mean means way thing things one own's be
"""
_SAME: Final = """
prefer like likes prefers preferred preference favor favors favour love loves
store stored stores storing save saved saves persisted
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
some sometimes usually usual occasionally partly
only solely exclusively
before prior
after afterwards
approve approval approvals approved approves approver
dislike dislikes hate hates
test tests tested testing
dependency dependencies
minimum min oldest lowest least
maximum max most
repository repo repos
database db
config configuration configured
kubernetes k8s
javascript js
typescript ts
directory folder
error errors
daily day
document documents documentation docs doc
format formatted formatting formatter
enable enabled enables
disable disabled disables
review reviews reviewed reviewer
"""
_ENGLISH_ONE: Final = {
    word: line.split()[0] for line in _SAME.strip().split("\n") for word in line.split()
} | dict.fromkeys(_LIGHT.split(), "")

# English word: Chinese words for it; without an English word they say nothing of their own.
_TERMS: Final = """
: 的 了 是 在 于 和 与 也 都 就 把 被 将 会 要 请 用 使用 采用 现在 目前 已经 改为 改成 改到 改用 换成 换到 迁移到 移到 移动到
: 调整为 变为 我们 可以 必须 需要 应该 不 不要 不再 不是 不用 不必 不需要 没有 没 禁止 严禁 绝不 不能 不可以 允许 大约 大概 差不多
: 左右 里 中 上 里面 一个 个 位 名 次 这个 那个 时 时候 它 其 做 放 放在 位于 叫 称为 名为 一律 统一 所有 每 给 对 从 到 往 向 由 为
: 得 着 过 再 还 又 才 来 去 有 以 之 而 但 但是 尽量 直接 务必 千万 今后 以后 后来 一直 进行 并 并且 同时 很 非常 起 随意 任何 升级到 升级为 更新到 遍
user: 用户 使用者
name: 名字 姓名 名称 名叫
port: 端口
listen: 监听
database: 数据库
cache: 缓存
server: 服务器
service: 服务
api: 接口
test: 测试
unit: 单元
integration: 集成
memory: 内存
disk: 磁盘 硬盘
commit: 提交
message: 信息 消息
chinese: 中文 汉语
english: 英文 英语
japanese: 日语 日文
comment: 注释
code: 代码
branch: 分支
push: 推送
pull: 拉取
force: 强制 强推
merge: 合并
request: 请求
approve: 批准 审批
review: 评审 审查 审核
frontend: 前端
backend: 后端
mobile: 移动端
dependency: 依赖 依赖包
install: 安装
package: 包 软件包
prefer: 喜欢 偏好 喜爱 倾向
dislike: 讨厌 不喜欢 反感
answer: 回答 回复 答复
short: 简短 简洁 简要
detail: 详细 详尽
file: 文件
config: 配置 设置
delete: 删除 删掉
directory: 目录 文件夹
log: 日志
backup: 备份
retain: 保留 保存期
day: 天 日
release: 发布 发版 上线
deploy: 部署
version: 版本
time: 时间
timezone: 时区
timestamp: 时间戳
store: 存储 存放 保存 存
local: 本地
show: 显示 展示
document: 文档
write: 编写 写
read: 读取 读
run: 运行 跑 执行
start: 启动 开始
build: 构建 编译
fail: 失败
only: 只 仅 只有 仅仅 只能
some: 有时 部分 偶尔 通常 有些
cause: 因为 导致 引起 造成 由于
minimum: 至少 最少 最小 不低于 不少于 最低 不能低于 不得低于 不得少于 不能少于
maximum: 最多 至多 最大 不超过 最高 不能超过 不得超过 不可超过
pull-request: 合并请求 拉取请求
error: 错误 报错
retry: 重试
limit: 上限 限制 限流
timeout: 超时
expire: 过期
session: 会话
theme: 主题
default: 默认 缺省
dark: 深色 暗色
light: 浅色 亮色
language: 语言
production: 生产 线上
environment: 环境
variable: 变量
key: 密钥 秘钥
password: 密码
key: 机密
certificate: 证书
encrypt: 加密
own: 负责
module: 模块
search: 搜索 检索
pay: 支付 付款
bill: 计费 账单
customer: 客户
invoice: 发票
report: 上报 报告
performance: 性能
data: 数据
coverage: 覆盖率
mutation: 变异
function: 函数
class: 类
method: 方法
type: 类型
name-style: 命名
indent: 缩进
space: 空格
tab: 制表符
quote: 引号
line: 行
table: 表 数据表
index: 索引
query: 查询
queue: 队列
job: 任务 作业
ticket: 任务单 工单
number: 编号
author: 作者
image: 镜像 图片
container: 容器
cluster: 集群
node: 节点
thread: 线程
process: 进程
permission: 权限
admin: 管理员
dashboard: 后台 仪表盘
account: 账号 账户
email: 邮箱 邮件
token: 令牌
script: 脚本
command: 命令
tool: 工具
editor: 编辑器
model: 模型
train: 训练
ask: 问 询问 征求
plan: 计划 方案
before: 前 之前 以前
after: 后 之后
link: 链接
source: 来源
meeting: 会议 开会
standup: 站会
colleague: 同事
team: 团队
project: 项目
german: 德国
french: 法国
migrate: 迁移
enable: 开启 启用 打开
disable: 关闭 禁用 停用
manual: 手动
automatic: 自动
rotate: 轮换
call: 调用
software: 软件
framework: 框架
library: 库
dictate: 听写
page: 页面
slow: 慢
format: 格式化
"""
_CHINESE_ONE: Final = {
    term: line.partition(":")[0] and _stem(line.partition(":")[0])
    for line in _TERMS.strip().split("\n")
    for term in line.partition(":")[2].split()
}
_CHINESE: Final = "|".join(sorted(_CHINESE_ONE, key=len, reverse=True))
# Team A is no article.
_LETTER: Final = pattern(r"(?<=[a-z\d] )A(?![\w'])")
# Words that belong together, as one.
_PHRASES: Final = {
    "pull request": "pull-request", "pull requests": "pull-request", "merge request": "pull-request",
    "merge requests": "pull-request", "time out": "timeout", "times out": "timeout", "time zone": "timezone",
    "turned on": "enable", "turned off": "disable", "switched on": "enable", "switched off": "disable",
    "backed up": "backup", "back up": "backup", "backs up": "backup", "in memory": "in-memory", "at least": "minimum",
    "at most": "maximum", "up to": "maximum", "no more than": "maximum", "no less than": "minimum",
    "fall below": "minimum", "drop below": "minimum", "exceed": "maximum", "stay above": "minimum", "vs code": "vscode", "upgraded to": "", "does not like": "dislike", "do not like": "dislike",
    "doesn't like": "dislike", "don't like": "dislike",
}  # fmt: skip
_UNIT: Final = pattern(
    rf"(?<![a-z])(?:{'|'.join(_PHRASES)})(?![a-z])|[a-z][a-z0-9+#]*(?:['-][a-z0-9]+)*|(?:{_CHINESE})|[\u3400-\u9fff]|[^\W\d_]+"
)


@dataclass(frozen=True, slots=True)
class Wording:
    """Words of a text in their order.

    Attributes:
        content: what it is about, in one form each.
        frame: its other words, by which one sees how it is built.
        sequence: both as they stand.
    """

    content: tuple[str, ...]
    frame: frozenset[str]
    sequence: tuple[str, ...]


def wording(text: str, *, without: frozenset[str] = frozenset(), codes: bool = True) -> Wording:
    """The words of a text, its numbers and dates left out.

    Args:
        text: any.
        without: sides of opposites (`text.opposites`) whose words are left out too.
        codes: whether identifiers, paths and the like count as words.
    """
    plain = unicodedata.normalize("NFKC", text)
    if not codes:
        plain = code_words(plain)[1]
    content: list[str] = []
    frame: set[str] = set()
    sequence: list[str] = []
    plain = _LETTER.sub("letter-a", plain).lower()
    for word in _UNIT.findall(without_quantities(plain.replace("`", " "))):
        one = form(word)
        if side(_PHRASES.get(word, word)) in without:
            continue
        sequence.append(one or word)
        if one:
            content.append(one)
        else:
            frame.add(word)
    return Wording(tuple(content), frozenset(frame), tuple(sequence))


def form(word: str) -> str:
    """The form in which a word is compared; "" for one that says nothing of its own."""
    if not word.isascii():
        return _CHINESE_ONE.get(word, word)
    word = _PHRASES.get(word, word).removesuffix("'s")
    if word in _ENGLISH_ONE:
        return _ENGLISH_ONE[word] and _stem(_ENGLISH_ONE[word])
    return "" if word in FUNCTION_WORDS else _stem(word)


_WEAK: Final = """
run make made data date version name url code plan receive provide type system work time thing page people person file
start store user
"""
WEAK: Final = frozenset(map(_stem, _WEAK.split())) | {"人"}
"""Content words that may be missing from a sentence that says the same."""
