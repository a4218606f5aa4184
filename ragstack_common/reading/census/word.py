"""What a Word document has: every paragraph of every part, as its XML lists them, without the document's structure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final
from xml.etree.ElementTree import Element

from ragstack_common.reading.census.parts import (
    COMMENTS_LEFT_OUT,
    DELETED_LEFT_OUT,
    HIDDEN_LEFT_OUT,
    NOT_RECOGNIZED,
    UPLOAD_APART,
    Census,
    Part,
)
from ragstack_common.reading.office_package import OfficePackage

_NUMBER_OF_PAGE: Final = re.compile(r"\s*(?:PAGE|NUMPAGES|SECTIONPAGES|PAGEREF)\b", re.IGNORECASE)
_DELETED: Final = frozenset({"del", "moveFrom"})
_OFF: Final = ("0", "false", "off")
_READ_WITHIN: Final = (".htm", ".html", ".xhtml", ".mht", ".mhtml", ".docx", ".txt")
_OTHER_PARTS: Final = {"notes": ("footnotes", "endnotes"), "charts and diagrams": ("chart", "diagramData")}
_CHARACTERS: Final = {"tab": " ", "ptab": " ", "br": " ", "cr": " ", "noBreakHyphen": "-"}
_APART: Final = frozenset({"rt", "rubyBase", "oMath", "num", "den", "e", "sub", "sup"})
"""What ends with a space here, because the readers write it in another way."""

_TOO_DEEP: Final = 400


def count(data: bytes) -> Census:
    """List the paragraphs of a document by part; raises UnreadableDocument."""
    return _Word(OfficePackage(data, "docx")).census()


@dataclass
class _Reading:
    """One part of the file while it is read: the open fields, and what was left out."""

    in_header: bool = False
    fields: list[str | None] = field(default_factory=list)
    """The code of each open field; None once its result begins and is shown."""
    left_out: dict[str, int] = field(default_factory=lambda: {"deleted": 0, "hidden": 0})


class _Word:
    def __init__(self, package: OfficePackage) -> None:
        self._package = package
        self._main = package.main_part()
        self._links = package.links(self._main)
        self._left_out = {"deleted": 0, "hidden": 0}
        self._hidden_styles = {
            style.get("styleId")
            for root in self._roots("styles")
            for style in root.iter("style")
            if _is_on(style.find("rPr"), "vanish")
        }

    def census(self) -> Census:
        root = self._package.root(self._main)
        parts = [Part("text", [*self._paragraphs(root)])]
        around = Part("headers and footers")
        for name in self._shown_around(root):
            around.texts += self._paragraphs(self._package.root(name), in_header=True)
        parts.append(around)
        for name, kinds in _OTHER_PARTS.items():
            parts.append(Part(name, [text for root in self._roots(*kinds) for text in self._paragraphs(root)]))
        census = Census([part for part in parts if part.texts], "parts")
        within = [
            self._links[each.get("id", "")].target.rpartition("/")[2]
            for each in root.iter("altChunk")
            if each.get("id", "") in self._links
        ]
        for name in within:
            if not name.lower().endswith(_READ_WITHIN):
                census.parts.append(Part(f"file {name}", unread="files of this type within a document are not read"))
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

    def _paragraphs(self, root: Element, *, in_header: bool = False) -> Iterator[str]:
        reading = _Reading(in_header, left_out=self._left_out)
        waiting = [root]
        while waiting:
            element = waiting.pop()
            if element.tag == "p":
                nested: list[Element] = []
                if text := "".join(self._texts(element, reading, nested)).strip():
                    yield text
                waiting.extend(reversed(nested))
            elif element.tag in _DELETED:
                reading.left_out["deleted"] += 1
            elif element.tag in ("footnote", "endnote") and element.get("type", "normal") != "normal":
                continue  # the line above the notes
            elif element.tag == "strCache":
                yield from (value.text for value in element.iter("v") if value.text)
            elif not _is_gone(element):
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
            elif not self._is_left_out(each, reading):
                yield _CHARACTERS.get(name, "") if name != "t" else each.text or ""
                yield from self._texts(each, reading, nested, depth + 1)
                yield " " if name in _APART else ""

    def _is_left_out(self, each: Element, reading: _Reading) -> bool:
        if each.tag in _DELETED:
            reading.left_out["deleted"] += 1
            return True
        if each.tag == "r" and self._is_hidden(each):
            reading.left_out["hidden"] += any(part.tag == "t" for part in each)
            return True
        if each.tag == "fldSimple":
            return reading.in_header and bool(_NUMBER_OF_PAGE.match(each.get("instr", "")))
        # The code of a field, or the number of a page.
        return each.tag in ("t", *_CHARACTERS) and any(code is not None for code in reading.fields)

    def _is_hidden(self, run: Element) -> bool:
        properties = run.find("rPr")
        if properties is None:
            return False
        style = properties.find("rStyle")
        own = properties.find("vanish")
        if own is not None:
            return own.get("val", "1") not in _OFF
        return style is not None and style.get("val") in self._hidden_styles


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
    """Return the children of an element; of alternatives, those of the first that has some."""
    children: list[Element] = []
    for each in parent:
        if each.tag == "AlternateContent":
            choices = [choice for choice in each if choice.tag in ("Choice", "Fallback") and len(choice)]
            children += [*choices[0]] if choices else [*each]
        elif each.tag not in ("pPr", "rPr", "sectPr", "tblPr", "tcPr"):
            children.append(each)
    return children


def _is_on(properties: Element | None, name: str) -> bool:
    found = properties.find(name) if properties is not None else None
    return found is not None and found.get("val", "1") not in _OFF


def _is_gone(element: Element) -> bool:
    """Whether a row was deleted, or a cell is the rest of another one that was merged with it."""
    if element.tag == "tr":
        properties = element.find("trPr")
        return properties is not None and (properties.find("del") is not None or _is_on(properties, "hidden"))
    merged = element.find("tcPr/vMerge") if element.tag == "tc" else None
    return merged is not None and merged.get("val", "continue") == "continue"
