"""The text of presentations of PowerPoint 97 to 2003, in Markdown: see ``powerpoint``.

Bullets are not read, and tables are the texts of their cells.
"""

from typing import Final

from ragstack_common.reading import markdown
from ragstack_common.reading.markdown import Blocks
from ragstack_common.reading.slides import records
from ragstack_common.reading.slides.records import ListedSlide, Record, Records
from ragstack_common.text.numbered_parts import NumberedPart

_TITLES: Final = (0, 6)
"""Kinds of texts."""

_OF_PAGES: Final = range(0x07, 0x0B)
"""Placeholders for dates, numbers, footers and headers."""

_HIDDEN: Final = 0x04
_SHOWS_MASTER: Final = 0x01
_HAS_DATE, _HAS_FOOTER = 0x04, 0x20
_DATE, _FOOTER = 0, 2


def read(data: bytes) -> str:
    """Return the text of a presentation.

    Raises:
        UnreadableDocument: It is damaged, protected or hostile.
    """
    return _Presentation(Records(data)).text()


class _Presentation:
    """A presentation that is being read."""

    def __init__(self, found: Records) -> None:
        self._records = found
        self._masters = {each.own: each for each in found.listed(records.MASTERS)}
        self._notes: dict[int, ListedSlide] = {}
        for each in found.listed(records.OF_NOTES):
            page = found.at(each.place)
            for atom in found.within(page) if page is not None else ():
                if atom.kind == records.NOTES_ATOM:
                    self._notes[found.number(atom.begin, 4)] = each
        self._repeated: set[str] = set()
        """Texts that several slides show, and that were written."""

    def text(self) -> str:
        """Return the text of all slides that are shown."""
        blocks = Blocks()
        for number, listed in enumerate(self._records.listed(records.SLIDES), start=1):
            slide = self._records.at(listed.place)
            if slide is not None and not is_hidden(self._records, slide):
                self._write_slide(number, slide, listed, blocks)
        return str(blocks)

    def _write_slide(self, number: int, slide: Record, listed: ListedSlide, blocks: Blocks) -> None:
        own = Blocks()
        titles = self._write_shapes(slide, listed, own)
        for text in self._around(slide):
            if text not in self._repeated:
                self._repeated.add(text)
                own.paragraph(text)
        notes = self._notes.get(listed.own)
        page = self._records.at(notes.place) if notes is not None else None
        if notes is not None and page is not None:
            written = Blocks()
            self._write_shapes(page, notes, written)
            own.written(f"### Notes\n\n{written}" if str(written) else "")
        title = markdown.one_line(" ".join(titles))
        if title or str(own):
            blocks.heading(2, NumberedPart("Slide", number, title).heading)
            blocks.written(str(own))

    def _write_shapes(self, page: Record, listed: ListedSlide, blocks: Blocks) -> list[str]:
        """Write the texts of shapes, and return those of titles."""
        titles = []
        for shape in self._records.all_within(page, records.SHAPE):
            if self._placeholder(shape) in _OF_PAGES:
                continue
            for kind, text in self._texts(shape, listed):
                if kind in _TITLES:
                    titles.append(text)
                else:
                    blocks.paragraph("\n".join(filter(None, map(str.strip, text.split("\r")))))
        return titles

    def _texts(self, shape: Record, listed: ListedSlide) -> list[tuple[int, str]]:
        found = []
        for box in self._records.all_within(shape, records.TEXT_BOX):
            for each in self._records.within(box):
                place = self._records.number(each.begin, 4)
                if each.kind == records.OUTLINE_TEXT and place < len(listed.texts):
                    found.append(listed.texts[place])
            found += self._records.texts(box)
        return found

    def _placeholder(self, shape: Record) -> int | None:
        found = next(self._records.all_within(shape, records.PLACEHOLDER), None)
        return None if found is None else self._records.number(found.begin + 4, 1)

    def _around(self, slide: Record) -> list[str]:
        """Return the footer of a slide, and what its master shows besides placeholders."""
        found = []
        for each in self._records.within(slide):
            if each.kind == records.FOOTERS:
                found += footers(self._records, each)
            elif each.kind == records.SLIDE_ATOM and self._records.number(each.begin + 20, 2) & _SHOWS_MASTER:
                master = self._masters.get(self._records.number(each.begin + 12, 4))
                page = self._records.at(master.place) if master is not None else None
                for shape in self._records.all_within(page, records.SHAPE) if page is not None else ():
                    if self._placeholder(shape) is None:
                        found += [text.replace("\r", "\n") for _, text in self._texts(shape, ListedSlide(None, 0))]
        return found


def is_hidden(found: Records, slide: Record) -> bool:
    """Whether a slide is left out of the show."""
    shown = next((each for each in found.within(slide) if each.kind == records.SHOW), None)
    return shown is not None and bool(found.number(shown.begin + 10, 2) & _HIDDEN)


def footers(found: Records, container: Record) -> list[str]:
    """Return the footer and the date that a slide shows; dates of the day on which it is shown are left out."""
    flags, texts = 0, {}
    for each in found.within(container):
        if each.kind == records.FOOTERS_ATOM:
            flags = found.number(each.begin + 2, 2)
        elif each.kind == records.STRING:
            texts[each.instance] = found.stream[each.begin : each.end].decode("utf-16-le", "replace")
    shown = [(_HAS_FOOTER, _FOOTER), (_HAS_DATE, _DATE)]
    return [texts[which].strip() for flag, which in shown if flags & flag and texts.get(which, "").strip()]
