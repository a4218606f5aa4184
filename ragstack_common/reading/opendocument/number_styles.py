"""The styles of numbers and dates in OpenDocument files, as the format codes that Excel has for them.

Source: OpenDocument 1.3 part 3, section 16.29 (data styles).
"""

from collections.abc import Callable, Mapping
from typing import Final
from xml.etree.ElementTree import Element

from ragstack_common.reading.number_formats import GENERAL
from ragstack_common.reading.office_package import whole_number

_LANGUAGES: Final = {
    "cs": "405", "da": "406", "de": "407", "es": "40A", "fr": "40C", "it": "410", "ja": "411", "nl": "413", "pl": "415",
    "pt": "416", "ru": "419", "sv": "41D", "tr": "41F", "zh": "404",
}  # fmt: skip
"""Codes of languages whose names of months and days differ from the English ones. Source: MS-LCID, section 2.2."""

_MAX_PLACES: Final = 30
_THOUSANDS: Final = 3
_NOT_SHOWN: Final = ("style.map", "style.text-properties", "number.fill-character")


def code(style: Element, others: Mapping[str, Element], language: str) -> str | None:
    """Return the format code of a style; None if Excel has none for it.

    Args:
        style: A style of numbers, currencies, percentages, dates or times.
        others: Styles by name, which a style refers to for some numbers.
        language: Of the file, such as ``de``.
    """
    own = _section(style, language)
    sections = []
    for each in style.iterfind("style.map"):
        other = others.get(each.get("style.apply-style-name", ""))
        condition = each.get("style.condition", "").removeprefix("value()").replace("!=", "<>")
        sections.append((condition, None if other is None else _section(other, language)))
    if own is None or any(section is None for _, section in sections):
        return None
    if [condition for condition, _ in sections] in ([">=0"], [">0", "<0"]):  # what Excel does without conditions
        return ";".join([*(section or "" for _, section in sections), own])
    return ";".join([*(f"[{condition}]{section}" for condition, section in sections), own])


def _section(style: Element, language: str) -> str | None:
    wanted = style.get("number.language", language)
    written = f"[$-{_LANGUAGES[wanted]}]" if wanted in _LANGUAGES else ""
    is_percentage = style.tag == "number.percentage-style"
    overflows = style.get("number.truncate-on-overflow") == "false"
    for each in style:
        if each.tag in _NOT_SHOWN:
            continue
        if each.tag in ("number.text", "number.currency-symbol"):
            text = each.text or ""
            if not text and each.tag == "number.currency-symbol":
                return None  # that of the reader's country
            written += text if is_percentage and text.strip() == "%" else f'"{text.replace(chr(34), "")}"'
            continue
        to_code = _PARTS.get(each.tag)
        part = to_code(each) if to_code else None
        if part is None:
            return None
        if overflows and each.tag in ("number.hours", "number.minutes", "number.seconds"):
            part, overflows = f"[{part}]", False
        written += part
    return written


def _number(each: Element) -> str | None:
    if each.find("number.embedded-text") is not None:
        return None
    whole = _places(each, "min-integer-digits", 0)
    grouped = each.get("number.grouping") == "true"
    if each.get("number.decimal-places") is None and each.tag == "number.number" and whole <= 1 and not grouped:
        return GENERAL
    digits = "0" * whole or "#"
    if grouped:
        digits = digits.rjust(_THOUSANDS + 1, "#")
        digits = f"{digits[:-_THOUSANDS]},{digits[-_THOUSANDS:]}"
    decimals = _places(each, "decimal-places", 0)
    least = min(decimals, _places(each, "min-decimal-places", decimals))
    digits += f".{'0' * least}{'#' * (decimals - least)}" if decimals else ""
    factor = len(each.get("number.display-factor", "1")) - 1
    return digits + "," * (min(factor, _MAX_PLACES) // _THOUSANDS)


def _scientific(each: Element) -> str | None:
    digits = _number(each)
    steps = "#" * (_places(each, "exponent-interval", 1) - 1)
    return None if digits is None else f"{steps}{digits}E+{'0' * max(1, _places(each, 'min-exponent-digits', 2))}"


def _fraction(each: Element) -> str | None:
    below = each.get("number.denominator-value") or "?" * max(1, _places(each, "min-denominator-digits", 1))
    above = "?" * max(1, _places(each, "min-numerator-digits", 1))
    whole = "" if each.get("number.min-integer-digits") is None else "# "
    return f"{whole}{above}/{below}"


def _month(each: Element) -> str:
    return ("mmm" if each.get("number.textual") == "true" else "m") + _longer(each, "m")


def _seconds(each: Element) -> str:
    decimals = _places(each, "decimal-places", 0)
    return f"s{_longer(each, 's')}{'.' + '0' * decimals if decimals else ''}"


def _longer(each: Element, letters: str) -> str:
    return letters if each.get("number.style") == "long" else ""


def _places(each: Element, name: str, default: int) -> int:
    return max(0, min(whole_number(each.get(f"number.{name}"), default), _MAX_PLACES))


_PARTS: Final[Mapping[str, Callable[[Element], str | None]]] = {
    "number.number": _number,
    "number.scientific-number": _scientific,
    "number.fraction": _fraction,
    "number.year": lambda each: f"yy{_longer(each, 'yy')}",
    "number.month": _month,
    "number.day": lambda each: f"d{_longer(each, 'd')}",
    "number.day-of-week": lambda each: f"ddd{_longer(each, 'd')}",
    "number.hours": lambda each: f"h{_longer(each, 'h')}",
    "number.minutes": lambda each: f"m{_longer(each, 'm')}",
    "number.seconds": _seconds,
    "number.am-pm": lambda _: "AM/PM",
    "number.text-content": lambda _: "@",
    "number.boolean": lambda _: GENERAL,
}
"""Weeks, quarters and eras have no code."""
