"""What the styles of a web page hide, and what they make a block.

Only what decides visibility is read, in style elements and attributes. Rules for paper or for narrow windows do not
apply. The more specific rule wins, then the later one, as in a browser.

Hidden is also what a browser paints where nobody sees it: far outside of the page, clipped to nothing, without a size
or transparent. Pages hide texts for screen readers in these ways, and texts for search engines. What a browser moves or
fades in without a click (``animation``) is shown, and a body that waits for its script is read.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final

import tinycss2
from justhtml import JustHTML
from justhtml.dom import Element, Node, Text
from justhtml.selector.core import SelectorError, SelectorMatcher, parse_selector

_READ: Final = frozenset({
    "animation", "animation-name", "bottom", "clip", "clip-path", "display", "font", "font-size", "height", "left",
    "opacity", "overflow", "padding", "padding-bottom", "padding-top", "position", "right", "text-indent", "top",
    "visibility", "width",
})  # fmt: skip
_LENGTH: Final = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(px|r?em|ex|ch|pt|pc|in|cm|mm|v[wh]|%)?")
_PIXELS: Final = {"em": 16, "rem": 16, "ex": 8, "ch": 8, "pt": 4 / 3, "pc": 16, "in": 96, "cm": 38, "mm": 3.8,
                  "vw": 13, "vh": 8, "%": 10}  # fmt: skip
"""Pixels of the units of lengths, of percentages and of a window's hundredths about."""

_FAR_PIXELS: Final = -500
_CLIPPED: Final = re.compile(r"rect\(\s*[01](?:px)?(?:[\s,]+[01](?:px)?){3}\s*\)")
_CLIPPED_PATH: Final = re.compile(
    r"inset\(\s*(?:[5-9][0-9]|100)%|(?:circle|ellipse)\(\s*0[^.0-9]|polygon\(\s*0(?:px|%)?\s+0(?:px|%)?(?:\s*,\s*0(?:px|%)?\s+0(?:px|%)?)*\s*\)"
)
_NO_SIZE: Final = re.compile(r"(?:^|\s)0(?:\.0+)?(?:px|r?em|pt|%)?(?=/|\s|$)")
_RELATIVE_SIZE: Final = re.compile(r"[0-9.]+(?:em|ex|%)|smaller|larger|inherit|unset")
_FOR_SCREENS: Final = re.compile(r"\s*(?:only\s+)?(?:screen|all)?\s*", re.IGNORECASE)
_STATE: Final = re.compile(r"::|:(?:hover|focus|active|visited|target|before|after|first-l)", re.IGNORECASE)
_LAST_PART: Final = re.compile(r"[\s>+~]+")
_IN_BRACKETS: Final = re.compile(r"\[[^\[\]]*\]|\([^()]*\)")
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
        self._complete: set[int] = set()
        """Elements whose own styles were added to those of the rules."""

        self._text_is: dict[int, tuple[bool, bool]] = {}
        """Whether the text of an element is hidden, and whether it has no size."""

        elements = [each for each in document.query("style") if isinstance(each, Element)]
        sheets = [own_text(each) for each in elements if _FOR_SCREENS.fullmatch(each.attrs.get("media") or "")]
        rules = [*_rules(sheets)]
        if rules:
            self._apply(rules, document)

    def hides(self, node: Element) -> bool:
        """Whether an element and all in it is not shown."""
        attributes = node.attrs
        if node.name == "input" and (attributes.get("type") or "").lower() == "hidden":
            return True
        declared = self._of(node)
        display = declared.get("display")
        if display is None:
            is_closed = node.name == "dialog" and "open" not in attributes
            return "hidden" in attributes or "popover" in attributes or is_closed or _is_out_of_sight(node, declared)
        return display == "none" or _is_out_of_sight(node, declared)

    def hides_text(self, node: Element) -> bool:
        """Whether the text that is directly in an element is not shown; an element in it can show its own again."""
        unknown: list[Element] = []
        above: Any = node
        while isinstance(above, Element) and id(above) not in self._text_is:
            unknown.append(above)
            above = above.parent
        hidden, sizeless = self._text_is.get(id(above), (False, False))
        for each in reversed(unknown):
            declared = self._of(each)
            if (visibility := declared.get("visibility")) and visibility not in ("inherit", "unset"):
                hidden = visibility in ("hidden", "collapse") and each.name not in _WHOLE_PAGE
            size = declared.get("font-size") or declared.get("font")
            if size and _NO_SIZE.search(size):
                sizeless = True
            elif size and not _RELATIVE_SIZE.fullmatch(size):
                sizeless = False
            self._text_is[id(each)] = (hidden, sizeless)
        return hidden or sizeless

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
        if not style or id(node) in self._complete:
            return self._declared.get(id(node)) or _NOTHING
        declared = self._declared[id(node)]
        for name, value, important in _declarations(style):
            declared.add(name, value, (_INLINE_STYLE + important, 0))
        self._complete.add(id(node))
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
_WHOLE_PAGE: Final = ("html", "body")


def _is_out_of_sight(node: Element, declared: _Declared) -> bool:
    if not declared.values or node.name in _WHOLE_PAGE:
        return False
    get = declared.get
    if get("position") in ("absolute", "fixed") and (
        any(_pixels(get(side), 0) <= _FAR_PIXELS for side in ("left", "right", "top", "bottom"))
        or _CLIPPED.fullmatch(get("clip") or "")
    ):
        return True
    # A box of a fixed shape has no height, but padding with its content in it.
    has_padding = any(get(name) not in (None, "0", "0px") for name in ("padding", "padding-bottom", "padding-top"))
    is_small = min(_pixels(get("width"), 2), _pixels(get("height"), 2)) <= 1
    if is_small and get("overflow") in ("hidden", "clip") and not has_padding:
        return True
    if _pixels(get("text-indent"), 0) <= _FAR_PIXELS or _CLIPPED_PATH.match(get("clip-path") or ""):
        return True
    is_animated = any((get(name) or "none") != "none" for name in ("animation", "animation-name"))
    return not is_animated and _pixels(get("opacity"), 1) <= 0


def _pixels(value: str | None, default: float) -> float:
    found = _LENGTH.fullmatch(value or "")
    return float(found[1]) * _PIXELS.get(found[2], 1) if found else default


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
                    for selector in _selectors(rule.prelude):
                        yield from _rule(selector, declarations)


def _selectors(prelude: Iterable[Any]) -> Iterator[str]:
    """Yield the selectors of a rule; commas within brackets belong to them."""
    for is_comma, tokens in groupby(prelude, lambda token: token.type == "literal" and token.value == ","):
        if not is_comma:
            yield tinycss2.serialize([*tokens]).strip()


def _rule(selector: str, declarations: tuple[tuple[str, str, int], ...]) -> Iterator[_Rule]:
    if not selector or _STATE.search(selector):
        return
    try:
        parsed = parse_selector(selector)
    except SelectorError:
        return
    plain, found = selector, 1
    while found:
        plain, found = _IN_BRACKETS.subn("", plain)
    last = _LAST_PART.split(plain)[-1]
    named = _NAMED.search(last)
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
