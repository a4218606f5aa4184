"""The text of OpenDocument texts as LibreOffice shows it, in Markdown.

Headers and footers are read once. Deleted and hidden text and comments are left out.
"""

from collections.abc import Iterator
from typing import Final
from xml.etree.ElementTree import Element

from ragstack_common.reading.markdown import Blocks
from ragstack_common.reading.opendocument.package import CONTENT, STYLES, OpenDocumentPackage
from ragstack_common.reading.opendocument.styles import Styles
from ragstack_common.reading.opendocument.texts import Texts

_AROUND: Final = {
    kind: tuple(f"style.{kind}{which}" for which in ("", "-left", "-first")) for kind in ("header", "footer")
}
_FAMILIES: Final = {"text.p": "paragraph", "text.h": "paragraph", "table.table": "table"}


def read(data: bytes) -> str:
    """Return the text of a document.

    Raises:
        UnreadableDocument: It is damaged, encrypted or hostile.
    """
    package = OpenDocumentPackage(data, "odt")
    content = package.root(CONTENT)
    common = package.root(STYLES) if package.has(STYLES) else Element("office.document-styles")
    styles = Styles([common.find("office.styles"), content.find("office.automatic-styles")])
    body = content.find("office.body/office.text")
    if body is None:
        return ""
    blocks = Blocks()
    of_pages = Styles([common.find("office.styles"), common.find("office.automatic-styles")])
    pages = [*_pages(body, styles, common)]
    for text in _around(Texts(package, of_pages, has_page_numbers=False), pages, "header"):
        blocks.written(text)
    texts = Texts(package, styles)
    texts.write(body, blocks)
    texts.write_notes(blocks)
    for text in _around(Texts(package, of_pages, has_page_numbers=False), pages, "footer"):
        blocks.written(text)
    return str(blocks)


def _pages(body: Element, styles: Styles, common: Element) -> Iterator[Element]:
    """Yield the kinds of pages that the document has: the first one, those that follow, and those that texts begin."""
    masters = {each.get("style.name", ""): each for each in common.iterfind("office.master-styles/style.master-page")}
    begun = [styles.attribute(*_style(each), "style.master-page-name") for each in body.iter() if each.tag in _FAMILIES]
    waiting = [*filter(None, begun)]
    if not (begun and begun[0]):
        waiting.insert(0, next(iter(masters), ""))
    while waiting:
        page = masters.pop(waiting.pop(0), None)
        if page is not None:
            yield page
            waiting.append(page.get("style.next-style-name", ""))


def _style(element: Element) -> tuple[str, str | None]:
    family = _FAMILIES[element.tag]
    return family, element.get("table.style-name" if family == "table" else "text.style-name")


def _around(texts: Texts, pages: list[Element], kind: str) -> list[str]:
    """Return the texts of the headers or footers of pages, each once."""
    found: dict[str, None] = {}
    for page in pages:
        for each in page:
            if each.tag in _AROUND[kind] and each.get("style.display") != "false":
                blocks = Blocks()
                texts.write(each, blocks)
                found |= dict.fromkeys(text for text in str(blocks).split("\n\n") if text.strip())
    return [*found]
