"""The parts of an Office Open XML file (docx, xlsx, pptx), whichever edition of the standard it follows."""

import io
import posixpath
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import IO, Final
from urllib.parse import unquote
from xml.etree import ElementTree as ET
from xml.parsers import expat

from ragstack_common.reading import formats
from ragstack_common.reading.formats import UnreadableDocument

MAX_UNPACKED_BYTES: Final = 512 * 1024**2
"""Unpacked bytes of a file; a 50 MB file with more is not an office document."""

_BLOCK_BYTES: Final = 1 << 20
_BEGINNING_BYTES: Final = 4096
_IS_ENCRYPTED: Final = 1
"""The flag of an encrypted file in a zip file. Source: APPNOTE.TXT, section 4.4.4."""

_WHOLE_NUMBER: Final = re.compile(r"\s*([+-]?[0-9]{1,9})\s*")
_READING_ERRORS: Final = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    ValueError,
    RuntimeError,
    NotImplementedError,
    OSError,
)


@dataclass(frozen=True)
class Relationship:
    """A link of one part to another; ``target`` is the part's name, or an address outside of the file."""

    kind: str
    target: str
    is_external: bool


class OfficePackage:
    """An open file.

    Names of elements and attributes are read without their namespaces, which the editions of the standard (strict and
    transitional) and the programs write differently.

    Raises:
        UnreadableDocument: The file is damaged, unpacks to too much, or declares XML entities.
    """

    def __init__(self, data: bytes, file_format: str) -> None:
        self._format = file_format
        try:
            self._archive = zipfile.ZipFile(io.BytesIO(data))
            entries = self._archive.infolist()
        except _READING_ERRORS as error:
            raise self._damaged(error) from None
        unpacked = sum(entry.file_size for entry in entries)
        if unpacked > MAX_UNPACKED_BYTES:
            raise UnreadableDocument(f"The .{file_format} file unpacks to {unpacked:,} bytes, which is too much.")
        if any(entry.flag_bits & _IS_ENCRYPTED for entry in entries):
            raise UnreadableDocument(formats.PROTECTED.format(file_format))
        # Names differ in case only in damaged files, which Office opens.
        self._names = {entry.filename.replace("\\", "/").lower(): entry.filename for entry in entries}

    def has(self, name: str) -> bool:
        """Whether there is a part with this name."""
        return name.lower() in self._names

    def _open(self, name: str) -> IO[bytes]:
        try:
            return self._archive.open(self._names[name.lower()])
        except KeyError:
            raise self._damaged(f"{name} is missing") from None
        except _READING_ERRORS as error:
            raise self._damaged(error) from None

    def blocks(self, name: str) -> Iterator[bytes]:
        """Yield a part, a megabyte at a time.

        Raises:
            UnreadableDocument: It is missing or damaged.
        """
        with self._open(name) as part:
            try:
                while block := part.read(_BLOCK_BYTES):
                    yield block
            except _READING_ERRORS as error:
                raise self._damaged(error) from None

    def main_part(self) -> str:
        """Return the name of the part with the document or the workbook."""
        for link in self.links("").values():
            if link.kind == "officeDocument" and not link.is_external:
                return link.target
        raise self._damaged("it has no document")

    def links(self, name: str) -> Mapping[str, Relationship]:
        """Return the links of a part by their id; of the whole file for an empty name."""
        folder, _, file = name.rpartition("/")
        part = f"{folder}/_rels/{file}.rels" if folder else f"_rels/{file}.rels"
        if not self.has(part):
            return {}
        found = {}
        for element in self.root(part):
            external = element.get("TargetMode") == "External"
            target = element.get("Target", "")
            if not external:
                target = posixpath.normpath(posixpath.join("/", folder, unquote(target))).lstrip("/")
            found[element.get("Id", "")] = Relationship(element.get("Type", "").rpartition("/")[2], target, external)
        return found

    def root(self, name: str) -> ET.Element:
        """Return the root element of a part, without namespaces."""
        self._check_beginning(name)
        with self._open(name) as part:
            try:
                root = ET.parse(part).getroot()  # noqa: S314 - no entities, see above
            except (ET.ParseError, *_READING_ERRORS) as error:
                raise self._damaged(error) from None
        for element in root.iter():
            self._rename(element)
        return root

    def _rename(self, element: ET.Element) -> None:
        element.tag = local(element.tag)
        for key in [key for key in element.attrib if key[0] == "{"]:
            element.attrib[local(key)] = element.attrib.pop(key)

    def elements(self, name: str) -> Iterator[ET.Element]:
        """Yield each element of a part when it is complete, with namespaces; the caller clears what it has read."""
        self._check_beginning(name)
        with self._open(name) as part:
            try:
                for _, element in ET.iterparse(part):  # noqa: S314 - the same
                    yield element
            except (ET.ParseError, *_READING_ERRORS) as error:
                raise self._damaged(error) from None

    def _damaged(self, error: object) -> UnreadableDocument:
        return UnreadableDocument(formats.DAMAGED.format(self._format, str(error)[:120]))

    def _check_beginning(self, name: str) -> None:
        """Refuse a part with a document type, which can declare entities; Office refuses them, too."""
        parser = expat.ParserCreate()

        def refuse(*_: object) -> None:
            raise UnreadableDocument(
                f"The .{self._format} file declares XML entities in {name}, which is not allowed: save it again."
            )

        def stop(*_: object) -> None:
            raise StopIteration

        parser.StartDoctypeDeclHandler, parser.StartElementHandler = refuse, stop
        with self._open(name) as part:
            try:
                while block := part.read(_BEGINNING_BYTES):
                    parser.Parse(block)
            except StopIteration:
                return
            except (expat.ExpatError, *_READING_ERRORS) as error:
                raise self._damaged(error) from None


def whole_number(text: str | None, default: int) -> int:
    """Return what an attribute says, or the default if it says no whole number of up to nine digits."""
    found = _WHOLE_NUMBER.fullmatch(text or "")
    return int(found[1]) if found else default


@cache
def local(name: str) -> str:
    """Return the name of an element or attribute without its namespace."""
    return name.rpartition("}")[2]
