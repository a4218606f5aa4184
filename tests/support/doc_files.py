"""Word 97-2003 files."""

import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tests.support.mail_files import compound_file

_TEXT_AT = 2048
_STORIES = ("body", "footnotes", "headers", "macros", "comments", "endnotes", "text boxes", "boxes of headers")

HIDDEN = struct.pack("<HB", 0x083C, 1)
DELETED = struct.pack("<HB", 0x0800, 1)
RAISED = struct.pack("<HB", 0x2A48, 1)
SPECIAL = struct.pack("<HB", 0x0855, 1)
IN_TABLE = struct.pack("<HB", 0x2416, 1)
ENDS_ROW = struct.pack("<HB", 0x2417, 1)


class P(NamedTuple):
    """A paragraph: runs of text with what is said of their characters, its properties, its style and its end."""

    runs: Sequence[tuple[str, bytes]]
    changes: bytes = b""
    style: int = 0
    end: str = "\r"


def row_of(*edges: int) -> bytes:
    """Return what is said of the end of a row."""
    table = struct.pack("<B", len(edges)) + struct.pack(f"<{len(edges) + 1}h", 0, *edges) + bytes(20 * len(edges))
    return IN_TABLE + ENDS_ROW + struct.pack("<HH", 0xD608, len(table) + 1) + table


def item_of(number: int, level: int = 0) -> bytes:
    """Return what is said of an item of a list."""
    return struct.pack("<HBHH", 0x260A, level, 0x460B, number)


def doc(
    stories: Mapping[str, Sequence[P]],
    *,
    notes: Sequence[int] = (),
    headers: Sequence[int] = (),
    levels: Sequence[tuple[int, int, str]] = (),
    flags: int = 0,
    version: int = 0xC1,
    narrow: bool = False,
) -> bytes:
    """Return a file.

    Args:
        stories: Paragraphs by the kind of text.
        notes: Places of references to footnotes in the body.
        headers: Number of characters of each text of headers and footers.
        levels: The first number, the format and the text of each level of list 1.
        flags: Of the file information block.
        version: Of the program.
        narrow: Whether characters have one byte.
    """
    text, lengths = "", []
    runs: list[tuple[int, bytes]] = []
    paragraphs: list[tuple[int, int, bytes]] = []
    for kind in _STORIES:
        begin = len(text)
        for paragraph in stories.get(kind, ()):
            paragraphs.append((len(text), paragraph.style, paragraph.changes))
            for written, changes in (*paragraph.runs, (paragraph.end, b"")):
                runs.append((len(text), changes))
                text += written
        lengths.append(len(text) - begin)
    width = 1 if narrow else 2
    main = bytearray(_TEXT_AT) + text.encode("cp1252" if narrow else "utf-16-le")
    main += bytes(-len(main) % 512)
    end = len(text)
    character_pages = _pages(main, [(begin, _character(changes)) for begin, changes in runs], end, width, 1)
    paragraph_pages = _pages(
        main, [(begin, _paragraph(style, changes)) for begin, style, changes in paragraphs], end, width, 13
    )
    table = bytearray()
    places: dict[int, tuple[int, int]] = {}

    def add(index: int, data: bytes, more: bytes = b"") -> None:
        places[index] = (len(table), len(data))
        table.extend(data + more)

    offset = (2 * _TEXT_AT) | 0x40000000 if narrow else _TEXT_AT
    pieces = struct.pack("<II", 0, end) + struct.pack("<HIH", 0, offset, 0)
    add(33, b"\x02" + struct.pack("<I", len(pieces)) + pieces)
    add(12, character_pages)
    add(13, paragraph_pages)
    add(2, struct.pack(f"<{len(notes) + 1}I", *notes, end) + bytes(2 * len(notes)) if notes else b"")
    bounds = [0]
    for length in headers:
        bounds.append(bounds[-1] + length)
    add(11, struct.pack(f"<{len(bounds) + 7}I", *[0] * 6, *bounds, bounds[-1]) if headers else b"")
    if levels:
        of_levels = b"".join(
            struct.pack("<iBB", start, kind, 0) + bytes(22) + struct.pack("<H", len(shown)) + shown.encode("utf-16-le")
            for start, kind, shown in [*levels, *[(1, 0, "")] * (9 - len(levels))]
        )
        add(73, struct.pack("<H", 1) + struct.pack("<i", 7) + bytes(24), of_levels)
        add(74, struct.pack("<I", 1) + struct.pack("<i", 7) + bytes(12))
    struct.pack_into("<HH", main, 0, 0xA5EC, version)
    struct.pack_into("<H", main, 10, 0x0200 | flags)
    struct.pack_into("<8I", main, 0x4C, *lengths)
    for index, (at, length) in places.items():
        struct.pack_into("<II", main, 154 + 8 * index, at, length)
    return compound_file({"WordDocument": bytes(main), "1Table": bytes(table)})


def _character(changes: bytes) -> bytes:
    return bytes([len(changes)]) + changes if changes else b""


def _paragraph(style: int, changes: bytes) -> bytes:
    content = struct.pack("<H", style) + changes
    return b"\0" + bytes([-(-len(content) // 2)]) + content + bytes(len(content) % 2)


def _pages(main: bytearray, values: list[tuple[int, bytes]], end: int, width: int, item: int) -> bytes:
    """Add pages of properties, of a few each; return the list of them."""
    bounds, numbers = [], []
    for first in range(0, len(values), 3):
        group = values[first : first + 3]
        last = values[first + 3][0] if first + 3 < len(values) else end
        begins = [_TEXT_AT + width * begin for begin, _ in group]
        page, at = bytearray(512), 512 - 1
        struct.pack_into(f"<{len(group) + 1}I", page, 0, *begins, _TEXT_AT + width * last)
        for number, (_, value) in enumerate(group):
            if value:
                at = (at - len(value)) // 2 * 2
                page[at : at + len(value)] = value
                page[4 * (len(group) + 1) + item * number] = at // 2
        page[511] = len(group)
        bounds.append(begins[0])
        numbers.append(len(main) // 512)
        main += page
    return struct.pack(f"<{len(bounds) + 1}I", *bounds, _TEXT_AT + width * end) + struct.pack(
        f"<{len(numbers)}I", *numbers
    )
