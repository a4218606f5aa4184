"""Office files, written by hand, so that tests decide about each element."""

import io
import struct
import zipfile
from collections.abc import Mapping, Sequence
from typing import Final

TRANSITIONAL: Final = "http://schemas.openxmlformats.org"
STRICT: Final = "http://purl.oclc.org/ooxml"
DRAWING_SPACES: Final = (
    'xmlns:xdr="http://schemas.openxmlformats.org/drawingml/2006/spreadsheetDrawing"'
    ' xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
    ' xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart"'
    ' xmlns:cx="http://schemas.microsoft.com/office/drawing/2014/chartex"'
    ' xmlns:dgm="http://schemas.openxmlformats.org/drawingml/2006/diagram"'
    ' xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
    ' xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
)
_TYPES: Final = '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>'


def package(parts: Mapping[str, str | bytes]) -> bytes:
    """Return a zip file of parts by name."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", _TYPES)
        for name, content in parts.items():
            archive.writestr(name, content)
    return written.getvalue()


def with_parts(data: bytes, parts: Mapping[str, str]) -> bytes:
    """Return a file with more parts."""
    written = io.BytesIO(data)
    with zipfile.ZipFile(written, "a", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return written.getvalue()


def links(targets: Mapping[str, tuple[str, str]], edition: str = TRANSITIONAL) -> str:
    """Return a part of relationships: the kind and the target by id."""
    kinds = (
        f"{edition}/officeDocument/2006/relationships"
        if edition == TRANSITIONAL
        else f"{edition}/officeDocument/relationships"
    )
    each = "".join(
        f'<Relationship Id="{own}" Type="{kinds}/{kind}" Target="{target}"/>' for own, (kind, target) in targets.items()
    )
    return f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{each}</Relationships>'


def docx(
    body: str,
    parts: Mapping[str, tuple[str, str]] | None = None,
    *,
    files: Mapping[str, tuple[str, str, bytes]] | None = None,
    edition: str = TRANSITIONAL,
) -> bytes:
    """Return a Word document.

    Args:
        body: The content of its body.
        parts: The kind and the XML of other parts, by the id of their relationship: styles, numbering, header.
        files: The kind, the name and the bytes of other files, by the id of their relationship.
        edition: Of the standard.
    """
    main = edition + ("/wordprocessingml/2006/main" if edition == TRANSITIONAL else "/wordprocessingml/main")
    related = edition + (
        "/officeDocument/2006/relationships" if edition == TRANSITIONAL else "/officeDocument/relationships"
    )
    spaces = (
        f'xmlns:w="{main}" xmlns:r="{related}" xmlns:m="{TRANSITIONAL}/officeDocument/2006/math"'
        ' xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
        ' xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape"'
        ' xmlns:v="urn:schemas-microsoft-com:vml"'
    )
    parts, files = parts or {}, files or {}
    written: dict[str, str | bytes] = {
        "_rels/.rels": links({"rId1": ("officeDocument", "word/document.xml")}, edition),
        "word/document.xml": f"<w:document {spaces}><w:body>{body}</w:body></w:document>",
    }
    targets: dict[str, tuple[str, str]] = {}
    for own, (kind, content) in parts.items():
        targets[own] = (kind, f"{own}.xml")
        written[f"word/{own}.xml"] = f"<w:{kind} {spaces}>{content}</w:{kind}>"
    for own, (kind, name, data) in files.items():
        targets[own] = (kind, name)
        written[f"word/{name}"] = data
    written["word/_rels/document.xml.rels"] = links(targets, edition)
    return package(written)


def p(*runs: str, style: str | None = None, properties: str = "") -> str:
    """Return a paragraph of runs, or of texts."""
    styled = f'<w:pStyle w:val="{style}"/>' if style else ""
    inner = "".join(run if run.startswith("<") else r(run) for run in runs)
    return f"<w:p><w:pPr>{styled}{properties}</w:pPr>{inner}</w:p>"


def r(text: str, properties: str = "") -> str:
    """Return a run."""
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def xlsx(
    sheets: Mapping[str, str],
    *,
    strings: Sequence[str] = (),
    formats: Sequence[str] = (),
    workbook: str = "",
    states: Mapping[str, str] | None = None,
    drawing: str = "",
    drawn: Mapping[str, tuple[str, str]] | None = None,
    edition: str = TRANSITIONAL,
) -> bytes:
    """Return a workbook.

    Args:
        sheets: The XML of each sheet by name: what is in its element ``worksheet``.
        strings: The XML of the shared strings.
        formats: Format codes; style 1 is the first one.
        workbook: XML before the sheets.
        states: Of sheets that are hidden.
        drawing: The XML of what lies on the first sheet.
        drawn: The kind and the XML of its charts and diagrams, by the id of their relationship.
        edition: Of the standard.
    """
    main = edition + ("/spreadsheetml/2006/main" if edition == TRANSITIONAL else "/spreadsheetml/main")
    related = edition + (
        "/officeDocument/2006/relationships" if edition == TRANSITIONAL else "/officeDocument/relationships"
    )
    spaces = f'xmlns="{main}" xmlns:r="{related}"'
    listed = "".join(
        f'<sheet name="{name}" sheetId="{number}" r:id="s{number}" state="{(states or {}).get(name, "visible")}"/>'
        for number, name in enumerate(sheets, start=1)
    )
    codes = "".join(f'<numFmt numFmtId="{164 + number}" formatCode="{code}"/>' for number, code in enumerate(formats))
    cells = "".join(f'<xf numFmtId="{164 + number}"/>' for number in range(len(formats)))
    written: dict[str, str | bytes] = {
        "_rels/.rels": links({"rId1": ("officeDocument", "xl/workbook.xml")}, edition),
        "xl/workbook.xml": f"<workbook {spaces}>{workbook}<sheets>{listed}</sheets></workbook>",
        "xl/styles.xml": f"<styleSheet {spaces}><numFmts>{codes}</numFmts>"
        f'<cellXfs><xf numFmtId="0"/>{cells}</cellXfs></styleSheet>',
        "xl/sharedStrings.xml": f"<sst {spaces}>{''.join(f'<si>{each}</si>' for each in strings)}</sst>",
    }
    targets = {"st": ("styles", "styles.xml"), "ss": ("sharedStrings", "sharedStrings.xml")}
    for number, content in enumerate(sheets.values(), start=1):
        written[f"xl/worksheets/sheet{number}.xml"] = f"<worksheet {spaces}>{content}</worksheet>"
        targets[f"s{number}"] = ("worksheet", f"worksheets/sheet{number}.xml")
    written["xl/_rels/workbook.xml.rels"] = links(targets, edition)
    if drawing:
        drawn = drawn or {}
        written["xl/worksheets/_rels/sheet1.xml.rels"] = links({"d": ("drawing", "../drawings/drawing1.xml")}, edition)
        written["xl/drawings/drawing1.xml"] = f"<xdr:wsDr {DRAWING_SPACES}>{drawing}</xdr:wsDr>"
        written["xl/drawings/_rels/drawing1.xml.rels"] = links(
            {own: (kind, f"{own}.xml") for own, (kind, _) in drawn.items()}, edition
        )
        written |= {f"xl/drawings/{own}.xml": content for own, (_, content) in drawn.items()}
    return package(written)


def rows(*values: Sequence[str | float | bool | None]) -> str:
    """Return the rows of a sheet; texts are written into their cells."""
    written = ""
    for number, row in enumerate(values, start=1):
        cells = ""
        for place, value in enumerate(row):
            reference = f'r="{chr(65 + place)}{number}"'
            if isinstance(value, bool):
                cells += f'<c {reference} t="b"><v>{int(value)}</v></c>'
            elif isinstance(value, str) and value.startswith("<c"):
                cells += value.replace("<c", f"<c {reference}", 1)
            elif isinstance(value, str):
                cells += f'<c {reference} t="inlineStr"><is><t>{value}</t></is></c>'
            elif value is not None:
                cells += f"<c {reference}><v>{value}</v></c>"
        written += f'<row r="{number}">{cells}</row>'
    return f"<sheetData>{written}</sheetData>"


def record(kind: int, data: bytes = b"") -> bytes:
    """Return a record of a workbook of Excel 97 to 2003."""
    return struct.pack("<HH", kind, len(data)) + data


def substream(kind: int, *records: bytes) -> bytes:
    """Return the records of a workbook (5), a sheet (0x10) or a chart (0x20)."""
    beginning = struct.pack("<HHHHII", 0x600, kind, 0x0DBB, 0x07CC, 0, 6)
    return record(0x809, beginning) + b"".join(records) + record(0x0A)


def short_text(text: str) -> bytes:
    """Return a text of up to 255 characters as the records have it."""
    return struct.pack("<BB", len(text), 1) + text.encode("utf-16-le")


def text_box(text: str, kind: int = 6) -> bytes:
    """Return the records of a text box, or of a comment (0x19)."""
    cut = len(text) // 2
    return (
        record(0x5D, struct.pack("<HHHHH12x4x", 0x15, 0x12, kind, 1, 0x6011))
        + record(0x1B6, struct.pack("<HH6xHH4x", 0, 0, len(text), 0))
        + record(0x3C, b"\x00" + text[:cut].encode("latin-1"))
        + record(0x3C, b"\x01" + text[cut:].encode("utf-16-le"))
    )


def xls(sheets: Mapping[str, tuple[int, bytes]], records: bytes = b"") -> bytes:
    """Return a workbook of Excel 97 to 2003, without the container around its records.

    Args:
        sheets: The kind (0 for cells, 2 for a chart) and the substream of each sheet, by its name.
        records: Of fonts and formats.
    """
    names = [record(0x85, struct.pack("<IBB", 0, 0, kind) + short_text(name)) for name, (kind, _) in sheets.items()]
    position = len(substream(5, records, *names))
    listed = b""
    for name, (kind, content) in sheets.items():
        listed += record(0x85, struct.pack("<IBB", position, 0, kind) + short_text(name))
        position += len(content)
    return substream(5, records, listed) + b"".join(content for _, content in sheets.values())


def label(row: int, column: int, text: str) -> bytes:
    """Return the record of a cell with a text."""
    return record(0x204, struct.pack("<HHHHB", row, column, 0, len(text), 1) + text.encode("utf-16-le"))


def number(row: int, column: int, value: float) -> bytes:
    """Return the record of a cell with a number."""
    return record(0x203, struct.pack("<HHHd", row, column, 0, value))


def compound(name: str, stream: bytes) -> bytes:
    """Return a compound file with one stream, as xls files have around their records."""
    end, free, fat = 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFD
    size = len(stream)
    is_small = size < 4096
    sectors = [stream[at : at + 512].ljust(512, b"\0") for at in range(0, max(size, 1), 512)]
    chain = [*range(4, 3 + len(sectors)), end]
    table = [fat, end, end, *chain]
    assert len(table) <= 128, "one sector of the table is enough for a test"
    small = -(-size // 64)
    small_table = [*range(1, small), end] if is_small else []

    def entry(own: str, kind: int, child: int, start: int, length: int) -> bytes:
        written = own.encode("utf-16-le") + b"\0\0"
        links = struct.pack("<BBIII", kind, 1, free, free, child) + bytes(36)
        return written.ljust(64, b"\0") + struct.pack("<H", len(written)) + links + struct.pack("<IQ", start, length)

    directory = entry("Root Entry", 5, 1, 3 if is_small else end, len(sectors) * 512 if is_small else 0)
    directory += entry(name, 2, free, 0 if is_small else 3, size)
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16)
    header += struct.pack("<HHHHH6xII", 0x3E, 3, 0xFFFE, 9, 6, 0, 1) + struct.pack("<IIIIIII", 1, 0, 4096, 2, 1, end, 0)
    numbers = (struct.pack(f"<{len(each)}I", *each).ljust(512, b"\xff") for each in ([0], table, small_table))
    in_header, written_table, written_small = numbers
    return (
        header
        + in_header[: 512 - len(header)]
        + written_table
        + directory.ljust(512, b"\0")
        + written_small
        + b"".join(sectors)
    )
