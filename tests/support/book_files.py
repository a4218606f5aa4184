"""E-books and web archives."""

import io
import zipfile
from collections.abc import Mapping, Sequence

_CONTAINER = (
    '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="OEBPS/a.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
)


def epub(
    chapters: Sequence[str],
    *,
    title: str = "Leave",
    contents: Mapping[int, str] | None = None,
    files: Mapping[str, str] | None = None,
    ncx: bool = False,
    doctype: str = "",
) -> bytes:
    """Return a book; *contents* are the titles of chapters by their number, from 0."""
    manifest = "".join(
        f'<item id="c{number}" href="c%20{number}.xhtml" media-type="application/xhtml+xml"/>'
        for number in range(len(chapters))
    )
    spine = "".join(f'<itemref idref="c{number}"/>' for number in range(len(chapters)))
    parts = {f"OEBPS/c {number}.xhtml": chapter for number, chapter in enumerate(chapters)}
    if contents is not None and ncx:
        manifest += '<item id="n" href="n.ncx" media-type="application/x-dtbncx+xml"/>'
        points = "".join(
            f'<navPoint><navLabel><text>{text}</text></navLabel><content src="c%20{number}.xhtml#x"/></navPoint>'
            for number, text in contents.items()
        )
        parts["OEBPS/n.ncx"] = f'<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/"><navMap>{points}</navMap></ncx>'
    elif contents is not None:
        manifest += '<item id="n" href="n.xhtml" media-type="application/xhtml+xml" properties="nav"/>'
        links = "".join(f'<li><a href="c%20{number}.xhtml">{text}</a></li>' for number, text in contents.items())
        parts["OEBPS/n.xhtml"] = (
            '<html xmlns="http://www.w3.org/1999/xhtml" xmlns:e="http://www.idpf.org/2007/ops"><body>'
            f'<nav e:type="toc"><ol>{links}</ol></nav></body></html>'
        )
    package = (
        f'<?xml version="1.0"?>{doctype}<package xmlns="http://www.idpf.org/2007/opf"><metadata '
        f'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{title}</dc:title></metadata>'
        f"<manifest>{manifest}</manifest><spine>{spine}</spine></package>"
    )
    parts = {"META-INF/container.xml": _CONTAINER, "OEBPS/a.opf": package, **parts, **(files or {})}
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        archive.writestr("mimetype", "application/epub+zip")
        for name, content in parts.items():
            archive.writestr(name, content)
    return written.getvalue()


def mht(page: str, files: Sequence[tuple[str, str, str]] = ()) -> bytes:
    """Return a web archive of a page; *files* are the media type, the address and the content of others."""
    parts = [("text/html; charset=utf-8", "http://a.example/a.html", page), *files]
    inner = "".join(
        f"--b\r\nContent-Type: {kind}\r\nContent-Location: {address}\r\n\r\n{content}\r\n"
        for kind, address, content in parts
    )
    head = "From: <Saved by Blink>\r\nSubject: Leave\r\nMIME-Version: 1.0\r\n"
    return f'{head}Content-Type: multipart/related; type="text/html"; boundary=b\r\n\r\n{inner}--b--\r\n'.encode()
