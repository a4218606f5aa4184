"""The sheets of Excel's workbooks: each cell has the text that the sheet shows."""

import io
import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, Final
from xml.etree import ElementTree as ET

from ragstack_common.reading import drawings, formats, markdown, ole
from ragstack_common.reading.formats import UnreadableDocument
from ragstack_common.reading.markdown import Blocks
from ragstack_common.reading.number_formats import BUILT_IN, GENERAL, days, shown, shown_text
from ragstack_common.reading.office_package import OfficePackage, local, whole_number
from ragstack_common.reading.sheets import biff
from ragstack_common.reading.sheets.sheet import COLUMNS, Merged, Sheet

if TYPE_CHECKING:
    import xlrd

_REFERENCE: Final = re.compile(r"([A-Z]{1,3})([0-9]{1,7})")
_MERGED: Final = re.compile(rb"<(?:\w+:)?mergeCell\s[^>]*?ref=[\"']([A-Z]{1,3})(\d{1,7}):([A-Z]{1,3})(\d{1,7})[\"']")
_FILTERED: Final = re.compile(rb"<(?:\w+:)?(?:filterColumn|filters|customFilters)[\s>]")
_ESCAPED: Final = re.compile(r"_x([0-9A-Fa-f]{4})_")
_EXCEL_97: Final = 80
"""As xlrd names the version of its files."""

_LONGEST_ELEMENT: Final = 512


class XlsxWorkbook:
    """A workbook in Office Open XML.

    Raises:
        UnreadableDocument: It is damaged or hostile.
    """

    def __init__(self, data: bytes) -> None:
        self._package = OfficePackage(data, "xlsx")
        self._main = self._package.main_part()
        self._links = self._package.links(self._main)
        workbook = self._package.root(self._main)
        properties = workbook.find("workbookPr")
        self._since_1904 = properties is not None and properties.get("date1904") in ("1", "true")
        self._formats = self._cell_formats()
        self._strings = [*self._shared_strings()]
        self._listed = [
            (sheet.get("name", ""), link.target)
            for sheet in workbook.iter("sheet")
            if sheet.get("state", "visible") == "visible"
            and (link := self._links.get(sheet.get("id", "")))
            and link.kind in ("worksheet", "chartsheet")
        ]

    def sheets(self) -> Iterator[Sheet]:
        """Yield the visible sheets."""
        for name, part in self._listed:
            if self._package.has(part):
                yield self._sheet(name, part)

    def _part(self, kind: str) -> str | None:
        found = (link.target for link in self._links.values() if link.kind == kind and self._package.has(link.target))
        return next(found, None)

    def _cell_formats(self) -> list[str]:
        part = self._part("styles")
        if part is None:
            return []
        styles = self._package.root(part)
        own = {whole_number(each.get("numFmtId"), 0): each.get("formatCode", GENERAL) for each in styles.iter("numFmt")}
        own = {**BUILT_IN, **own}
        cells = styles.find("cellXfs")
        return [
            own.get(whole_number(each.get("numFmtId"), 0), GENERAL) for each in (cells if cells is not None else ())
        ]

    def _shared_strings(self) -> Iterator[str]:
        part = self._part("sharedStrings")
        if part is None:
            return
        for element in self._package.elements(part):
            if local(element.tag) == "si":
                yield _rich_text(element)
                element.clear()

    def _sheet(self, name: str, part: str) -> Sheet:
        sheet = Sheet(name)
        merged, is_filtered = self._end_of_sheet(part)
        is_hidden = bytearray(COLUMNS + 1)
        number = 0
        for element in self._package.elements(part):
            tag = local(element.tag)
            if tag == "col" and _is_hidden(element, "width"):
                first, last = (max(1, min(whole_number(element.get(end), 1), COLUMNS)) for end in ("min", "max"))
                is_hidden[first : last + 1] = b"\1" * (last + 1 - first)
            elif tag == "row":
                number = whole_number(element.get("r"), number + 1)
                is_shown = is_filtered or not _is_hidden(element, "ht")
                cells = merged.fill(number, self._cells(element)) if is_shown else {}
                visible = {
                    column: value for column, value in cells.items() if column > COLUMNS or not is_hidden[column]
                }
                if visible:
                    sheet.add(visible)
                element.clear()
        write_drawn(self._package, part, sheet.drawn)
        return sheet

    def _end_of_sheet(self, part: str) -> tuple[Merged, bool]:
        """Return what the file says after the rows, but decides how they are read."""
        ranges, is_filtered, before = [], False, b""
        for block in self._package.blocks(part):
            searched = before + block
            ranges += _MERGED.findall(searched)
            is_filtered = is_filtered or bool(_FILTERED.search(searched))
            before = searched[-_LONGEST_ELEMENT:]
        found = {
            (int(top), int(bottom), _column(left.decode()), _column(right.decode()))
            for left, top, right, bottom in ranges
        }
        return Merged(found), is_filtered

    def _cells(self, row: ET.Element) -> dict[int, str]:
        cells: dict[int, str] = {}
        column = 0
        for element in row:
            if local(element.tag) != "c":
                continue
            reference = _REFERENCE.match(element.get("r", ""))
            column = _column(reference[1]) if reference else column + 1
            value = self._value(element)
            if value.strip():
                cells[column] = value
        return cells

    def _value(self, element: ET.Element) -> str:
        kind = element.get("t", "n")
        if kind == "inlineStr":
            inline = next((each for each in element if local(each.tag) == "is"), None)
            written = "" if inline is None else _rich_text(inline)
        else:
            for child in element:
                if local(child.tag) == "v" and child.text is not None:
                    value = child.text
                    break
            else:
                return ""
            if kind == "b":
                return "TRUE" if value.strip() in ("1", "true") else "FALSE"
            if kind in ("n", "d"):
                return self._number(value, element) if kind == "n" else self._date(value, element)
            if kind == "s":
                place = whole_number(value, -1)
                written = self._strings[place] if 0 <= place < len(self._strings) else ""
            else:
                written = value if kind == "e" else _unescaped(value)
        return shown_text(written, self._format(element))

    def _number(self, value: str, element: ET.Element) -> str:
        try:
            return shown(float(value), self._format(element), since_1904=self._since_1904)
        except ValueError:
            return value

    def _date(self, value: str, element: ET.Element) -> str:
        """Return a date that the strict edition writes as such."""
        number, code = days(value.strip()), self._format(element)
        return value.replace("T", " ") if number is None or code == GENERAL else shown(number, code)

    def _format(self, element: ET.Element) -> str:
        style = whole_number(element.get("s"), 0)
        return self._formats[style] if 0 <= style < len(self._formats) else GENERAL


