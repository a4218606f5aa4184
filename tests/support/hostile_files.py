"""Files that are made to do harm, each in at most a few megabytes."""

import struct
import zipfile
import zlib
from functools import cache
from io import BytesIO
from typing import Final

from tests.support.pdf_files import pages, pdf
from tests.support.soak import SOAK

MEGABYTE: Final = 1024 * 1024
DOCUMENT: Final = b'<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>%s</w:body></w:document>'
RELATIONS: Final = (
    b'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r"'
    b' Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/%s" Target="%s"/></Relationships>'
)
LAUGHS: Final = (
    b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a0 "ha">'
    + b"".join(b'<!ENTITY a%d "%s">' % (n, b"&a%d;" % (n - 1) * 10) for n in range(1, 12))
    + b"]>"
)


def archive(**entries: bytes) -> bytes:
    made = BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in entries.items():
            packed.writestr(name, data)
    return made.getvalue()


def docx(document: bytes) -> bytes:
    return archive(
        **{
            "[Content_Types].xml": b"<Types/>",
            "_rels/.rels": RELATIONS % (b"officeDocument", b"word/document.xml"),
            "word/document.xml": document,
        }
    )


def xlsx(sheet: bytes) -> bytes:
    namespace = b'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    kinds = b"application/vnd.openxmlformats-officedocument.spreadsheetml."
    return archive(
        **{
            "[Content_Types].xml": b'<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
            b'<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            b'<Override PartName="/xl/workbook.xml" ContentType="%ssheet.main+xml"/>'
            b'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="%sworksheet+xml"/></Types>' % (kinds, kinds),
            "_rels/.rels": RELATIONS % (b"officeDocument", b"xl/workbook.xml"),
            "xl/workbook.xml": b"<workbook %s xmlns:r="
            b'"http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets>'
            b'<sheet name="one" sheetId="1" r:id="r"/></sheets></workbook>' % namespace,
            "xl/_rels/workbook.xml.rels": RELATIONS % (b"worksheet", b"worksheets/sheet1.xml"),
            "xl/worksheets/sheet1.xml": sheet.replace(b"<worksheet", b"<worksheet " + namespace, 1),
        }
    )


@cache
def bomb_of_declared_size() -> bytes:
    made = BytesIO()
    with (
        zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed,
        packed.open("word/document.xml", "w") as entry,
    ):
        for _ in range(600):
            entry.write(bytes(MEGABYTE))
    return made.getvalue()


def bomb_that_lies_about_its_size() -> bytes:
    data = bytearray(bomb_of_declared_size())
    for mark, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        position = data.index(mark)
        data[position + offset : position + offset + 4] = struct.pack("<I", 1000)
    return bytes(data)


def bomb_that_is_not_one() -> bytes:
    """Declares 600 MB, and has a few bytes."""
    data = bytearray(docx(DOCUMENT % b""))
    position = data.rindex(b"PK\x01\x02")
    data[position + 24 : position + 28] = struct.pack("<I", 600 * MEGABYTE)
    return bytes(data)


