"""How many tokens a text costs, estimated without a tokenizer and on the high side."""


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text for models whose tokenizer is unknown.

    3.5 ASCII characters make a token, every other character of the basic plane (CJK above all) is one, every
    character beyond it (emoji, rare ideographs) is two. The estimate of a whole is never above the sum of its parts.
    """
    ascii_count = len(text.encode("ascii", "ignore"))
    utf16_units = len(text.encode("utf-16-le", "surrogatepass")) // 2
    return -(-ascii_count * 2 // 7) + utf16_units - ascii_count
