"""The rich text of Outlook's mails: compressed, and perhaps with a page in it.

Sources: MS-OXRTFCP (compression), MS-OXRTFEX (pages within rich text).
"""

import struct
from dataclasses import replace
from typing import Final

from ragstack_common.reading import rtf

_BEGINNING: Final = (
    b"{\\rtf1\\ansi\\mac\\deff0\\deftab720{\\fonttbl;}{\\f0\\fnil \\froman \\fswiss \\fmodern \\fscript \\fdecor "
    b"MS Sans SerifSymbolArialTimes New RomanCourier{\\colortbl\\red0\\green0\\blue0\r\n\\par \\pard\\plain\\f0\\fs20"
    b"\\b\\i\\u\\tab\\tx"
)
"""What the dictionary has at first. Source: MS-OXRTFCP, section 2.1.2.1."""

_DICTIONARY_BYTES: Final = 4096
_COMPRESSED: Final = b"LZFu"
_IS_PAGE: Final = b"\\fromhtml"


def unpacked(data: bytes) -> bytes:
    """Return rich text that was compressed; as far as it goes if it is damaged.

    Raises:
        ValueError: It does not begin as such data does.
    """
    if len(data) < 16:  # noqa: PLR2004 - its header
        raise ValueError("no header of compressed rich text")
    size, kind = struct.unpack_from("<I4s", data, 4)
    if kind != _COMPRESSED:
        return data[16 : 16 + size]
    known = bytearray(_BEGINNING.ljust(_DICTIONARY_BYTES, b" "))
    write = len(_BEGINNING)
    found = bytearray()
    place = 16
    while place < len(data):
        control = data[place]
        place += 1
        for bit in range(8):
            if place >= len(data):
                break
            if not control >> bit & 1:
                found.append(data[place])
                known[write] = data[place]
                write = (write + 1) % _DICTIONARY_BYTES
                place += 1
                continue
            reference = int.from_bytes(data[place : place + 2], "big")
            place += 2
            read, length = reference >> 4, (reference & 0xF) + 2
            if read == write:
                return bytes(found)
            for _ in range(length):
                each = known[read]
                found.append(each)
                known[write] = each
                read, write = (read + 1) % _DICTIONARY_BYTES, (write + 1) % _DICTIONARY_BYTES
    return bytes(found)


def page_in(data: bytes) -> str | None:
    """Return the source of the page that rich text was made from; None if it was not made from one."""
    if _IS_PAGE not in data[:4096]:
        return None
    return _PageReader().read(data)


class _PageReader(rtf.Reader):
    """Rich text whose tags are in groups of their own; ``htmlrtf`` is around what is there for other readers."""

    def __init__(self) -> None:
        super().__init__()
        self._page: list[str] = []

    def _whole(self) -> str:
        return "".join(self._page)

    def _control(self, word: str, number: int | None) -> None:
        if word == "htmlrtf":
            self._state = replace(self._state, is_hidden=number != 0)
        else:
            super()._control(word, number)

    def _enters(self, word: str, *, is_optional: bool) -> bool:
        if word == "htmltag" and self._state.destination != "skipped":
            self._state = replace(self._state, destination="htmltag")
            return True
        return super()._enters(word, is_optional=is_optional)

    def _end_or_describe(self, word: str, _: int, __: object) -> None:
        if word == "par":
            self._add("\n")

    def _add(self, text: str) -> None:
        if self._state.destination == "htmltag" or (self._state.destination == "body" and not self._state.is_hidden):
            self._page.append(text)
