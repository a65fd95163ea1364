"""Chinese words that notes of programmers are full of, by the English word; and those that say nothing of their own."""

from typing import Final

_LIGHT: Final = """
的 了 是 在 于 和 与 也 都 就 把 被 将 会 要 请 用 使用 采用 现在 目前 已经 改为 改成 改到 改用 换成 换到 迁移到
移到 移动到 调整为 变为 我们 可以 必须 需要 应该 不 不要 不再 不是 不用 不必 不需要 没有 没 禁止 严禁 绝不 不能 不可以
允许 大约 大概 差不多 左右 里 中 上 里面 一个 个 位 名 次 这个 那个 时 时候 它 其 做 位于 叫 称为 名为
一律 统一 所有 每 给 对 从 到 往 向 由 为 得 着 过 再 还 又 才 来 去 有 以 之 而 但 但是 尽量 直接 务必 千万
今后 以后 后来 一直 进行 并 并且 同时 很 非常 起 随意 任何 升级到 升级为 更新到 遍 约 约为 大致 会被 都会 都要 需 须
得用 要用 应 应当 当 若 如果 如 当前 的话 之中 其中 之内 之间 内 处 方面 情况 采取 选用 基于 借助 通过 利用 以及 及
等等 这 那 这些 那些 我 咱们 本 该 此 自己 每个 每次 每一 各 各个 全部 全都 整个 总共 一共 共 总 均 统统 也要 也是
就是 即 即可 便 则 则是 来说 而言 更 最好 尽可能 记得 注意 别 勿 莫 请勿 切勿 别用 不准 不许 不得 不可 不会 不应
不应该 无需 无须 没用 变成 变更为 更改为 修改为 改 换 换为 改在 挪到 搬到 推迟到 提前到 转到 切换到 切换为 调到 调为
升到 降到 定在 定为 设为 设置为 设在 安排在 处于 属于 作为 当作 充当 担任 来做 进行的 所用 所在 所 被用 用来 用于 用作
命名为 叫做 叫作 称作 点 号 份 条 台 项 种 套 些 会儿 然后 接着 首先 先 最终 终于 一般 平时 平常 照常 正 正在 如今
刚刚 将会 即将 能 能够 掉 好 吧 吗 呢 啊 哦
"""

