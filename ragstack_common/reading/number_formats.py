"""The text that a spreadsheet shows for a number, by the format of its cell.

Source: ECMA-376 part 1, section 18.8.31 (format codes), and Excel where the standard is silent. Two things differ from
Excel, on purpose. A number without a format has all of its 15 digits, not those that fit into the column. A date of
three numbers is written as 2026-07-02, whatever their order, because 02/07/2026 is two different days in two countries.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import takewhile
from typing import Final

from ragstack_common.reading.calendar_names import MONTHS_AND_DAYS

GENERAL: Final = "General"

BUILT_IN: Final[Mapping[int, str]] = {
    1: "0",
    2: "0.00",
    3: "#,##0",
    4: "#,##0.00",
    9: "0%",
    10: "0.00%",
    11: "0.00E+00",
    12: "# ?/?",
    13: "# ??/??",
    14: "yyyy-mm-dd",
    15: "d-mmm-yy",
    16: "d-mmm",
    17: "mmm-yy",
    18: "h:mm AM/PM",
    19: "h:mm:ss AM/PM",
    20: "h:mm",
    21: "h:mm:ss",
    22: "yyyy-mm-dd h:mm",
    37: "#,##0;-#,##0",
    38: "#,##0;-#,##0",
    39: "#,##0.00;-#,##0.00",
    40: "#,##0.00;-#,##0.00",
    45: "mm:ss",
    46: "[h]:mm:ss",
    47: "mm:ss.0",
    48: "##0.0E+0",
    49: "@",
}
"""Formats that a file names by number. 14 and 22 follow the region of the computer."""

_SYSTEM_DATES: Final = {"F800": "yyyy-mm-dd", "F400": "h:mm:ss"}
_KINDS: Final = {"@": "text", ".": "point", ",": "comma", "%": "percent", "/": "slash"}
_ENGLISH: Final = 0x09

_TOKEN: Final = re.compile(
    r'"(?P<quoted>[^"]*)"?|\\(?P<escaped>.)|_.|\*.|\[(?P<bracket>[^\]]*)\]'
    r"|(?P<general>(?i:General|Standard))|(?P<halves>AM/PM|am/pm|A/P|a/p|上午/下午)|(?P<exponent>[Ee][+-])"
    r"|(?P<seconds>[sS]+(?:\.0+)?)|(?P<date>[yY]+|[mM]+|[dD]+|[hH]+|[eE]+|[gG]+|[bB]+)|(?P<digit>[0#?])|(?P<other>.)",
    re.DOTALL,
)
_CONDITION: Final = re.compile(r"(<=|>=|<>|<|>|=)\s*(-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[Ee][+-]?[0-9]{1,3})?)$")
_CURRENCY: Final = re.compile(r"\$([^-]*)(?:-([0-9A-Fa-f]+))?$")
_ELAPSED: Final = re.compile(r"(?i:h+|m+|s+)$")
_EPOCH: Final = datetime(1899, 12, 30)  # noqa: DTZ001 - a sheet's times have no zone
_EPOCH_1904: Final = datetime(1904, 1, 1)  # noqa: DTZ001
_DAYS_BETWEEN_EPOCHS: Final = 1462
_LAST_SERIAL: Final = 2_958_466  # 31 December 9999
_LEAP_DAY_THAT_WAS_NOT: Final = 60
_DAY_SECONDS: Final = 86_400
_DIGITS: Final = 15
_FOR_TEXT: Final = 3
"""The section of a format that is for texts; those before are for positive numbers, negative ones and zero."""

_MAX_CODE: Final = 255
"""Characters of a format code in Excel; a longer one is ignored."""

_ENOUGH_DIGITS: Final = Context(prec=400)
"""For a number of up to 21 digits, or with an exponent of up to 308, and as many decimals as a code can have."""

_MIN_WRITTEN_OUT, _MAX_WRITTEN_OUT = Decimal("1e-9"), Decimal("1e21")


def shown(value: float, code: str, *, since_1904: bool = False) -> str:
    """Return the text of a number.

    Args:
        value: The number; a date is a number of days.
        code: The format code.
        since_1904: Whether days count from 1904, as in old workbooks of a Mac.
    """
    if not math.isfinite(value):
        return ""
    parsed = _parsed(code if len(code) <= _MAX_CODE else GENERAL)
    section, magnitude = _chosen(parsed, value)
    if section is None:
        return _general(value)
    if section.general:
        return "".join(_general(magnitude) if kind == "general" else text for kind, text in section.parts).strip()
    if section.is_date:
        is_elapsed = any(kind == "elapsed" for kind, _ in section.parts)
        if is_elapsed and -_LAST_SERIAL < value < 0:
            return f"-{_date(section, -value)}"
        days = value + _DAYS_BETWEEN_EPOCHS if since_1904 and not is_elapsed else value
        return _date(section, days) if 0 <= days < _LAST_SERIAL else _general(value)
    return _number(section, magnitude)


def days(date: str) -> float | None:
    """Return the number that :func:`shown` takes for a date of ISO 8601; None if there is none."""
    try:
        moment = datetime.fromisoformat(date).replace(tzinfo=None)
    except ValueError:
        return None
    number = (moment - _EPOCH).total_seconds() / _DAY_SECONDS
    # Numbers before the leap day that Excel counts in 1900 are a day less.
    number -= number <= _LEAP_DAY_THAT_WAS_NOT
    return number if number >= 0 else None


def shown_text(text: str, code: str) -> str:
    """Return a text as its cell shows it: only a section with an @ or the fourth one changes it."""
    if code == "@" or ("@" not in code and ";" not in code):
        return text
    sections = _parsed(code if len(code) <= _MAX_CODE else GENERAL)
    with_text = [section for section in sections if any(kind == "text" for kind, _ in section.parts)]
    section = sections[_FOR_TEXT] if len(sections) > _FOR_TEXT else with_text[-1] if with_text else None
    if section is None:
        return text
    return "".join(text if kind == "text" else each for kind, each in section.parts).strip()


@dataclass(frozen=True)
class _Section:
    """A part of a format code, for some numbers."""

    parts: Sequence[tuple[str, str]]
    condition: tuple[str, float] | None
    language: int

    @cached_property
    def general(self) -> bool:
        return any(kind == "general" for kind, _ in self.parts)

    @cached_property
    def is_date(self) -> bool:
        return any(kind in ("date", "seconds", "elapsed") for kind, _ in self.parts)


@lru_cache(maxsize=4096)
def _parsed(code: str) -> tuple[_Section, ...]:
    sections: list[_Section] = []
    tokens: list[tuple[str, str]] = []
    condition: tuple[str, float] | None = None
    language = _ENGLISH
    for match in _TOKEN.finditer(code):
        if match["other"] == ";":
            sections.append(_Section(_year_first(tokens), condition, language))
            tokens, condition = [], None
        elif (inner := match["bracket"]) is None:
            tokens.append(_token(match))
        elif found := _CONDITION.match(inner):
            condition = (found[1], float(found[2]))
        elif _ELAPSED.match(inner):
            tokens.append(("elapsed", inner.lower()))
        elif found := _CURRENCY.match(inner):
            locale = (found[2] or "").upper()
            if locale in _SYSTEM_DATES:
                return _parsed(_SYSTEM_DATES[locale])
            language = int(locale, 16) & 0x3FF if locale else language
            tokens.append(("literal", found[1]))
    sections.append(_Section(_year_first(tokens), condition, language))
    return tuple(sections)


def _token(match: re.Match[str]) -> tuple[str, str]:
    kind, text = match.lastgroup or "", match[0]
    if kind in ("quoted", "escaped"):
        return "literal", match[kind]
    if kind in ("date", "seconds"):
        return kind, text.lower()
    if kind == "other":
        return _KINDS.get(text, "literal"), text
    # What is as wide as a character, or fills the column, has no kind.
    return (kind, text) if kind else ("literal", " " if text[0] == "_" else "")


def _year_first(tokens: Sequence[tuple[str, str]]) -> Sequence[tuple[str, str]]:
    """Return a date of three numbers with dashes or slashes or points between them in the order of ISO 8601."""
    parts = [
        index
        for index, (kind, text) in enumerate(tokens)
        if kind == "date" and text[0] in "ymd" and not _is_minutes(tokens, index)
    ]
    if sorted(tokens[index][1][0] for index in parts) != ["d", "m", "y"]:
        return tokens
    first, last = parts[0], parts[-1]
    between = "".join(text for index, (_, text) in enumerate(tokens[first:last], first) if index not in parts)
    if between.strip(" -./") or any(len(tokens[index][1]) > 2 for index in parts if tokens[index][1][0] != "y"):  # noqa: PLR2004
        return tokens
    iso = (("date", "yyyy"), ("literal", "-"), ("date", "mm"), ("literal", "-"), ("date", "dd"))
    return (*tokens[:first], *iso, *tokens[last + 1 :])


def _chosen(sections: Sequence[_Section], value: float) -> tuple[_Section | None, float]:
    """Return the section for a number, and what it shows of it: no sign in a section for negative numbers."""
    numeric = [each for each in sections if not any(kind == "text" for kind, _ in each.parts)]
    if not numeric:
        return None, value
    if any(each.condition for each in numeric):
        for each in numeric:
            if each.condition is None or _holds(value, *each.condition):
                negative_only = (
                    each.condition is not None and each.condition[0] in ("<", "<=") and each.condition[1] <= 0
                )
                return each, abs(value) if negative_only else value
        return None, value
    if value < 0 and len(numeric) > 1:
        return numeric[1], -value
    if value == 0 and len(numeric) > 2:  # noqa: PLR2004 - the third section is for zero
        return numeric[2], value
    return numeric[0], value


def _holds(value: float, operator: str, limit: float) -> bool:
    return {
        "<": value < limit,
        "<=": value <= limit,
        ">": value > limit,
        ">=": value >= limit,
        "=": value == limit,
        "<>": value != limit,
    }[operator]


def _general(value: float) -> str:
    number = Decimal(f"{value:.{_DIGITS}g}")
    if number == 0:
        return "0"
    if _MIN_WRITTEN_OUT <= abs(number) < _MAX_WRITTEN_OUT:
        text = f"{number:f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    mantissa, exponent = f"{number.normalize():E}".split("E")
    return f"{mantissa}E{int(exponent):+03d}"


@dataclass(frozen=True)
class _Places:
    """The places of digits in a section for numbers, and what is around them.

    Attributes:
        first: The first place.
        last: The last place, also of an exponent.
        end: The last place before an exponent.
        exponent: Where the exponent begins; None without one.
        whole: Places before the point.
        decimals: Places after it.
        has_point: Whether there is a point.
    """

    first: int
    last: int
    end: int
    exponent: int | None
    whole: Sequence[str]
    decimals: Sequence[str]
    has_point: bool

    @classmethod
    def of(cls, tokens: Sequence[tuple[str, str]]) -> "_Places":
        places = [index for index, (kind, _) in enumerate(tokens) if kind == "digit"]
        exponent = next((index for index, (kind, _) in enumerate(tokens) if kind == "exponent"), None)
        before = [index for index in places if exponent is None or index < exponent] or places
        point = next(
            (index for index in range(max(0, before[0] - 1), before[-1] + 1) if tokens[index][0] == "point"), None
        )
        return cls(
            places[0],
            places[-1],
            before[-1],
            exponent,
            [tokens[index][1] for index in before if point is None or index < point],
            [tokens[index][1] for index in before if point is not None and index > point],
            point is not None,
        )


def _number(section: _Section, value: float) -> str:
    tokens = section.parts
    if not any(kind == "digit" for kind, _ in tokens):
        # Only literals: "yes";"no", or an empty section that hides a value.
        return "".join(text for kind, text in tokens if kind not in ("text", "exponent")).strip()
    if any(kind == "slash" for kind, _ in tokens) and (fraction := _fraction(tokens, value)) is not None:
        return fraction
    places = _Places.of(tokens)
    thousands = len(list(takewhile(lambda token: token[0] == "comma", tokens[places.end + 1 :])))
    percents = sum(kind == "percent" for kind, _ in tokens)
    number = Decimal(f"{value:.{_DIGITS}g}").scaleb(2 * percents - 3 * thousands)
    exponent = ""
    if places.exponent is not None:
        number, exponent = _scientific(number, tokens[places.exponent :], len(places.whole), len(places.decimals))
    if abs(number) < _MAX_WRITTEN_OUT:
        number = number.quantize(Decimal(1).scaleb(-len(places.decimals)), ROUND_HALF_UP, _ENOUGH_DIGITS)
    digits, _, decimals = f"{abs(number):f}".partition(".")
    for place in reversed(places.decimals):
        if place == "0" or not decimals.endswith("0"):
            break
        decimals = decimals[:-1]
    around = ["".join(text for kind, text in part if kind in ("literal", "percent"))
              for part in (tokens[: places.first], tokens[places.last + 1 :])]  # fmt: skip
    inner = tokens[places.first : places.last + 1]
    if any(kind == "literal" and text.strip() for kind, text in inner) and not (exponent or places.has_point):
        written = _patterned(digits, inner)
    else:
        grouped = any(kind == "comma" for kind, _ in tokens[places.first : places.end])
        written = _whole_part(digits, places.whole, grouped=grouped) + (f".{decimals}" if decimals else "") + exponent
    return f"{'-' if number < 0 else ''}{around[0]}{written}{around[1]}".strip()


def _scientific(number: Decimal, tokens: Sequence[tuple[str, str]], whole: int, decimals: int) -> tuple[Decimal, str]:
    """Return a number between 1 and a power of ten with so many places, and its exponent as written."""
    step = max(1, whole)
    power = number.adjusted() // step * step if number else 0
    # 9.999 is 1.00E+01 with two decimals.
    if abs(round(number.scaleb(-power), decimals)) >= Decimal(10) ** step:
        power += step
    sign = "-" if power < 0 else "+" if tokens[0][1][1] == "+" else ""
    width = sum(kind == "digit" for kind, _ in tokens)
    return number.scaleb(-power), f"E{sign}{abs(power):0{width}d}"


def _whole_part(digits: str, places: Sequence[str], *, grouped: bool) -> str:
    needed = len(places) - next((index for index, text in enumerate(places) if text == "0"), len(places))
    digits = digits.lstrip("0").rjust(needed, "0")
    if not grouped:
        return digits
    parts = []
    while len(digits) > 3:  # noqa: PLR2004 - thousands
        parts.append(digits[-3:])
        digits = digits[:-3]
    return ",".join([digits, *reversed(parts)])


def _patterned(digits: str, tokens: Sequence[tuple[str, str]]) -> str:
    """Return digits with literals among them, as in a telephone number: 000-000."""
    left = list(digits)
    result: list[str] = []
    places = [text for kind, text in tokens if kind == "digit"]
    for kind, text in reversed(tokens):
        if kind == "digit":
            places.pop()
            result.append(left.pop() if left else "0" if text == "0" else "")
            if not places:
                result.extend(reversed(left))
                left = []
        elif kind == "literal" and (left or "0" in places):
            result.append(text)
    return "".join(reversed(result))


def _fraction(tokens: Sequence[tuple[str, str]], value: float) -> str | None:
    """Return a number as a fraction; None if the slash is not one."""
    slash = next(index for index, (kind, _) in enumerate(tokens) if kind == "slash")
    below = "".join(text for kind, text in tokens[slash + 1 :] if kind in ("digit", "literal")).strip()
    if not below:
        return None
    number = abs(Fraction(f"{value:.{_DIGITS}g}"))
    has_whole = sum(kind == "digit" for kind, _ in tokens[:slash]) > 1 and any(
        kind == "literal" and text == " " for kind, text in tokens[:slash]
    )
    whole = int(number) if has_whole else 0
    rest = number - whole
    if below.isdigit() and below.strip("0"):
        rest = Fraction(round(rest * int(below)), int(below))
        above, denominator = round(rest * int(below)), int(below)
    else:
        rest = rest.limit_denominator(10 ** len(below) - 1)
        above, denominator = rest.numerator, rest.denominator
    if has_whole and above == denominator:
        whole, above = whole + 1, 0
    sign = "-" if value < 0 and (whole or above) else ""
    if has_whole and not above:
        return f"{sign}{whole}"
    return f"{sign}{whole} {above}/{denominator}" if whole else f"{sign}{above}/{denominator}"


def _date(section: _Section, days: float) -> str:
    tokens = section.parts
    fraction_digits = max((len(text.partition(".")[2]) for kind, text in tokens if kind == "seconds"), default=0)
    has_seconds = any(kind == "seconds" or (kind == "elapsed" and text[0] == "s") for kind, text in tokens)
    step = 10**fraction_digits if has_seconds else 1000
    # A day of 86,400 seconds is not exact in binary: rounded before it is divided.
    ticks = math.floor(days * 86_400 * step + (0.5 if has_seconds else 0.0005 * step))
    seconds, ticks = divmod(ticks, step)
    if days < _LEAP_DAY_THAT_WAS_NOT:
        days += 1
        moment = _EPOCH + timedelta(days=1, seconds=seconds)
    else:
        moment = _EPOCH + timedelta(seconds=seconds)
    twelve = any(kind == "halves" for kind, _ in tokens)
    names = MONTHS_AND_DAYS.get(section.language, MONTHS_AND_DAYS[_ENGLISH])
    written = []
    for index, (kind, text) in enumerate(tokens):
        if kind == "date":
            written.append(_date_part(text, moment, names, minutes=_is_minutes(tokens, index), twelve=twelve))
        elif kind == "seconds":
            whole, _, decimals = text.partition(".")
            written.append(
                f"{moment.second:0{min(len(whole), 2)}d}" + (f".{ticks:0{len(decimals)}d}" if decimals else "")
            )
        elif kind == "elapsed":
            total = seconds // {"h": 3600, "m": 60, "s": 1}[text[0]]
            written.append(f"{total:0{len(text)}d}")
        elif kind == "halves":
            first, second = text.split("/")
            written.append(second if moment.hour >= 12 else first)  # noqa: PLR2004 - noon
        elif kind in ("literal", "slash", "point", "comma"):
            written.append(text)
    return "".join(written).strip()


def _is_minutes(tokens: Sequence[tuple[str, str]], index: int) -> bool:
    """Whether an m is minutes: after hours, or before seconds."""
    if tokens[index][1][0] != "m" or len(tokens[index][1]) > 2:  # noqa: PLR2004 - mmm is a month
        return False
    before = next((each for each in reversed(tokens[:index]) if each[0] in ("date", "elapsed", "seconds")), None)
    after = next((each for each in tokens[index + 1 :] if each[0] in ("date", "elapsed", "seconds")), None)
    return (before is not None and before[1][0] == "h") or (after is not None and after[1][0] == "s")


def _date_part(text: str, moment: datetime, names: tuple[str, str], *, minutes: bool, twelve: bool) -> str:
    letter, length = text[0], len(text)
    if letter in "ye":
        return f"{moment.year % 100:02d}" if letter == "y" and length <= 2 else f"{moment.year:04d}"  # noqa: PLR2004
    if letter == "b":
        return f"{moment.year + 543:04d}"
    if letter == "h":
        hour = (moment.hour - 1) % 12 + 1 if twelve else moment.hour
        return f"{hour:0{min(length, 2)}d}"
    if minutes:
        return f"{moment.minute:0{min(length, 2)}d}"
    if letter == "m":
        return _named(moment.month, length, names[0].split()[moment.month - 1])
    if letter == "d":
        return _named(moment.day, length, names[1].split()[moment.weekday()])
    return ""


def _named(number: int, length: int, name: str) -> str:
    """Return the number of a month or day, or its name, as the number of letters says."""
    if length <= 2:  # noqa: PLR2004
        return f"{number:0{length}d}"
    return {3: name[:3], 5: name[:1]}.get(length, name)
