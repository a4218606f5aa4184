"""What the styles of a web page hide, and what they make a block.

Only what decides visibility is read: ``display`` and ``visibility``, in style elements and attributes. Rules for paper
or for narrow windows do not apply. The more specific rule wins, then the later one, as in a browser.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import tinycss2
from justhtml import JustHTML
from justhtml.dom import Element, Node, Text
from justhtml.selector.core import SelectorError, SelectorMatcher, parse_selector

_READ: Final = ("display", "visibility")
_FOR_SCREENS: Final = re.compile(r"\s*(?:only\s+)?(?:screen|all)?\s*", re.IGNORECASE)
_STATE: Final = re.compile(r"::|:(?:hover|focus|active|visited|target|before|after|first-l)", re.IGNORECASE)
_LAST_PART: Final = re.compile(r"[\s>+~]+")
_NAMED: Final = re.compile(r"([#.])((?:[\w-]|[^\x00-\x7f])+)")
_MAX_MATCHES: Final = 2_000_000
"""Comparisons of an element with a selector, about ten seconds; later rules do not apply."""

_ENDLESS: Final = (RecursionError, ValueError)
"""What the parser raises for thousands of brackets within each other, or of digits: a browser ignores such styles."""

_IMPORTANT: Final = 1 << 20
_INLINE_STYLE: Final = 1 << 16


@dataclass
class _Declared:
    """The winning value of each property of an element."""

    values: dict[str, tuple[tuple[int, int], str]] = field(default_factory=dict)

    def add(self, name: str, value: str, weight: tuple[int, int]) -> None:
        if name not in self.values or self.values[name][0] <= weight:
            self.values[name] = (weight, value)

    def get(self, name: str) -> str | None:
        found = self.values.get(name)
        return found[1] if found else None


def own_text(node: Node) -> str:
    """Return the text that is directly in an element."""
    return "".join(child.data or "" for child in node.children or () if isinstance(child, Text))


class Styles:
    """The styles of a page."""

    def __init__(self, document: JustHTML) -> None:
        self._declared: dict[int, _Declared] = defaultdict(_Declared)
        self._left = _MAX_MATCHES
        elements = [each for each in document.query("style") if isinstance(each, Element)]
        sheets = [own_text(each) for each in elements if _FOR_SCREENS.fullmatch(each.attrs.get("media") or "")]
        rules = [*_rules(sheets)]
        if rules:
            self._apply(rules, document)

    def hides(self, node: Element) -> bool:
        """Whether an element and all in it is not shown."""
        attributes = node.attrs
        if "hidden" in attributes or (node.name == "dialog" and "open" not in attributes) or "popover" in attributes:
            return True
        if node.name == "input" and (attributes.get("type") or "").lower() == "hidden":
            return True
        declared = self._of(node)
        return declared.get("display") == "none" or declared.get("visibility") in ("hidden", "collapse")

    def is_block(self, node: Element, by_default: bool) -> bool:
        """Whether an element begins a line of its own."""
        display = self._of(node).get("display")
        if display is None:
            parent = node.parent
            if not by_default and isinstance(parent, Element):
                # What a flexible box arranges are blocks.
                return (self._of(parent).get("display") or "") in ("flex", "grid", "inline-flex", "inline-grid")
            return by_default
        return not display.startswith(("inline", "contents", "ruby"))

    def _of(self, node: Element) -> _Declared:
        style = node.attrs.get("style")
        if not style:
            return self._declared.get(id(node)) or _NOTHING
        declared = _Declared(dict(self._declared[id(node)].values)) if id(node) in self._declared else _Declared()
        for name, value, important in _declarations(style):
            declared.add(name, value, (_INLINE_STYLE + important, 0))
        return declared

    def _apply(self, rules: "list[_Rule]", document: JustHTML) -> None:
        by_name: dict[str, list[Element]] = defaultdict(list)
        waiting: list[Any] = [document.root]
        while waiting:
            node = waiting.pop()
            if isinstance(node, Element):
                by_name[node.name].append(node)
                by_name["*"].append(node)
                if identifier := node.attrs.get("id"):
                    by_name[f"#{identifier}"].append(node)
                for each in (node.attrs.get("class") or "").split():
                    by_name[f".{each}"].append(node)
            waiting.extend(node.children or ())
        matcher = SelectorMatcher()
        for order, rule in enumerate(rules):
            for node in by_name.get(rule.key, ()):
                self._left -= 1
                if self._left < 0:
                    return
                if _matches(matcher, node, rule.selector):
                    for name, value, important in rule.declarations:
                        self._declared[id(node)].add(name, value, (rule.specificity + important, order))


_NOTHING: Final = _Declared()


def _matches(matcher: SelectorMatcher, node: Element, selector: Any) -> bool:
    try:
        return matcher.matches(node, selector)
    except SelectorError:  # more comparisons than the library makes
        return False


@dataclass(frozen=True)
class _Rule:
    """A selector and what it declares; ``key`` is a name that each matching element has."""

    selector: Any
    key: str
    specificity: int
    declarations: tuple[tuple[str, str, int], ...]


def _rules(sheets: Iterable[str]) -> Iterator[_Rule]:
    for sheet in sheets:
        try:
            parsed = tinycss2.parse_stylesheet(sheet, skip_comments=True, skip_whitespace=True)
        except _ENDLESS:
            continue
        waiting = [*reversed(parsed)]
        while waiting:
            rule = waiting.pop()
            if rule.type == "at-rule" and rule.lower_at_keyword == "media" and rule.content is not None:
                if _FOR_SCREENS.fullmatch(tinycss2.serialize(rule.prelude)):
                    waiting += reversed(
                        tinycss2.parse_rule_list(rule.content, skip_comments=True, skip_whitespace=True)
                    )
            elif rule.type == "qualified-rule":
                declarations = tuple(_declarations(rule.content))
                if declarations:
                    for selector in tinycss2.serialize(rule.prelude).split(","):
                        yield from _rule(selector.strip(), declarations)


def _rule(selector: str, declarations: tuple[tuple[str, str, int], ...]) -> Iterator[_Rule]:
    if not selector or _STATE.search(selector):
        return
    try:
        parsed = parse_selector(selector)
    except SelectorError:
        return
    last = _LAST_PART.split(selector)[-1]
    named = _NAMED.search(re.sub(r"\[[^\]]*\]|\([^)]*\)", "", last))
    tag = re.match(r"[A-Za-z][\w-]*", last)
    key = f"{named[1]}{named[2]}" if named else tag[0].lower() if tag else "*"
    ids = len(re.findall(r"#[\w-]", selector))
    classes = len(re.findall(r"\.[\w-]|\[|:(?!:)", selector))
    tags = len(re.findall(r"(?:^|[\s>+~])[A-Za-z]", selector))
    yield _Rule(parsed, key, min(ids, 15) * 4096 + min(classes, 63) * 64 + min(tags, 63), declarations)


def _declarations(content: Any) -> Iterator[tuple[str, str, int]]:
    """Yield the properties that are read, with their values and whether they are important."""
    try:
        declared = tinycss2.parse_declaration_list(content, skip_comments=True, skip_whitespace=True)
        for each in declared:
            if each.type == "declaration" and each.lower_name in _READ:
                value = tinycss2.serialize(each.value).strip().lower()
                yield each.lower_name, value, _IMPORTANT if each.important else 0
    except _ENDLESS:
        return
