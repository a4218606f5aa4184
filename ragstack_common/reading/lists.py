"""The labels of numbered lists."""

from typing import Final

_ROMAN: Final = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x"),
    (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip
_MAX_ROMAN: Final = 3999
_MAX_LETTERS: Final = 780
"""Word repeats the letter from the 27th item on: aa, bb, up to 30 times."""

_ORDINALS: Final = {1: "st", 2: "nd", 3: "rd"}


def label(number: int, style: str, *, letters_repeat: bool = False) -> str:
    """Return the label of an item.

    Args:
        number: From 1.
        style: As Word names it: decimal, lowerLetter, upperRoman and so on; others are decimal.
        letters_repeat: Whether aa follows z and bb follows it, as in Word, and not ab, as in HTML.
    """
    if style in ("lowerLetter", "upperLetter") and 0 < number <= _MAX_LETTERS:
        text = _repeated(number) if letters_repeat else _counted(number)
        return text.upper() if style == "upperLetter" else text
    if style in ("lowerRoman", "upperRoman") and 0 < number <= _MAX_ROMAN:
        text = _roman(number)
        return text.upper() if style == "upperRoman" else text
    if style == "decimalZero":
        return f"{number:02d}"
    if style == "ordinal":
        teens = number % 100 in (11, 12, 13)
        return f"{number}{'th' if teens else _ORDINALS.get(number % 10, 'th')}"
    return str(number)


def _repeated(number: int) -> str:
    times, letter = divmod(number - 1, 26)
    return chr(97 + letter) * (times + 1)


def _counted(number: int) -> str:
    text = ""
    while number:
        number, letter = divmod(number - 1, 26)
        text = chr(97 + letter) + text
    return text


def _roman(number: int) -> str:
    text = ""
    for value, letters in _ROMAN:
        text += letters * (number // value)
        number %= value
    return text
