"""Parse XML that anyone may have written: no entities are expanded, and nothing is fetched."""

from xml.etree import ElementTree as ET
from xml.parsers import expat

from ragstack_common.reading import formats
from ragstack_common.reading.formats import UnreadableDocument

_BLOCK_BYTES = 1 << 16


def root(data: bytes, file_format: str) -> ET.Element:
    """Return the root element of a file, with the namespaces of its names.

    Raises:
        UnreadableDocument: It is damaged, or declares entities.
    """
    check_entities(data, file_format)
    try:
        return ET.fromstring(data)  # noqa: S314 - no entities, see above
    except (ET.ParseError, ValueError, LookupError) as error:
        raise UnreadableDocument(formats.DAMAGED.format(file_format, str(error)[:120])) from None


def check_entities(data: bytes, file_format: str) -> None:
    """Refuse a file that declares entities, which can be of any length.

    Raises:
        UnreadableDocument: It declares some, or is damaged before its first element.
    """
    parser = expat.ParserCreate()

    def refuse(*_: object) -> None:
        raise UnreadableDocument(f"The .{file_format} file declares XML entities, which is not allowed: save it again.")

    def stop(*_: object) -> None:
        raise StopIteration

    parser.EntityDeclHandler, parser.StartElementHandler = refuse, stop
    try:
        for begin in range(0, len(data), _BLOCK_BYTES):
            parser.Parse(data[begin : begin + _BLOCK_BYTES])
    except StopIteration:
        return
    except (expat.ExpatError, ValueError, LookupError) as error:
        raise UnreadableDocument(formats.DAMAGED.format(file_format, str(error)[:120])) from None
