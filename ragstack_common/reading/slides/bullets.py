"""The bullets and numbers of paragraphs in PowerPoint.

Source: ECMA-376 part 1, sections 21.1.2.4 (bullets), 21.1.2.2.7 (properties of paragraphs) and 20.1.10.61 (numbers).
"""

import re
from collections.abc import Sequence
from typing import Final
from xml.etree.ElementTree import Element

from ragstack_common.reading import lists
from ragstack_common.reading.office_package import whole_number

BULLET: Final = "-"
_MAX_LEVEL: Final = 8
_KINDS: Final = ("buNone", "buChar", "buAutoNum", "buBlip")
_NUMBERED: Final = re.compile(r"(arabic|alphaLc|alphaUc|romanLc|romanUc)?.*?(Period|ParenBoth|ParenR|Plain)?")
_STYLES: Final = {"alphaLc": "lowerLetter", "alphaUc": "upperLetter", "romanLc": "lowerRoman", "romanUc": "upperRoman"}
_AROUND: Final = {"ParenBoth": "({})", "ParenR": "{})", "Plain": "{}"}


def level(paragraph: Element) -> int:
    """Return the level of a paragraph, from 0 to 8."""
    properties = paragraph.find("pPr")
    return 0 if properties is None else max(0, min(whole_number(properties.get("lvl"), 0), _MAX_LEVEL))


class Bullets:
    """The bullets of the paragraphs of one shape.

    Args:
        styles: Of lists, the nearest first: each says what paragraphs of a level have unless a nearer one says it.
    """

    def __init__(self, styles: Sequence[Element]) -> None:
        self._styles = styles
        self._counts: dict[int, tuple[tuple[str, int], int]] = {}
        """By level: the kind and first number of the list that is open there, and its last number."""

    def next(self, paragraph: Element) -> str:
        """Return the label of the next paragraph that has text: ``2.``, ``-`` for a bullet, or nothing."""
        own = level(paragraph)
        for deeper in [each for each in self._counts if each > own]:
            del self._counts[deeper]
        bullet = self._bullet(paragraph, own)
        if bullet is None or bullet.tag != "buAutoNum":
            self._counts.pop(own, None)
            return "" if bullet is None or bullet.tag == "buNone" else BULLET
        kind = (bullet.get("type", "arabicPeriod"), whole_number(bullet.get("startAt"), 1))
        before = self._counts.get(own)
        number = before[1] + 1 if before is not None and before[0] == kind else kind[1]
        self._counts[own] = (kind, number)
        return _label(number, kind[0])

    def _bullet(self, paragraph: Element, own: int) -> Element | None:
        inherited = (each.find(f"lvl{own + 1}pPr") for each in self._styles)
        for properties in (paragraph.find("pPr"), *inherited):
            for each in properties if properties is not None else ():
                if each.tag in _KINDS:
                    return each
        return None


def _label(number: int, kind: str) -> str:
    found = _NUMBERED.fullmatch(kind)
    style, around = found.groups() if found else (None, None)
    text = lists.label(number, _STYLES.get(style or "", "decimal"), letters_repeat=True)
    return _AROUND.get(around or "", "{}.").format(text)
