"""Words that say how a sentence is built, not what it is about: small memories cannot tell them from rare ones.

In ten thousand notes "with" is everywhere and weighs nothing; in ten it stand once, and would weigh as much as a
name.
"""

from typing import Final

_ENGLISH: Final = """
a about after again all also always am an and another any anyone anything are as at be because been before being below
between both but by came can cannot come could d did do does doing don done down during each either else ever every few
for from further get gets getting give got had has have having he hello help her here hers hey hi him his
how i if in into is it its itself just keep know let like ll look looking lot m make many maybe me might mine more
most much must my need no nor not now of off ok okay on once one only or other our ours out over own please quite re
really s said same say see shall she should so some something still such sure t take tell than thank thanks that the
their theirs them then there these they thing things this those through to too tried try trying under until up use
used using ve very want wants was way we well were what when where whether which while who whom whose why will with
would yes yet you your yours
"""

_CHINESE: Final = """
一下 一个 一些 一點 一点 不了 不会 不是 不能 个人 为了 为什 么办 么时 么样 也是 了什 了吗 什么 什麼 从来 他们
他的 以前 以及 以后 们的 但是 你们 你好 你的 候的 值得 做什 再来 几个 几点 到底 前的 又是 及其 可以 可能 吗我
呢我 和我 哪个 哪些 哪里 嗎我 因为 在哪 多久 多少 大概 大家 她们 她的 好的 如何 如果 它们 它的 对于 就是
已经 帮我 应该 怎么 怎樣 怎样 怎麼 想要 想问 我们 我要 我想 我的 我該 我该 或者 所以 所有 时候 是不 是什 是否
是的 是谁 是誰 時候 有什 有关 有哪 有没 有沒 有的 沒有 没有 然后 現在 现在 甚麼 的事 的人 的吗 的时 的是 的時
知道 給我 给我 继续 能不 能否 自己 虽然 被什 觉得 記得 記住 该怎 该是 請問 請教 請幫 说一 說一 说的 请问 请帮
谁的 谢谢 谢謝 起来 跟我 还是 还有 这个 这些 这里 这样 這些 這個 這樣 通常 那个 那些 那里 那麼 都是 關於 需要
"""

FUNCTION_WORDS: Final = frozenset(_ENGLISH.split()) | frozenset(_CHINESE.split())
"""Terms of `text.tokens.terms`: English words, and pairs of Chinese characters in which such words end up."""
