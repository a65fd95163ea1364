"""The words of generated notes: an endless Latin and Han vocabulary, each word the function of its rank.

Ranks are drawn from a Zipf-Mandelbrot law, so that new words keep coming as in real text (Heaps' law): common words
often, and after any number of notes still some that were never seen.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Final

ENGLISH: Final[list[str]] = re.findall(
    r"\w+",
    """
service queue cache index memory session token request worker schema table column release branch review deploy build
test fixture config setting timeout retry backoff budget cluster node replica shard backup snapshot restore migration
rollback feature flag metric alert dashboard report invoice payment order basket customer account profile address
password login cookie header payload parser lexer compiler linter formatter editor plugin theme widget button dialog
form field layout grid chart legend tooltip image video audio stream buffer socket proxy gateway router firewall
certificate secret vault policy role permission audit ledger journal transaction lock mutex thread process daemon job
schedule calendar meeting holiday deadline milestone roadmap estimate contract licence vendor partner team
design sketch prototype experiment survey interview feedback preference habit language translation locale currency
timezone encoding unicode font keyboard mouse screen printer scanner sensor camera battery engine wheel bridge harbour
garden kitchen recipe breakfast coffee concert museum library lecture chapter summary footnote citation archive folder
document template draft signature stamp parcel courier warehouse pallet supplier discount refund voucher coupon tax
""",
)

HAN: Final[list[str]] = re.findall(
    r"\w+",
    """
服务 队列 缓存 索引 记忆 会话 令牌 请求 线程 进程 数据 表格 字段 版本 分支 评审 部署 构建 测试 配置 超时 重试
预算 集群 节点 副本 备份 快照 恢复 迁移 回滚 开关 指标 告警 看板 报表 发票 支付 订单 客户 账户 地址 密码 登录
接口 网关 路由 证书 密钥 策略 角色 权限 审计 日志 事务 锁表 任务 排期 日历 会议 假期 期限 里程 路线 估算 合同
许可 供应 伙伴 团队 设计 草图 原型 实验 问卷 访谈 反馈 偏好 习惯 语言 翻译 时区 编码 字体 键盘 屏幕 打印 扫描
传感 相机 电池 引擎 桥梁 港口 花园 厨房 菜谱 早餐 咖啡 演出 博物 书籍 讲座 章节 摘要 脚注 引用 归档 目录 文档
模板 草稿 签名 印章 包裹 快递 仓库 托盘 折扣 退款 礼券 税率 门店 库存 采购
""",
)

_HAN_CHARACTERS: Final = (
    "山水风云日月星辰春夏秋冬东西南北天地人和光明正大高低长短方圆红黄蓝绿黑白金木火土石玉花草树林森江河湖海田园村镇城市"
    "路桥车船飞机门窗房屋桌椅书笔纸墨琴棋诗画歌舞衣食住行米面茶酒油盐酱醋鱼肉果菜牛羊马鸡犬龙虎兔鸟虫父母子女兄弟姐妹师生"
    "朋友工农商学兵医法文理史哲心手足头目耳口鼻言语听说读写思想情感知识智慧勇气力量时间空间声音形象内外前后左右上下开关进出"
    "来去起落增减加乘快慢轻重新旧真假好坏美丑善恶远近深浅厚薄宽窄强弱冷热干湿软硬甜苦安危公私主客成败胜负存亡生死得失取舍"
)
_SYLLABLES: Final[list[str]] = re.findall(
    r"\w+",
    "ba be bi bo ca co da de di do el en er fa fe fi ga go ha he in ja ka ke ki ko la le li lo lu ma me mi mo na ne ni "
    "no or pa pe po ra re ri ro sa se si so ta te ti to tu va ve vi wa ya yo za",
)


def draw(rng: Random, *, head: float, exponent: float) -> int:
    """A rank from 0 upwards by Zipf-Mandelbrot: P(rank) falls like (rank + head) ** -exponent."""
    return min(int(head * ((1.0 - rng.random()) ** (-1.0 / (exponent - 1.0)) - 1.0)), 50_000_000)


def _digits(rank: int, base: int) -> list[int]:
    """Bijective digits: every rank gives another sequence, short ones first."""
    found = [rank % base]
    while (rank := rank // base) > 0:
        rank -= 1
        found.append(rank % base)
    return found


def english(rank: int) -> str:
    """A technical word; past the list, words run together in lower case as product names do."""
    return "".join(ENGLISH[digit] for digit in _digits(rank, len(ENGLISH)))


def identifier(rank: int) -> str:
    """A name in code, of two words or more: `retryBudget`."""
    first, *rest = _digits(rank + len(ENGLISH), len(ENGLISH))
    return ENGLISH[first] + "".join(ENGLISH[digit].capitalize() for digit in rest)


def person(rank: int) -> str:
    """A given name of two syllables or more."""
    return "".join(_SYLLABLES[digit] for digit in _digits(rank + len(_SYLLABLES), len(_SYLLABLES))).capitalize()


def han(rank: int) -> str:
    """A word of two characters or more."""
    if rank < len(HAN):
        return HAN[rank]
    size = len(_HAN_CHARACTERS)
    rest, first = divmod(rank - len(HAN), size)
    rest, second = divmod(rest, size)
    word = _HAN_CHARACTERS[first] + _HAN_CHARACTERS[(second + 7 * first) % size]
    return word if not rest else word + _HAN_CHARACTERS[rest % size]


@dataclass(frozen=True, slots=True)
class Theme:
    """What some notes have in common: their own words beside those of the language."""

    english: tuple[str, ...]
    han: tuple[str, ...]
    names: tuple[str, ...]
    identifiers: tuple[str, ...]
    folder: str


@lru_cache(maxsize=8192)
def theme(seed: int, rank: int) -> Theme:
    """The theme of that rank; low ones are common."""
    rng = Random(f"theme {seed} {rank}")
    return Theme(
        english=tuple(english(draw(rng, head=60, exponent=1.5)) for _ in range(14)),
        han=tuple(han(draw(rng, head=60, exponent=1.6)) for _ in range(14)),
        names=tuple(person(draw(rng, head=100, exponent=1.5)) for _ in range(3)),
        identifiers=tuple(identifier(draw(rng, head=300, exponent=1.4)) for _ in range(5)),
        folder=rng.choice(("", "", f"{english(rank % 211)}", f"projects/{english(rank % 97)}/{_kind_folder(rank)}")),
    )


def _kind_folder(rank: int) -> str:
    """One of the sub-folders that people make below a project."""
    return ("decisions", "incidents", "people", "howto")[rank % 4]
