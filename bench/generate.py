"""Memory notes and requests made up from a seed: Chinese, English and mixed, with sizes and words like real ones.

    python -m bench.generate --curve            distinct Latin runs in 1k, 10k and 100k notes
    python -m bench.generate FOLDER --topics N  writes N notes

Every note is a function of the seed and its number alone, so that any of them can be made without the others. The text
is glued from sentences of our own and says nothing; it is there for time and space, not for the quality of answers.
"""

import argparse
import os
import re
from collections.abc import Iterator
from functools import lru_cache
from math import log
from pathlib import Path
from random import Random
from typing import Final

from bench.lexicon import Theme, draw, english, han, identifier, person, theme
from bench.sentences import CHATTER, NONSENSE, REQUESTS, SENTENCES, Language

SEED: Final = 20_261
_MEDIAN_BYTES: Final = 1900
_SPREAD: Final = 0.65  # of the logarithm of the size
# The steeper the laws of ranks, the slower new words come: these give a few hundred thousand in 100,000 notes.
_RARE: Final = 1.6
_COMMON: Final = 1.9
_TYPES: Final = ("user", "feedback", "project", "reference")
_NEWEST_S: Final = 1_790_000_000
_SLOT: Final = re.compile(r"\{(\w)\}")
_RUN: Final = re.compile(r"[a-z][a-z0-9]*")


def topics(count: int, seed: int = SEED) -> Iterator[tuple[str, str]]:
    """The first `count` notes: position below the memory folder, and text."""
    return (_note(number, seed) for number in range(count))


def write(root: Path, count: int, seed: int = SEED) -> int:
    """Writes the notes with times of their own; gives the bytes of their text."""
    total = 0
    for number, (path, text) in enumerate(topics(count, seed)):
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        total += file.write_bytes(text.encode("utf-8"))
        changed = _NEWEST_S - Random(seed ^ number).randrange(400 * 86_400)
        os.utime(file, (changed, changed))
    return total


def edits(root: Path, seed: int = SEED, *, share: float = 0.01) -> dict[str, list[str]]:
    """Changes a written folder: edits, renames and deletes each the share of its notes, at least one.

    Returns:
        Positions (the old ones) by `edit`, `rename` and `delete`.
    """
    rng = Random(f"edits {seed}")
    files = sorted(root.rglob("*.md"))
    size = max(1, int(len(files) * share))
    chosen = rng.sample(files, min(3 * size, len(files)))
    groups = {"edit": chosen[:size], "rename": chosen[size : 2 * size], "delete": chosen[2 * size :]}
    for file in groups["edit"]:
        with file.open("a", encoding="utf-8") as stream:
            stream.write(f"\n- {_sentence(rng, theme(seed, rng.randrange(100)), 'en')}\n")
    for file in groups["rename"]:
        file.rename(file.with_name(f"moved-{file.name}"))
    for file in groups["delete"]:
        file.unlink()
    return {kind: [file.relative_to(root).as_posix() for file in group] for kind, group in groups.items()}


def queries(count: int, seed: int = SEED, *, among: int = 1000) -> Iterator[str]:
    """Different requests as people type them: half about one of the first `among` notes, some chatty, some nonsense.

    The seed is that of the notes.
    """
    rng = Random(f"queries {seed}")
    seen: set[str] = set()
    while len(seen) < count:
        language: Language = "zh" if rng.random() < 0.5 else "en"
        roll = rng.random()
        number = rng.randrange(among) if roll < 0.5 else rng.randrange(1_000_000_000)
        text = _sentence(rng, _theme_of(number, seed), language, rng.choice(REQUESTS[language]))
        if roll > 0.9:
            text = _sentence(rng, _theme_of(number, seed), language, rng.choice(NONSENSE))
        elif roll > 0.75:
            text = f"{rng.choice(CHATTER[language])}{text}"
        if text not in seen:
            seen.add(text)
            yield text


def distinct_runs(count: int, seed: int = SEED) -> Iterator[tuple[int, int]]:
    """Distinct Latin runs (a letter, then letters and digits; case folded) after 1, 2, 3 ... notes."""
    seen: set[str] = set()
    for number, (_, text) in enumerate(topics(count, seed), 1):
        seen.update(_RUN.findall(text.lower()))
        yield number, len(seen)


