"""Presentations of PowerPoint 97 to 2003, written by hand, so that tests decide about each record."""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from tests.support.mail_files import compound_file


@dataclass(frozen=True)
class OldSlide:
    """A slide to write.

    Attributes:
        shapes: The records of its shapes.
        outline: The kind and the text of placeholders that the document lists.
        hidden: Whether it is left out of the show.
        notes: The records of the shapes of its page of notes.
        footer: The text of its footer.
        others: Other records of the slide.
    """

    shapes: Sequence[bytes] = ()
    outline: Sequence[tuple[int, str]] = ()
    hidden: bool = False
    notes: Sequence[bytes] = ()
    footer: str = ""
    others: bytes = b""


@dataclass
class _Stream:
    data: bytes = b""
    places: list[int] = field(default_factory=list)

    def add(self, part: bytes) -> int:
        """Add a part with a number of its own, and return the number."""
        self.places.append(len(self.data))
        self.data += part
        return len(self.places)


def record(kind: int, data: bytes, *, instance: int = 0, has_records: bool = False) -> bytes:
    """Return a record."""
    return struct.pack("<HHI", instance << 4 | (0xF if has_records else 0), kind, len(data)) + data


def text(kind: int, written: str, *, narrow: bool = False, changing: Mapping[int, int] | None = None) -> bytes:
    """Return the records of a text; *changing* has the kinds of fields by their place."""
    content = written.encode("latin-1") if narrow else written.encode("utf-16-le")
    fields = b"".join(record(each, struct.pack("<I", place)) for place, each in (changing or {}).items())
    return record(0x0F9F, struct.pack("<I", kind)) + record(0x0FA8 if narrow else 0x0FA0, content) + fields


def shape(*texts: bytes, placeholder: int | None = None, kind: int = 1) -> bytes:
    """Return a shape with records of texts; *kind* 75 is a picture."""
    atom = b"" if placeholder is None else record(0x0BC3, struct.pack("<iBBH", 0, placeholder, 0, 0))
    data = record(0xF00A, bytes(8), instance=kind)
    data += record(0xF011, atom, has_records=True) + record(0xF00D, b"".join(texts), has_records=True)
    return record(0xF004, data, has_records=True)


def group(*shapes: bytes) -> bytes:
    """Return a group of shapes."""
    return record(0xF003, b"".join(shapes), has_records=True)


def outline_text(place: int) -> bytes:
    """Return the record of a text that the document lists."""
    return record(0x0F9E, struct.pack("<I", place))


def ppt(
    slides: Sequence[OldSlide], *, master: Sequence[bytes] = (), before: bytes = b"", encrypted: bool = False
) -> bytes:
    """Return a presentation.

    Args:
        slides: In their order.
        master: The records of the shapes of their master.
        before: Records that the last version no longer has.
        encrypted: Whether the file says that it is.
    """
    stream = _Stream(before)
    of_master = stream.add(record(0x03F8, _drawing(master), has_records=True))
    listed: dict[int, bytes] = {0: b"", 1: _listed(of_master, 0x80000000, ()), 2: b""}
    for number, slide in enumerate(slides, start=1):
        atom = struct.pack("<12xIIHH", 0x80000000, number if slide.notes else 0, 1, 0)
        shown = record(0x03F9, struct.pack("<IIBBHI", 0, 0, 0, 0, 4 if slide.hidden else 0, 0))
        footer = record(0x0FDA, struct.pack("<hH", 0, 0x20)) + record(
            0x0FBA, slide.footer.encode("utf-16-le"), instance=2
        )
        around = record(0x0FD9, footer, has_records=True) if slide.footer else b""
        content = record(0x03EF, atom) + shown + _drawing(slide.shapes) + around + slide.others
        own = stream.add(record(0x03EE, content, has_records=True))
        listed[0] += _listed(own, 256 + number, slide.outline)
        if slide.notes:
            page = record(0x03F1, struct.pack("<IHH", 256 + number, 0, 0)) + _drawing(slide.notes)
            listed[2] += _listed(stream.add(record(0x03F0, page, has_records=True)), number, ())
    lists = b"".join(record(0x0FF0, each, instance=kind, has_records=True) for kind, each in listed.items())
    document = stream.add(record(0x03E8, lists, has_records=True))
    directory = len(stream.data)
    entries = struct.pack(f"<{1 + len(stream.places)}I", 1 | len(stream.places) << 20, *stream.places)
    stream.data += record(0x1772, entries)
    edit = len(stream.data)
    stream.data += record(0x0FF5, struct.pack("<IIIIIII", 0, 0, 0, directory, document, 0, 0))
    user = record(0x0FF6, struct.pack("<III", 20, 0xF3D1C4DF if encrypted else 0xE391C05F, edit))
    return compound_file({"PowerPoint Document": stream.data, "Current User": user})


def _drawing(shapes: Sequence[bytes]) -> bytes:
    return record(0x040C, record(0xF002, group(*shapes), has_records=True), has_records=True)


def _listed(own: int, number: int, outline: Sequence[tuple[int, str]]) -> bytes:
    head = record(0x03F3, struct.pack("<IIIII", own, 0, len(outline), number, 0))
    return head + b"".join(text(kind, written) for kind, written in outline)


def damaged(data: bytes, random: Random) -> bytes:
    """Return a file of which a few bytes differ: those that say what a record is and how long, more often."""
    if not data:
        return data
    changed = bytearray(data)
    heads = [at for at in range(512, len(data) - 8, 2) if data[at + 3] in (0x03, 0x0F, 0x17, 0xF0)]
    for _ in range(random.randint(1, 4)):
        at = random.choice(heads) if heads and random.random() < 0.7 else random.randrange(len(data))
        value = random.choice((0, 1, 0x7F, 0xFF, 0xFFFF, 0xFFFFFFFF, random.randrange(1 << 32)))
        place, width = at + random.choice((0, 2, 4, 8)), random.choice((1, 2, 4))
        changed[place : place + width] = (value & (1 << 8 * width) - 1).to_bytes(width, "little")
    return bytes(changed[: random.randrange(len(data))] if random.random() < 0.1 else changed)
