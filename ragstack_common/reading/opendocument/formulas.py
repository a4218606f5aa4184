"""Formulas of OpenDocument files, which are in MathML, in one line: a/b, 10⁶, √(x)."""

import re
from typing import Final
from xml.etree.ElementTree import Element

from ragstack_common.reading import markdown

_TOKENS: Final = ("math.mi", "math.mn", "math.mo", "math.mtext", "math.ms")
_LAST: Final = re.compile(r"[^\W\d_]\w*\Z")
_FIRST: Final = re.compile(r"[^\W\d_]\w*")
_LEFT_OUT: Final = ("math.annotation", "math.annotation-xml", "math.mphantom")


def formula(element: Element) -> str:
    """Return the text of an element of a formula."""
    if element.tag in _TOKENS:
        return (element.text or "").strip()
    parts = [formula(each) for each in element if each.tag not in _LEFT_OUT]
    if element.tag == "math.mfrac" and len(parts) == 2:  # noqa: PLR2004
        return "/".join(map(_grouped, parts))
    if element.tag in ("math.msqrt", "math.mroot") and parts:
        inner = parts[0] if element.tag == "math.mroot" else _row(parts)
        return f"{markdown.raised(parts[1], '') if element.tag == 'math.mroot' and parts[1:] else ''}√{_grouped(inner)}"
    if element.tag in ("math.msup", "math.mover") and len(parts) == 2:  # noqa: PLR2004
        return f"{parts[0]}{_above(parts[1])}"
    if element.tag in ("math.msub", "math.munder") and len(parts) == 2:  # noqa: PLR2004
        return f"{parts[0]}{_below(parts[1])}"
    if element.tag in ("math.msubsup", "math.munderover") and len(parts) == 3:  # noqa: PLR2004
        return f"{parts[0]}{_below(parts[1])}{_above(parts[2])}"
    if element.tag == "math.mtr":
        return ", ".join(parts)
    if element.tag == "math.mtable":
        return "; ".join(parts)
    return _row(parts)


def _row(parts: list[str]) -> str:
    """Join parts, words of several letters with a space between: sin x, but 2ab."""
    text = ""
    for part in parts:
        before, after = _LAST.search(text), _FIRST.match(part)
        is_apart = before is not None and after is not None and max(len(before[0]), len(after[0])) > 1
        text += f" {part}" if is_apart else part
    return text


def _grouped(text: str) -> str:
    return text if text.isalnum() else f"({text})"


def _above(text: str) -> str:
    shown = markdown.raised(text, "x")
    return shown if shown != text and not shown.startswith(" ") else f"^{_grouped(text)}"


def _below(text: str) -> str:
    shown = markdown.lowered(text)
    return shown if shown != text else f"_{_grouped(text)}"
