"""Characters whose font does not say which they are. PDFium returns the numbers of their glyphs instead."""

import re
from collections.abc import Callable, Iterable, Sequence
from ctypes import addressof
from itertools import pairwise
from typing import Any, Final

UNKNOWN: Final = "\ufffd"
BULLET: Final = "•"

MOST_PROBES: Final = 60
"""Characters of a page that are tested, evenly distributed; if one of them has no meaning, all are tested."""

LEAST_RUN: Final = 3
"""Characters without a meaning that are left out if they follow each other. Fewer are most often ligatures."""

LEAST_LATIN: Final = 0.9
"""Share of a text that is letters, digits and punctuation of ASCII, at least."""

LEAST_LETTERS: Final = 8
"""Letters of a text from which on some of them are vowels."""

LEAST_VOWELS: Final = 0.15
"""Share of the letters of a text that are vowels, at least."""

MOST_IN_ORDER: Final = 0.6
"""Share of the letters of a text that occur for the first time in the order of the alphabet, at most."""

_SUSPICIOUS: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffd]")
_PRIVATE: Final = re.compile("[\ue000-\uf8ff]")
_PRIVATE_BULLET: Final = re.compile("^[ \t]*([\ue000-\uf8ff])(?=[ \t])", re.MULTILINE)
_LATIN: Final = re.compile(r"[\w .,;:!?()'\"/+=%-]", re.ASCII)
_LETTER: Final = re.compile("[A-Za-z]")
_VOWEL: Final = re.compile("[aeiouy]", re.IGNORECASE)


def without_unmapped(raw: Any, characters: Any, text: str, index: Callable[[int], int]) -> tuple[str, set[int]]:
    """Return a text with ``UNKNOWN`` for single characters without a meaning, and the places of those to leave out.

    Args:
        raw: PDFium.
        characters: Its list of characters.
        text: The text of a page.
        index: Returns where a character of the text is in that list.
    """
    private = set() if text.isascii() else {found.start() for found in _PRIVATE.finditer(text)}
    bullets = {found.start(1) for found in _PRIVATE_BULLET.finditer(text)} if private else set()
    private -= bullets
    unmapped = _unmapped(raw, characters, text, index) - bullets | private
    if not unmapped and not bullets:
        return text, set()
    written = sum(not character.isspace() for character in text)
    left_out = unmapped if 2 * len(unmapped) > written else {*_in_runs(sorted(unmapped))}
    replaced = dict.fromkeys(unmapped, UNKNOWN) | dict.fromkeys(bullets, BULLET)
    return "".join(replaced.get(place, character) for place, character in enumerate(text)), left_out


def _unmapped(raw: Any, characters: Any, text: str, index: Callable[[int], int]) -> set[int]:
    def has_no_meaning(place: int) -> bool:
        return text[place] == UNKNOWN or raw.FPDFText_HasUnicodeMapError(characters, index(place)) == 1

    probes = range(0, len(text), 1 + len(text) // MOST_PROBES)
    if not _SUSPICIOUS.search(text) and not any(map(has_no_meaning, probes)):
        return set()
    by_font: dict[int | None, list[int]] = {}
    for place, character in enumerate(text):
        if not character.isspace() and has_no_meaning(place):
            by_font.setdefault(_drawn_font(raw, characters, index(place)), []).append(place)
    # PDFium does not know the names of the glyphs of a drawn font. Most have the codes of ASCII.
    return {
        place
        for font, places in by_font.items()
        if font is None or not _is_latin([text[place] for place in places])
        for place in places
    }


def _drawn_font(raw: Any, characters: Any, index: int) -> int | None:
    """Return the address of the font of a character if its glyphs are drawings (Type 3); else None."""
    drawn = raw.FPDFText_GetTextObject(characters, index)
    font = raw.FPDFTextObj_GetFont(drawn) if drawn else None
    # They alone have no name, which takes one byte.
    if font and raw.FPDFFont_GetBaseFontName(font, None, 0) <= 1:
        return addressof(font.contents)
    return None


def _is_latin(characters: Sequence[str]) -> bool:
    """Whether these are likely to be the characters that a reader sees, and not codes in the order of their use."""
    if sum(_LATIN.match(character) is not None for character in characters) < LEAST_LATIN * len(characters):
        return False
    letters = [character for character in characters if _LETTER.match(character)]
    if len(letters) >= LEAST_LETTERS and sum(map(bool, map(_VOWEL.match, letters))) < LEAST_VOWELS * len(letters):
        return False
    steps = [ord(after) - ord(before) for before, after in pairwise(dict.fromkeys(letters))]
    return len(steps) == 1 or sum(step == 1 for step in steps) <= MOST_IN_ORDER * len(steps)


def _in_runs(places: Iterable[int]) -> list[int]:
    """Return the places that follow each other without others between them."""
    runs: list[list[int]] = []
    for place in places:
        if runs and runs[-1][-1] == place - 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    return [place for run in runs if len(run) >= LEAST_RUN for place in run]
