"""What a hostile file can try: nothing is fetched or run, and small files cost little time and memory.

Files that need the limits of a process are in tests/local_bedrock/test_hostile_files.py.
"""

# ruff: noqa: E501 - XML

import io
import struct
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ragstack_common.reading.census.counting import count
from ragstack_common.reading.conversion import convert
from ragstack_common.reading.formats import UnreadableDocument
from tests.support import binary_files, old_slide_files, open_files, slide_files
from tests.support.damaged_files import READERS, SEEDS
from tests.support.office_files import docx, links, p, package, r, record, rows, substream, xls, xlsx

ENTITIES = "declares XML entities in .*: save it again"
PROTECTED = "is protected by a password"
_watched: list[str] | None = None


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if _watched is not None and event.startswith(("socket.", "subprocess.", "os.system", "os.exec", "urllib.", "open")):
        _watched.append(f"{event} {arguments[:1]}")


sys.addaudithook(_note)


@contextmanager
def watched() -> Iterator[list[str]]:
    """Note the files that are opened, the connections that are made and the programs that are run."""
    global _watched  # noqa: PLW0603 - a hook cannot be removed
    found: list[str] = []
    _watched = found
    try:
        yield found
    finally:
        _watched = None


def external(kind: str, target: str) -> str:
    part = links({"x": (kind, target)})
    return part.replace("/>", ' TargetMode="External"/>')


