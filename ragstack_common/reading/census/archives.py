"""What e-books and web archives have: the pages in them, found in the source of their lists."""

import posixpath
import re
import zipfile
from collections.abc import Iterator
from html import unescape
from io import BytesIO
from typing import Final
from urllib.parse import unquote

from ragstack_common.reading.census import pages
from ragstack_common.reading.census.parts import NOT_RECOGNIZED, Census, Part
from ragstack_common.reading.encodings import decoded
from ragstack_common.reading.html.linked_styles import with_styles
from ragstack_common.reading.html.pages import declared_charset
from ragstack_common.reading.mail import archives

_PACKAGE: Final = re.compile(r"full-path\s*=\s*[\"']([^\"']+)")
_FILE: Final = re.compile(r"<(?:[\w.-]+:)?item\s[^>]*>")
_CHAPTER: Final = re.compile(r"<(?:[\w.-]+:)?itemref\s[^>]*?idref\s*=\s*[\"']([^\"']+)")
_ATTRIBUTE: Final = re.compile(r"\b(id|href|media-type)\s*=\s*[\"']([^\"']*)[\"']")
_COMMENT: Final = re.compile(r"<!--.*?-->", re.DOTALL)


def count_mht(data: bytes) -> Census:
    """List the texts of the pages of a web archive; raises UnreadableDocument."""
    census = Census([Part("main text")], "parts")
    for page, charset in archives.pages_in(data):
        _add(census, census.parts[0], page, charset)
    return census


def count_epub(data: bytes) -> Census:
    """List the texts of each chapter of a book; raises UnreadableDocument."""
    census = Census([], "chapters")
    with zipfile.ZipFile(BytesIO(data)) as archive:
        for number, (name, media_type) in enumerate(_chapters(archive), start=1):
            if media_type.startswith("image/") and "svg" not in media_type:
                census.left_out("pictures", 1, NOT_RECOGNIZED)
                continue
            part = Part(f"chapter {number}")
            census.parts.append(part)
            _add(census, part, _page(archive, name), "utf-8")
    return census


def _chapters(archive: zipfile.ZipFile) -> Iterator[tuple[str, str]]:
    """Yield the name and the media type of each chapter."""
    found = _PACKAGE.search(_source(archive, "META-INF/container.xml"))
    if found is None:
        return
    name = unquote(found[1])
    package = _source(archive, name)
    files = {}
    for each in _FILE.findall(package):
        attributes = {found[1]: unescape(found[2]) for found in _ATTRIBUTE.finditer(each)}
        path = posixpath.join(posixpath.dirname(name), unquote(attributes.get("href", "")))
        files[attributes.get("id", "")] = (posixpath.normpath(path), attributes.get("media-type", ""))
    names = {*archive.namelist()}
    yield from (files[own] for own in _CHAPTER.findall(package) if own in files and files[own][0] in names)


def _source(archive: zipfile.ZipFile, name: str) -> str:
    return _COMMENT.sub("", decoded(archive.read(name)))


def _page(archive: zipfile.ZipFile, name: str) -> bytes:
    data = archive.read(name)

    def style(address: str) -> str | None:
        own = posixpath.normpath(posixpath.join(posixpath.dirname(name), unquote(address)))
        return decoded(archive.read(own)) if own in archive.namelist() else None

    return with_styles(decoded(data, declared_charset(data)), style).encode("utf-8", "replace")


def _add(census: Census, part: Part, page: bytes, charset: str | None) -> None:
    counted = pages.count_html(page, charset)
    part.texts += [text for each in counted.parts for text in each.texts]
    for aside in counted.asides:
        census.left_out(aside.what, aside.number, aside.why)