@cache
def bomb_of_half_a_gigabyte() -> bytes:
    """Fewer than 500 KB, within what an archive may declare, and parsed in one call without the interpreter's lock."""
    head, tail = DOCUMENT.split(b"%s")
    made = BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("[Content_Types].xml", b"<Types/>")
        packed.writestr("_rels/.rels", RELATIONS % (b"officeDocument", b"word/document.xml"))
        with packed.open("word/document.xml", "w") as entry:
            entry.write(head)
            for _ in range(320):
                entry.write(b"<w:p/>" * (MEGABYTE // 6))
            entry.write(tail)
    return made.getvalue()


def laughing_docx() -> bytes:
    return docx(LAUGHS + DOCUMENT % b"<w:p><w:r><w:t>&a11;</w:t></w:r></w:p>")


def laughing_xlsx() -> bytes:
    cell = b'<row r="1"><c r="A1" t="inlineStr"><is><t>&a11;</t></is></c></row>'
    return xlsx(LAUGHS + b"<worksheet><sheetData>" + cell + b"</sheetData></worksheet>")


def gigantic_sheet() -> bytes:
    rows = b"".join(b'<row r="%d"><c r="XFD%d"><v>1</v></c></row>' % (n, n) for n in range(1, 100_001))
    return xlsx(b'<worksheet><dimension ref="A1:XFD1048576"/><sheetData>' + rows + b"</sheetData></worksheet>")


def pdf_of_many_empty_pages() -> bytes:
    count = 100_000 if SOAK else 2_000
    kids = b" ".join(b"%d 0 R" % number for number in range(3, count + 3))
    pages = b"<< /Type /Pages /Count %d /Kids [%s] /MediaBox [0 0 9 9] >>" % (count, kids)
    return pdf(b"<< /Type /Catalog /Pages 2 0 R >>", pages, *[b"<< /Type /Page /Parent 2 0 R >>"] * count)


def pdf_whose_pages_contain_themselves() -> bytes:
    return pdf(
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count 2 /Kids [2 0 R 3 0 R] >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R >>",
        b"<< /Length 4 0 R >>\nstream\nendstream",
    )


def pdf_whose_form_draws_itself() -> bytes:
    draw = b"q /F Do Q"
    form = b"<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /F 4 0 R >> >> /Length %d >>"
    return pdf(
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count 1 /Kids [3 0 R] >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 5 0 R /Resources << /XObject << /F 4 0 R >> >> >>",
        (form % len(draw * 2)) + b"\nstream\n" + draw * 2 + b"\nendstream",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(draw), draw),
    )


@cache
def pdf_of_a_stream_that_never_ends() -> bytes:
    packed = zlib.compress(b"0 0 m 9 9 l S\n" * 40_000_000, 1)
    return pdf(
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count 1 /Kids [3 0 R] >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R >>",
        b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(packed), packed),
    )


def deep_html() -> bytes:
    depth = 100_000 if SOAK else 10_000
    return b"<html><body>" + b"<div>" * depth + b"heron" + b"</div>" * depth + b"</body></html>"


def pdf_of_a_box(entries: bytes) -> bytes:
    """A file of one page with these entries, such as a media box."""
    return pdf(
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count 1 /Kids [3 0 R] >>",
        b"<< /Type /Page /Parent 2 0 R /Contents 4 0 R /Resources << /Font << /F 5 0 R >> >> %s >>" % entries,
        b"<< /Length 33 >>\nstream\nBT /F 12 Tf 1 1 Td (heron) Tj ET  \nendstream",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    )


def sheet_with_the_last_cell() -> bytes:
    """A workbook with one cell, in the last column of the last row."""
    row = b'<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'
    return xlsx(b"<worksheet><sheetData>" + row + b"</sheetData></worksheet>")


@cache
def pdf_of_endless_text() -> bytes:
    """A page with 18 million characters."""
    packed = zlib.compress(b"BT /F 1 Tf 72 700 Td " + (b"(" + b"heron " * 1000 + b") Tj ") * 3_000 + b"ET", 1)
    return pages(b"").replace(
        b"<< /Length 0 >>\nstream\n\nendstream",
        b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(packed), packed),
    )


def pdf_of_many_curves() -> bytes:
    """A page with 200,000 curves."""
    return pages(b"1 w\n" + b"0 0 m 900 900 10 700 590 3 c S\n" * 200_000)


def pdf_of_nested_forms() -> bytes:
    """Forms of which each draws the next one ten times, twelve levels deep."""
    levels = 12
    form = b"<< /Subtype /Form /BBox [0 0 595 842] /Resources << /XObject << /F %d 0 R >> >> /Length %d >>"
    draw = b"/F Do " * 10
    first = 5
    forms = [form % (first + level + 1, len(draw)) + b"\nstream\n" + draw + b"\nendstream" for level in range(levels)]
    last = b"<< /Subtype /Form /BBox [0 0 595 842] /Length 14 >>\nstream\n0 0 9 9 re f   \nendstream"
    return pdf(
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count 1 /Kids [3 0 R] >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R"
        b" /Resources << /XObject << /F 5 0 R >> >> >>",
        b"<< /Length 5 >>\nstream\n/F Do\nendstream",
        *forms,
        last,
    )
