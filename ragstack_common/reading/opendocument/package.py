"""The parts of an OpenDocument file.

Source: OpenDocument 1.3, part 2 (packages) and part 3 (elements and attributes).
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Final
from xml.etree import ElementTree as ET

from ragstack_common.reading import formats
from ragstack_common.reading.formats import UnreadableDocument
from ragstack_common.reading.office_package import OfficePackage

CONTENT: Final = "content.xml"
STYLES: Final = "styles.xml"

_MANIFEST: Final = "META-INF/manifest.xml"
_NAMESPACE: Final = re.compile(r"urn:oasis:names:tc:opendocument:xmlns:([a-z-]+):")
_SHORTER: Final = {"drawing": "draw", "datastyle": "number", "svg-compatible": "svg", "xsl-fo-compatible": "fo"}
_OTHERS: Final = {
    "http://www.w3.org/1999/xlink": "xlink",
    "http://www.w3.org/1998/Math/MathML": "math",
    "http://www.w3.org/XML/1998/namespace": "xml",
}


class OpenDocumentPackage(OfficePackage):
    """An open file; names of elements and attributes have the prefixes of the standard, such as ``text.p``.

    ElementTree takes a colon in a path for a prefix of its own, hence the point.

    Raises:
        UnreadableDocument: The file is damaged, encrypted, unpacks to too much, or declares XML entities.
    """

    def __init__(self, data: bytes, file_format: str) -> None:
        super().__init__(data, file_format)
        # The parts of an encrypted file are not even XML. Old manifests have a document type, so this one is searched.
        if self.has(_MANIFEST) and b"encryption-data" in b"".join(self.blocks(_MANIFEST)):
            raise UnreadableDocument(formats.PROTECTED.format(file_format))

    def elements(self, name: str) -> Iterator[ET.Element]:
        """Yield each element of a part when it is complete; the caller clears what it has read."""
        for element in super().elements(name):
            self._rename(element)
            yield element

    def _rename(self, element: ET.Element) -> None:
        element.tag = _prefixed(element.tag)
        for key in [key for key in element.attrib if key[0] == "{"]:
            element.attrib[_prefixed(key)] = element.attrib.pop(key)


@cache
def _prefixed(name: str) -> str:
    space, _, own = name[1:].partition("}")
    found = _NAMESPACE.match(space)
    prefix = _SHORTER.get(found[1], found[1]) if found else _OTHERS.get(space, "other")
    return f"{prefix}.{own}" if own else name
