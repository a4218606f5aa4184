"""What the styles of a Word document say of its paragraphs and characters."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from xml.etree.ElementTree import Element

from ragstack_common.reading.office_package import whole_number

_HEADING_NAME: Final = re.compile(r"heading ([1-9])$")
_DEEPEST_STYLE: Final = 20
BODY_TEXT: Final = 10
LIST_LEVELS: Final = 9


def val(element: Element | None) -> str | None:
    """Return what a property says; None without it."""
    return None if element is None else element.get("val")


def flag(properties: Element | None, name: str) -> bool | None:
    """Return whether a property is switched on; None without it."""
    found = properties.find(name) if properties is not None else None
    return None if found is None else found.get("val", "1") not in ("0", "false", "off")


def vertical_place(properties: Element | None) -> int | None:
    """Return where characters are: 0 on the line, 1 above it, 2 below it; None if the properties do not say it."""
    found = val(properties.find("vertAlign")) if properties is not None else None
    return None if found is None else {"superscript": 1, "subscript": 2}.get(found, 0)


def outline_level(text: str | None) -> int | None:
    """Return the level of a heading, from 1 to 9, or ``BODY_TEXT``; None if the property says nothing."""
    level = whole_number(text, -1) + 1
    return level if 1 <= level <= BODY_TEXT else None


def list_level(text: str | None, default: int = 0) -> int:
    """Return the level of an item in its list, from 0 to 8."""
    return max(0, min(whole_number(text, default), LIST_LEVELS - 1))


@dataclass(frozen=True)
class Style:
    """What a style says of its paragraphs or characters."""

    based_on: str | None
    level: int | None
    list: str | None
    list_level: int | None
    is_hidden: bool | None
    place: int | None


class Styles:
    """The styles of a document, each with what it takes from those that it is based on."""

    def __init__(self, root: Element | None) -> None:
        self.default: str | None = None
        self._styles: dict[str, Style] = {}
        self.lists: dict[str, str] = {}
        """The list of each numbering style."""

        for each in root.findall("style") if root is not None else ():
            own = each.get("styleId", "")
            if each.get("type") == "paragraph" and each.get("default") in ("1", "true"):
                self.default = own
            name = (val(each.find("name")) or "").lower()
            paragraph, run = each.find("pPr"), each.find("rPr")
            number = paragraph.find("numPr") if paragraph is not None else None
            if each.get("type") == "numbering" and number is not None:
                self.lists[own] = val(number.find("numId")) or ""
            heading = _HEADING_NAME.match(name)
            outline = val(paragraph.find("outlineLvl")) if paragraph is not None else None
            level = int(heading[1]) if heading else 1 if name == "title" else outline_level(outline)
            self._styles[own] = Style(
                val(each.find("basedOn")),
                level,
                val(number.find("numId")) if number is not None else None,
                list_level(val(number.find("ilvl"))) if number is not None else None,
                flag(run, "vanish"),
                vertical_place(run),
            )

    def __contains__(self, name: str | None) -> bool:
        return name in self._styles

    def chain(self, name: str | None) -> Iterator[tuple[str, Style]]:
        """Yield a style and those that it is based on."""
        for _ in range(_DEEPEST_STYLE):
            if name is None or name not in self._styles:
                return
            yield name, self._styles[name]
            name = self._styles[name].based_on
