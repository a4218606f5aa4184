"""What a Word document has: every paragraph of every part, as its XML lists them, without the document's structure."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final
from xml.etree.ElementTree import Element

from ragstack_common.reading import rtf
from ragstack_common.reading.census import drawings, pages
from ragstack_common.reading.census.parts import (
    COMMENTS_LEFT_OUT,
    DELETED_LEFT_OUT,
    HIDDEN_LEFT_OUT,
    NOT_RECOGNIZED,
    UPLOAD_APART,
    Census,
    Part,
)
from ragstack_common.reading.mail import archives
from ragstack_common.reading.office_package import OfficePackage, Relationship

_NUMBER_OF_PAGE: Final = re.compile(r"\s*(?:PAGE|NUMPAGES|SECTIONPAGES|PAGEREF)\b", re.IGNORECASE)
_DELETED: Final = frozenset({"del", "moveFrom"})
_PROPERTIES: Final = frozenset({"pPr", "rPr", "sdtPr", "sectPr", "tblPr", "tcPr"})
_OFF: Final = ("0", "false", "off")
_WEB_PAGES: Final = (".htm", ".html", ".xhtml")
_WEB_ARCHIVES: Final = (".mht", ".mhtml")
_CHARACTERS: Final = {"tab": " ", "ptab": " ", "br": " ", "cr": " ", "noBreakHyphen": "-"}
_APART: Final = frozenset({"rt", "rubyBase", "oMath", "num", "den", "deg", "e", "sub", "sup"})
"""What ends with a space here, because the readers write it in another way."""

_TOO_DEEP: Final = 400
_MOST_LEVELS: Final = 3
"""Documents within each other: a file can contain itself."""

_MOST_STYLES: Final = 20


def count(data: bytes) -> Census:
    """List the paragraphs of a document by part; raises UnreadableDocument."""
    return _Word(OfficePackage(data, "docx")).census()


@dataclass
class _Reading:
    """One part of the file while it is read: the open fields, and what it shows of other parts."""

    in_header: bool = False
    fields: list[str | None] = field(default_factory=list)
    """The code of each open field; None once its result begins and is shown."""

    notes: list[tuple[str, str]] = field(default_factory=list)
    drawn: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)


class _Word:
    def __init__(self, package: OfficePackage, level: int = 0) -> None:
        self._package, self._level = package, level
        self._main = package.main_part()
        self._links = package.links(self._main)
        self._left_out = {"deleted": 0, "hidden": 0}
        self._styles = {style.get("styleId"): style for root in self._roots("styles") for style in root.iter("style")}

    def census(self) -> Census:
        root = self._package.root(self._main)
        reading = _Reading()
        text = Part("main text", [*self._paragraphs(root, reading)])
        around = Part("headers and footers")
        charts = Part("charts and diagrams", [*self._charts(self._links, reading)])
        for name in self._shown_around(root):
            within = _Reading(in_header=True)
            around.texts += self._paragraphs(self._package.root(name), within)
            charts.texts += self._charts(self._package.links(name), within)
        notes = Part("notes", [*self._notes(reading)])
        census = Census([part for part in (text, around, notes, charts) if part.texts], "parts")
        for own in reading.files:
            if (link := self._links.get(own)) and not link.is_external and self._package.has(link.target):
                self._add_file(link.target, census)
        pictures = sum(1 for link in self._links.values() if link.kind == "image")
        embedded = sum(1 for link in self._links.values() if link.kind in ("oleObject", "package"))
        comments = sum(1 for root in self._roots("comments") for _ in root.iter("comment"))
        census.left_out("pictures", pictures, NOT_RECOGNIZED)
        census.left_out("comments", comments, COMMENTS_LEFT_OUT)
        census.left_out("deleted passages", self._left_out["deleted"], DELETED_LEFT_OUT)
        census.left_out("hidden passages", self._left_out["hidden"], HIDDEN_LEFT_OUT)
        census.left_out("embedded files", embedded, UPLOAD_APART)
        return census

    def _roots(self, *kinds: str) -> Iterator[Element]:
        for link in self._links.values():
            if link.kind in kinds and not link.is_external and self._package.has(link.target):
                yield self._package.root(link.target)

    def _shown_around(self, root: Element) -> list[str]:
        """Return the headers and footers that some page shows."""
        has_even = any(settings.find("evenAndOddHeaders") is not None for settings in self._roots("settings"))
        found: dict[str, None] = {}
        for section in root.iter("sectPr"):
            shown = {"default": True, "first": _is_on(section, "titlePg"), "even": has_even}
            for each in section:
                link = self._links.get(each.get("id", ""))
                is_shown = shown.get(each.get("type", "default"), True)
                if each.tag in ("headerReference", "footerReference") and link and is_shown:
                    found[link.target] = None
        return [name for name in found if self._package.has(name)]

    def _charts(self, links: Mapping[str, Relationship], reading: _Reading) -> Iterator[str]:
        for own in dict.fromkeys(reading.drawn):
            if (link := links.get(own)) and not link.is_external:
                yield from drawings.texts(self._package, link.target)

    def _notes(self, reading: _Reading) -> Iterator[str]:
        """Yield the paragraphs of the notes that the text, or a note, refers to."""
        found = {
            (kind, note.get("id", "")): note
            for kind in ("footnote", "endnote")
            for root in self._roots(f"{kind}s")
            for note in root.iter(kind)
            if note.get("type", "normal") == "normal"  # not the line above the notes
        }
        for own in reading.notes:  # which grows
            if (note := found.pop(own, None)) is not None:
                yield from self._paragraphs(note, reading)

    def _add_file(self, name: str, census: Census) -> None:
        """Add a file of another format within the document."""
        part = Part(f"file {name.rpartition('/')[2]}")
        census.parts.append(part)
        ending = name.lower()
        data = b"".join(self._package.blocks(name))
        if ending.endswith(_WEB_PAGES):
            within = pages.count_html(data)
        elif ending.endswith(_WEB_ARCHIVES):
            within = Census([], "parts")
            for page, charset in archives.pages_in(data):
                counted = pages.count_html(page, charset)
                within.parts += counted.parts
                for aside in counted.asides:
                    within.left_out(aside.what, aside.number, aside.why)
        elif ending.endswith(".docx") and self._level < _MOST_LEVELS:
            within = _Word(OfficePackage(data, "docx"), self._level + 1).census()
        elif ending.endswith(".txt"):
            within = pages.count_text(data, "txt")
        elif ending.endswith(".rtf"):  # without a count of its own
            within = Census([Part("main text", rtf.read(data).splitlines())], "parts")
        else:
            part.unread = "embedded files of this type are not read; upload it as a separate document"
            return
        part.texts += [text for each in within.parts for text in each.texts]
        census.parts += [each for each in within.parts if each.unread]
        for aside in within.asides:
            census.left_out(aside.what, aside.number, aside.why)

    def _paragraphs(self, root: Element, reading: _Reading) -> Iterator[str]:
        waiting = [root]
        while waiting:
            element = waiting.pop()
            if element.tag == "p":
                nested: list[Element] = []
                if text := "".join(self._texts(element, reading, nested)).strip():
                    yield text
                waiting.extend(reversed(nested))
            elif element.tag == "altChunk":
                reading.files.append(element.get("id", ""))
            elif not self._is_left_out(element, reading):
                waiting.extend(reversed(_shown_children(element)))

    def _texts(self, parent: Element, reading: _Reading, nested: list[Element], depth: int = 0) -> Iterator[str]:
        """Yield the texts of a paragraph; paragraphs within it, such as those of text boxes, are collected."""
        if depth > _TOO_DEEP:
            raise RecursionError
        for each in _shown_children(parent):
            name = each.tag
            if name in ("p", "txbxContent"):
                nested.append(each)
            elif name in ("fldChar", "instrText"):
                _follow(each, reading)
            elif own := drawings.reference(each):
                reading.drawn.append(own)
            elif name in ("footnoteReference", "endnoteReference"):
                reading.notes.append((name.removesuffix("Reference"), each.get("id", "")))
            elif not self._is_left_out(each, reading):
                yield _CHARACTERS.get(name, "") if name != "t" else each.text or ""
                yield from self._texts(each, reading, nested, depth + 1)
                yield " " if name in _APART else ""

    def _is_left_out(self, each: Element, reading: _Reading) -> bool:
        """Whether an element and all in it is not read; what it hides is counted."""
        if each.tag in _DELETED or (each.tag == "tr" and each.find("trPr/del") is not None):
            self._left_out["deleted"] += _has_text(each)
            return True
        is_hidden_row = each.tag == "tr" and _is_on(each.find("trPr"), "hidden")
        if is_hidden_row or drawings.is_hidden(each) or (each.tag == "r" and self._is_hidden(each)):
            self._left_out["hidden"] += _has_text(each)
            return True
        if each.tag == "tc":  # the rest of a cell that was merged with it
            merged = each.find("tcPr/vMerge")
            return merged is not None and merged.get("val", "continue") == "continue"
        if each.tag == "fldSimple":
            return reading.in_header and bool(_NUMBER_OF_PAGE.match(each.get("instr", "")))
        # The code of a field, or the number of a page.
        return each.tag in ("t", *_CHARACTERS) and any(code is not None for code in reading.fields)

    def _is_hidden(self, run: Element) -> bool:
        properties = run.find("rPr")
        if properties is None:
            return False
        if (own := properties.find("vanish")) is not None:
            return own.get("val", "1") not in _OFF
        style = properties.find("rStyle")
        for _ in range(_MOST_STYLES):
            style = self._styles.get(style.get("val")) if style is not None else None
            if style is None:
                return False
            if style.find("rPr/vanish") is not None:
                return _is_on(style.find("rPr"), "vanish")
            style = style.find("basedOn")
        return False


def _follow(each: Element, reading: _Reading) -> None:
    """Note the beginning of a field, its code, and where its result begins and ends."""
    kind, fields = each.get("fldCharType"), reading.fields
    if kind == "begin":
        fields.append("")
    elif fields and kind == "end":
        fields.pop()
    elif fields and fields[-1] is not None:
        if kind != "separate":
            fields[-1] += each.text or ""
        elif not (reading.in_header and _NUMBER_OF_PAGE.match(fields[-1])):
            fields[-1] = None


def _shown_children(parent: Element) -> list[Element]:
    children = [each for each in drawings.shown_children(parent) if each.tag not in _PROPERTIES]
    if parent.tag == "ruby":  # people read the reading after what it belongs to
        children.sort(key=lambda each: each.tag == "rt")
    return children


def _has_text(element: Element) -> bool:
    return any(each.tag in ("t", "delText") and each.text for each in element.iter())


def _is_on(properties: Element | None, name: str) -> bool:
    found = properties.find(name) if properties is not None else None
    return found is not None and found.get("val", "1") not in _OFF
