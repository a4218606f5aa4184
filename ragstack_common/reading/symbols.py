"""Characters of the fonts Symbol and Wingdings, whose codes are those of other characters."""

import re
from collections.abc import Mapping
from typing import Final
from xml.etree.ElementTree import Element

_GREEK: Final = zip(
    "ABGDEZHQIKLMNXOPRSTUFCYWabgdezhqiklmnxoprstufcywVjJ",
    "\u0391\u0392\u0393\u0394\u0395\u0396\u0397\u0398\u0399\u039a\u039b\u039c\u039d\u039e\u039f\u03a0\u03a1\u03a3"
    "\u03a4\u03a5\u03a6\u03a7\u03a8\u03a9\u03b1\u03b2\u03b3\u03b4\u03b5\u03b6\u03b7\u03b8\u03b9\u03ba\u03bb\u03bc"
    "\u03bd\u03be\u03bf\u03c0\u03c1\u03c3\u03c4\u03c5\u03c6\u03c7\u03c8\u03c9\u03c2\u03d5\u03d1",
    strict=True,
)
_SYMBOL: Final[Mapping[int, str]] = {ord(code): character for code, character in _GREEK} | {
    0xA3: "≤", 0xA5: "∞", 0xAB: "↔", 0xAC: "←", 0xAD: "↑", 0xAE: "→", 0xAF: "↓", 0xB0: "°", 0xB1: "±", 0xB2: "″",
    0xB3: "≥", 0xB4: "\u00d7", 0xB5: "∝", 0xB6: "∂", 0xB7: "•", 0xB8: "÷", 0xB9: "≠", 0xBA: "≡", 0xBB: "≈", 0xBC: "…",
    0xC5: "⊕", 0xC6: "∅", 0xC7: "∩", 0xC8: "\u222a", 0xCE: "∈", 0xCF: "∉", 0xD0: "∠", 0xD1: "∇", 0xD5: "∏", 0xD6: "√",
    0xD7: "⋅", 0xD8: "¬", 0xD9: "∧", 0xDA: "\u2228", 0xDB: "⇔", 0xDC: "⇐", 0xDE: "⇒", 0xE5: "∑", 0xF2: "∫",
}  # fmt: skip
"""Source: Adobe's Symbol encoding."""

_WINGDINGS: Final[Mapping[int, str]] = {
    0x4A: "☺", 0x52: "☑", 0x6C: "●", 0x6E: "■", 0x6F: "☐", 0x71: "☐", 0x76: "❖", 0x78: "☒", 0xA7: "▪", 0xA8: "☐",
    0xDF: "←", 0xE0: "→", 0xE8: "→", 0xFB: "✗", 0xFC: "✓", 0xFD: "☒", 0xFE: "☑",
}  # fmt: skip
_PRINTABLE: Final = range(0x20, 0x7F)
_CODE: Final = re.compile("[0-9A-Fa-f]{1,4}")
_SURROGATES: Final = 0xD800
"""The first code that is no character; those of private use follow."""


def of_symbol(symbol: Element) -> str:
    """Return the character of a symbol in a Word document; empty if it is unknown."""
    found = _CODE.fullmatch(symbol.get("char", ""))
    return character(symbol.get("font", ""), int(found[0], 16) if found else 0)


def character(font: str, code: int) -> str:
    """Return the Unicode character that a font draws for a code of up to 16 bits; empty if it is unknown."""
    name, low = font.lower(), code & 0xFF
    if name.startswith("wingdings"):
        return _WINGDINGS.get(low, "")
    if name == "symbol":
        return _SYMBOL.get(low, chr(low) if low in _PRINTABLE else "")
    return chr(code) if 0 < code < _SURROGATES else ""
