"""XML files: data as tables and lists of names with values, documents as headings and paragraphs.

A file is a document if much of its text has marks within its lines, as those of DocBook, JATS and TEI have. Of data,
values of attributes are read too; of documents they are not, because they say how it looks or what it links to.
"""

import re
from collections.abc import Iterator
from html import entities
from itertools import groupby
from typing import Final
from xml.etree import ElementTree as ET

from ragstack_common.reading import formats, markdown
from ragstack_common.reading.encodings import decoded, known
from ragstack_common.reading.formats import UnreadableDocument
from ragstack_common.reading.html import pages
from ragstack_common.reading.markdown import Blocks
from ragstack_common.reading.office_package import local
from ragstack_common.reading.plain import records
from ragstack_common.reading.plain.records import Record, Value
from ragstack_common.reading.xml_files import check_entities

_DECLARED: Final = re.compile(rb"\A\s*<\?xml[^>]*?encoding\s*=\s*[\"']([\w.:-]+)")
_DECLARATION: Final = re.compile(r"\A\s*<\?xml\b.*?\?>", re.DOTALL)
_OF_SCHEMAS: Final = ("{http://www.w3.org/2001/XMLSchema-instance}", "{http://www.w3.org/XML/1998/namespace}")
_MARKED_SHARE: Final = 0.2
"""Share of the text of documents that is in lines with marks."""

_PAGE: Final = re.compile(r"</(?:p|a|b|i|em|strong|div|span|li|ul|ol|td|h[1-6])>|<br ?/?>|<p>", re.IGNORECASE)
_HEADINGS: Final = frozenset({"title", "head", "heading", "bridgehead", "article-title"})
_ROWS: Final = frozenset({"row", "tr"})
_TABLES: Final = frozenset({"table", "informaltable", "tgroup", "simpletable"})
_ITEMS: Final = frozenset({"item", "li", "listitem", "list-item"})
_CODE: Final = frozenset({"code", "programlisting", "codeblock", "pre", "screen", "literallayout", "verbatim"})


def read(data: bytes, charset: str | None = None) -> str:
    """Return the text of a file in Markdown.

    Raises:
        RecursionError: It is nested too deeply.
        UnreadableDocument: It is damaged, or declares entities.
    """
    root = parsed(data, charset)
    blocks = Blocks()
    if is_document(root):
        _Document(blocks).write(root, 0)
        return str(blocks)
    names, value = [local(root.tag)], _value(root)
    while isinstance(value, Record) and len(value.pairs) == 1 and isinstance(value.pairs[0][1], Record):
        names.append(value.pairs[0][0])
        value = value.pairs[0][1]
    blocks.heading(1, " ".join(names))
    blocks.written(records.write(value))
    return str(blocks)


def parsed(data: bytes, charset: str | None = None) -> ET.Element:
    """Return the root of a file in any encoding, without comments; raises UnreadableDocument."""
    said = _DECLARED.match(data)
    declared = known(said[1].decode()) if said else None
    if declared and declared.startswith(("utf-16", "utf-32")):  # then its name could not be read
        declared = None
    text = _DECLARATION.sub("", decoded(data, charset or declared)).lstrip()
    check_entities(text.encode("utf-8", "replace"), "xml")
    parser = ET.XMLParser()  # noqa: S314 - no entities are declared
    parser.entity.update({name.removesuffix(";"): value for name, value in entities.html5.items()})
    try:
        parser.feed(text)
        root = parser.close()
    except (ET.ParseError, ValueError) as error:
        raise UnreadableDocument(formats.DAMAGED.format("xml", str(error)[:120])) from None
    assert isinstance(root, ET.Element)
    return root


def is_document(root: ET.Element) -> bool:
    """Whether a file has text for people rather than data."""
    marked = total = 0
    for element in root.iter():
        own = len((element.text or "").strip()) + sum(len((child.tail or "").strip()) for child in element)
        total += own
        if len(element) and own:
            marked += own
    return marked > _MARKED_SHARE * total


def _value(element: ET.Element) -> Value:
    """Return an element as data: its attributes, then what is in it."""
    pairs: list[tuple[str, Value]] = [
        (local(name), value) for name, value in element.attrib.items() if not name.startswith(_OF_SCHEMAS)
    ]
    if not len(element) or _is_marked(element):
        text = "".join(element.itertext())
        if len(element):
            text = markdown.one_line(text)
        text = shown(text.strip())
        if not pairs:
            return text
        return Record([*pairs, ("", text)]) if text else Record(pairs)
    for name, same in groupby(element, key=lambda each: local(each.tag)):
        values = [_value(each) for each in same]
        pairs.append((name, values if len(values) > 1 else values[0]))
    return Record(pairs)


def shown(text: str) -> str:
    """Return a text of data as people read it: that of a web page without its tags."""
    if "<" in text and _PAGE.search(text):
        return pages.read(text.encode("utf-8", "replace"), "utf-8").text
    return text


def _is_marked(element: ET.Element) -> bool:
    """Whether an element has text around other elements."""
    return bool((element.text or "").strip()) or any((child.tail or "").strip() for child in element)


class _Document:
    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks

    def write(self, element: ET.Element, level: int) -> None:
        name = local(element.tag).lower()
        if name in _CODE:
            self._blocks.code("".join(element.itertext()))
        elif name in _TABLES and (rows := [*_rows(element)]):
            for title in (each for each in element.iter() if local(each.tag).lower() in ("title", "caption")):
                self._blocks.paragraph(_line(title))
            self._blocks.table(markdown.rectangle(rows))
        elif name in _HEADINGS and not any(map(_is_block, element)):
            self._blocks.heading(max(level, 1), _line(element))
        elif not any(map(_is_block, element)):
            if text := _line(element):
                self._blocks.item("-", text) if name in _ITEMS else self._blocks.paragraph(text)
        else:
            self._write_mixed(element, level + _has_heading(element))

    def _write_mixed(self, element: ET.Element, level: int) -> None:
        """Write an element that has blocks; text between them is a paragraph of its own."""
        line = element.text or ""
        for child in element:
            if _is_block(child) or not (line.strip() or (child.tail or "").strip()):
                self._end(line)
                self.write(child, level)
                line = child.tail or ""
            else:
                line += "".join(child.itertext()) + (child.tail or "")
        self._end(line)

    def _end(self, line: str) -> None:
        if line.strip():
            self._blocks.paragraph(markdown.one_line(line))


def _is_block(element: ET.Element) -> bool:
    """Whether an element has paragraphs of its own: elements without text between them."""
    name = local(element.tag).lower()
    if name in _CODE or name in _TABLES or name in _HEADINGS or name in ("p", "para", *_ITEMS):
        return True
    return (len(element) > 0 and not _is_marked(element) and len(element) > 1) or any(map(_is_block, element))


def _has_heading(element: ET.Element) -> bool:
    """Whether an element is a section: it has a heading, or information with one."""
    if local(element.tag).lower().endswith("info"):
        return False
    children = {local(child.tag).lower(): child for child in element}
    inner = {local(each.tag).lower() for name, child in children.items() if name.endswith("info") for each in child}
    return not _HEADINGS.isdisjoint({*children} | inner)


def _line(element: ET.Element) -> str:
    return markdown.one_line("".join(element.itertext()))


def _rows(table: ET.Element) -> Iterator[list[str]]:
    for row in table.iter():
        if local(row.tag).lower() in _ROWS:
            yield [_line(cell) for cell in row]
