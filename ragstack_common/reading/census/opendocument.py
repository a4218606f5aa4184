"""What OpenDocument texts and presentations have: every paragraph, as their XML lists them, without their structure."""

from collections.abc import Iterable, Iterator
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
from ragstack_common.reading.census.slides import PICTURE
from ragstack_common.reading.opendocument.package import CONTENT, STYLES, OpenDocumentPackage

_PARAGRAPHS: Final = ("text.p", "text.h")
_FAMILY: Final = {"text.p": "paragraph", "text.h": "paragraph", "text.span": "text"}
_NUMBERS: Final = ("text.page-number", "text.page-count")
_NO_TEXT: Final = frozenset({
    "office.annotation-end", "office.event-listeners", "office.forms", "svg.desc", "svg.title", "text.note-citation",
    "text.number", "text.script",
})  # fmt: skip
_APART: Final = frozenset({
    "text.line-break", "text.ruby-base", "text.ruby-text", "text.s", "text.tab", "math.mi", "math.mn", "math.mo",
    "math.mtext",
})  # fmt: skip
_TOO_DEEP: Final = 400
_MOST_STYLES: Final = 20
_LEFT_OUT: Final = {
    "pictures": NOT_RECOGNIZED,
    "comments": COMMENTS_LEFT_OUT,
    "deleted passages": DELETED_LEFT_OUT,
    "hidden passages": HIDDEN_LEFT_OUT,
    "embedded files": UPLOAD_APART,
}


def count_odt(data: bytes) -> Census:
    """List the paragraphs of a text by part; raises UnreadableDocument."""
    package = OpenDocumentPackage(data, "odt")
    content = Reading(package, package.root(CONTENT))
    body = content.root.find("office.body/office.text")
    main = Part("main text", [*content.texts([body] if body is not None else [])])
    notes, drawn = Part("notes"), Part("charts and diagrams", content.drawn)
    while content.notes:  # which have notes only in damaged files
        notes.texts += content.texts([content.notes.pop(0)])
    parts = [main, notes, drawn]
    census = Census(parts, "parts")
    if package.has(STYLES):
        around = Reading(package, package.root(STYLES), has_page_numbers=False)
        shown = (
            each for page in _pages(content, body, around) for each in page if each.get("style.display") != "false"
        )
        parts.insert(1, Part("headers and footers", [*around.texts(shown)]))
        drawn.texts += around.drawn
        around.report(census)
    census.parts = [part for part in parts if part.texts]
    content.report(census)
    return census


def count_odp(data: bytes) -> Census:
    """List the paragraphs of a presentation by slide; raises UnreadableDocument."""
    package = OpenDocumentPackage(data, "odp")
    content = Reading(package, package.root(CONTENT), has_page_numbers=False)
    masters = Reading(package, package.root(STYLES), has_page_numbers=False) if package.has(STYLES) else None
    patterns = {each.get("style.name"): each for each in masters.root.iter("style.master-page")} if masters else {}
    declared = {
        (each.tag.removesuffix("-decl").rpartition(".")[2], each.get("presentation.name")): "".join(each.itertext())
        for each in content.root.iterfind("office.body/office.presentation/*")
        if each.tag.endswith("-decl") and each.get("presentation.source") != "current-date"
    }
    census = Census([], "slides")
    hidden = 0
    for number, page in enumerate(content.root.iterfind("office.body/office.presentation/draw.page"), start=1):
        look = content.properties("drawing-page", page.get("draw.style-name"))
        if look.get("presentation.visibility") == "hidden":
            hidden += 1
            continue
        part, before = Part(f"slide {number}"), content.left_out["pictures"]
        part.texts += content.texts(each for each in page if each.get("presentation.class") != "page-number")
        part.texts += content.drawn
        content.drawn.clear()
        for kind in ("footer", "header", "date-time"):
            is_shown = look.get(f"presentation.display-{kind}") != "false"
            text = declared.get((kind, page.get(f"presentation.use-{kind}-name")), "")
            part.texts += [text.strip()] if is_shown and text.strip() else []
        pattern = patterns.pop(page.get("draw.master-page-name"), None)
        if masters and pattern is not None and look.get("presentation.background-objects-visible") != "false":
            part.texts += masters.texts(each for each in pattern if each.get("presentation.class") is None)
        if not part.texts and content.left_out["pictures"] > before:
            part.unread = PICTURE
        census.parts.append(part)
    census.left_out("hidden slides", hidden, HIDDEN_LEFT_OUT)
    content.report(census)
    return census


