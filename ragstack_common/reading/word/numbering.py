"""The numbers of a Word document's headings, lists and clauses, as Word counts them.

Source: ECMA-376 part 1, section 17.9. Lists that share a definition continue each other, unless one starts anew.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from xml.etree.ElementTree import Element

from ragstack_common.reading import lists
from ragstack_common.reading.office_package import whole_number
from ragstack_common.reading.word.styles import LIST_LEVELS, list_level

BULLET: Final = "-"
_MAX_LABEL: Final = 255
_PLACE: Final = re.compile(r"%([1-9])")


@dataclass(frozen=True)
class _Level:
    """How one level of a list is numbered."""

    style: str = "decimal"
    text: str = ""
    start: int = 1
    restarts_after: int | None = None
    """The level whose items restart this one; None for the level above, -1 for never."""

    is_legal: bool = False


@dataclass
class _Definition:
    """A list definition, with what its lists have counted so far."""

    levels: dict[int, _Level]
    counts: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class _List:
    """A list that paragraphs refer to."""

    definition: str
    levels: Mapping[int, _Level]
    starts: Mapping[int, int]


class Numbering:
    """The lists of a document.

    Args:
        root: The part ``numbering``; None without one.
        styles_of_lists: The list that each numbering style names.
    """

    def __init__(self, root: Element | None, styles_of_lists: Mapping[str, str]) -> None:
        self._definitions: dict[str, _Definition] = {}
        self._lists: dict[str, _List] = {}
        self._started: set[tuple[str, int]] = set()
        self.levels_of_styles: dict[str, tuple[str, int]] = {}
        if root is None:
            return
        linked: dict[str, str] = {}
        for each in root.findall("abstractNum"):
            own = each.get("abstractNumId", "")
            self._definitions[own] = _Definition(_levels(each))
            if (link := each.find("numStyleLink")) is not None:
                linked[own] = styles_of_lists.get(link.get("val", ""), "")
        definitions = {each.get("numId", ""): _value(each, "abstractNumId") or "" for each in root.findall("num")}
        for each in root.findall("num"):
            own = each.get("numId", "")
            definition = definitions[own]
            definition = definitions.get(linked.get(definition, ""), definition)
            overrides = each.findall("lvlOverride")
            self._lists[own] = _List(
                definition,
                {number: level for override in overrides for number, level in _levels(override).items()},
                {
                    list_level(override.get("ilvl")): whole_number(start, 1)
                    for override in overrides
                    if (start := _value(override, "startOverride")) is not None
                },
            )
        sources = {each.get("abstractNumId", ""): each for each in root.findall("abstractNum")}
        for number, found in self._lists.items():
            source = sources.get(found.definition)
            for level in source.findall("lvl") if source is not None else ():
                if style := _value(level, "pStyle"):
                    self.levels_of_styles.setdefault(style, (number, list_level(level.get("ilvl"))))

    def next(self, number: str, level: int) -> str:
        """Return the label of the next paragraph of a list: ``2.1``, ``(a)``, or ``-`` for a bullet.

        Args:
            number: The list; an unknown one has no labels.
            level: From 0.
        """
        found = self._lists.get(number)
        definition = self._definitions.get(found.definition) if found else None
        if found is None or definition is None:
            return ""
        level = min(level, LIST_LEVELS - 1)
        levels = {**definition.levels, **found.levels}
        counts = definition.counts
        own = levels.get(level, _Level())
        if level in found.starts and (number, level) not in self._started:
            counts[level] = found.starts[level]
        else:
            counts[level] = counts[level] + 1 if level in counts else own.start
        self._started.add((number, level))
        for deeper in range(level + 1, LIST_LEVELS):
            after = levels.get(deeper, _Level()).restarts_after
            if after is None or (after >= 0 and level < after):
                counts.pop(deeper, None)
        if own.style == "bullet":
            return BULLET
        if own.style == "none" and not _PLACE.search(own.text):
            return own.text.strip()

        def count(match: re.Match[str]) -> str:
            place = int(match[1]) - 1
            each = levels.get(place, _Level())
            return lists.label(
                counts.get(place, each.start), "decimal" if own.is_legal else each.style, letters_repeat=True
            )

        return _PLACE.sub(count, own.text).strip()


def _levels(parent: Element) -> dict[int, _Level]:
    found = {}
    for each in parent.findall("lvl"):
        restart = _value(each, "lvlRestart")
        legal = each.find("isLgl")
        found[list_level(each.get("ilvl"))] = _Level(
            _value(each, "numFmt") or "decimal",
            (_value(each, "lvlText") or "")[:_MAX_LABEL],
            whole_number(_value(each, "start"), 1),
            None if restart is None else whole_number(restart, 0) or -1,
            legal is not None and legal.get("val", "1") not in ("0", "false"),
        )
    return found


def _value(parent: Element, name: str) -> str | None:
    found = parent.find(name)
    return None if found is None else found.get("val")
