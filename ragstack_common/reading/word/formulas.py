"""Formulas of Word documents in one line: a/b, 10⁶, √(x)."""

from collections.abc import Callable  # noqa: TC003 - for the table of functions
from xml.etree.ElementTree import Element

from ragstack_common.reading import markdown
from ragstack_common.reading.word.styles import val


def formula(element: Element) -> str:
    """Return a formula in one line: a/b, 10⁶, √(x)."""
    parts: dict[str, Callable[[], str]] = {
        "f": lambda: f"{_grouped(_part(element, 'num'))}/{_grouped(_part(element, 'den'))}",
        "sSup": lambda: _with(element, "sup", ""),
        "sSub": lambda: _with(element, "", "sub"),
        "sSubSup": lambda: _with(element, "sup", "sub"),
        "rad": lambda: f"{markdown.raised(_part(element, 'deg'), '')}√{_grouped(_part(element, 'e'))}",
        "d": lambda: _delimited(element),
        "nary": lambda: _nary(element),
    }
    if element.tag in parts:
        return parts[element.tag]()
    if element.tag == "t":
        return element.text or ""
    return "".join(formula(each) for each in element if not each.tag.endswith("Pr"))


def _part(element: Element, name: str) -> str:
    found = element.find(name)
    return "" if found is None else formula(found)


def _grouped(text: str) -> str:
    return text if text.isalnum() else f"({text})"


def _with(element: Element, above: str, below: str) -> str:
    text = _part(element, "e")
    if below:
        lowered = _part(element, below)
        text += markdown.lowered(lowered) if not lowered.isalpha() else f"_{lowered}"
    if above:
        exponent = _part(element, above)
        shown = markdown.raised(exponent, "x")
        text += shown if shown != exponent and not shown.startswith(" ") else f"^{_grouped(exponent)}"
    return text


def _delimited(element: Element) -> str:
    properties = element.find("dPr")
    signs = [properties.find(name) if properties is not None else None for name in ("begChr", "endChr")]
    begin, end = (usual if sign is None else sign.get("val", "") for sign, usual in zip(signs, "()", strict=True))
    return f"{begin}{', '.join(formula(each) for each in element.findall('e'))}{end}"


def _nary(element: Element) -> str:
    properties = element.find("naryPr")
    sign = (val(properties.find("chr")) if properties is not None else None) or "∫"
    below, above = _part(element, "sub"), _part(element, "sup")
    return f"{sign}{f'_({below})' if below else ''}{f'^({above})' if above else ''} {_part(element, 'e')}"
