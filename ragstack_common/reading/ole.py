"""The streams of a compound file, which contains the documents of Office 97 to 2003.

Damaged files are read as far as they go: a chain of sectors ends where it would repeat.

Source: MS-CFB, sections 2.2 (header), 2.3 (allocation table) and 2.6 (directory).
"""

import struct
from collections.abc import Iterator, Sequence
from typing import Final

SIGNATURE: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_HEADER_BYTES: Final = 512
_ENTRY_BYTES: Final = 128
_IN_HEADER: Final = 109
"""Sectors of the allocation table that the header lists."""

_MAX_REGULAR: Final = 0xFFFFFFFA
_NONE: Final = 0xFFFFFFFF
_STREAM: Final = 2
_SECTOR_SHIFTS: Final = (9, 12)
_Entry = tuple[str, int, int, int, int, int, int]


class CompoundFile:
    """A file of streams.

    Args:
        data: The file.

    Raises:
        ValueError: It has no header or no directory.
    """

    def __init__(self, data: bytes) -> None:
        if not data.startswith(SIGNATURE) or len(data) < _HEADER_BYTES:
            raise ValueError("no header of a compound file")
        self._data = data
        shift, mini_shift = struct.unpack_from("<HH", data, 30)
        if shift not in _SECTOR_SHIFTS:
            raise ValueError(f"sectors of 2^{shift} bytes")
        self._size, self._mini_size = 1 << shift, 1 << min(mini_shift, shift)
        directory, self._cutoff, mini_table = struct.unpack_from("<I4xII", data, 48)
        self._listed: dict[tuple[str, ...], dict[str, _Entry]] = {}
        self._table = self._allocation()
        self._directory = b"".join(self._sectors(directory))
        root = self._entry(0)
        if root is None:
            raise ValueError("no directory")
        self._mini_table = _numbers(b"".join(self._sectors(mini_table)))
        self._mini_stream = b"".join(self._sectors(root[4]))

    def stream(self, name: str, *storages: str) -> bytes | None:
        """Return a stream; None if there is none of this name. Upper and lower case are the same.

        Args:
            name: Its name.
            storages: The storages that it is in, the outermost first; none for the root.
        """
        entry = self._children(storages).get(name.lower())
        if entry is None or entry[6] != _STREAM:
            return None
        start, size = entry[4:6]
        if size < self._cutoff:
            small = (
                self._mini_stream[place * self._mini_size : (place + 1) * self._mini_size]
                for place in _chain(start, self._mini_table)
            )
            return b"".join(small)[:size]
        return b"".join(self._sectors(start))[:size]

    def names(self, *storages: str) -> list[str]:
        """Return the names of the streams and storages in a storage, in the order of the directory."""
        return [entry[0] for entry in self._children(storages).values()]

    def _children(self, storages: tuple[str, ...]) -> dict[str, _Entry]:
        """Return what is in a storage, by lower-case names."""
        if storages in self._listed:
            return self._listed[storages]
        entry = self._children(storages[:-1]).get(storages[-1].lower()) if storages else self._entry(0)
        waiting = [entry[3] if entry and entry[6] != _STREAM else _NONE]
        numbers: dict[int, _Entry] = {}
        while waiting:
            number = waiting.pop()
            if number not in numbers and (each := self._entry(number)) is not None:
                numbers[number] = each
                waiting += each[1:3]
        self._listed[storages] = {numbers[number][0].lower(): numbers[number] for number in sorted(numbers)}
        return self._listed[storages]

    def _entry(self, number: int) -> _Entry | None:
        """Return an entry of the directory: its name, left, right, child, first sector, size and kind."""
        entry = self._directory[number * _ENTRY_BYTES : (number + 1) * _ENTRY_BYTES]
        if len(entry) < _ENTRY_BYTES:
            return None
        length, kind = struct.unpack_from("<HB", entry, 64)
        left, right, child = struct.unpack_from("<III", entry, 68)
        start, size = struct.unpack_from("<II", entry, 116)
        return (
            entry[: max(0, min(length, 64) - 2)].decode("utf-16-le", "replace"),
            left,
            right,
            child,
            start,
            size,
            kind,
        )

    def _allocation(self) -> Sequence[int]:
        """Return the number of the sector that follows each sector."""
        listed = [*struct.unpack_from(f"<{_IN_HEADER}I", self._data, 76)]
        more, seen = struct.unpack_from("<I", self._data, 68)[0], set()
        while more < _MAX_REGULAR and more not in seen:
            seen.add(more)
            numbers = _numbers(self._sector(more))
            listed += numbers[:-1]
            more = numbers[-1] if numbers else _NONE
        return _numbers(b"".join(self._sector(each) for each in dict.fromkeys(listed) if each < _MAX_REGULAR))

    def _sectors(self, start: int) -> Iterator[bytes]:
        return map(self._sector, _chain(start, self._table))

    def _sector(self, number: int) -> bytes:
        begin = (number + 1) * self._size
        return self._data[begin : begin + self._size]


def _numbers(data: bytes) -> Sequence[int]:
    return struct.unpack(f"<{len(data) // 4}I", data[: len(data) // 4 * 4])


def _chain(start: int, table: Sequence[int]) -> Iterator[int]:
    seen = set()
    while start < len(table) and start not in seen:
        seen.add(start)
        yield start
        start = table[start]
