"""What shapes, charts and diagrams have: their paragraphs and names, as their XML lists them."""

from collections.abc import Iterator
from typing import Final
from xml.etree.ElementTree import Element

from ragstack_common.reading.office_package import OfficePackage

_TEXTS: Final = frozenset({"strCache", "strLit", "multiLvlStrCache"})
_POINT_KINDS: Final = ("node", "asst")
_ON: Final = ("1", "true")


def shown_children(parent: Element) -> list[Element]:
    """Return the children of an element; of alternatives, those of the first that has some."""
    children: list[Element] = []
    for each in parent:
        if each.tag == "AlternateContent":
            choices = [choice for choice in each if choice.tag in ("Choice", "Fallback") and len(choice)]
            children += [*choices[0]] if choices else [*each]
        else:
            children.append(each)
    return children


def is_hidden(shape: Element) -> bool:
    """Whether a shape is hidden. Buttons and boxes to check are drawn although their copies are hidden."""
    named = [each if each.tag == "docPr" else each.find("cNvPr") for each in shape if each.tag[:2] in ("do", "nv")]
    return any(each is not None and each.get("hidden") in _ON for each in named) and not any(shape.iter("compatExt"))


def reference(element: Element) -> str | None:
    """Return the link of a chart or diagram that is shown at a place; None of other elements."""
    return {"chart": element.get("id"), "relIds": element.get("dm")}.get(element.tag)


def texts(package: OfficePackage, name: str) -> Iterator[str]:
    """Yield the texts of a chart or diagram, and of the shapes on it."""
    if not package.has(name):
        return
    yield from shown(package.root(name), [])
    for link in package.links(name).values():
        if link.kind == "chartUserShapes" and package.has(link.target):
            yield from shown(package.root(link.target), [])


def _paragraph(element: Element) -> str:
    """Return the text of a paragraph; a field that repeats a value has its name for a text."""
    runs = (each for each in element if each.tag != "fld" or each.get("type", "")[:1].islower())
    return "".join(text.text or "" for run in runs for text in run.iter("t")).strip()


def shown(root: Element, drawn: list[str]) -> Iterator[str]:
    """Yield the texts of shapes or a chart, and add the links of other charts and diagrams that are shown there."""
    waiting = [root]
    while waiting:
        each = waiting.pop()
        if each.tag == "p":
            if text := _paragraph(each):
                yield text
        elif own := reference(each):
            drawn.append(own)
        elif each.tag in _TEXTS:
            yield from (value.text for value in each.iter("v") if value.text)
        elif each.tag == "strDim":
            yield from (point.text for point in each.iter("pt") if point.text and point.text.strip())
        elif each.tag == "txData":
            yield from (value.text for value in each.iter("v") if value.text and each.find("rich") is None)
        elif not _is_gone(each):
            waiting.extend(reversed(shown_children(each)))


def _is_gone(element: Element) -> bool:
    """Whether a part of a chart is not drawn: series that are filtered out, an axis, what only lays a diagram out."""
    if element.tag == "pt":
        return element.get("type", "node") not in _POINT_KINDS
    removed = element.find("delete") if element.tag.endswith(("Ax", "dLbl")) else None
    is_removed = removed is not None and removed.get("val", "1") in _ON
    return element.tag == "extLst" or element.get("hidden") in _ON or is_removed or is_hidden(element)
