"""The texts of shapes, diagrams and charts in Office Open XML files."""

from collections.abc import Container, Iterator, Mapping
from typing import Final
from xml.etree.ElementTree import Element

from ragstack_common.reading import charts
from ragstack_common.reading.markdown import Blocks
from ragstack_common.reading.office_package import OfficePackage, Relationship, whole_number

_ON: Final = ("1", "true")
_DRAWN: Final = frozenset({"txbxContent", "txBody", "chart", "relIds"})
_MAX_LEVEL: Final = 20


def alternative(parent: Element) -> Element:
    """Return the content that Office shows of several: the first that has some."""
    choices = [each for each in parent if each.tag in ("Choice", "Fallback") and len(each)]
    return choices[0] if choices else parent


def drawn(drawing: Element, names: Container[str] = _DRAWN) -> Iterator[Element]:
    """Yield what has text in a drawing: text boxes, and references to charts and diagrams. Hidden shapes have none."""
    waiting = [drawing]
    while waiting:
        each = waiting.pop()
        if each.tag == "AlternateContent":
            waiting.append(alternative(each))
        elif _is_hidden(each):
            continue
        elif each.tag in names:
            yield each
        else:
            waiting += reversed(each)


def _is_hidden(shape: Element) -> bool:
    for each in shape:
        properties = each if each.tag == "docPr" else each.find("cNvPr") if each.tag.startswith("nv") else None
        if properties is not None and properties.get("hidden") in _ON:
            # Excel hides the copies of buttons and boxes to check, which it draws itself.
            return next(properties.iter("compatExt"), None) is None
    return False


def write(each: Element, package: OfficePackage, links: Mapping[str, Relationship], blocks: Blocks) -> None:
    """Write the text of a shape, a diagram or a chart.

    Args:
        each: As :func:`drawn` yields it.
        package: The file.
        links: Of the part that contains it.
        blocks: Where it is written.
    """
    if each.tag == "txBody":
        blocks.paragraph("\n".join(charts.paragraphs(each)))
        return
    link = links.get(each.get("dm" if each.tag == "relIds" else "id", ""))
    if link is None or link.is_external or not package.has(link.target):
        return
    root = package.root(link.target)
    if each.tag == "relIds":
        _write_diagram(root, blocks)
        return
    charts.write(root, blocks)
    for shapes in package.links(link.target).values():
        if shapes.kind == "chartUserShapes" and package.has(shapes.target):
            for body in drawn(package.root(shapes.target)):
                if body.tag == "txBody":
                    write(body, package, {}, blocks)


def _write_diagram(root: Element, blocks: Blocks) -> None:
    """Write the texts of a diagram as a list, from the outermost inwards.

    Source: ECMA-376 part 1, section 21.4: points, and connections from each to those below it.
    """
    texts: dict[str, str] = {}
    first: list[str] = []
    for point in root.iter("pt"):
        own = point.get("modelId", "")
        if point.get("type") == "doc":
            first.append(own)
        elif point.get("type", "node") in ("node", "asst"):
            texts[own] = " ".join(charts.paragraphs(point))
    below: dict[str, list[tuple[int, str]]] = {}
    for each in root.iter("cxn"):
        if each.get("type", "parOf") == "parOf":
            place = whole_number(each.get("srcOrd"), 0)
            below.setdefault(each.get("srcId", ""), []).append((place, each.get("destId", "")))
    waiting = [(own, -1) for own in first]
    while waiting:
        own, level = waiting.pop()
        if text := texts.pop(own, ""):
            blocks.item("-", text, 2 * min(level, _MAX_LEVEL))
        waiting += ((other, level + 1) for _, other in sorted(below.pop(own, ()), reverse=True))
