"""Where the characters of a page's text are on its picture."""

from itertools import accumulate
from typing import Any

from ragstack_common.reading.pdf.bidi import MIRRORED
from ragstack_common.reading.pdf.geometry import drawn_at, rectangles
from ragstack_common.reading.pdf.order import ON_THE_LINE
from ragstack_common.reading.pdf.text import CONTROLS, SHOWN_HYPHENS, hyphens
from ragstack_common.reading.pdf.unmapped import BULLET, UNKNOWN
from ragstack_common.reading.pdf.visible import CODE_OF_HYPHEN, HYPHEN, Visible
from ragstack_common.reading.places import Box, Rectangle


class Glyphs:
    """The characters of a page that are not white space, each with its place in PDFium's list.

    The page's text has the same ones: cleaning changes white space, and hyphens at the ends of lines.
    """

    def __init__(self, raw: Any, page: Any, characters: Any, shown: Visible) -> None:
        self._raw, self._page, self._characters = raw, page, characters
        kept = [*CONTROLS.sub(" ", shown.text)]
        for found, read in hyphens(shown.text):
            kept[found.start()] = read.strip() or " "
        # PDFium joins hyphenated lines.
        lines = accumulate(character in f"\n{HYPHEN}" for character in shown.text)
        self.all = [each for each in zip(kept, shown.units, lines, strict=False) if not each[0].isspace()]

    def boxes(self, begin: int, end: int, shown: str) -> list[Box]:
        """Return the boxes of a run, one for each line; none if it is not certain that they are those of the text."""
        found: list[Rectangle] = []
        last: tuple[int, Rectangle] | None = None
        for (character, unit, line), expected in zip(self.all[begin:end], shown, strict=True):
            index = self._raw.FPDFText_GetCharIndexFromTextIndex(self._characters, unit)
            if index < 0 or not self._is(index, character) or expected != character.translate(SHOWN_HYPHENS):
                return []
            ink, body = rectangles(self._raw, self._characters, index)
            if last is not None and last[0] == line and last[1].is_beside(body):
                found[-1] = found[-1].joined(ink)
            else:
                found.append(ink)
            last = line, body
        return [box for box in (drawn_at(self._raw, self._page, each) for each in found) if box.width and box.height]

    def _is(self, index: int, character: str) -> bool:
        code = self._raw.FPDFText_GetUnicode(self._characters, index)
        if character == HYPHEN:
            return bool(code == CODE_OF_HYPHEN)
        if character in (UNKNOWN, BULLET):
            return True
        if character in "⁻₋":
            return code in (ord("-"), ord("\u2212"))
        character = character.translate(ON_THE_LINE)
        if character in MIRRORED:
            return chr(code) in MIRRORED
        return bool(code == int.from_bytes(character.encode("utf-16-le")[:2], "little"))
