"""The records of a presentation of PowerPoint 97 to 2003, and which of them are those of its last version.

A file that was saved quickly keeps what it replaced, so a directory says where each slide begins now.

Source: MS-PPT, sections 2.3 (records), 2.1.2 (the user's last edit) and 2.3.3 to 2.3.6 (the directory).
"""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ragstack_common.reading import formats, ole
from ragstack_common.reading.formats import UnreadableDocument

DOCUMENT, SLIDE, SLIDE_ATOM, NOTES, NOTES_ATOM = 0x03E8, 0x03EE, 0x03EF, 0x03F0, 0x03F1
LISTED, LIST, SHOW, FOOTERS, FOOTERS_ATOM, STRING = 0x03F3, 0x0FF0, 0x03F9, 0x0FD9, 0x0FDA, 0x0FBA
SHAPE, SHAPE_ATOM, TEXT_BOX, PLACEHOLDER, COMMENT = 0xF004, 0xF00A, 0xF00D, 0x0BC3, 0x2EE0
OUTLINE_TEXT, TEXT_KIND, WIDE_TEXT, NARROW_TEXT = 0x0F9E, 0x0F9F, 0x0FA0, 0x0FA8
CHANGING: Final = frozenset({0x0FD8, 0x0FF7, 0x0FF8, 0x0FF9, 0x0FFA, 0x1015})
"""Places of a text where numbers of slides, dates, headers and footers are shown."""

SLIDES, MASTERS, OF_NOTES = 0, 1, 2
"""Instances of the lists of slides."""

_EDIT: Final = 0x0FF5
_DIRECTORY: Final = 0x1772
_ENCRYPTED: Final = 0xF3D1C4DF
_HEAD_BYTES: Final = 8
_OF_RECORDS: Final = 0xF
"""The version of records that contain others."""


class Record(NamedTuple):
    """A record: its instance and kind, and where its content begins and ends in the stream."""

    instance: int
    kind: int
    begin: int
    end: int
    has_records: bool


@dataclass
class ListedSlide:
    """A slide, a master or a page of notes as the document lists it.

    Attributes:
        place: Where its record begins; None if it is nowhere.
        own: Its number, by which others refer to it.
        texts: Those of its placeholders, each with its kind.
    """

    place: int | None
    own: int
    texts: list[tuple[int, str]] = field(default_factory=list)


@dataclass
class _Text:
    """A text that is being read, with the places of what changes with the slide or the day."""

    kind: int
    written: str = ""
    changing: set[int] = field(default_factory=set)

    def kept(self) -> str:
        text = self.written
        if self.changing:
            text = "".join(each for place, each in enumerate(text) if place not in self.changing)
        return text.replace("\v", "\n")


class Records:
    """The records of a file.

    Raises:
        UnreadableDocument: It is damaged, protected, or of another format.
    """

    def __init__(self, data: bytes) -> None:
        try:
            container = ole.CompoundFile(data)
            self.stream = container.stream("PowerPoint Document") or b""
            user = container.stream("Current User") or b""
        except (ValueError, IndexError, struct.error) as error:
            raise UnreadableDocument(formats.DAMAGED.format("ppt", error)) from None
        if self.number(12, 4, user) == _ENCRYPTED:
            raise UnreadableDocument(formats.PROTECTED.format("ppt"))
        self._document, self._places = self._directory(self.number(16, 4, user))

    def number(self, offset: int, length: int, data: bytes | None = None) -> int:
        """Return an unsigned number; bytes that are missing are 0."""
        return int.from_bytes((self.stream if data is None else data)[offset : offset + length], "little")

    def at(self, place: int | None) -> Record | None:
        """Return the record that begins at a place."""
        if place is None or place + _HEAD_BYTES > len(self.stream):
            return None
        head, kind, length = struct.unpack_from("<HHI", self.stream, place)
        begin = place + _HEAD_BYTES
        return Record(head >> 4, kind, begin, min(begin + length, len(self.stream)), head & _OF_RECORDS == _OF_RECORDS)

    def within(self, parent: Record) -> Iterator[Record]:
        """Yield the records directly within another one."""
        position = parent.begin
        while (found := self.at(position)) is not None and found.begin <= parent.end:
            yield found._replace(end=min(found.end, parent.end))
            position = found.end

    def all_within(self, parent: Record, *kinds: int) -> Iterator[Record]:
        """Yield the records of some kinds within another one, at any depth, but not those within each other."""
        waiting = [self.within(parent)]
        while waiting:
            each = next(waiting[-1], None)
            if each is None:
                waiting.pop()
            elif each.kind in kinds:
                yield each
            elif each.has_records:
                waiting.append(self.within(each))

    def listed(self, instance: int) -> list[ListedSlide]:
        """Return the slides, masters or pages of notes in their order."""
        found: list[ListedSlide] = []
        seen: set[int] = set()
        document = self.at(self._document)
        for each in self.within(document) if document is not None else ():
            if each.kind != LIST or each.instance != instance:
                continue
            for head in [record for record in self.within(each) if record.kind == LISTED]:
                part = self.number(head.begin, 4)
                if part not in seen:
                    seen.add(part)
                    texts = self.texts(each._replace(begin=head.end), until=LISTED)
                    found.append(ListedSlide(self._places.get(part), self.number(head.begin + 12, 4), texts))
        return found

    def texts(self, parent: Record, until: int | None = None) -> list[tuple[int, str]]:
        """Return the texts in a record, each with its kind, without what changes with the slide or the day.

        Args:
            parent: The record.
            until: The kind of the record that follows them.
        """
        found: list[_Text] = []
        for each in self.within(parent):
            if each.kind == until:
                break
            if each.kind == TEXT_KIND:
                found.append(_Text(self.number(each.begin, 4)))
            elif each.kind in (WIDE_TEXT, NARROW_TEXT) and found:
                encoding = "utf-16-le" if each.kind == WIDE_TEXT else "latin-1"
                found[-1].written = self.stream[each.begin : each.end].decode(encoding, "replace")
            elif each.kind in CHANGING and found:
                found[-1].changing.add(self.number(each.begin, 4))
        return [(each.kind, each.kept()) for each in found]

    def _directory(self, place: int) -> tuple[int | None, Mapping[int, int]]:
        """Return where the document begins, and where each of its parts does, by their numbers."""
        places: dict[int, int] = {}
        document, seen = None, set()
        while place not in seen and (edit := self.at(place)) is not None and edit.kind == _EDIT:
            seen.add(place)
            directory = self.at(self.number(edit.begin + 12, 4))
            position = directory.begin if directory is not None and directory.kind == _DIRECTORY else edit.end
            end = directory.end if directory is not None else position
            while position + 4 <= end:
                head = self.number(position, 4)
                first, count = head & 0xFFFFF, min(head >> 20, (end - position) // 4)
                for number in range(count):
                    places.setdefault(first + number, self.number(position + 4 + 4 * number, 4))
                position += 4 + 4 * count
            document = document or places.get(self.number(edit.begin + 16, 4))
            place = self.number(edit.begin + 8, 4)
        if document is None:
            raise UnreadableDocument(formats.DAMAGED.format("ppt", "it has no presentation"))
        return document, places
