"""E-books and web archives are read as reading systems and browsers show them."""

import pytest

from ragstack_common.reading.conversion import ReadText, convert
from ragstack_common.reading.formats import UnreadableDocument
from tests.support.book_files import epub, mht


def chapter(body: str, head: str = "") -> str:
    return (
        f'<?xml version="1.0" encoding="utf-8"?><!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml">'
        f"<head><title>t</title>{head}</head><body>{body}</body></html>"
    )


def read(data: bytes) -> ReadText:
    return convert(data, "epub")


def test_chapters_are_read_in_the_order_of_the_book() -> None:
    found = read(epub([chapter("<h1>One</h1><p>größe"), chapter("<h2>Two</h2><ul><li>b</li></ul>")], title="A\n Book"))

    assert found == ReadText("# One\n\ngröße\n\n## Two\n\n- b", "A Book")


@pytest.mark.parametrize("ncx", [False, True])
def test_a_chapter_without_a_heading_has_its_title_in_the_table_of_contents(ncx: bool) -> None:
    chapters = [chapter("<h3>I</h3>a"), chapter("<p class=title>The  SECOND</p><p>b"), chapter("<p>c")]

    found = read(epub(chapters, contents={0: "First", 1: "The second", 2: "Third"}, ncx=ncx))

    assert found.text == "### I\n\na\n\n# The second\n\nb\n\n# Third\n\nc"


@pytest.mark.parametrize("address", ["style/a%20b.css", "../OEBPS/style/a b.css"])
def test_styles_of_a_book_hide_what_reading_systems_hide(address: str) -> None:
    page = chapter("<p>a</p><p class='no'>b</p>", f'<link href="{address}" rel="stylesheet" type="text/css"/>')

    assert read(epub([page], files={"OEBPS/style/a b.css": ".no { display: none }"})).text == "a"


def encryption(address: str, algorithm: str) -> dict[str, str]:
    return {
        "META-INF/encryption.xml": '<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container" '
        'xmlns:e="http://www.w3.org/2001/04/xmlenc#"><e:EncryptedData>'
        f'<e:EncryptionMethod Algorithm="{algorithm}"/><e:CipherData><e:CipherReference URI="{address}"/>'
        "</e:CipherData></e:EncryptedData></encryption>"
    }


def test_a_book_that_is_protected_against_copying_is_refused() -> None:
    files = encryption("OEBPS/c%200.xhtml", "http://www.w3.org/2001/04/xmlenc#aes128-cbc")

    with pytest.raises(UnreadableDocument, match=r"protected against copying \(DRM\)"):
        read(epub([chapter("a")], files=files))


@pytest.mark.parametrize("address", ["OEBPS/font.otf", "OEBPS/c%200.xhtml"])
def test_a_book_with_obfuscated_fonts_is_read(address: str) -> None:
    assert read(epub([chapter("a")], files=encryption(address, "http://www.idpf.org/2008/embedding"))).text == "a"


@pytest.mark.parametrize(
    ("doctype", "text"),
    [
        ('<!DOCTYPE package PUBLIC "+//ISBN 0-9673008-1-9//DTD OEB 1.2 Package//EN" "http://192.0.2.1/x.dtd">', "a"),
        ('<!DOCTYPE package [<!ENTITY e "ha">]>', None),
        ('<!DOCTYPE package [<!ENTITY e SYSTEM "file:///etc/hostname">]>', None),
    ],
)
def test_entities_of_a_package_are_refused(doctype: str, text: str | None) -> None:
    data = epub([chapter("a")], doctype=doctype)

    if text:
        assert read(data).text == text
    else:
        with pytest.raises(UnreadableDocument, match="declares XML entities"):
            read(data)


def test_an_archive_is_its_page_with_its_styles_and_frames() -> None:
    page = '<title>Leave</title><link rel=stylesheet href="a.css"><p>größe<p class=no>b<img src="p.png">'
    files = [
        ("text/css", "http://a.example/a.css", ".no { display: none }"),
        ("text/html; charset=utf-8", "cid:frame", "<p>frame"),
        ("image/png", "http://a.example/p.png", "x"),
    ]

    assert convert(mht(page, files), "mht") == ReadText("größe\n\nframe", "Leave")
    assert convert(mht("<p>a"), "mht") == ReadText("a", "Leave")