def _note(number: int, seed: int) -> tuple[str, str]:
    rng = Random(seed * 1_000_003 + number)
    about = _theme_of(number, seed)
    language: Language = "zh" if rng.random() < 0.45 else "en"
    is_mixed = rng.random() < 0.3
    title = _sentence(rng, about, language, "{w}{w}{w}" if language == "zh" else "{w} {w} {w}")
    kind = rng.choice(_TYPES)
    description = _sentence(rng, about, language)
    parts = [f"---\nname: {title}\ndescription: {description}\ntype: {kind}\n---\n\n# {title}\n"]
    left = rng.lognormvariate(log(_MEDIAN_BYTES), _SPREAD) - len(parts[0].encode("utf-8"))
    while left > 0:
        other: Language = "en" if language == "zh" else "zh"
        sentence = _sentence(rng, about, other if is_mixed and rng.random() < 0.3 else language)
        lead = rng.choice(("", "", "", "\n- ", "\n- ", "\n\n", f"\n\n## {_word(rng, about, language)}\n\n"))
        parts.append(f"{lead}{sentence} ")
        left -= len(sentence.encode("utf-8")) + len(lead) + 1
    stem = title.replace(" ", "-") if rng.random() < 0.9 else f"{kind}_{about.names[0].lower()}"
    name = f"{stem}-{number:06d}.md"
    return (f"{about.folder}/{name}" if about.folder else name), "".join(parts).rstrip() + "\n"


def _theme_of(number: int, seed: int) -> Theme:
    # A stream of its own, so that a request can be made without the note it is about.
    return theme(seed, draw(Random(seed * 7_919 + number), head=200, exponent=1.6))


def _sentence(rng: Random, about: Theme, language: Language, pattern: str = "") -> str:
    pieces = _pieces(pattern or rng.choice(SENTENCES[language]))
    # Every second piece names a slot.
    return "".join(_fill(rng, about, language, piece) if at % 2 else piece for at, piece in enumerate(pieces))


@lru_cache(maxsize=1024)
def _pieces(pattern: str) -> tuple[str, ...]:
    return tuple(_SLOT.split(pattern))


def _fill(rng: Random, about: Theme, language: Language, slot: str) -> str:
    if slot == "w":
        return _word(rng, about, language)
    if slot == "i":
        is_own = rng.random() < 0.6
        return rng.choice(about.identifiers) if is_own else identifier(draw(rng, head=400, exponent=_RARE))
    if slot == "n":
        return rng.choice(about.names) if rng.random() < 0.7 else person(draw(rng, head=100, exponent=_RARE))
    if slot == "p":
        file = identifier(draw(rng, head=400, exponent=_RARE))
        return f"src/{_word(rng, about, 'en')}/{file}.{rng.choice(('py', 'ts', 'go', 'rs'))}"
    return _CODES[slot](rng)


_CODES: Final = {
    "h": lambda rng: f"{rng.getrandbits(40):010x}",
    "e": lambda rng: f"{rng.choice(('E', 'ERR', 'HTTP', 'TS', 'PG'))}{draw(rng, head=500, exponent=1.8)}",
    "d": lambda rng: f"20{rng.randint(22, 26)}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}",
    "v": lambda rng: f"{rng.randint(0, 9)}.{rng.randint(0, 30)}.{rng.randint(0, 12)}",
    "q": lambda rng: str(draw(rng, head=40, exponent=1.9) + 2),
}


def _word(rng: Random, about: Theme, language: Language) -> str:
    own = rng.random() < 0.55
    if language == "zh":
        return rng.choice(about.han) if own else han(draw(rng, head=80, exponent=_COMMON))
    return rng.choice(about.english) if own else english(draw(rng, head=80, exponent=_COMMON))


def main() -> None:
    """Writes notes, or prints how the vocabulary grows."""
    parser = argparse.ArgumentParser(description="Generated notes.")
    parser.add_argument("folder", type=Path, nargs="?", help="where to write them")
    parser.add_argument("--topics", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--curve", action="store_true", help="print distinct Latin runs by number of notes")
    options = parser.parse_args()
    if not (options.curve or options.folder):
        parser.error("give a folder, or --curve")
    if options.curve:
        for number, runs in distinct_runs(100_000, options.seed):
            if number in {1_000, 10_000, 100_000}:
                print(f"{number:>7,} notes  {runs:>9,} distinct Latin runs")
    if options.folder:
        print(f"{write(options.folder, options.topics, options.seed):,} bytes")


if __name__ == "__main__":
    main()
