"""What workbooks have: the texts of their cells as they are stored, and their numbers by their digits.

How a number is shown depends on its format, which the readers interpret; here its digits are listed in the forms that
formats give them, unless it is a date, a fraction or a number in another notation.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple
from xml.etree.ElementTree import Element

from ragstack_common.reading.census import drawings
from ragstack_common.reading.census.parts import (
    COMMENTS_LEFT_OUT,
    HIDDEN_LEFT_OUT,
    NOT_RECOGNIZED,
    UPLOAD_APART,
    Census,
    Part,
)
from ragstack_common.reading.number_formats import BUILT_IN, GENERAL
from ragstack_common.reading.office_package import OfficePackage, local, whole_number

if TYPE_CHECKING:
    import xlrd

_ESCAPED: Final = re.compile(r"_x([0-9A-Fa-f]{4})_")
_SHEETS: Final = ("worksheet", "chartsheet", "dialogsheet")
_ON: Final = ("1", "true")
_QUOTED: Final = re.compile(r"\"[^\"]*\"|\\[\s\S]|_[\s\S]|\*[\s\S]|\[[^\]]*\]")
_DECIMAL: Final = re.compile(r"\d")
_NO_DIGIT: Final = re.compile(r"\D")
_PLACES: Final = re.compile(r"[0#?]")
_DIGITS: Final = re.compile(r"[0#?](?:[0#?,. ]*[0#?])?")
_OTHERWISE: Final = re.compile(r"[ymdhsegb/@]|,(?! ?[0#?])|[0#?][^0#?,. ]+[0#?]")
"""Dates, other calendars, exponents, fractions, texts, thousands, and numbers of several parts."""

_LEAST: Final = 1e-9
_MOST: Final = 1e15
"""Smaller and greater numbers are shown with an exponent."""


class _Cell(NamedTuple):
    column: int
    text: str = ""
    digits: Sequence[str] = ()


def count_xlsx(data: bytes) -> Census:
    """List the cells of a workbook by sheet; raises UnreadableDocument."""
    return _Workbook(OfficePackage(data, "xlsx")).census()


class _Workbook:
    def __init__(self, package: OfficePackage) -> None:
        self._package = package
        self._main = package.main_part()
        self._links = package.links(self._main)
        self._strings = [*self._shared_strings()]
        self._formats = [*self._cell_formats()]
        self._left_out = {"hidden rows": 0, "hidden cells": 0, "comments": 0, "pictures": 0, "embedded files": 0}

    def census(self) -> Census:
        census = Census([], "sheets")
        hidden = 0
        for sheet in self._package.root(self._main).iter("sheet"):
            link = self._links.get(sheet.get("id", ""))
            if sheet.get("state", "visible") != "visible":
                hidden += 1
            elif link and link.kind in _SHEETS and self._package.has(link.target):
                part = Part(f"sheet {sheet.get('name', '')}")
                self._add_cells(link.target, part)
                census.cells += len(part.texts) + len(part.numbers)
                part.texts += drawn(self._package, link.target, self._left_out, self._comments)
                census.parts.append(part)
        census.left_out("hidden sheets", hidden, HIDDEN_LEFT_OUT)
        reasons = {"comments": COMMENTS_LEFT_OUT, "pictures": NOT_RECOGNIZED, "embedded files": UPLOAD_APART}
        for what, number in self._left_out.items():
            census.left_out(what, number, reasons.get(what, HIDDEN_LEFT_OUT))
        return census

    def _comments(self, name: str) -> int:
        return sum(1 for _ in self._package.root(name).iter("comment"))

    def _cell_formats(self) -> Iterator[str]:
        """Yield the format of each style of cells."""
        for link in self._links.values():
            if link.kind == "styles" and self._package.has(link.target):
                styles = self._package.root(link.target)
                codes = styles.iter("numFmt")
                own = {whole_number(each.get("numFmtId"), 0): each.get("formatCode", GENERAL) for each in codes}
                for each in styles.find("cellXfs") or ():
                    number = whole_number(each.get("numFmtId"), 0)
                    yield own.get(number, BUILT_IN.get(number, "y" if number else GENERAL))

    def _shared_strings(self) -> Iterator[str]:
        for link in self._links.values():
            if link.kind == "sharedStrings" and self._package.has(link.target):
                for element in self._package.elements(link.target):
                    if local(element.tag) == "si":
                        yield _text(element)
                        element.clear()

    def _add_cells(self, name: str, part: Part) -> None:
        hidden_columns: set[int] = set()
        is_filtered = False
        hidden_rows: list[list[_Cell]] = []
        for element in self._package.elements(name):
            tag = local(element.tag)
            if tag == "col" and element.get("hidden") in _ON:
                hidden_columns.update(range(*_columns(element)))
            elif tag in ("filterColumn", "filters", "customFilters"):
                is_filtered = True
            elif tag == "row":
                cells = [*self._cells_of(element)]
                shown = [cell for cell in cells if cell.column not in hidden_columns]
                self._left_out["hidden cells"] += len(cells) - len(shown)
                if element.get("hidden") in _ON:
                    hidden_rows.append(shown)
                else:
                    _add(part, shown)
                element.clear()
        # The filter, whose rows are read, comes behind them.
        for row in hidden_rows if is_filtered else ():
            _add(part, row)
        self._left_out["hidden rows"] += 0 if is_filtered else sum(map(bool, hidden_rows))

    def _cells_of(self, row: Element) -> Iterator[_Cell]:
        column = 0
        for cell in row:
            if local(cell.tag) != "c":
                continue
            column = _column(cell.get("r", "")) or column + 1
            kind, style = cell.get("t", "n"), whole_number(cell.get("s"), 0)
            code = self._formats[style] if 0 <= style < len(self._formats) else GENERAL
            value = next((each.text or "" for each in cell if local(each.tag) == "v"), "").strip()
            text = ""
            if kind == "n":
                yield _Cell(column, digits=digits_of(value, code) if value else ())
            elif kind == "s":
                text = self._strings[int(value)] if value.isdigit() and int(value) < len(self._strings) else ""
            elif kind == "inlineStr":
                text = "".join(map(_text, cell))
            elif kind == "b":
                text = {"1": "TRUE", "true": "TRUE", "": ""}.get(value, "FALSE")
            elif kind in ("str", "e"):
                text = _unescaped(value)
            if text.strip() and shows_text(code):
                yield _Cell(column, text)
            else:
                self._left_out["hidden cells"] += bool(text.strip())


def drawn(
    package: OfficePackage, part: str, left_out: dict[str, int], count_comments: Callable[[str], int]
) -> Iterator[str]:
    """Yield the texts of shapes and charts on a sheet, and count its comments, pictures and embedded files.

    Args:
        package: The file.
        part: The sheet.
        left_out: Where they are counted.
        count_comments: Returns the number of comments in a part.
    """
    for link in package.links(part).values():
        if not package.has(link.target):
            continue
        if link.kind == "comments":
            left_out["comments"] += count_comments(link.target)
        elif link.kind in ("oleObject", "package"):
            left_out["embedded files"] += 1
        elif link.kind == "drawing":
            others: list[str] = []
            yield from drawings.shown(package.root(link.target), others)
            links = package.links(link.target)
            left_out["pictures"] += sum(each.kind == "image" for each in links.values())
            for own in others:
                if own in links and not links[own].is_external:
                    yield from drawings.texts(package, links[own].target)


def _columns(element: Element) -> tuple[int, int]:
    """Return the columns that an element describes, from the first to the one after the last."""
    return whole_number(element.get("min"), 1), min(whole_number(element.get("max"), 1), 16_384) + 1


def _add(part: Part, cells: Sequence[_Cell]) -> None:
    part.numbers += [[*cell.digits] for cell in cells if cell.digits]
    part.texts += [cell.text for cell in cells if cell.text]


@cache
def shows_text(code: str) -> bool:
    """Whether a format shows texts: its fourth section is for them."""
    sections = _QUOTED.sub("", code).split(";")
    return len(sections) < 4 or "@" in sections[-1]  # noqa: PLR2004


@cache
def roundings(code: str) -> tuple[tuple[int | None, bool], ...]:
    """Return how the sections of a format round: to how many places, None for all, and whether in percent.

    None are returned of formats with a section that shows no digits, or others as well.
    """
    found = []
    for section in _QUOTED.sub(_apart, GENERAL if code == "@" else code).lower().split(";")[:3]:
        plain = section.replace("general", "")
        digits = _DIGITS.search(plain)
        if _OTHERWISE.search(plain) or (plain == section and digits is None):
            return ()
        places = len(_PLACES.findall(digits[0].partition(".")[2])) if digits else None
        found.append((places, "%" in plain))
    return tuple(found)


def _apart(quoted: re.Match[str]) -> str:
    """Return what stands for a text in a format: digits on either side of it are two numbers."""
    if quoted[0][0] in "[_*" or quoted[0] in ("\\ ", '""'):
        return "" if quoted[0][0] == "[" else " "
    return "/" if _DECIMAL.search(quoted[0]) else "\0"


def digits_of(value: str, code: str) -> list[str]:
    """Return the digits that a number may be shown with in a format; none if it may be 0, which is often a dash."""
    try:
        number = abs(float(value))
    except ValueError:
        return [value]
    if not _LEAST <= number < _MOST:
        return []
    forms = set()
    for places, is_percent in roundings(code):
        exact = Decimal(f"{number * 100 if is_percent else number:.15g}")
        forms.add(f"{exact if places is None else exact.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP):f}")
    # Places with # and ? show no zeros at their end.
    for form in [*forms]:
        kept = len(form.rstrip("0")) if "." in form else len(form)
        forms.update(form[:end] for end in range(kept, len(form)))
    digits = {_NO_DIGIT.sub("", form).lstrip("0") for form in forms}
    return [] if "" in digits else sorted(digits)


def _text(element: Element) -> str:
    """Return the text of a string, without its phonetic guide."""
    texts = []
    for child in element:
        tag = local(child.tag)
        if tag == "t":
            texts.append(child.text or "")
        elif tag == "r":
            texts += [each.text or "" for each in child if local(each.tag) == "t"]
    return _unescaped("".join(texts))


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)


def _column(reference: str) -> int:
    number = 0
    for letter in reference.rstrip("0123456789"):
        number = number * 26 + ord(letter) - 64
    return number


def count_xls(data: bytes) -> Census:
    """List the cells of a workbook of Excel 97 to 2003 by sheet; raises the errors of xlrd."""
    import io  # noqa: PLC0415

    import xlrd  # noqa: PLC0415 - rarely needed

    def opened(*, formatting_info: bool) -> xlrd.Book:
        return xlrd.open_workbook(file_contents=data, formatting_info=formatting_info, logfile=io.StringIO())

    try:
        book = opened(formatting_info=True)
    except Exception:  # noqa: BLE001 - formats are damaged more often than cells
        book = opened(formatting_info=False)
    census = Census([], "sheets")
    left_out = {"hidden rows": 0, "hidden cells": 0, "comments": 0}
    for sheet in book.sheets():
        if not sheet.visibility:
            part = Part(f"sheet {sheet.name}")
            _add_xls(book, sheet, part, left_out)
            left_out["comments"] += len(sheet.cell_note_map)
            census.cells += len(part.texts) + len(part.numbers)
            census.parts.append(part)
    census.left_out("hidden sheets", sum(1 for sheet in book.sheets() if sheet.visibility), HIDDEN_LEFT_OUT)
    for what, count in left_out.items():
        census.left_out(what, count, COMMENTS_LEFT_OUT if what == "comments" else HIDDEN_LEFT_OUT)
    return census


def _add_xls(book: "xlrd.Book", sheet: "xlrd.sheet.Sheet", part: Part, left_out: dict[str, int]) -> None:
    hidden = {number for number, each in sheet.colinfo_map.items() if each.hidden}
    for number in range(sheet.nrows):
        cells = [*_cells_of_xls(book, sheet.row(number))]
        if (info := sheet.rowinfo_map.get(number)) is not None and info.hidden:
            left_out["hidden rows"] += bool(cells)
            continue
        shown = [cell for cell in cells if cell.column not in hidden]
        _add(part, shown)
        left_out["hidden cells"] += len(cells) - len(shown)


def _cells_of_xls(book: "xlrd.Book", row: "Sequence[xlrd.sheet.Cell]") -> Iterator[_Cell]:
    for column, cell in enumerate(row):
        if isinstance(cell.value, str):
            if cell.value.strip():
                yield _Cell(column, cell.value)
        elif cell.ctype == 2 and book.xf_list and cell.xf_index is not None:  # noqa: PLR2004 - xlrd.XL_CELL_NUMBER
            code = book.format_map[book.xf_list[cell.xf_index].format_key].format_str
            yield _Cell(column, digits=digits_of(str(cell.value), code))