# English word: Chinese ones; the next.
_TERMS: Final = """
maybe: 可能 也许 或许 大概率 ; want: 想 想要 希望 打算 准备 ; formerly: 曾 曾经 以前是 原先 原来
user: 用户 使用者 ; name: 名字 姓名 名称 名叫 ; port: 端口 ; listen: 监听 ; database: 数据库 ; cache: 缓存
server: 服务器 ; service: 服务 ; api: 接口 ; test: 测试 ; unit: 单元 ; integration: 集成 ; memory: 内存
disk: 磁盘 硬盘 ; commit: 提交 ; message: 信息 消息 ; chinese: 中文 汉语 ; english: 英文 英语
japanese: 日语 日文 ; comment: 注释 ; code: 代码 ; branch: 分支 ; push: 推送 ; pull: 拉取 ; force: 强制 强推
merge: 合并 ; request: 请求 ; approve: 批准 审批 同意 ; review: 评审 审查 审核 ; frontend: 前端
backend: 后端 服务端 ; mobile: 移动端 ; dependency: 依赖 依赖包 依赖项 ; install: 安装 ; package: 包 软件包
prefer: 喜欢 偏好 喜爱 倾向 爱用 更喜欢 习惯用 习惯于 倾向于 常用 偏爱 更爱 首选
dislike: 讨厌 不喜欢 反感 不爱 厌恶 不想要 ; answer: 回答 回复 答复 ; short: 简短 简洁 简要
detail: 详细 详尽 细节 ; file: 文件 ; config: 配置 设置 ; delete: 删除 删掉 ; directory: 目录 文件夹 ; log: 日志
backup: 备份 备份文件 ; day: 天 日 ; release: 发布 发版 上线 ; deploy: 部署 ; version: 版本 ; time: 时间
timezone: 时区 ; timestamp: 时间戳 ; store: 存储 存放 保存 存 保留 保存期 放 放在 ; local: 本地 ; show: 显示 展示
document: 文档 ; meet: 见 见面 会面 碰面 ; date: 日期 ; write: 编写 写 写入 ; read: 读取 读 ; run: 运行 跑 执行
start: 启动 开始 ; build: 构建 编译 ; fail: 失败 ; only: 只 仅 只有 仅仅 只能 ; some: 有时 部分 偶尔 通常 有些
cause: 因为 导致 引起 造成 由于
minimum: 至少 最少 最小 不低于 不少于 最低 不能低于 不得低于 不得少于 不能少于 以上 起码 不小于 不得小于
maximum: 最多 至多 最大 不超过 最高 不能超过 不得超过 不可超过 不得多于 不多于 以内
pull-request: 合并请求 拉取请求 ; error: 错误 报错 ; retry: 重试 ; limit: 上限 限制 限流 ; timeout: 超时
expire: 过期 ; session: 会话 ; theme: 主题 ; default: 默认 缺省 ; dark: 深色 暗色 ; light: 浅色 亮色
language: 语言 ; production: 生产 线上 ; environment: 环境 ; variable: 变量 ; key: 密钥 秘钥 机密
password: 密码 ; certificate: 证书 ; encrypt: 加密 ; own: 负责 掌管 主管 承担 管理着 归属 ; module: 模块
search: 搜索 检索 ; pay: 支付 付款 ; bill: 计费 账单 ; customer: 客户 顾客 ; invoice: 发票 ; report: 上报 报告
performance: 性能 ; data: 数据 ; coverage: 覆盖率 ; mutation: 变异 ; function: 函数 ; class: 类
method: 方法 方式 做法 写法 ; type: 类型 ; name-style: 命名 ; indent: 缩进 ; space: 空格 ; tab: 制表符
quote: 引号 ; line: 行 ; table: 表 数据表 ; index: 索引 ; query: 查询 ; queue: 队列 ; job: 任务 作业
ticket: 任务单 工单 ; number: 编号 ; author: 作者 ; image: 镜像 图片 ; container: 容器 ; cluster: 集群
node: 节点 ; thread: 线程 ; process: 进程 流程 ; permission: 权限 ; admin: 管理员 ; dashboard: 后台 仪表盘
account: 账号 账户 ; email: 邮箱 邮件 ; token: 令牌 ; script: 脚本 ; command: 命令 ; tool: 工具 ; editor: 编辑器
model: 模型 ; train: 训练 培训 ; ask: 问 询问 征求 ; plan: 计划 方案 打算着 规划 ; before: 前 之前 以前
after: 后 之后 ; link: 链接 ; source: 来源 源 ; meeting: 会议 开会 ; standup: 站会 ; colleague: 同事 ; team: 团队
project: 项目 ; german: 德国 ; french: 法国 ; migrate: 迁移 ; enable: 开启 启用 打开 ; disable: 关闭 禁用 停用
manual: 手动 ; automatic: 自动 ; rotate: 轮换 ; call: 调用 ; software: 软件 ; framework: 框架 ; library: 库
dictate: 听写 ; page: 页面 ; slow: 慢 ; format: 格式化 格式 ; policy: 策略 ; role: 角色 ; audit: 审计
transaction: 事务 ; field: 字段 ; column: 列 ; snapshot: 快照 ; restore: 恢复 还原 ; rollback: 回滚 回退
replica: 副本 ; metric: 指标 ; alert: 告警 报警 ; order: 订单 ; address: 地址 ; login: 登录 登陆 ; gateway: 网关
route: 路由 ; schedule: 排期 日程 ; calendar: 日历 ; holiday: 假期 ; contract: 合同 ; design: 设计
prototype: 原型 ; experiment: 实验 ; feedback: 反馈 ; habit: 习惯 ; translate: 翻译 ; encoding: 编码 ; font: 字体
keyboard: 键盘 ; screen: 屏幕 ; camera: 相机 ; battery: 电池 ; template: 模板 ; draft: 草稿 ; archive: 归档
signature: 签名 ; discount: 折扣 ; refund: 退款 ; tax: 税 税率 ; stock: 库存 ; purchase: 采购 ; company: 公司
work: 工作 ; develop: 开发 ; product: 产品 ; research: 研究 ; system: 系统 ; question: 问题 ; manage: 管理
city: 城市 ; country: 国家 ; beijing: 北京 ; shanghai: 上海 ; shenzhen: 深圳 ; hangzhou: 杭州 ; technology: 技术
suggest: 建议 ; phone: 手机 电话 ; handle: 处理 ; insurance: 保险 ; activity: 活动 ; standard: 标准
rule: 规则 规定 规范 ; traffic: 流量 ; content: 内容 ; step: 步骤 ; basic: 基本 ; click: 点击 ; succeed: 成功
solve: 解决 ; feature: 功能 ; security: 安全 ; organization: 组织 ; operation: 操作 ; market: 市场
relation: 关系 ; explain: 解释 说明 ; connect: 连接 ; structure: 结构 ; health: 健康 ; exam: 考试 ; music: 音乐
network: 网络 ; bank: 银行 ; goal: 目标 ; mode: 模式 ; analyse: 分析 ; result: 结果 ; resource: 资源
reference: 参考 ; application: 应用 ; platform: 平台 ; area: 区域 ; check: 检查 校验 ; verify: 验证 ; price: 价格
department: 部门 ; boss: 老板 上司 领导 ; intern: 实习生 ; child: 孩子 ; wife: 妻子 老婆 ; husband: 丈夫 老公
cat: 猫 ; dog: 狗 ; coffee: 咖啡 ; tea: 茶 ; allergy: 过敏 ; vegetarian: 素食 ; birthday: 生日 ; home: 家
car: 汽车 车 ; train-ticket: 火车票 ; book: 书 ; update: 更新 ; notify: 通知 ; send: 发送 发 ; receive: 接收 收到
create: 创建 新建 ; edit: 修改 编辑 改动 ; copy: 复制 拷贝 ; upload: 上传 ; download: 下载 ; import: 导入
export: 导出 ; generate: 生成 ; parse: 解析 ; sort: 排序 ; filter: 过滤 筛选 ; validate: 校对 ; compress: 压缩
debug: 调试 ; refactor: 重构 ; optimize: 优化 ; monitor: 监控 ; track: 跟踪 追踪 ; publish: 发表
subscribe: 订阅 ; synchronize: 同步 ; release-note: 发布说明 ; changelog: 更新日志 变更日志 ; readme: 自述文件
requirement: 需求 ; architecture: 架构 ; client: 客户端 ; browser: 浏览器 ; desktop: 桌面 ; website: 网站
domain: 域名 ; string: 字符串 ; array: 数组 ; object: 对象 ; parameter: 参数 ; argument: 实参 ; return: 返回
exception: 异常 ; loop: 循环 ; pointer: 指针 ; async: 异步 ; lock: 锁 ; constant: 常量 ; component: 组件
plugin: 插件 ; repository: 仓库 代码库 代码仓 ; pipeline: 流水线 ; artifact: 制品 ; staging: 预发 预发布
remote: 远程 ; cloud: 云端 云 ; mirror: 镜像源 ; proxy: 代理 ; firewall: 防火墙 ; cpu: 处理器 ; gpu: 显卡
core: 核心 核 个核 ; machine: 机器 ; laptop: 笔记本 笔记本电脑 ; computer: 电脑 计算机 ; printer: 打印机
bug: 缺陷 故障 漏洞 ; incident: 事故 ; deadline: 截止日期 截止时间 期限 ; estimate: 估算 ; budget: 预算
cost: 成本 费用 ; sprint: 迭代 ; retrospective: 复盘 复盘会 回顾会 ; weekly-report: 周报 ; daily-report: 日报
interview: 面试 ; manager: 经理 ; designer: 设计师 ; tester: 测试人员 ; developer: 开发者 开发人员
maintain: 维护 ; reject: 驳回 ; member: 成员 ; group: 组 小组 ; guest: 访客 游客 ; region: 地区
lower-case: 小写 ; upper-case: 大写 ; character: 字符 ; width: 宽度 ; length: 长度 ; size: 大小 ; speed: 速度
frequency: 频率 ; quality: 质量 ; accuracy: 准确率 ; score: 得分 分数 ; threshold: 阈值 ; rate: 速率
percent: 百分比 ; style: 风格 ; camelcase: 驼峰 驼峰命名 ; snake_case: 下划线 蛇形 ; emoji: 表情 表情符号
abbreviation: 缩写 ; background: 背景 ; color: 颜色 ; button: 按钮 ; menu: 菜单 ; icon: 图标 ; form: 表单
chart: 图表 ; video: 视频 ; audio: 音频 ; attachment: 附件 ; subject: 主题行 ; title: 标题 ; summary: 摘要 总结
paragraph: 段落 ; example: 示例 例子 ; prompt: 提示词 ; training-data: 训练数据 ; learn: 学习 ; teach: 教
speak: 说 ; travel: 旅行 出差 ; live: 住 居住 ; move: 搬 ; buy: 买 购买 ; like: 爱 ; hate: 恨 ; drink: 喝
eat: 吃 ; play: 玩 ; watch: 看 ; wait: 等待 等 ; stop: 停止 ; finish: 完成 ; add: 添加 新增 加 ; replace: 替换
rename: 重命名 ; support: 支持 ; contain: 包含 包括 ; match: 匹配 ; compare: 比较 对比 ; count: 统计
calculate: 计算 ; hide: 隐藏 ; warn: 警告 ; ignore: 忽略 ; skip: 跳过
location: 位置 地点 所在地 所在位置 存放位置 路径 ; choose: 选择 选定 ; provide: 提供
obtain: 获得 取得 得到 获取 ; reach: 达到 ; implement: 实现 ; affect: 影响 ; enter: 进入 ; discover: 发现
improve: 提高 改善 改进 提升 ; protect: 保护 ; print: 打印 ; continue: 继续 持续 ; confirm: 确认 确定
register: 注册 ; recommend: 推荐 ; help: 帮助 协助 ; brand: 品牌 ; friend: 朋友 ; range: 范围 ; movie: 电影
school: 学校 ; hospital: 医院 ; teacher: 老师 ; student: 学生 ; reply: 反馈给 ; discuss: 讨论 商量
agree: 约定 商定 ; remind: 提醒 ; attend: 参加 出席 ; cooperate: 合作 ; contact: 联系 ; invite: 邀请
arrive: 到达 ; leave: 离开 离职 ; join: 加入 入职 ; responsible: 责任 ; wholly: 完全 彻底
frequent: 经常 频繁 常常 ; rare: 很少 罕见 ; correct: 正确 ; wrong: 错 不对 有误 写错 ; normal: 正常
stable: 稳定 ; fast: 快 很快 快速 ; simple: 简单 ; complex: 复杂 ; important: 重要 关键 ; necessary: 必要
temporary: 临时 暂时 ; permanent: 永久 长期 ; old: 旧 老 ; new: 新 ; main: 主要 主 ; latest: 最新 ; public: 公开
private: 私有 私人 ; internal: 内部 ; external: 外部 ; independent: 独立 ; common: 通用 公共 共享
single: 单个 单一 ; multiple: 多个 多种 ; double: 双 ; half: 一半 ; whole: 整体 整套 ; reason: 原因
purpose: 目的 用途 ; condition: 条件 ; record: 记录 ; history: 历史 ; state: 状态 ; event: 事件
change: 变化 变动 ; difference: 差异 区别 ; list: 列表 清单 ; tag: 标签 ; label: 标记 ; note: 笔记 备注
folder: 夹 ; suffix: 后缀 ; prefix: 前缀 ; extension: 扩展名 扩展 ; compile: 编译器 ; runtime: 运行时
kernel: 内核 ; driver: 驱动 ; port-forward: 端口转发 ; domain-name: 主域名 ; bandwidth: 带宽 ; latency: 延迟 时延
throughput: 吞吐 吞吐量 ; concurrency: 并发 并行 ; batch: 批量 批次 ; stream: 流式 ; event-loop: 事件循环
schema: 表结构 模式定义 ; primary-key: 主键 ; foreign-key: 外键 ; leak: 泄漏 泄露 ; crash: 崩溃 宕机
freeze: 冻结 封版 ; hot-fix: 热修复 ; gray: 灰度 灰度发布 ; canary: 金丝雀 ; online: 线上环境
or: 或 或者 ; still: 仍 仍然 ; until: 直到 ; above: 高于 ; below: 低于
test-environment: 测试环境 ; development: 开发环境
"""

CHINESE: Final[dict[str, str]] = dict.fromkeys(_LIGHT.split(), "") | {
    term: line.partition(":")[0].strip()
    for line in _TERMS.replace("\n", ";").split(";")
    for term in line.partition(":")[2].split()
}
"""English word of each, or ""."""
