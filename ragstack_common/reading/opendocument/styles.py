"""What the styles of an OpenDocument file say of its texts and lists.

Source: OpenDocument 1.3 part 3, sections 16 (styles), 19.880 and 20.426 (hidden and raised text).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final
from xml.etree.ElementTree import Element

_DEEPEST_STYLE: Final = 20
_POSITION: Final = re.compile(r"\s*(super|sub|(-?)[0-9.]+%)")
_ZERO: Final = re.compile(r"-?0+(\.0*)?%")


class Styles:
    """Styles by family and name, and lists by name.

    Args:
        sources: Elements with styles; of the same name, the last one counts.
    """

    def __init__(self, sources: Iterable[Element | None]) -> None:
        self._styles: dict[tuple[str, str], Element] = {}
        self.lists: dict[str, Mapping[int, Element]] = {}
        """Levels of lists, from 1, by the name of the list's style."""

        self.outline: Mapping[int, Element] = {}
        """Levels of headings."""

        self.others: dict[str, Element] = {}
        """Styles of numbers and dates by name."""

        self.language = ""
        """The default of the file's texts, such as ``de``."""

        for source in sources:
            for each in source if source is not None else ():
                self._add(each)

    def _add(self, each: Element) -> None:
        name = each.get("style.name", "")
        if each.tag == "style.style":
            self._styles[each.get("style.family", ""), name] = each
        elif each.tag == "text.list-style":
            self.lists[name] = _levels(each)
        elif each.tag == "text.outline-style":
            self.outline = _levels(each)
        elif each.tag == "style.default-style":
            properties = each.find("style.text-properties")
            self.language = (properties.get("fo.language", "") if properties is not None else "") or self.language
        elif each.tag.startswith("number."):
            self.others[name] = each

    def chain(self, family: str, name: str | None) -> Iterator[Element]:
        """Yield a style and those that it takes the rest from."""
        for _ in range(_DEEPEST_STYLE):
            style = self._styles.get((family, name or ""))
            if style is None:
                return
            yield style
            name = style.get("style.parent-style-name")

    def attribute(self, family: str, name: str | None, attribute: str) -> str | None:
        """Return what a style says itself or through those it is based on; None if none says it."""
        return next((found for each in self.chain(family, name) if (found := each.get(attribute)) is not None), None)

    def property(self, family: str, name: str | None, kind: str, attribute: str) -> str | None:
        """Return a property of a style, such as the *attribute* ``text.display`` of the *kind* ``text``."""
        for each in self.chain(family, name):
            properties = each.find(f"style.{kind}-properties")
            if properties is not None and (found := properties.get(attribute)) is not None:
                return found
        return None

    def look(self, family: str, name: str | None) -> tuple[bool | None, int | None]:
        """Return whether a style hides its characters, and where it places them; None for what it does not say.

        Places are 0 on the line, 1 above it and 2 below it.
        """
        display = self.property(family, name, "text", "text.display")
        position = self.property(family, name, "text", "style.text-position")
        return None if display is None else display == "none", None if position is None else _place(position)

    def based_on(self, name: str | None, other: str) -> bool:
        """Whether a style of paragraphs is another one, or based on it."""
        return any(each.get("style.name") == other for each in self.chain("paragraph", name))


def _place(position: str) -> int:
    found = _POSITION.match(position)
    if found is None or _ZERO.fullmatch(found[1]):
        return 0
    return 2 if found[1] == "sub" or found[2] else 1


def _levels(style: Element) -> Mapping[int, Element]:
    return {int(level): each for each in style if (level := each.get("text.level", "")) in "123456789" and level}
