"""Mails of Outlook, and the compound files that have them."""

import struct
from collections.abc import Mapping
from typing import Final

Storage = Mapping[str, "bytes | Storage"]

_END: Final = 0xFFFFFFFE
_FREE: Final = 0xFFFFFFFF


def compound_file(root: Storage) -> bytes:
    """Return a compound file of streams and storages; no stream is too small for sectors of its own."""
    entries: list[bytes] = []
    sectors: list[bytes] = []
    table: list[int] = []

    def add_sectors(data: bytes) -> int:
        if not data:
            return _END
        begin, count = len(sectors), -(-len(data) // 512)
        sectors.extend(data[at : at + 512].ljust(512, b"\0") for at in range(0, len(data), 512))
        table.extend([*range(begin + 1, begin + count), _END])
        return begin

    def add(name: str, content: bytes | Storage, kind: int, right: int) -> int:
        own = len(entries)
        entries.append(b"")
        child, start, size = _FREE, _END, 0
        if isinstance(content, bytes):
            start, size = add_sectors(content), len(content)
        else:
            for each in content:
                child = add(each, content[each], 2 if isinstance(content[each], bytes) else 1, child)
        written = name.encode("utf-16-le") + b"\0\0"
        links = struct.pack("<BBIII", kind, 1, _FREE, right, child) + bytes(36)
        head = written.ljust(64, b"\0") + struct.pack("<H", len(written))
        entries[own] = head + links + struct.pack("<IQ", start, size)
        return own

    add("Root Entry", root, 5, _FREE)
    directory = add_sectors(b"".join(entries))
    of_table = -(-(len(table) + 1) // 127)
    first = len(sectors)
    table += [0xFFFFFFFD] * of_table
    numbers = struct.pack(f"<{len(table)}I", *table).ljust(512 * of_table, b"\xff")
    sectors += [numbers[at : at + 512] for at in range(0, len(numbers), 512)]
    assert of_table <= 109
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16)
    header += struct.pack("<HHHHH6xII", 0x3E, 3, 0xFFFE, 9, 6, 0, of_table)
    header += struct.pack("<IIIIIII", directory, 0, 0, _END, 0, _END, 0)
    listed = struct.pack(f"<{of_table}I", *range(first, first + of_table)).ljust(436, b"\xff")
    return header + listed + b"".join(sectors)


def properties(numbers: Mapping[int, int], header_bytes: int) -> bytes:
    """Return the stream of the properties of fixed length, which are here all of 64 bits."""
    return bytes(header_bytes) + b"".join(struct.pack("<HHIQ", 0x14, own, 6, value) for own, value in numbers.items())


def outlook(
    texts: Mapping[int, str | bytes],
    numbers: Mapping[int, int] | None = None,
    *,
    recipients: list[tuple[Mapping[int, str | bytes], int]] | None = None,
    files: list[Mapping[int, "str | bytes | Storage"]] | None = None,
    inner: bool = False,
) -> dict[str, "bytes | Storage"]:
    """Return the storage of a mail: texts and bytes by the number of their property."""
    written: dict[str, bytes | Storage] = {
        "__properties_version1.0": properties(numbers or {}, 24 if inner else 32),
        **_streams(texts),
    }
    for place, (each, kind) in enumerate(recipients or []):
        written[f"__recip_version1.0_#{place:08X}"] = {
            "__properties_version1.0": properties({0x0C15: kind}, 8),
            **_streams(each),
        }
    for place, file in enumerate(files or []):
        written[f"__attach_version1.0_#{place:08X}"] = {"__properties_version1.0": bytes(8), **_streams(file)}
    return written


def _streams(values: Mapping[int, "str | bytes | Storage"]) -> dict[str, "bytes | Storage"]:
    written: dict[str, bytes | Storage] = {}
    for own, value in values.items():
        if isinstance(value, str):
            written[f"__substg1.0_{own:04X}001F"] = value.encode("utf-16-le")
        else:
            written[f"__substg1.0_{own:04X}{'0102' if isinstance(value, bytes) else '000D'}"] = value
    return written


def compressed(rich: bytes) -> bytes:
    """Return rich text in the form of Outlook, without references to text before."""
    groups = (rich[at : at + 8] for at in range(0, len(rich), 8))
    data = b"".join(b"\0" + group for group in groups)
    return (len(data) + 12).to_bytes(4, "little") + len(rich).to_bytes(4, "little") + b"LZFu" + bytes(4) + data
