"""Classes of characters: parts of words or numbers, white space, or ignored.

A text is translated to a string of classes of the same length, in which regular expressions find words: those of the
standard library don't know combining marks, without which words of Hindi and Thai fall apart.
"""

# ruff: noqa: RUF001 - look-alikes of letters, digits, quotation marks and dashes are the subject

import re
import unicodedata
from functools import cache
from typing import Final

UPPER: Final = "U"
"""A letter that may begin a sentence: upper case, or of a script without cases."""

LETTER: Final = "L"
MARK: Final = "M"
DIGIT: Final = "D"
SMALL_DIGIT: Final = "S"
"""A superscript, a subscript, a fraction, or another number that is not a decimal digit."""

DENSE: Final = "C"
"""A character of a script without spaces between words, such as Chinese, Japanese and Thai."""

NUMERAL: Final = "N"
"""A Chinese or Japanese numeral."""

SPACE: Final = " "
IGNORED: Final = "I"
QUOTATION: Final = '"'
APOSTROPHE: Final = "'"
HYPHEN: Final = "-"
ELLIPSIS: Final = "E"
SYMBOL: Final = "X"
"""A symbol that changes the word or number that it touches, such as % or <."""

PUNCTUATION: Final = "P"
BREAK: Final = "B"

DIVIDER: Final = "\ufdd0"
"""Replaces markup inside a word. Unicode reserves the code point for internal use."""

END_OF_BLOCK: Final = "\ufdd1"
"""Replaces the end of a heading, a list item or a block of HTML. No text contains it, unlike Unicode's paragraph
separator."""

QUOTATION_MARKS: Final = '"“”„‟«»‹›‘‚‛「」『』﹁﹂﹃﹄｢｣《》〈〉〝〞〟＂❝❞❛❜'
_OWN: Final = {
    DIVIDER: BREAK,
    END_OF_BLOCK: SPACE,
    **dict.fromkeys(QUOTATION_MARKS, QUOTATION),
    **dict.fromkeys("'’＇ʼ", APOSTROPHE),
    **dict.fromkeys("-‐‑‒–−﹣－", HYPHEN),
    **dict.fromkeys("〇零一二三四五六七八九十百千万萬亿億兆两兩廿卅壱弐参", NUMERAL),
    **dict.fromkeys("%‰‱*#\\^~%＊＃＼′″‴℃℉№", SYMBOL),
    **{character: character for character in ".,:/&@\n"},
    **dict(zip("．，：／＆＠", ".,:/&@", strict=True)),
    "％": SYMBOL,
    "…": ELLIPSIS,
    **dict.fromkeys("٫·", "."),
    "٬": ",",
    **dict.fromkeys("\u0e33\u0eb3", MARK),
    "|": PUNCTUATION,
    "_": LETTER,
}
DENSE_RANGES: Final = (
    "\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf\u2e80-\u2fdf\u3005-\u3007\u3040-\u312f"
    "\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\uaa60-\uaa7f\uf900-\ufaff\uff66-\uff9f\U0001b000-\U0001b16f"
    "\U00020000-\U0003ffff"
)
"""Scripts without spaces between words. Source: Unicode, blocks."""

HANGUL_RANGES: Final = "\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff"
"""Korean has spaces, but its endings are attached to the words."""

_INVISIBLE: Final = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]")
"""Variation selectors and fillers. Format characters have a category of their own."""

_RAISED: Final = ("<super>", "<sub>", "<fraction>", "<circle>", "<square>")
"""Compatibility decompositions that change what a reader sees: 20¹ is not 201."""


@cache
def dense() -> re.Pattern[str]:
    """Return the pattern of a character of the scripts without spaces, whose ranges take a millisecond to compile."""
    return re.compile(f"[{DENSE_RANGES}]")


class _Classes(dict[int, str]):
    """The class of each character, by code point."""

    def __missing__(self, code_point: int) -> str:
        self[code_point] = found = _class_of(chr(code_point))
        return found


def _class_of(character: str) -> str:
    if own := _OWN.get(character):
        return own
    if character.isspace():
        return SPACE
    category = unicodedata.category(character)
    if category in ("Cf", "Cc", "Cs") or _INVISIBLE.match(character):
        return IGNORED
    if category[0] == "M":
        return MARK
    if category == "Nd":
        return DIGIT
    if category == "No" or (category[0] == "L" and unicodedata.decomposition(character).startswith(_RAISED[:2])):
        return SMALL_DIGIT
    if category[0] == "L" or category == "Nl":
        return DENSE if dense().match(character) else LETTER if category == "Ll" else UPPER
    return SYMBOL if category in ("Sc", "Sm", "Sk") or character == "°" else PUNCTUATION


class _Folded(dict[int, str]):
    """Each character as it is compared, by code point."""

    def __missing__(self, code_point: int) -> str:
        character = chr(code_point)
        decomposed = unicodedata.decomposition(character)
        found = character
        if decomposed.startswith("<") and not decomposed.startswith(_RAISED):
            compatible = unicodedata.normalize("NFKC", character)
            found = character if " " in compatible else compatible
        self[code_point] = found
        return found


_CLASSES: Final = _Classes()
_FOLDED: Final = _Folded(
    {**dict.fromkeys(map(ord, "-‐‑‒–—―−﹣－"), "-"), **dict.fromkeys(map(ord, "'’＇ʼ"), "'")}
    | dict.fromkeys(map(ord, "[［"), "(")
    | dict.fromkeys(map(ord, "]］"), ")")
)


def classes(text: str) -> str:
    """Return the class of each character."""
    return text.translate(_CLASSES)


def folded(text: str) -> str:
    """Return the form of a text in which texts are compared: composed, with one form of variants such as dashes.

    Superscripts, subscripts and fractions stay. Brackets become parentheses, because prompts replace some of them.
    """
    return unicodedata.normalize("NFC", text.translate(_FOLDED))


def without_invisible(text: str) -> str:
    """Remove format characters, such as zero-width spaces, and control characters but white space."""
    return "".join(one for one, kind in zip(text, classes(text), strict=True) if kind != IGNORED)


def is_dense(character: str) -> bool:
    """Whether a character belongs to a script without spaces between words."""
    return bool(character) and _CLASSES[ord(character)] in (DENSE, NUMERAL)
