"""Numbers, dates, versions, clauses and addresses: each is one word, however many dots, dashes or spaces it has.

A part of it, such as the year of a date, is a term of the text too, but not of a query, which would find permutations:
10.0.1.2 has the same parts as 10.1.0.2. Where a text may be read in two ways, such as 3.500, both readings are terms.
"""

import re
from functools import lru_cache
from ipaddress import AddressValueError, IPv6Address
from typing import Final

from ragstack_common.text.spelling import with_ascii_digits

MIN_JOINED: Final = 7
"""Digits of a number with dashes, such as a telephone number or an ISBN, that is also written without them."""

MAX_BEGINNINGS: Final = 8
"""Parts of a version whose beginnings are terms; a longer run of numbers is a list."""

MAX_CODE: Final = 40
"""Characters of a code, such as QX-4471, or of a number in groups; longer ones are web addresses or columns."""

NUMBER_WORDS: Final = {
    word: value
    for value, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"  # noqa: SIM905 - a table
        " seventeen eighteen nineteen".split()
    )
} | {
    word: 10 * tens
    for tens, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), start=2)  # noqa: SIM905
}
"""English words for numbers, with their values; tens and units are two words."""

_WRITTEN: Final = {
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2212\ufe63\uff0d", "-"),
    **dict.fromkeys("\u2019\u02bc\uff07\u066c\u00a0\u2007\u2009\u202f", "'"),
    "\u066b": ".",
}
"""One form of dashes, decimal marks, and marks between thousands, such as a space that does not break the line."""

_DIGITS_ABOVE: Final = "\u00b2\u00b3\u00b9\u2070\u2074-\u207b"
_FRACTIONS: Final = "\u00bc-\u00be\u2150-\u215e"
_HAS_RAISED: Final = re.compile(f"[{_DIGITS_ABOVE}{_FRACTIONS}]")
_RAISED: Final = re.compile(f"(?<=[^\\W_])(?<![{_DIGITS_ABOVE}])[{_DIGITS_ABOVE}]+")
_FRACTION: Final = re.compile(f"(?<=\\d)(?=[{_FRACTIONS}])")
MAX_UNIT_LETTERS: Final = 3
"""Letters of a unit whose power belongs to it, as in km²; a longer word has the number of a note."""

_UNIT: Final = re.compile(f"(?<![^\\W\\d_])[^\\W\\d_]{{1,{MAX_UNIT_LETTERS}}}$")

_END: Final = r"(?!\d|[.,]\d)"
_HEX: Final = "[0-9a-f]"
_MAC: Final = rf"{_HEX}{{2}}(?:[:-]{_HEX}{{2}}){{5}}(?![\w:-])|{_HEX}{{4}}\.{_HEX}{{4}}\.{_HEX}{{4}}(?![\w.])"
_PIECES: Final = rf"(?:{_HEX}{{1,4}}(?::{_HEX}{{1,4}})*+)?+"
_IPV6: Final = rf"(?=[:a-f]{{0,39}}+\d)(?:(?:{_HEX}{{1,4}}:){{7}}{_HEX}{{1,4}}|{_PIECES}::{_PIECES})(?![\w:])"
_GROUPED: Final = (
    r"\d{1,3}(?:,\d{3}){2,8}(?:\.\d+)?|\d{1,3}(?:'\d{3}){1,8}(?:[.,]\d+)?|\d{1,2}(?:,\d\d){1,8},\d{3}(?:\.\d+)?"
    r"|\d{1,3}(?:,\d{3}){1,8}\.\d+|\d{1,3}(?:\.\d{3}){1,8},\d+"
)
_SPACED: Final = (
    r"(?<!\d )(?<!\d[.,])(?:[1-9]\d?(?: \d{3}){2,8}|[1-9]\d{0,2}(?: \d{3}){0,8} 000)"
    r"(?:[.,]\d+)?(?![.,]?\d| \d{3}(?!\d))"
)
ATOM: Final = (
    r"[a-z]++(?=[\s,;)]|\.\s)"  # most words, fast
    rf"|(?=[\da-f]*+[:.-])(?:(?<![\w:.-])(?:{_MAC})|(?<![\w:])(?:{_IPV6}))"
    rf"|(?=\d++[^\w\n]\d)(?:(?:{_GROUPED}){_END}|{_SPACED}|\d+(?:-\d+)+{_END}|\d+(?:/\d+)+{_END}|\d+(?::\d+)+{_END}"
    r"|\d+(?:\.\d+)+|(?<!\d,)\d+,\d+(?!,?\d))"
    r"|v\d+(?:\.\d+)+|[a-z]++(?=\d+(?:\.\d+)+)"
)
"""Alternatives of a pattern for words, in normalized texts: numbers of several parts, and letters before a version."""

