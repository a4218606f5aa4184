"""Names of documents and their values, as people look for them: word by word, in any order."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from ragstack_common.text.characters import DENSE_RANGES, HANGUL_RANGES
from ragstack_common.text.segmentation import LETTERS
from ragstack_common.text.spelling import combining_marks, normalized, with_ascii_digits, without_accents

MAX_WORDS: Final = 20
"""Words of a name that is looked for; the others are ignored."""

_PARTS: Final = re.compile(r"\d+|\D+")
_HUMP: Final = re.compile(r"(?<=[a-z\u00df-\u00ff])(?=[A-Z\u00c0-\u00de])")
_UNSPACED: Final = f"{DENSE_RANGES}{HANGUL_RANGES}{LETTERS}"
"""Scripts whose words may be inside a run of letters."""

_UMLAUTS: Final = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue"})


class NameWord(NamedTuple):
    """A word of a name that is looked for.

    Attributes:
        text: Folded.
        parts: Its runs of letters and of digits, if it has both.
        is_within: Whether it may be inside a run of letters, as in scripts without spaces.
    """

    text: str
    parts: tuple[str, ...] = ()
    is_within: bool = False


def folded(text: str) -> str:
    """Return a text without case, accents and compatibility forms, and with the digits of ASCII."""
    return text.lower() if text.isascii() else with_ascii_digits(without_accents(normalized(text)))


def words_to_find(name: str) -> list[NameWord]:
    """Return the words of a name that is looked for."""
    found = dict.fromkeys(folded(word) for word in _words(name))
    return [
        NameWord(word, parts if len(parts) > 1 else (), _unspaced().search(word) is not None)
        for word in [*found][:MAX_WORDS]
        for parts in [tuple(_PARTS.findall(word))]
    ]


def words_to_index(texts: Iterable[str]) -> list[str]:
    """Return the words by which texts are found, each once: "ReleaseV2" also by release, v and 2."""
    found: dict[str, None] = {}
    for text in texts:
        for word in _words(text):
            whole = folded(word)
            found[whole] = None
            pieces = [piece for hump in _HUMP.split(word) for piece in _PARTS.findall(folded(hump))]
            found.update(dict.fromkeys(pieces if len(pieces) > 1 else ()))
            if not word.isascii() and (spelled := folded(normalized(word).translate(_UMLAUTS))) != whole:
                found[spelled] = None
    return [*found]


def places_of(words: Iterable[NameWord], name: str) -> list[tuple[int, int]]:
    """Return where a name has the beginnings of words, as offsets, without overlaps."""
    wanted = [text for word in words for text in (word.parts or (word.text,))]
    found: list[tuple[int, int]] = []
    for start in _starts(name):
        if found and start < found[-1][1]:
            continue
        ends = [end for text in wanted if (end := _end(name, start, text)) is not None]
        if ends and found and found[-1][1] == start:
            found[-1] = found[-1][0], max(ends)
        elif ends:
            found.append((start, max(ends)))
    return found


def _words(text: str) -> Iterator[str]:
    for run in _runs().finditer(text):
        yield run[0]


def _starts(name: str) -> Iterator[int]:
    """Yield where words, and parts of words, begin."""
    for run in _runs().finditer(name):
        for offset, character in enumerate(run[0], run.start()):
            before = name[offset - 1] if offset > run.start() else " "
            is_hump = before.islower() and character.isupper()
            if before == " " or is_hump or before.isdigit() != character.isdigit() or _unspaced().match(character):
                yield offset


def _end(name: str, start: int, text: str) -> int | None:
    """Return where the part of a name ends that begins at an offset and is a folded text."""
    for end in range(start + 1, min(len(name), start + 2 * len(text) + 2) + 1):
        part = folded(name[start:end])
        if part.startswith(text):
            return end
        if not text.startswith(part):
            spelled = folded(normalized(name[start:end]).translate(_UMLAUTS))
            if spelled.startswith(text):
                return end
            if not text.startswith(spelled):
                return None
    return None


@lru_cache(1)
def _runs() -> re.Pattern[str]:
    """Return the pattern of a word; that of the standard library ends at combining marks."""
    letter = rf"[^\W_{_UNSPACED}]"
    return re.compile(rf"[{_UNSPACED}]+|{letter}(?:{letter}|[{combining_marks()}\u200c\u200d])*")


@lru_cache(1)
def _unspaced() -> re.Pattern[str]:
    return re.compile(f"[{_UNSPACED}]")
