"""Files of each format that the repository makes, for the readers of the index."""

import html
import io
import re
import subprocess
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tests.support import binary_files
from tests.support.office_files import docx, p, r, rows, xlsx
from tests.support.pdf_files import report
from tests.support.slide_files import Slide, paragraph, pptx, shape

CONTENT_TYPES: Final = "[Content_Types].xml"
RELATIONS: Final = "application/vnd.openxmlformats-package.relationships+xml"
OFFICE: Final = "application/vnd.openxmlformats-officedocument"

MADE_FROM: Final = {"letter.docx": ("odt",), "prices.xlsx": ("xls", "ods"), "talk.pptx": ("odp", "ppt")}
"""Endings of the files that LibreOffice makes of others."""

BINARY_TYPES: Final = {
    "xl/workbook.bin": "application/vnd.ms-excel.sheet.binary.macroEnabled.main",
    "xl/worksheets/sheet1.bin": "application/vnd.ms-excel.worksheet",
    "xl/styles.bin": "application/vnd.ms-excel.styles",
    "xl/sharedStrings.bin": "application/vnd.ms-excel.sharedStrings",
}

PRINTED: Final = "printed"
"""Beginning of the names of web pages that a browser prints as PDF files."""

PARAGRAPHS: Final = (
    "Quillmere Instruments reimburses travel within thirty days after a well-known form was submitted with receipts.",
    "Gateways of the third generation need 230 V at 50 Hz; installing one takes 28 minutes in a cabinet of 19 inches.",
    "Access reviews happen each quarter, and whoever left the company loses every right within twenty-four hours.",
)
FROM_RIGHT: Final = (
    "التقرير السنوي صدر في 27.11.2026",
    "نمت الإيرادات بنسبة 12.5% في عام 2026.",
    "استخدم برنامج Microsoft Word 2019 للكتابة (الطبعة 3.1)",
    "ההכנסות גדלו ב-12.5% בשנת 2026.",
    "השתמש ב-Microsoft Word 2019 (גרסה 3.1) לכתיבה.",
)
HEADING: Final = "<h1>Prices of 2026</h1>"
TABLE: Final = (
    "<table><tr><th>Gateway<th>Price<th>Discount<tr><td>GW-3<td>1,299.00 €<td>15 %"
    "<tr><td rowspan=2>GW-4<td>1,499.00 €<td>10 %<tr><td>1,399.00 €<td>used</table>"
)
LISTS: Final = "<ol start=3><li>third<li>fourth<ul><li>below</ul></ol>"
LONG_WORD: Final = re.compile("[a-z]{8,}")
SOFT_HYPHEN: Final = "\u00ad"
STAMP: Final = (
    "<div style='position:absolute;top:120px;left:60px;font-size:70px;transform:rotate(-30deg);opacity:.3'>DRAFT</div>"
)


def write(folder: Path) -> None:
    """Write office files, web pages and a PDF file; LibreOffice makes those of other formats from them."""
    for name, data in _office_files():
        (folder / name).write_bytes(data)
    for name, page in web_pages().items():
        (folder / name).write_text(page, "utf-8")
    for name, endings in MADE_FROM.items():
        for ending in endings:
            convert = ["soffice", "--headless", "--convert-to", ending, "--outdir", str(folder), str(folder / name)]
            subprocess.run(convert, check=True, capture_output=True, timeout=120)
    (folder / "report.pdf").write_bytes(report([" ".join(PARAGRAPHS * 12)] * 4))


def web_pages() -> dict[str, str]:
    """Return web pages by name."""
    text = "".join(f"<p>{html.escape(each)}" for each in PARAGRAPHS)
    from_right = "".join(f"<p dir=rtl>{html.escape(each)}" for each in FROM_RIGHT)
    pages = {
        "page": HEADING + text + TABLE + LISTS,
        "printed-page": HEADING + text + TABLE + LISTS,
        "printed-stamp": STAMP + text * 4,
        "printed-columns": f"<div style='columns:3;text-align:justify'>{LONG_WORD.sub(_divisible, text) * 9}</div>",
        "printed-from-right": from_right,
        "from-right": from_right,
    }
    return {f"{name}.html": f"<!doctype html><meta charset=utf-8><body>{body}" for name, body in pages.items()}


def _divisible(word: re.Match[str]) -> str:
    """Return a word that may be divided at the end of a line."""
    return SOFT_HYPHEN.join((word[0][:4], word[0][4:]))