def write_drawn(package: OfficePackage, part: str, blocks: Blocks) -> None:
    """Write the texts of shapes, diagrams and charts on a sheet.

    Args:
        package: The file.
        part: The sheet.
        blocks: Where they are written.
    """
    for link in package.links(part).values():
        if link.kind == "drawing" and package.has(link.target):
            links = package.links(link.target)
            for each in drawings.drawn(package.root(link.target)):
                drawings.write(each, package, links, blocks)


def _is_hidden(element: ET.Element, size: str) -> bool:
    """Whether a row or column is hidden, or has no height or width, as some programs write it."""
    return element.get("hidden") in ("1", "true") or element.get(size) in ("0", "0.0")


def _rich_text(element: ET.Element) -> str:
    """Return a text of several runs, without its phonetic guide."""
    written = ""
    for child in element:
        tag = local(child.tag)
        if tag == "t":
            written += child.text or ""
        elif tag == "r":
            run = "".join(each.text or "" for each in child if local(each.tag) == "t")
            place = next((each.get("val") for each in child.iter() if local(each.tag) == "vertAlign"), None)
            if place == "superscript":
                run = markdown.raised(run, written)
            elif place == "subscript":
                run = markdown.lowered(run)
            written += run
    return _unescaped(written)


def _unescaped(written: str) -> str:
    """Replace characters that XML cannot hold, which the format writes as _x000D_."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), written) if "_x" in written else written


@cache
def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - 64
    return number


def _workbook_stream(data: bytes) -> bytes:
    """Return the records of a workbook; those of all sheets are in one stream."""
    if not data.startswith(ole.SIGNATURE):
        return data
    container = ole.CompoundFile(data)
    for name in ("Workbook", "Book"):
        if stream := container.stream(name):
            return stream
    raise UnreadableDocument(formats.DAMAGED.format("xls", "it has no workbook"))


class XlsWorkbook:
    """A workbook of Excel 97 to 2003.

    Raises:
        UnreadableDocument: It is damaged, protected or hostile.
    """

    def __init__(self, data: bytes) -> None:
        import xlrd  # noqa: PLC0415 - rarely needed

        self._types = xlrd
        try:
            # xlrd's own reader of compound files follows a chain of sectors without end.
            stream = _workbook_stream(data)
            self._book = self._opened(stream)
            self._stream = stream if self._book.biff_version >= _EXCEL_97 else b""
        except (UnreadableDocument, MemoryError):
            raise
        except Exception as error:  # noqa: BLE001 - xlrd raises any for damaged records
            raise UnreadableDocument(formats.DAMAGED.format("xls", type(error).__name__)) from None

    def _opened(self, stream: bytes) -> "xlrd.Book":
        options: dict[str, Any] = {"file_contents": stream, "logfile": io.StringIO(), "ragged_rows": True}
        try:
            return self._types.open_workbook(**options, formatting_info=True)
        except self._types.XLRDError as error:
            if "encrypted" in str(error):
                raise UnreadableDocument(formats.PROTECTED.format("xls")) from None
            raise UnreadableDocument(formats.DAMAGED.format("xls", str(error)[:120])) from None
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001 - formats are damaged more often than cells
            return self._types.open_workbook(**options)

    def sheets(self) -> Iterator[Sheet]:
        """Yield the visible sheets."""
        sources = iter(self._book.sheets())
        listed = biff.sheets(self._stream) or [
            biff.SheetEntry(0, each.visibility, biff.WORKSHEET, each.name) for each in self._book.sheets()
        ]
        for entry in listed:
            source = next(sources, None) if entry.kind == biff.WORKSHEET else None
            if entry.state or (source is None and entry.kind != biff.CHART):
                continue
            sheet = Sheet(entry.name) if source is None else self._sheet(source)
            biff.write(self._stream, entry.position, self._formatted, sheet.drawn)
            yield sheet

    def _sheet(self, source: "xlrd.sheet.Sheet") -> Sheet:
        sheet = Sheet(source.name)
        merged = Merged((top, bottom - 1, left, right - 1) for top, bottom, left, right in source.merged_cells)
        hidden_columns = {number for number, each in source.colinfo_map.items() if each.hidden}
        for number in range(source.nrows):
            info = source.rowinfo_map.get(number)
            if info is not None and info.hidden:
                continue
            cells = {
                column: value
                for column, found in enumerate(source.row(number))
                if (value := self._value(source, number, column, found)).strip()
            }
            visible = {
                column: value for column, value in merged.fill(number, cells).items() if column not in hidden_columns
            }
            if visible:
                sheet.add(visible)
        return sheet

    def _value(self, source: Any, row: int, column: int, found: "xlrd.sheet.Cell") -> str:
        types = self._types
        if found.ctype == types.XL_CELL_BOOLEAN:
            return "TRUE" if found.value else "FALSE"
        if found.ctype == types.XL_CELL_ERROR:
            return str(types.error_text_from_code.get(found.value, ""))
        code = self._format(found)
        if found.ctype in (types.XL_CELL_NUMBER, types.XL_CELL_DATE):
            return shown(float(found.value), code, since_1904=bool(self._book.datemode))
        written = self._rich_text(source, row, column, str(found.value))
        return shown_text(written, code)

    def _format(self, found: "xlrd.sheet.Cell") -> str:
        formats = self._book.xf_list
        if not self._book.formatting_info or found.xf_index is None or found.xf_index >= len(formats):
            return "yyyy-mm-dd" if found.ctype == self._types.XL_CELL_DATE else GENERAL
        return self._code(formats[found.xf_index].format_key)

    def _code(self, key: int) -> str:
        own = self._book.format_map.get(key)
        return BUILT_IN.get(key) or (own.format_str if own else None) or GENERAL

    def _formatted(self, value: float, key: int) -> str:
        return shown(value, self._code(key), since_1904=bool(self._book.datemode))

    def _rich_text(self, source: Any, row: int, column: int, written: str) -> str:
        """Keep characters above and below the line apart."""
        if not self._book.formatting_info:
            return written
        runs = source.rich_text_runlist_map.get((row, column))
        if not runs:
            return written
        parts, ends = written[: runs[0][0]], [start for start, _ in runs[1:]] + [len(written)]
        for (start, font), end in zip(runs, ends, strict=True):
            part = written[start:end]
            fonts = self._book.font_list
            escapement = fonts[font].escapement if font < len(fonts) else 0
            parts += (part, markdown.raised(part, parts), markdown.lowered(part))[
                escapement if escapement in (1, 2) else 0
            ]
        return parts