_MAY_HAVE: Final = re.compile(
    # The first set is searched for fast; then it is as \d...|[-_./:+(]\d|::|0\d{1,5} \d.
    r"[0-9_./:+(-](?:(?<=[0-9])(?:[-_./:+,']\w| \d{3}(?!\d))|(?<=[_./:+(-])\d|(?<=:):|(?<=0)\d{1,5} \d)"
)
_IS_ATOM: Final = re.compile(ATOM)
_IS_GROUPED: Final = re.compile(_GROUPED)
_IS_SPACED: Final = re.compile(_SPACED)
_IS_MAC: Final = re.compile(_MAC)
_IS_ADDRESS: Final = re.compile("::|(?::[^:]+){5}")
_IS_DOTTED: Final = re.compile(r"\d+(?:\.\d+)+")
_THOUSANDS: Final = re.compile(r"[1-9]\d{0,2}([.,])\d{3}(?:\1\d{3})*")
_DATE: Final = re.compile(
    r"(?P<y>\d{4})(?P<m>[-/.])(\d{1,2})(?P=m)(\d{1,2})|(\d{1,2})(?P<sign>[-/.])(\d{1,2})(?P=sign)(\d{4})"
)
_CODE: Final = re.compile(r"(?<![^\W_])(?=[a-z_./:+-]{0,40}+\d)[a-z\d]++(?:[-_./:+][a-z\d]++)++")
_GROUPS: Final = re.compile(r"\d(?<!\d\d)(?<!\d[.,]\d)\d{0,2}(?: \d{3})+(?:[.,]\d++)?(?![.,]?\d)")
_TELEPHONE: Final = re.compile(
    r"[+(0](?:(?<=\+)\d|(?<=\()(?<!\w\()\d|(?<=0)(?<![\w.,+(]0)(?<!\d 0)\d{1,4}[ /-])[\d ()/-]{4,16}\d(?![\d.,])"
)
_JOINT: Final = re.compile(r"(?<!\d)[\W_]+|[\W_]+(?!\d)")
_SIGN: Final = re.compile("[-., ':/]")
_LETTER: Final = re.compile("[a-z]")
_NUMBER: Final = re.compile(r"\d+")
_DECIMAL: Final = re.compile(r"\d+(?:\.\d+)?")


def written(text: str) -> str:
    """Return a text with one form of the marks within numbers, and what is raised after a number apart from it."""
    if text.isascii():
        return text
    if _HAS_RAISED.search(text):
        text = _FRACTION.sub(" ", _RAISED.sub(_apart, text))
    for mark, one in _WRITTEN.items():
        if mark in text:
            text = text.replace(mark, one)
    return text


def _apart(found: re.Match[str]) -> str:
    before = found.string[max(0, found.start() - MAX_UNIT_LETTERS - 1) : found.start()]
    is_power = found[0] in "\u00b2\u00b3" and _UNIT.search(before)
    return found[0] if is_power else f" {found[0]}"


def may_have_numbers(text: str) -> bool:
    """Whether a normalized text may have a number of several parts."""
    return _MAY_HAVE.search(text) is not None


def is_number(word: str) -> bool:
    """Whether a word is a number of several parts."""
    return not word.isalnum() and _SIGN.search(word) is not None


@lru_cache(maxsize=100_000)
def canonical(found: str) -> str:
    """Return the canonical form of a word; numbers have no marks between thousands, and a decimal point."""
    if found.isalnum() and found.isascii():
        return found
    number = with_ascii_digits(found)
    if _IS_GROUPED.fullmatch(number):
        return _with_point(number)
    if _IS_MAC.fullmatch(number):
        return ":".join(re.findall(_HEX * 2, re.sub(r"[:.-]", "", number)))
    if ":" in number:
        try:
            return IPv6Address(number).compressed
        except AddressValueError:
            return number
    if "," in number and _THOUSANDS.fullmatch(number):
        return number.replace(",", "")
    if _IS_SPACED.fullmatch(number):
        return number.replace(" ", "").replace(",", ".")
    if number[0] == "v" and _IS_DOTTED.fullmatch(number, 1):
        return number[1:]
    return number.replace(",", ".") if number[0].isdecimal() else found


