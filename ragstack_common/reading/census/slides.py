"""What presentations have: every paragraph of every slide, as its XML lists them, with what layouts add to it."""

from collections.abc import Iterable, Iterator
from typing import Final
from xml.etree.ElementTree import Element

from ragstack_common.reading.census import drawings
from ragstack_common.reading.census.parts import (
    COMMENTS_LEFT_OUT,
    HIDDEN_LEFT_OUT,
    NOT_RECOGNIZED,
    UPLOAD_APART,
    Census,
    Part,
)
from ragstack_common.reading.office_package import OfficePackage

PICTURE: Final = "a picture without text; it needs text recognition (OCR) first"

_ON: Final = ("1", "true")
_NUMBERS: Final = ("sldNum", "sldImg")
_APART: Final = frozenset({"br", "num", "den", "deg", "e", "sub", "sup"})
_TOO_DEEP: Final = 400


def count(data: bytes) -> Census:
    """List the paragraphs of a presentation by slide; raises UnreadableDocument."""
    return _Presentation(OfficePackage(data, "pptx")).census()


class _Presentation:
    def __init__(self, package: OfficePackage) -> None:
        self._package = package
        self._left_out = {"hidden passages": 0, "pictures": 0, "comments": 0, "embedded files": 0}
        self._patterns_seen: set[str] = set()

    def census(self) -> Census:
        census = Census([], "slides")
        main = self._package.main_part()
        links = self._package.links(main)
        hidden = 0
        for number, own in enumerate(self._listed(main), start=1):
            if own not in links or not self._package.has(links[own].target):
                continue
            root = self._package.root(links[own].target)
            if root.get("show", "1") in _ON:
                part = Part(f"slide {number}")
                self._add_slide(links[own].target, root, part)
                census.parts.append(part)
            else:
                hidden += 1
        census.left_out("hidden slides", hidden, HIDDEN_LEFT_OUT)
        reasons = {"comments": COMMENTS_LEFT_OUT, "pictures": NOT_RECOGNIZED, "embedded files": UPLOAD_APART}
        for what, found in self._left_out.items():
            census.left_out(what, found, reasons.get(what, HIDDEN_LEFT_OUT))
        return census

    def _listed(self, main: str) -> list[str]:
        return [*dict.fromkeys(each.get("id", "") for each in self._package.root(main).iterfind("sldIdLst/sldId"))]

    def _add_slide(self, name: str, root: Element, part: Part) -> None:
        pictures = sum(1 for _ in root.iter("blipFill"))
        part.texts += self._texts(name, [root])
        for link in self._package.links(name).values():
            if link.is_external or not self._package.has(link.target):
                continue
            if link.kind == "notesSlide":
                part.texts += self._texts(link.target, [self._package.root(link.target)], without=("hdr", "ftr", "dt"))
            elif link.kind == "comments":
                self._left_out["comments"] += sum(1 for _ in self._package.root(link.target).iter("cm"))
            elif link.kind == "slideLayout" and root.get("showMasterSp", "1") in _ON:
                part.texts += self._of_pattern(link.target)
            self._left_out["embedded files"] += link.kind in ("oleObject", "package")
        self._left_out["pictures"] += pictures
        part.unread = PICTURE if pictures and not part.texts else ""

    def _of_pattern(self, name: str) -> Iterator[str]:
        """Yield what a layout and its master show besides their placeholders, once for all slides."""
        if name in self._patterns_seen:
            return
        self._patterns_seen.add(name)
        root = self._package.root(name)
        yield from self._texts(
            name, (each for each in root.iterfind("cSld/spTree/*") if next(each.iter("ph"), None) is None)
        )
        for link in self._package.links(name).values():
            is_shown = link.kind == "slideMaster" and root.get("showMasterSp", "1") in _ON
            if is_shown and self._package.has(link.target):
                yield from self._of_pattern(link.target)

    def _texts(self, name: str, roots: Iterable[Element], without: tuple[str, ...] = ()) -> Iterator[str]:
        """Yield the paragraphs of shapes of a part, and the texts of the charts and diagrams that they refer to."""
        links = self._package.links(name)
        waiting = [*roots][::-1]
        while waiting:
            each = waiting.pop()
            kind = each.find("nvSpPr/nvPr/ph")
            if kind is not None and kind.get("type") in (*_NUMBERS, *without):
                continue
            if drawings.is_hidden(each):
                self._left_out["hidden passages"] += any(text.text for text in each.iter("t"))
            elif each.tag == "tc" and "1" in (each.get("hMerge"), each.get("vMerge")):
                continue  # the rest of a cell that was merged with it
            elif each.tag == "p":
                if text := "".join(_paragraph(each)).strip():
                    yield text
            elif own := drawings.reference(each):
                if own in links and not links[own].is_external:
                    yield from drawings.texts(self._package, links[own].target)
            elif each.tag != "extLst":
                waiting.extend(reversed(drawings.shown_children(each)))


def _paragraph(parent: Element, depth: int = 0) -> Iterator[str]:
    if depth > _TOO_DEEP:
        raise RecursionError
    for each in drawings.shown_children(parent):
        if each.tag == "fld" and each.get("type", "").startswith(("slidenum", "datetime")):
            continue
        yield (each.text or "") if each.tag == "t" else " " if each.tag in _APART else ""
        yield from _paragraph(each, depth + 1)
        yield " " if each.tag in _APART else ""
