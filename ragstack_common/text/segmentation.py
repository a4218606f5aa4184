"""The words of scripts that write them without spaces, and whose letters mean nothing alone: Thai, Lao, Khmer, Burmese.

Thai is divided by BudouX, whose model is in its package. The others have no model that is small enough: their words
are the overlapping runs of three letters with their marks, which a text and a query have in common where they share a
word. Chinese and Japanese characters have meanings, and stay words.
"""

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from budoux.parser import Parser

LETTERS: Final = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ebd\u0ec0-\u0ecf\u1000-\u103f\u1050-\u109f\u1780-\u17d3\u17dd\uaa60-\uaa7f"
)
"""Letters and marks of these scripts, without their digits. Source: Unicode, blocks."""

GRAM: Final = 3
MAX_RUN: Final = 2_000
"""Characters that are divided together; a longer run is no text."""

_THAI: Final = re.compile("[\u0e01-\u0e4e]")
_SIGNS: Final = re.compile("[\u0e2f\u0e46\u0eaf\u0ec6]")
"""The signs of abbreviation and of repetition."""

_ASKING: Final = re.compile(
    "((?<!เ)กี่(?!ย)|อะไร|ใคร(?!่)|ที่ไหน|ทำไม|อย่างไร"  # what, who, where, why, how
    "|เท่าไร|เท่าไหร่|เท่าใด|เมื่อไร|เมื่อไหร่)"  # how much, when
)
"""Words of questions. The model was trained on articles, which seldom have them, and joins them to their neighbours."""

_CLUSTER: Final = re.compile(r"\w[^\w]*")


def segmented(run: str) -> tuple[str, ...]:
    """Return the words of a run of letters and marks of these scripts, normalized by NFKC."""
    pieces = (run[start : start + MAX_RUN] for start in range(0, len(run), MAX_RUN))
    return tuple(word for piece in pieces for word in (_thai if _THAI.match(piece) else _grams)(piece))


@lru_cache(maxsize=10_000)
def _thai(run: str) -> tuple[str, ...]:
    # The model knows the vowel am as one letter, which NFKC divides.
    parts = _ASKING.split(run.replace("\u0e4d\u0e32", "\u0e33"))
    found = (
        word for number, part in enumerate(parts) if part for word in ([part] if number % 2 else _parser().parse(part))
    )
    return tuple(word for part in found if (word := _SIGNS.sub("", part)))


@lru_cache(maxsize=10_000)
def _grams(run: str) -> tuple[str, ...]:
    clusters = _CLUSTER.findall(run) or [run]
    count = max(1, len(clusters) - GRAM + 1)
    return tuple("".join(clusters[start : start + GRAM]) for start in range(count))


@cache
def _parser() -> "Parser":
    import budoux  # noqa: PLC0415 - few texts are Thai

    return budoux.load_default_thai_parser()
