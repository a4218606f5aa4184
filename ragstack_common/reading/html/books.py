"""E-books (epub): chapters that are web pages, in the order in which people read them.

Sources: EPUB 3.3 (packages, spines, navigation), EPUB 2.0.1 (ncx), EPUB Open Container Format 3.0 (encryption).
"""

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote
from xml.etree.ElementTree import Element

from ragstack_common.reading import formats, markdown, xml_files
from ragstack_common.reading.encodings import decoded
from ragstack_common.reading.formats import UnreadableDocument
from ragstack_common.reading.html import pages
from ragstack_common.reading.html.linked_styles import with_styles
from ragstack_common.reading.html.pages import Page
from ragstack_common.reading.markdown import Blocks
from ragstack_common.reading.office_package import OfficePackage, local

_CONTAINER: Final = "META-INF/container.xml"
_ENCRYPTION: Final = "META-INF/encryption.xml"
_OBFUSCATED_FONTS: Final = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")
_PAGES: Final = frozenset({"application/xhtml+xml", "text/html", "text/x-oeb1-document", "image/svg+xml"})
_NAVIGATION: Final = "application/x-dtbncx+xml"


@dataclass(frozen=True)
class _Item:
    """A file of the book."""

    name: str
    media_type: str
    properties: str


def read(data: bytes) -> Page:
    """Read a book.

    Raises:
        UnreadableDocument: It is damaged, or protected against copying.
    """
    book = _Book(OfficePackage(data, "epub"))
    return Page("\n\n".join(filter(None, book.chapters())), book.title)


class _Book:
    def __init__(self, package: OfficePackage) -> None:
        self._package = package
        self._name = self._name_of_package()
        self._root = self._xml(self._name)
        self._items = {
            each.get("id", ""): _Item(
                self._resolve(self._name, each.get("href", "")), each.get("media-type", ""), each.get("properties", "")
            )
            for each in _all(self._root, "item")
        }
        self._spine = [
            item for each in _all(self._root, "itemref") if (item := self._items.get(each.get("idref", ""))) is not None
        ]
        self._refuse_encrypted()

    @property
    def title(self) -> str | None:
        """The title of the book."""
        titles = (markdown.one_line("".join(each.itertext())) for each in _all(self._root, "title"))
        return next(filter(None, titles), None)

    def chapters(self) -> Iterator[str]:
        """Yield the text of each chapter; it begins with a heading if the table of contents names it."""
        titles = self._titles()
        found = False
        for item in self._spine:
            if item.media_type not in _PAGES or not self._package.has(item.name):
                continue
            found = True
            text = self._page(item)
            if text and (title := titles.get(item.name)):
                text = _with_heading(text, title)
            yield text
        if not found:
            raise UnreadableDocument(formats.DAMAGED.format("epub", "it has no chapters"))

    def _page(self, item: _Item) -> str:
        data = self._bytes(item.name)
        source = decoded(data, pages.declared_charset(data))

        def style(address: str) -> str | None:
            name = self._resolve(item.name, address)
            return decoded(self._bytes(name)) if self._package.has(name) else None

        return pages.read(with_styles(source, style).encode("utf-8", "replace"), "utf-8").text

    def _titles(self) -> dict[str, str]:
        """Return the titles of chapters by the names of their files, from the table of contents."""
        titles: dict[str, str] = {}
        for item in self._items.values():
            if not self._package.has(item.name):
                continue
            if "nav" in item.properties.split():
                links = [
                    (each.get("href", ""), "".join(each.itertext()))
                    for navigation in _all(self._xml(item.name), "nav")
                    if "toc" in (navigation.get("{http://www.idpf.org/2007/ops}type") or "toc")
                    for each in _all(navigation, "a")
                ]
            elif item.media_type == _NAVIGATION:
                links = [
                    (source.get("src", ""), "".join(label.itertext()))
                    for point in _all(self._xml(item.name), "navPoint")
                    for label in _children(point, "navLabel")
                    for source in _children(point, "content")
                ]
            else:
                continue
            for address, title in links:
                titles.setdefault(self._resolve(item.name, address), markdown.one_line(title))
        return titles

    def _name_of_package(self) -> str:
        if self._package.has(_CONTAINER):
            for each in _all(self._xml(_CONTAINER), "rootfile"):
                if self._package.has(name := unquote(each.get("full-path", ""))):
                    return name
        raise UnreadableDocument(formats.DAMAGED.format("epub", "it has no package"))

    def _refuse_encrypted(self) -> None:
        if not self._package.has(_ENCRYPTION):
            return
        chapters = {item.name for item in self._spine}
        for each in _all(self._xml(_ENCRYPTION), "EncryptedData"):
            methods = {method.get("Algorithm") for method in _all(each, "EncryptionMethod")}
            names = {unquote(reference.get("URI", "")).lstrip("/") for reference in _all(each, "CipherReference")}
            if not methods & {*_OBFUSCATED_FONTS} and names & {*chapters, self._name}:
                raise UnreadableDocument("The .epub file is protected against copying (DRM), so it cannot be read.")

    def _resolve(self, name: str, address: str) -> str:
        path = unquote(address.partition("#")[0])
        return posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else name

    def _bytes(self, name: str) -> bytes:
        return b"".join(self._package.blocks(name))

    def _xml(self, name: str) -> Element:
        return xml_files.root(self._bytes(name), "epub")


def _with_heading(text: str, title: str) -> str:
    """Return the text of a chapter with its title as a heading, unless it begins with one."""
    first, _, rest = text.partition("\n\n")
    if first.startswith("#"):
        return text
    blocks = Blocks()
    blocks.heading(1, title)
    blocks.written(rest if _is_same(first, title) else text)
    return str(blocks)


def _is_same(first: str, title: str) -> bool:
    return markdown.one_line(first).casefold() == title.casefold()


def _all(element: Element, name: str) -> Iterator[Element]:
    return (each for each in element.iter() if isinstance(each.tag, str) and local(each.tag) == name)


def _children(element: Element, name: str) -> Iterator[Element]:
    return (each for each in element if isinstance(each.tag, str) and local(each.tag) == name)
