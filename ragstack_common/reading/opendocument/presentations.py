"""The text of OpenDocument presentations as an audience sees it, in Markdown, with the notes of the speaker.

The order is that of the slide's shapes, with the title first. What slides take from their master is read once, and so
are footers. Hidden slides and comments are left out.
"""

from collections.abc import Iterator
from typing import Final
from xml.etree.ElementTree import Element

from ragstack_common.reading import markdown
from ragstack_common.reading.markdown import Blocks
from ragstack_common.reading.opendocument.package import CONTENT, STYLES, OpenDocumentPackage
from ragstack_common.reading.opendocument.styles import Styles
from ragstack_common.reading.opendocument.texts import Texts
from ragstack_common.text.numbered_parts import NumberedPart

_PLACEHOLDERS: Final = "presentation.class"
_DECLARED: Final = ("footer", "header", "date-time")
_NUMBERS: Final = ("page-number", "page", "handout")


def read(data: bytes) -> str:
    """Return the text of a presentation.

    Raises:
        UnreadableDocument: It is damaged, encrypted or hostile.
    """
    return _Presentation(OpenDocumentPackage(data, "odp")).text()


class _Presentation:
    """A presentation that is being read."""

    def __init__(self, package: OpenDocumentPackage) -> None:
        self._content = package.root(CONTENT)
        common = package.root(STYLES) if package.has(STYLES) else Element("office.document-styles")
        named = common.find("office.styles")
        self._styles = Styles([named, self._content.find("office.automatic-styles")])
        self._texts = Texts(package, self._styles, has_page_numbers=False)
        of_masters = Styles([named, common.find("office.automatic-styles")])
        self._texts_of_masters = Texts(package, of_masters, has_page_numbers=False)
        pages = common.iterfind("office.master-styles/style.master-page")
        self._masters = {each.get("style.name", ""): each for each in pages}
        self._declared: dict[tuple[str, str], str] = {}
        self._repeated: set[str] = set()
        """Texts that several slides show, and that were written."""

    def text(self) -> str:
        """Return the text of all slides that are shown."""
        blocks = Blocks()
        shown = self._content.find("office.body/office.presentation")
        for each in shown if shown is not None else ():
            kind = each.tag.removeprefix("presentation.").removesuffix("-decl")
            if kind in _DECLARED and each.get("presentation.source") != "current-date":
                self._declared[kind, each.get("presentation.name", "")] = "".join(each.itertext()).strip()
        for number, page in enumerate(self._content.iterfind("office.body/office.presentation/draw.page"), start=1):
            if self._of_page(page, "presentation.visibility") != "hidden":
                self._write_slide(number, page, blocks)
        return str(blocks)

    def _of_page(self, page: Element, attribute: str) -> str | None:
        return self._styles.property("drawing-page", page.get("draw.style-name"), "drawing-page", attribute)

    def _write_slide(self, number: int, page: Element, blocks: Blocks) -> None:
        titles: list[str] = []
        own = Blocks()
        for shape in _shapes(page):
            if shape.get(_PLACEHOLDERS) == "title":
                titles += [self._texts.paragraph(each) for each in shape.iter("text.p")]
            elif shape.get(_PLACEHOLDERS) not in _NUMBERS:
                self._texts.write_shape(shape, own)
        for text in self._around(page):
            if text not in self._repeated:
                self._repeated.add(text)
                own.written(text)
        own.written(self._notes(page))
        title = markdown.one_line(" ".join(titles))
        if title or str(own):
            blocks.heading(2, NumberedPart("Slide", number, title).heading)
            blocks.written(str(own))

    def _notes(self, page: Element) -> str:
        notes, blocks = page.find("presentation.notes"), Blocks()
        for shape in _shapes(notes) if notes is not None else ():
            if shape.get(_PLACEHOLDERS) in (None, "notes"):
                self._texts.write_shape(shape, blocks)
        return f"### Notes\n\n{blocks}" if str(blocks) else ""

    def _around(self, page: Element) -> list[str]:
        """Return the footers of a slide, and what its master shows besides placeholders."""
        found = []
        for kind in _DECLARED:
            name = page.get(f"presentation.use-{kind}-name", "")
            if self._of_page(page, f"presentation.display-{kind}") != "false" and (kind, name) in self._declared:
                found.append(markdown.escaped(self._declared[kind, name]))
        master = self._masters.get(page.get("draw.master-page-name", ""))
        shows = self._of_page(page, "presentation.background-objects-visible") != "false"
        for shape in _shapes(master) if master is not None and shows else ():
            if shape.get(_PLACEHOLDERS) is None:
                blocks = Blocks()
                self._texts_of_masters.write_shape(shape, blocks)
                found.append(str(blocks))
        return found


def _shapes(page: Element) -> Iterator[Element]:
    """Yield the shapes of a page, without empty placeholders."""
    for each in page:
        if each.tag.startswith(("draw.", "dr3d.")) and each.get("presentation.placeholder") != "true":
            yield each