def _office_files() -> Iterator[tuple[str, bytes]]:
    cells = [["Gateway", "Price"], ["GW-3", "1,299.00"], ["GW-4", "1,499.00"]]
    table = "".join(
        "<w:tr>" + "".join(f"<w:tc><w:p>{r(cell)}</w:p></w:tc>" for cell in row) + "</w:tr>" for row in cells
    )
    hidden = r("visible") + r("invisible", "<w:vanish/>")
    letter = docx("".join(map(p, PARAGRAPHS)) + f"<w:p>{hidden}</w:p><w:tbl>{table}</w:tbl>")
    yield "letter.docx", _typed(letter, {"word/document.xml": f"{OFFICE}.wordprocessingml.document.main+xml"})
    prices = '<cols><col min="1" max="4" width="16" customWidth="1"/></cols>' + rows(
        ["Code", "Price", "Share", "Sold"],
        ['<c s="1"><v>1067</v></c>', '<c s="2"><v>1299</v></c>', '<c s="3"><v>0.155</v></c>', "yes"],
        ['<c s="1"><v>8001</v></c>', '<c s="2"><v>1499.5</v></c>', '<c s="3"><v>1</v></c>', "no"],
    )
    sheets = {"Prices": prices, "Hidden": rows(["invisible"])}
    workbook = xlsx(sheets, formats=["00000", "#,##0.00", "0.0%"], states={"Hidden": "hidden"})
    parts = {
        "xl/workbook.xml": "sheet.main",
        "xl/worksheets/sheet1.xml": "worksheet",
        "xl/worksheets/sheet2.xml": "worksheet",
        "xl/styles.xml": "styles",
        "xl/sharedStrings.xml": "sharedStrings",
    }
    yield "prices.xlsx", _typed(workbook, {name: f"{OFFICE}.spreadsheetml.{kind}+xml" for name, kind in parts.items()})
    yield "prices.xlsb", _typed(_binary_workbook(), BINARY_TYPES)
    bullet = '<a:buAutoNum type="arabicPeriod"/>'
    numbered = shape(*(paragraph(each, bullet=bullet) for each in PARAGRAPHS[:2]))
    slides = [
        Slide(
            _placed(shape("Gateways", kind="title"), 0) + _placed(shape(*PARAGRAPHS), 1),
            notes=_placed(shape("not printed", kind="body"), 0),
        ),
        Slide(_placed(shape("a box"), 0) + _placed(numbered, 2)),
        Slide(_placed(shape("invisible"), 0), 'show="0"'),
    ]
    kinds = {"ppt/presentation.xml": "presentation.main", "ppt/slideLayouts/layout.xml": "slideLayout"}
    kinds |= {"ppt/slideMasters/master.xml": "slideMaster", "ppt/notesSlides/notes0.xml": "notesSlide"}
    kinds |= {f"ppt/slides/slide{number}.xml": "slide" for number in range(len(slides))}
    yield (
        "talk.pptx",
        _typed(pptx(slides), {name: f"{OFFICE}.presentationml.{kind}+xml" for name, kind in kinds.items()}),
    )


def _placed(one: str, place: int) -> str:
    """Return a shape as wide as the slide, below as many others."""
    size = f'<a:off x="0" y="{place * 1_500_000}"/><a:ext cx="9000000" cy="1500000"/>'
    return one.replace("<p:txBody>", f"<p:spPr><a:xfrm>{size}</a:xfrm></p:spPr><p:txBody>")


def _binary_workbook() -> bytes:
    string, real, row = binary_files.string, binary_files.real, binary_files.row
    head = row(0, *(string(place, name) for place, name in enumerate(("Code", "Price", "Share"))))
    first = row(1, real(0, 1067, 1), real(1, 1299, 2), real(2, 0.155, 3))
    record = binary_files.record
    # Without the records around the rows, LibreOffice reads none.
    sheet = record(129) + record(145) + head + first + record(146) + record(130)
    return binary_files.xlsb({"Prices": sheet}, formats=["00000", "#,##0.00", "0.0%"])


def _typed(data: bytes, parts: Mapping[str, str]) -> bytes:
    """Return an office file whose parts have types: LibreOffice needs them."""
    types = "".join(f'<Override PartName="/{name}" ContentType="{kind}"/>' for name, kind in parts.items())
    types += f'<Default Extension="rels" ContentType="{RELATIONS}"/><Default Extension="xml" ContentType="text/xml"/>'
    written = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            content = old.read(name)
            new.writestr(
                name, content.replace(b"/>", f">{types}</Types>".encode()) if name == CONTENT_TYPES else content
            )
    return written.getvalue()
