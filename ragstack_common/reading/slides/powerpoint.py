"""The text of PowerPoint presentations as an audience sees it, in Markdown, with the notes of the speaker.

The order is that of the slide's shapes, in which screen readers read them too, with the title first. What slides take
from their layout and master is read once, and so are footers. Hidden slides and shapes and comments are left out.

Source: ECMA-376 part 1, sections 13.3 (parts) and 19.3 (slides).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from xml.etree.ElementTree import Element

from ragstack_common.reading import drawings, markdown
from ragstack_common.reading.markdown import Blocks
from ragstack_common.reading.office_package import OfficePackage, Relationship, whole_number
from ragstack_common.reading.paragraphs import Paragraph
from ragstack_common.reading.slides.bullets import Bullets, level
from ragstack_common.reading.word.formulas import formula
from ragstack_common.text.numbered_parts import NumberedPart

_ON: Final = ("1", "true")
_SHAPES: Final = frozenset({"sp", "tbl", "chart", "relIds"})
_TITLES: Final = ("title", "ctrTitle")
_FOOTERS: Final = ("ftr", "dt", "hdr")
_NUMBERS: Final = ("sldNum", "sldImg")
_LIKE: Final = {"ctrTitle": "title", "subTitle": "body", "obj": "body"}
"""The placeholder of the master that others take their style from."""

_STYLES: Final = {"title": "titleStyle", "body": "bodyStyle"}
_CHANGING_FIELDS: Final = ("slidenum", "datetime")


@dataclass(frozen=True)
class _Part:
    """A slide, layout, master or page of notes."""

    name: str
    root: Element
    links: Mapping[str, Relationship]


def read(data: bytes) -> str:
    """Return the text of a presentation.

    Raises:
        UnreadableDocument: It is damaged or hostile.
    """
    return _Presentation(OfficePackage(data, "pptx")).text()


class _Presentation:
    """A presentation that is being read."""

    def __init__(self, package: OfficePackage) -> None:
        self._package = package
        self._main = package.main_part()
        self._patterns: dict[str, _Part] = {}
        """Layouts and masters by name."""

        self._repeated: set[str] = set()
        """Texts that several slides show, and that were written."""

    def text(self) -> str:
        """Return the text of all slides that are shown."""
        blocks = Blocks()
        root = self._package.root(self._main)
        links = self._package.links(self._main)
        listed = dict.fromkeys(each.get("id", "") for each in root.iterfind("sldIdLst/sldId"))
        for number, own in enumerate(listed, start=1):
            link = links.get(own)
            if link is not None and not link.is_external and self._package.has(link.target):
                slide = self._part(link.target)
                if slide.root.get("show", "1") in _ON:
                    self._write_slide(number, slide, blocks)
        return str(blocks)

    def _part(self, name: str) -> _Part:
        return _Part(name, self._package.root(name), self._package.links(name))

    def _linked(self, part: _Part, kind: str) -> str | None:
        found = (link.target for link in part.links.values() if link.kind == kind and self._package.has(link.target))
        return next(found, None)

    def _pattern(self, part: _Part, kind: str) -> _Part | None:
        name = self._linked(part, kind)
        if name is not None and name not in self._patterns:
            self._patterns[name] = self._part(name)
        return self._patterns[name] if name is not None else None

    def _write_slide(self, number: int, slide: _Part, blocks: Blocks) -> None:
        layout = self._pattern(slide, "slideLayout")
        master = self._pattern(layout, "slideMaster") if layout else None
        patterns = [each for each in (layout, master) if each is not None]
        titles, own, around = [], Blocks(), Blocks()
        for shape in drawings.drawn(slide.root, _SHAPES):
            kind = _placeholder_kind(shape)
            if kind in _TITLES:
                titles += _paragraphs(shape)
            elif kind in _FOOTERS:
                self._write_once(shape, slide, around)
            elif kind not in _NUMBERS:
                self._write_shape(shape, slide, patterns, own)
        part = slide
        for pattern in patterns:
            if part.root.get("showMasterSp", "1") not in _ON:
                break
            part = pattern
            for shape in drawings.drawn(pattern.root, _SHAPES):
                if _placeholder(shape) is None:
                    self._write_once(shape, pattern, around)
        own.written(str(around))
        self._write_notes(slide, own)
        title = markdown.one_line(" ".join(titles))
        if title or str(own):
            blocks.heading(2, NumberedPart("Slide", number, title).heading)
            blocks.written(str(own))

    def _write_once(self, shape: Element, part: _Part, blocks: Blocks) -> None:
        written = Blocks()
        self._write_shape(shape, part, [], written)
        if str(written) not in self._repeated:
            self._repeated.add(str(written))
            blocks.written(str(written))

    def _write_notes(self, slide: _Part, blocks: Blocks) -> None:
        name = self._linked(slide, "notesSlide")
        if name is None:
            return
        notes, part = Blocks(), self._part(name)
        for shape in drawings.drawn(part.root, _SHAPES):
            if _placeholder_kind(shape) not in (*_FOOTERS, *_NUMBERS):
                self._write_shape(shape, part, [], notes)
        if str(notes):
            blocks.heading(3, "Notes")
            blocks.written(str(notes))

    def _write_shape(self, shape: Element, part: _Part, patterns: list[_Part], blocks: Blocks) -> None:
        if shape.tag == "tbl":
            _write_table(shape, blocks)
        elif shape.tag == "sp":
            bullets = Bullets([*_list_styles(shape, patterns)])
            for paragraph in shape.iterfind("txBody/p"):
                if text := _text(paragraph):
                    if label := bullets.next(paragraph):
                        blocks.item(label, text, 2 * level(paragraph))
                    else:
                        blocks.paragraph(text)
        else:
            drawings.write(shape, self._package, part.links, blocks)


def _placeholder(shape: Element) -> Element | None:
    return shape.find("nvSpPr/nvPr/ph")


def _placeholder_kind(shape: Element) -> str:
    """Return what a shape is a placeholder of; empty for other shapes."""
    found = _placeholder(shape)
    return "" if found is None else found.get("type", "obj")


def _list_styles(shape: Element, patterns: list[_Part]) -> Iterator[Element]:
    """Yield the list styles of a shape, and those that it takes from the placeholders of its layout and master."""
    yield from shape.iterfind("txBody/lstStyle")
    place = _placeholder(shape)
    if place is None:
        return
    kind = _placeholder_kind(shape)
    like = _LIKE.get(kind, kind)
    for pattern in patterns:
        for other in pattern.root.iterfind("cSld/spTree/sp"):
            found = _placeholder(other)
            same = found is not None and (
                found.get("idx") == place.get("idx")
                if pattern is patterns[0] and place.get("idx") is not None
                else _LIKE.get(found.get("type", "obj"), found.get("type", "obj")) == like
            )
            if same:
                yield from other.iterfind("txBody/lstStyle")
                break
        yield from pattern.root.iterfind(f"txStyles/{_STYLES.get(like, 'otherStyle')}")


def _paragraphs(shape: Element) -> list[str]:
    return [*filter(None, map(_text, shape.iterfind("txBody/p")))]


def _text(paragraph: Element) -> str:
    written = Paragraph()
    _add_runs(paragraph, written)
    return str(written).strip()


def _add_runs(parent: Element, written: Paragraph) -> None:
    for each in parent:
        if each.tag == "r" or (each.tag == "fld" and not each.get("type", "").startswith(_CHANGING_FIELDS)):
            written.add(each.findtext("t") or "", _place(each.find("rPr")))
        elif each.tag == "br":
            written.add("\n")
        elif each.tag == "AlternateContent":
            _add_runs(drawings.alternative(each), written)
        elif each.tag == "m":
            written.add(formula(each))


def _place(properties: Element | None) -> int:
    """Return where characters are: 0 on the line, 1 above it, 2 below it."""
    # The strict edition writes 30% for 30000.
    raised = whole_number((properties.get("baseline", "") if properties is not None else "").rstrip("%"), 0)
    return 1 if raised > 0 else 2 if raised < 0 else 0


def _write_table(table: Element, blocks: Blocks) -> None:
    grid: list[list[str]] = []
    for row in table.iterfind("tr"):
        texts: list[str] = []
        for column, cell in enumerate(row.iterfind("tc")):
            if cell.get("vMerge") in _ON and grid and column < len(grid[-1]):
                texts.append(grid[-1][column])
            elif cell.get("hMerge") in _ON and texts:
                texts.append(texts[-1])
            else:
                texts.append(markdown.one_line("\n".join(filter(None, map(_text, cell.iterfind("txBody/p"))))))
        grid.append(texts)
    if max(map(len, grid), default=0) < 2 or len(grid) < 2:  # noqa: PLR2004 - a frame around texts
        for texts in grid:
            for text in texts:
                blocks.paragraph(text)
    else:
        blocks.table(markdown.rectangle(grid))