def _pages(content: "Reading", body: Element | None, around: "Reading") -> Iterator[Element]:
    """Yield the kinds of pages that a text has."""
    masters = {each.get("style.name", ""): each for each in around.root.iter("style.master-page")}
    begun: list[str | None] = []
    for each in body.iter() if body is not None else ():
        if each.tag in _PARAGRAPHS:
            begun.append(content.attribute("paragraph", each.get("text.style-name"), "style.master-page-name"))
        elif each.tag == "table.table":
            begun.append(content.attribute("table", each.get("table.style-name"), "style.master-page-name"))
    names = [name for name in begun if name]
    if not begun[:1] or not begun[0]:
        names += [*masters][:1]
    while names:
        page = masters.pop(names.pop(), None)
        if page is not None:
            names.append(page.get("style.next-style-name", ""))
            yield page


@dataclass
class Reading:
    """One part of a file while it is read.

    Attributes:
        package: The file.
        root: The root element of the part.
        has_page_numbers: Whether fields with the number of a page count as text.
        notes: The notes that were referred to.
        drawn: Texts of charts and formulas.
        left_out: What was left out.
    """

    package: OpenDocumentPackage
    root: Element
    has_page_numbers: bool = True
    notes: list[Element] = field(default_factory=list)
    drawn: list[str] = field(default_factory=list)
    left_out: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_LEFT_OUT, 0))

    def __post_init__(self) -> None:
        common = self.package.root(STYLES).find("office.styles") if self.package.has(STYLES) else None
        own = self.root.find("office.automatic-styles")
        self._styles = {
            (each.get("style.family"), each.get("style.name")): each
            for source in (common, own)
            for each in (source.iterfind("style.style") if source is not None else ())
        }

    def report(self, census: Census) -> None:
        """Add what was left out to a census."""
        for what, number in self.left_out.items():
            census.left_out(what, number, _LEFT_OUT[what])

    def attribute(self, family: str, name: str | None, attribute: str) -> str | None:
        """Return what a style or those that it is based on says."""
        for _ in range(_MOST_STYLES):
            style = self._styles.get((family, name))
            if style is None or style.get(attribute) is not None:
                return None if style is None else style.get(attribute)
            name = style.get("style.parent-style-name")
        return None

    def properties(self, family: str, name: str | None) -> dict[str, str]:
        """Return all properties of a style, with those of the styles that it is based on."""
        found: dict[str, str] = {}
        for _ in range(_MOST_STYLES):
            style = self._styles.get((family, name))
            if style is None:
                break
            found = {key: value for each in style for key, value in each.attrib.items()} | found
            name = style.get("style.parent-style-name")
        return found

    def texts(self, roots: Iterable[Element]) -> Iterator[str]:
        """Yield the paragraphs of elements that are shown."""
        waiting = [*roots][::-1]
        while waiting:
            each = waiting.pop()
            if each.tag in _PARAGRAPHS:
                nested: list[Element] = []
                text = "" if self._is_left_out(each) else "".join(self._runs(each, nested)).strip()
                if text:
                    yield text
                waiting += reversed(nested)
            elif not self._is_left_out(each):
                self._note_drawing(each)
                waiting += reversed(each)

    def _runs(
        self, parent: Element, nested: list[Element], *, hidden: bool | None = None, depth: int = 0
    ) -> Iterator[str]:
        if depth > _TOO_DEEP:
            raise RecursionError
        if parent.tag in _FAMILY:
            display = self.properties(_FAMILY[parent.tag], parent.get("text.style-name")).get("text.display")
            hidden = hidden if display is None else display == "none"
        self.left_out["hidden passages"] += bool(hidden and (parent.text or "").strip())
        yield "" if hidden else " ".join((parent.text or "").split("\n"))
        for each in parent:
            if each.tag.startswith(("draw.", "dr3d.")):
                root = self._object(each) if each.get("text.anchor-type") == "as-char" else None
                is_formula = root is not None and root.tag == "math.math"
                yield f" {' '.join(_tokens(root))} " if root is not None and is_formula and not hidden else ""
                nested += [] if hidden or is_formula else [each]
            elif each.tag == "text.note":
                self.notes += [] if hidden else each.findall("text.note-body")
                yield " "
            elif not self._is_left_out(each):
                yield " " if each.tag in _APART else ""
                yield from self._runs(each, nested, hidden=hidden, depth=depth + 1)
                yield " " if each.tag in _APART else ""
            self.left_out["hidden passages"] += bool(hidden and (each.tail or "").strip())
            yield "" if hidden else " ".join((each.tail or "").split("\n"))

    def _is_left_out(self, each: Element) -> bool:
        """Whether an element and all in it is not read; what it hides is counted."""
        if each.tag == "office.annotation":
            self.left_out["comments"] += 1
            return True
        if each.tag == "text.tracked-changes":
            self.left_out["deleted passages"] += sum(any(map(str.strip, gone.itertext())) for gone in _deleted(each))
            return True
        paragraph = next(each.iterfind("text.hidden-paragraph"), each)
        if (
            "true" in (each.get("text.is-hidden"), paragraph.get("text.is-hidden"))
            or each.get("text.display") == "none"
        ):
            self.left_out["hidden passages"] += any(map(str.strip, each.itertext()))
            return True
        if each.tag == "presentation.notes":
            for shape in [*each]:
                if shape.get("presentation.class") not in (None, "notes"):
                    each.remove(shape)
        is_source = each.tag.startswith("text.") and each.tag.endswith(("-source", "-source-style"))
        is_number = each.tag in _NUMBERS and not self.has_page_numbers
        is_placeholder = each.get("presentation.placeholder") == "true"
        return each.tag in _NO_TEXT or is_source or is_number or is_placeholder

    def _object(self, frame: Element) -> Element | None:
        """Return the root of the chart or formula in a frame."""
        held = frame.find("draw.object")
        part = "" if held is None else f"{held.get('xlink.href', '').removeprefix('./').rstrip('/')}/{CONTENT}"
        if held is not None and len(held) and held[0].tag in ("math.math", "office.document"):
            return held[0]
        return self.package.root(part) if self.package.has(part) else None

    def _note_drawing(self, each: Element) -> None:
        """Count a picture, or read a chart or formula."""
        if each.tag != "draw.frame":
            return
        root = self._object(each)
        if root is None:
            embedded = each.find("draw.object-ole") is not None or each.find("draw.object") is not None
            self.left_out["embedded files"] += embedded
            self.left_out["pictures"] += not embedded and each.find("draw.image") is not None
        elif root.tag == "math.math":
            self.drawn.append(" ".join(_tokens(root)))
        else:
            charts = [*root.iter("chart.chart")]
            self.left_out["embedded files"] += not charts
            for paragraph in (found for chart in charts for found in chart.iter("text.p")):
                text = "".join(paragraph.itertext()).strip()
                self.drawn += [text] if text and text != "NaN" else []


def _tokens(formula: Element) -> Iterator[str]:
    waiting = [formula]
    while waiting:
        each = waiting.pop()
        if each.tag in _APART and each.text:
            yield each.text
        # People write the degree of a root before it.
        waiting += each if each.tag == "math.mroot" else reversed(each)


def _deleted(changes: Element) -> list[Element]:
    return [
        paragraph
        for deletion in changes.iter("text.deletion")
        for paragraph in deletion.iter()
        if paragraph.tag in _PARAGRAPHS
    ]