def with_external(data: bytes, rels: str, kind: str, target: str) -> bytes:
    """Return a file in which one part has a link to something outside of it."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist() if name != "[Content_Types].xml"}
    added = external(kind, target).partition("<Relationship ")[2].partition("</Relationships>")[0]
    parts[rels] = parts[rels].replace(b"</Relationships>", f"<Relationship {added}</Relationships>".encode())
    return package(parts)


@pytest.mark.parametrize("target", ["http://192.0.2.1/x", "file:///etc/hostname", "\\\\192.0.2.1\\share\\x"])
@pytest.mark.parametrize(
    ("kind", "element"),
    [
        ("attachedTemplate", "<w:attachedTemplate r:id='x'/>"),
        ("image", "<w:p><w:r><w:drawing><a:blip xmlns:a='a' r:link='x'/></w:drawing></w:r></w:p>"),
        ("oleObject", "<w:p><w:r><w:object><o:OLEObject xmlns:o='o' Type='Link' r:id='x'/></w:object></w:r></w:p>"),
        ("aFChunk", "<w:altChunk r:id='x'/>"),
        ("chart", "<w:p><w:r><w:drawing><c:chart xmlns:c='c' r:id='x'/></w:drawing></w:r></w:p>"),
        ("header", "<w:sectPr><w:headerReference r:id='x'/></w:sectPr>"),
        ("hyperlink", "<w:p><w:r><w:fldChar w:fldCharType='begin'/></w:r><w:r><w:instrText>INCLUDETEXT x</w:instrText></w:r></w:p>"),
    ],
)  # fmt: skip
def test_no_link_of_a_document_is_followed(kind: str, element: str, target: str) -> None:
    data = with_external(docx(p("a") + element), "word/_rels/document.xml.rels", kind, target)

    with watched() as seen:
        assert READERS["docx"](data) == "a"
    assert seen == []


@pytest.mark.parametrize("kind", ["worksheet", "sharedStrings", "styles", "externalLink", "drawing"])
def test_no_link_of_a_workbook_is_followed(kind: str) -> None:
    data = with_external(xlsx({"S": rows(["a"])}), "xl/_rels/workbook.xml.rels", kind, "http://192.0.2.1/x")

    with watched() as seen:
        assert "| a |" in str(READERS["xlsx"](data))
    assert seen == []


def test_no_address_of_a_page_is_fetched() -> None:
    page = (
        b"<link rel=stylesheet href=http://192.0.2.1/a.css><style>@import 'http://192.0.2.1/b.css'; p{background:url(file:///etc/hostname)}"
        b"</style><meta http-equiv=refresh content='0;url=http://192.0.2.1/'><base href=http://192.0.2.1/><script src=x.js></script>"
        b"<iframe src=file:///etc/hostname></iframe><object data=x></object><img src=x onerror=alert(1)><p>a<svg><use href='x#y'/></svg>"
    )

    with watched() as seen:
        assert convert(page, "html").text == "a"
    assert seen == []


@pytest.mark.parametrize(
    "doctype",
    [
        '<!DOCTYPE x [<!ENTITY e "ha">]>',
        '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/hostname">]>',
        '<!DOCTYPE x SYSTEM "http://192.0.2.1/x.dtd">',
        f'<!-- {"-x" * 5_000} --><!DOCTYPE x [<!ENTITY e "ha">]>',
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("file_format", ["docx", "odp", "ods", "odt", "pptx", "xlsx"])
def test_a_part_with_entities_is_refused(doctype: str, encoding: str, file_format: str) -> None:
    document = (
        f'<?xml version="1.0" encoding="{encoding}"?>{doctype}<w:document xmlns:w="w"><w:body>&e;</w:body></w:document>'
    )
    # A part may have any name.
    data = package(
        {
            "_rels/.rels": links({"r": ("officeDocument", "word/document.bin")}),
            "word/document.bin": document.encode(encoding),
            "content.xml": document.encode(encoding),
        }
    )

    with watched() as seen, pytest.raises(UnreadableDocument, match=ENTITIES):
        READERS[file_format](data)
    assert seen == []


def test_macros_are_not_read() -> None:
    program = b"\xd0\xcf\x11\xe0" + b'Sub AutoOpen() : Shell "x" : End Sub'
    data = docx(p("a"), files={"v": ("vbaProject", "vbaProject.bin", program)})
    workbook = with_external(xlsx({"S": rows(["a"])}), "xl/_rels/workbook.xml.rels", "vbaProject", "vbaProject.bin")

    with watched() as seen:
        assert READERS["docx"](data) == "a"
        assert READERS["xlsx"](workbook) == "## S\n\n| a |\n| --- |"
    assert seen == []


def test_an_encrypted_file_is_named_so() -> None:
    data = bytearray(docx(p("a")))
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        position = 0
        while (position := data.find(mark, position)) >= 0:
            data[position + offset] |= 1
            position += 4
    locked = xls({"S": (0, substream(0x10))}, record(0x2F, struct.pack("<HHH", 1, 1, 1) + bytes(48)))

    with pytest.raises(UnreadableDocument, match=PROTECTED):
        convert(bytes(data), "docx")
    with pytest.raises(UnreadableDocument, match=PROTECTED):
        convert(locked, "xls")


def test_a_document_that_contains_itself_ends() -> None:
    inner = docx(p("a") + '<w:altChunk r:id="f"/>', files={"f": ("aFChunk", "f.docx", b"")})
    for _ in range(6):
        inner = docx(p("a") + '<w:altChunk r:id="f"/>', files={"f": ("aFChunk", "f.docx", inner)})

    assert READERS["docx"](inner) == "a\n\na\n\na\n\na"


@pytest.mark.parametrize(
    "styles",
    [
        '<w:style w:type="paragraph" w:styleId="A"><w:basedOn w:val="A"/></w:style>',
        '<w:style w:type="paragraph" w:styleId="A"><w:basedOn w:val="B"/></w:style><w:style w:styleId="B"><w:basedOn w:val="A"/></w:style>',
    ],
)
def test_styles_that_are_based_on_each_other_end(styles: str) -> None:
    numbering = (
        '<w:abstractNum w:abstractNumId="0"><w:numStyleLink w:val="A"/></w:abstractNum>'
        '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>'
    )
    body = p("a", style="A", properties='<w:numPr><w:numId w:val="1"/></w:numPr>')

    assert READERS["docx"](docx(body, {"styles": ("styles", styles), "numbering": ("numbering", numbering)})) in (
        "a",
        "1. a",
        "1 a",
    )


def test_a_note_that_refers_to_itself_ends() -> None:
    reference = '<w:r><w:footnoteReference w:id="7"/></w:r>'
    note = f'<w:footnote w:id="7">{p("b", reference)}</w:footnote>'

    assert READERS["docx"](docx(p("a", reference), {"n": ("footnotes", note)})) == "a¹\n\n¹ b¹"


DEEP = 20_000


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("<w:sdt><w:sdtContent>" * DEEP + p("a") + "</w:sdtContent></w:sdt>" * DEEP, "a"),
        (p("<w:r><w:pict>" + "<w:txbxContent><w:p/></w:txbxContent>" * DEEP + "</w:pict></w:r>", "a"), "a"),
        (p("<w:r><w:drawing>" + "<w:x>" * DEEP + "</w:x>" * DEEP + "</w:drawing></w:r>", "a"), "a"),
        (
            "<w:p><w:pPr><w:sectPr><w:headerReference r:id='h'/></w:sectPr></w:pPr></w:p>" * 5_000 + p("a"),
            "x " * 99 + "x\n\na",
        ),
        ("<w:tbl><w:tr><w:tc>" * DEEP + p("a") + "</w:tc></w:tr></w:tbl>" * DEEP, None),
        ("<w:p>" + "<w:ins>" * DEEP + r("a") + "</w:ins>" * DEEP + "</w:p>", None),
        ("<w:p>" + "<m:oMath>" * DEEP + r("a") + "</m:oMath>" * DEEP + "</w:p>", None),
        (p("<w:r><w:fldChar w:fldCharType='begin'/></w:r>" * DEEP), None),
    ],
)
@pytest.mark.timeout(20)
def test_deep_and_long_documents_end_soon(body: str, text: str | None) -> None:
    data = docx(body, {"h": ("header", p("x " * 100))})

    if text is None:
        with pytest.raises(UnreadableDocument, match="nested too deeply"):
            convert(data, "docx")
    else:
        assert convert(data, "docx").text == text


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("<text:section>" * DEEP + open_files.p("a") + "</text:section>" * DEEP, None),
        ("<text:list><text:list-item>" * DEEP + open_files.p("a") + "</text:list-item></text:list>" * DEEP, None),
        (open_files.p("<text:span>" * DEEP + "a" + "</text:span>" * DEEP), None),
        (open_files.p("<draw:g>" * DEEP + open_files.p("a") + "</draw:g>" * DEEP), None),
        (open_files.p("a<text:s text:c='999999999'/>b" * 100), "a b" * 100),
        (
            f"<table:table>{open_files.row('a', 'b', attributes='table:number-rows-repeated=' + chr(34) + '1048576' + chr(34))}</table:table>",
            "| a | b |\n| --- | --- |\n" + "\n".join(["| a | b |"] * 999),
        ),
    ],
)
@pytest.mark.timeout(20)
def test_deep_and_long_open_documents_end_soon(body: str, text: str | None) -> None:
    data = open_files.open_document("text", body)

    if text is None:
        with pytest.raises(UnreadableDocument, match="nested too deeply"):
            convert(data, "odt")
    else:
        assert convert(data, "odt").text == text


@pytest.mark.parametrize(
    "repeated",
    [
        'table:number-columns-repeated="16384"',
        'table:number-columns-repeated="99999999999999999999"',
        'table:number-columns-spanned="16384" table:number-rows-spanned="1048576"',
    ],
)
@pytest.mark.timeout(20)
def test_cells_that_are_repeated_without_end_are_refused_or_read_once(repeated: str) -> None:
    cell = open_files.cell("word " * 100, attributes=repeated)
    rows = [open_files.row(cell, attributes='table:number-rows-repeated="1048576"')] * 3
    data = open_files.open_document("spreadsheet", open_files.table("S", *rows))

    with pytest.raises(UnreadableDocument, match="characters of text: split it"):
        convert(data, "ods")


@pytest.mark.timeout(20)
def test_empty_rows_and_columns_without_end_cost_nothing() -> None:
    empty = '<table:table-cell table:number-columns-repeated="16384"/>'
    endless = open_files.row(empty, attributes='table:number-rows-repeated="1048576"')
    data = open_files.open_document(
        "spreadsheet", open_files.table("S", open_files.row("a", empty), *[endless] * 2_000)
    )

    assert convert(data, "ods").text == "## S\n\n| a |\n| --- |"


@pytest.mark.parametrize(
    "records",
    [
        binary_files.hidden_columns(1, 16_383) * DEEP + binary_files.row(0, binary_files.string(0, "a")),
        b"".join(binary_files.row(number, binary_files.string(0, "a")) for number in range(2_000))
        + binary_files.merged(0, 0xFFFFFFFF, 0, 0xFFFFFFFF) * 2_000,
        binary_files.row(0xFFFFFFFF, binary_files.string(0xFFFFFFFF, "a"), binary_files.record(17, bytes(4)) * DEEP),
        binary_files.row(0, binary_files.string(0, "a")) + b"\xff\x7f\xff\xff\xff\x7f",
        binary_files.row(0, binary_files.cell(0, 62, b"\1" + binary_files.text("a") + b"\xff" * 400_000)),
    ],
)
@pytest.mark.timeout(20)
def test_records_of_endless_spans_end_soon(records: bytes) -> None:
    data = binary_files.xlsb({"S": records})

    assert "a" in convert(data, "xlsb").text
    assert count(data, "xlsb").cells


@pytest.mark.timeout(20)
def test_deep_records_of_old_slides_end_soon() -> None:
    deep = old_slide_files.shape(old_slide_files.text(4, "a"))
    for _ in range(2_000):
        deep = old_slide_files.group(deep)
    slides = [old_slide_files.OldSlide([deep])]

    assert convert(old_slide_files.ppt(slides), "ppt").text == "## Slide 1\n\na"


@pytest.mark.timeout(20)
def test_deep_slides_end_soon() -> None:
    grouped = "<p:grpSp>" * DEEP + slide_files.shape("a") + "</p:grpSp>" * DEEP

    assert convert(slide_files.pptx([slide_files.Slide(grouped)]), "pptx").text == "## Slide 1\n\na"


@pytest.mark.parametrize(
    "sheet",
    [
        "<cols>" + '<col min="1" max="16384"/>' * DEEP + "</cols>" + rows(["a"]),
        rows(*[["a"]] * 2_000) + "<mergeCells>" + '<mergeCell ref="A1:XFD1048576"/>' * 2_000 + "</mergeCells>",
        rows(*[["a"]] * 2_000)
        + "<mergeCells>"
        + "".join(f'<mergeCell ref="A1:B{row}"/>' for row in range(9_000))
        + "</mergeCells>",
        rows(["a"]) + '<mergeCells><mergeCell ref="ZZZZZZZZ1:A99999999999"/></mergeCells>',
        rows(['<c t="inlineStr"><is>' + "<r>" * DEEP + "</r>" * DEEP + "</is></c>", "a"]),
        rows(['<c t="inlineStr"><is>' + "<r><t>a</t></r>" * DEEP + "</is></c>"]),
    ],
)
@pytest.mark.timeout(20)
def test_sheets_of_endless_spans_end_soon(sheet: str) -> None:
    assert "a" in convert(xlsx({"S": sheet}), "xlsx").text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<div>" * 100_000 + "a", "a"),
        ("<table><tr><td>" * 2_000 + "a", "a"),
        ("<sup>" * DEEP + "a", "a"),
        ("<math><msup>" + "<mi>x</mi>" * DEEP + "</math>a", None),
        ("<style>" + "div " * 200 + "{display:none}</style>" + "<div>" * 5_000 + "a", "a"),
        ("<style>" + "p ~ b ~ i{display:none}" * 300 + "</style>" + "<p>a<b>" * 300, None),
        ("<style>" + "p:not(" * 200 + "a" + ")" * 200 + "{display:none}</style><p>a", "a"),
        ("<style>a{display:" + "(" * 100_000 + "}</style><p>a", "a"),
        ("<style>a{display:" + "9" * 100_000 + "}</style><p>a", "a"),
        ("<style>" + "@media screen{" * 10_000 + "a{display:none}</style><p>a", "a"),
        ("<style>" + "a.b > c:hover {color: red; margin: 0 1px}\n" * 20_000 + "</style><p>a", "a"),
        ("<p style='" + "display:none;" * 20_000 + "'>b<p>a", "a"),
        ("<p " + " ".join(f"a{number}=1" for number in range(DEEP)) + ">a", "a"),
    ],
)  # fmt: skip
@pytest.mark.timeout(30)
def test_deep_pages_and_endless_styles_end_soon(page: str, text: str | None) -> None:
    found = convert(page.encode(), "html").text

    assert found == text if text is not None else "a" in found


@pytest.mark.parametrize("file_format", ["docx", "odp", "ods", "odt", "pptx", "xlsx"])
def test_a_member_that_ends_early_is_named_damaged(file_format: str) -> None:
    with zipfile.ZipFile(io.BytesIO(SEEDS[file_format])) as archive:
        parts = {name: archive.read(name) for name in archive.namelist() if name != "[Content_Types].xml"}
    names = {"docx": "word/document.xml", "pptx": "ppt/slides/slide0.xml", "xlsx": "xl/worksheets/sheet1.xml"}
    name = names.get(file_format, "content.xml")
    whole = parts[name]

    for part in range(20):
        with pytest.raises(UnreadableDocument, match="is damaged or incomplete"):
            READERS[file_format](package({**parts, name: whole[: len(whole) * part // 20]}))