def _with_point(number: str) -> str:
    """Return a number with groups of thousands as digits, with its decimals after a point."""
    marks = re.sub(r"\d", "", number)
    has_decimals = marks[-1] != marks[0] or (marks[0] == "'" and marks[-1] != "'")
    whole, decimals = number.rsplit(marks[-1], 1) if has_decimals else (number, "")
    joined = re.sub(r"\D", "", whole)
    return f"{joined}.{decimals}" if decimals else joined


@lru_cache(maxsize=100_000)
def further(found: str, *, is_query: bool) -> tuple[str, ...]:
    """Return the terms of a number of several parts, other than its canonical form."""
    word = canonical(found)
    if _IS_ADDRESS.search(word):
        return ()
    readings = [*_dates(word)]
    parts = _NUMBER.findall(word) if not word.isdecimal() else []
    if _IS_DOTTED.fullmatch(word):
        # Ends in a point: the beginning of a version. An exact one has it too, and is found before longer ones.
        readings.append(f"{word}.")
        if _THOUSANDS.fullmatch(word):
            readings.append(word.replace(".", ""))
        if not is_query:
            readings += [".".join(parts[:count]) + "." for count in range(2, min(len(parts), MAX_BEGINNINGS))]
    elif len(parts) > 2 and len(joined := "".join(parts)) >= MIN_JOINED and word[0].isdecimal():  # noqa: PLR2004 - a range has two
        readings.append(joined)
    if not is_query:
        if "," in found and word.isdecimal() and _THOUSANDS.fullmatch(found):
            readings.append(found.replace(",", "."))
        return (*readings, *(parts or (_NUMBER.findall(found) if " " in found else ())))
    is_pair = len(parts) == 2 and "." not in word  # noqa: PLR2004 - a range, a score or a time, whose ends are numbers
    return (*readings, *parts) if is_pair else tuple(readings)


def readings(number: str) -> frozenset[str]:
    """Return the values that a written number may have, as digits: 1250 and 1.25 for 1.250.

    Returns:
        Nothing for ranges, dates, versions and other numbers of several parts.
    """
    found = written(with_ascii_digits(number))
    values = {canonical(found)}
    if _THOUSANDS.fullmatch(found):
        values |= {re.sub("[.,]", "", found), found.replace(",", ".")}
    if _GROUPS.fullmatch(found):
        values.add(found.replace(" ", "").replace(",", "."))
    return frozenset(_plain(value) for value in values if _DECIMAL.fullmatch(value))


def _plain(value: str) -> str:
    """Return a decimal without zeros at its beginning and end."""
    whole, _, decimals = value.partition(".")
    return ".".join(filter(None, (whole.lstrip("0") or "0", decimals.rstrip("0"))))


def _dates(word: str) -> list[str]:
    """Return the dates that a number may be, year first; 7/2/2026 may be two."""
    date = _DATE.fullmatch(word)
    if date is None:
        return []
    if date["y"]:
        found = [(date["y"], date[3], date[4])]
    else:
        found = [(date[8], date[7], date[5])]
        if date["sign"] == "/":
            found.append((date[8], date[5], date[7]))
    dates = (
        f"{year}-{int(month):02}-{int(day):02}"
        for year, month, day in found
        if 1 <= int(month) <= 12 and 1 <= int(day) <= 31  # noqa: PLR2004 - months and days
    )
    return [date for date in dict.fromkeys(dates) if date != word]


def spanning(text: str) -> list[str]:
    """Return the terms that span several words of a normalized text: codes, telephone numbers, thousands in spaces.

    QX-4471 has the term qx4471, as it is also written.
    """
    without_letters_only = " ".join([part for part in text.split() if not part.isalpha()])  # fewer to search
    codes = (match[0] for match in _CODE.finditer(without_letters_only))
    found = [
        _JOINT.sub("", code)
        for code in codes
        if len(code) <= MAX_CODE and _LETTER.search(code) and not _IS_ATOM.fullmatch(code)
    ]
    groups = (
        match[0].replace(" ", "").replace(",", ".")
        for match in _GROUPS.finditer(text)
        if len(match[0]) <= MAX_CODE and not _IS_SPACED.fullmatch(text, *match.span())
    )
    telephones = (re.sub(r"\D", "", match[0]) for match in _TELEPHONE.finditer(text))
    return [*found, *groups, *(digits for digits in telephones if len(digits) >= MIN_JOINED)]
