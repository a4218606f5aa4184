"""The numbers of lists and headings in OpenDocument files.

Source: OpenDocument 1.3 part 3, sections 5.3 (lists) and 16.30 to 16.35 (their styles). Items count as LibreOffice
counts them: an item continues those of its level since the last one of a level above, wherever its list begins.
"""

from collections.abc import Mapping
from typing import Final
from xml.etree.ElementTree import Element

from ragstack_common.reading import lists
from ragstack_common.reading.office_package import whole_number

BULLET: Final = "-"
_MAX_LABEL: Final = 255
_STYLES: Final = {"1": "decimal", "a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman"}
_MAX_LEVELS: Final = 10


class Counter:
    """Counts the items of one list, or the headings of a document; levels begin with 1."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}

    def next(self, level: int, styles: Mapping[int, Element], start: str | None = None) -> str:
        """Return the label of the next item: ``2.1``, ``(a)``, ``-`` for a bullet, or nothing.

        Args:
            level: Of the item.
            styles: Of the levels.
            start: The number that the item itself has.
        """
        first = _first(styles.get(level))
        if start is not None:
            self._counts[level] = whole_number(start, first)
        else:
            self._counts[level] = self._counts[level] + 1 if level in self._counts else first
        for deeper in [each for each in self._counts if each > level]:
            del self._counts[deeper]
        own = styles.get(level)
        if own is None or own.tag in ("text.list-level-style-bullet", "text.list-level-style-image"):
            return BULLET
        if not own.get("style.num-format"):
            return ""
        shown = max(1, min(whole_number(own.get("text.display-levels"), 1), level, _MAX_LEVELS))
        numbers = [self._number(each, styles.get(each)) for each in range(level - shown + 1, level + 1)]
        text = ".".join(filter(None, numbers))
        before, after = (own.get(f"style.num-{end}", "")[:_MAX_LABEL] for end in ("prefix", "suffix"))
        return f"{before}{text}{after}".strip()

    def _number(self, level: int, style: Element | None) -> str:
        if style is None or not (form := style.get("style.num-format")):
            return ""
        repeats = style.get("style.num-letter-sync") == "true"
        count = self._counts.get(level, _first(style))
        return lists.label(count, _STYLES.get(form, "decimal"), letters_repeat=repeats)


def _first(style: Element | None) -> int:
    return whole_number(style.get("text.start-value") if style is not None else None, 1)
