"""Binary workbooks (xlsb), written by hand, so that tests decide about each record."""

import struct
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from tests.support.office_files import DRAWING_SPACES, links, package


def record(kind: int, data: bytes = b"") -> bytes:
    """Return a record."""
    return _head(kind, len(data)) + data


def _head(kind: int, size: int) -> bytes:
    written = bytes([kind]) if kind < 0x80 else bytes([kind & 0x7F | 0x80, kind >> 7 & 0x7F])
    while size > 0x7F:
        written += bytes([size & 0x7F | 0x80])
        size >>= 7
    return written + bytes([size])


def _variable(data: bytes, position: int, most: int) -> tuple[int, int]:
    number = 0
    for place, byte in enumerate(data[position : position + most]):
        number |= (byte & 0x7F) << 7 * place
        position += 1
        if byte < 0x80:
            break
    return number, position


def text(written: str) -> bytes:
    """Return a text as the records have it."""
    return struct.pack("<I", len(written.encode("utf-16-le")) // 2) + written.encode("utf-16-le")


def rich_text(*runs: tuple[str, int]) -> bytes:
    """Return a text of runs, each with the number of its font."""
    starts, written = b"", ""
    for run, font in runs:
        starts += struct.pack("<HH", len(written), font)
        written += run
    return b"\1" + text(written) + struct.pack("<I", len(runs)) + starts


def xlsb(
    sheets: Mapping[str, bytes],
    *,
    strings: Sequence[bytes] = (),
    formats: Sequence[str] = (),
    states: Mapping[str, int] | None = None,
    since_1904: bool = False,
    drawn: tuple[str, Mapping[str, tuple[str, str]]] = ("", {}),
    comments: int = 0,
) -> bytes:
    """Return a workbook.

    Args:
        sheets: The records of each sheet by name.
        strings: The shared strings.
        formats: Format codes; style 1 is the first one.
        states: Of sheets that are hidden: 1 or 2.
        since_1904: Whether days count from 1904.
        drawn: The XML of what lies on the first sheet, and the kind and the XML of its charts and diagrams.
        comments: Number of comments on the first sheet.
    """
    listed = b"".join(
        record(156, struct.pack("<II", (states or {}).get(name, 0), place) + text(f"s{place}") + text(name))
        for place, name in enumerate(sheets, start=1)
    )
    codes = b"".join(record(44, struct.pack("<H", 164 + place) + text(code)) for place, code in enumerate(formats))
    fonts = b"".join(record(43, struct.pack("<HHHH", 200, 0, 400, place)) for place in range(3))
    own = b"".join(record(47, struct.pack("<HH12x", 0, each)) for each in (0, *range(164, 164 + len(formats))))
    of_styles = record(626) + record(47, struct.pack("<HH12x", 0, 9)) + record(627)
    targets = {"st": ("styles", "styles.bin"), "ss": ("sharedStrings", "sharedStrings.bin")}
    targets |= {f"s{place}": ("worksheet", f"worksheets/sheet{place}.bin") for place in range(1, 1 + len(sheets))}
    parts: dict[str, str | bytes] = {
        "_rels/.rels": links({"r": ("officeDocument", "xl/workbook.bin")}),
        "xl/_rels/workbook.bin.rels": links(targets),
        "xl/workbook.bin": record(131)
        + record(153, struct.pack("<I", since_1904))
        + record(143)
        + listed
        + record(144),
        "xl/styles.bin": record(278)
        + record(615)
        + codes
        + record(616)
        + record(611)
        + fonts
        + record(612)
        + of_styles
        + record(617)
        + own
        + record(618),
        "xl/sharedStrings.bin": record(159) + b"".join(record(19, each) for each in strings) + record(160),
    }
    parts |= {f"xl/worksheets/sheet{place}.bin": content for place, content in enumerate(sheets.values(), start=1)}
    on_first = {"d": ("drawing", "../drawings/drawing1.xml")} if drawn[0] else {}
    if comments:
        on_first["c"] = ("comments", "../comments1.bin")
        parts["xl/comments1.bin"] = record(635, bytes(36)) * comments
    parts["xl/worksheets/_rels/sheet1.bin.rels"] = links(on_first)
    if drawn[0]:
        parts["xl/drawings/drawing1.xml"] = f"<xdr:wsDr {DRAWING_SPACES}>{drawn[0]}</xdr:wsDr>"
        others = {name: (kind, f"{name}.xml") for name, (kind, _) in drawn[1].items()}
        parts["xl/drawings/_rels/drawing1.xml.rels"] = links(others)
        parts |= {f"xl/drawings/{name}.xml": content for name, (_, content) in drawn[1].items()}
    return package(parts)


def row(number: int, *cells: bytes, hidden: bool = False, height: int = 300) -> bytes:
    """Return the records of a row, from 0, with its cells."""
    flags = 0x10 if hidden else 0
    return record(0, struct.pack("<IIHBBB", number, 0, height, 0, flags, 0) + bytes(4)) + b"".join(cells)


def cell(column: int, kind: int, value: bytes, style: int = 0) -> bytes:
    """Return a cell, whose column counts from 0."""
    return record(kind, struct.pack("<II", column, style) + value)


def string(column: int, written: str, style: int = 0) -> bytes:
    """Return a cell with its own text."""
    return cell(column, 6, text(written), style)


def real(column: int, value: float, style: int = 0) -> bytes:
    """Return a cell with a number of eight bytes."""
    return cell(column, 5, struct.pack("<d", value), style)


def packed(column: int, number: int, style: int = 0, *, hundredths: bool = False) -> bytes:
    """Return a cell with a whole number of 30 bits, or with so many hundredths."""
    return cell(column, 2, struct.pack("<i", number << 2 | 2 | hundredths), style)


def hidden_columns(first: int, last: int, *, width: int = 2048, hidden: bool = True) -> bytes:
    """Return the record of columns, from 0."""
    return record(60, struct.pack("<IIIIH", first, last, width, 0, hidden))


def merged(top: int, bottom: int, left: int, right: int) -> bytes:
    """Return the record of a merged cell, whose rows and columns count from 0."""
    return record(177) + record(176, struct.pack("<IIII", top, bottom, left, right)) + record(178)


def damaged(data: bytes, random: Random, values: Sequence[int]) -> bytes:
    """Return records of which one has another length, kind or content, or another place."""
    records: list[Any] = []
    position = 0
    while position < len(data):
        kind, position = _variable(data, position, 2)
        size, position = _variable(data, position, 4)
        records.append([kind, size, data[position : position + size]])
        position += size
    if not records:
        return data
    each, other = random.choice(records), random.randrange(len(records))
    change = random.randrange(5)
    if change == 0:
        each[1] = random.choice(values) & 0x0FFFFFFF
    elif change == 1:
        each[0] = records[other][0]
    elif change == 2 and each[2]:
        at = random.randrange(len(each[2]))
        each[2] = each[2][:at] + random.choice(values).to_bytes(4, "little") + each[2][at + 4 :]
        each[1] = len(each[2])
    elif change == 3:
        records.insert(other, each)
    else:
        records.remove(each)
    return b"".join(_head(kind, size) + content for kind, size, content in records)


FILTERED = record(161, bytes(16)) + record(163, bytes(8)) + record(164) + record(162)
