"""Charts of Office Open XML files as tables: a row for each category, and a column for each series.

The values are those that the file keeps of the cells that the chart draws, in the format of these cells.

Source: ECMA-376 part 1, section 21.2, and MS-ODRAWXML, section 2.24.3, for the charts that Office 2016 added.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Final
from xml.etree.ElementTree import Element

from ragstack_common.reading.markdown import Blocks
from ragstack_common.reading.number_formats import GENERAL, shown
from ragstack_common.reading.office_package import whole_number

_ON: Final = ("1", "true")
_TEXTS: Final = ("strCache", "strLit", "dlblRangeCache")
_NUMBERS: Final = ("numCache", "numLit", "numDim")
_CATEGORY_AXES: Final = ("catAx", "dateAx", "serAx")
MAX_CELLS: Final = 1_000_000
"""Cells of all tables of a chart; Excel draws 32,000 points of each of 255 series."""


@dataclass(frozen=True)
class Series:
    """What one column of the table shows.

    Attributes:
        name: As in the legend.
        categories: Texts by the place of their point.
        values: The same.
        axes: The titles of the axes with categories and with values.
    """

    name: str
    categories: Mapping[int, str]
    values: Mapping[int, str]
    axes: tuple[str, str] = ("", "")


def write(root: Element, blocks: Blocks) -> None:
    """Write the title of a chart and its tables."""
    chart = root.find("chart")
    if chart is not None:
        series = _extended(root, chart) if root.find("chartData") is not None else _classic(root, chart)
        write_tables(_title(chart), [*series], blocks)


def write_tables(title: str, series: list[Series], blocks: Blocks) -> None:
    """Write a table for each run of series with the same categories.

    Raises:
        MemoryError: They have more than ``MAX_CELLS``.
    """
    blocks.paragraph(title)
    cells = 0
    for categories, group in groupby(series, lambda each: each.categories):
        columns = [*group]
        header = [columns[0].axes[0], *(_joined(each.axes[1], each.name) for each in columns)]
        places = sorted(set(categories).union(*(each.values for each in columns)))
        cells += len(places) * len(columns)
        if cells > MAX_CELLS:
            raise MemoryError
        rows = (
            [
                categories.get(place, "" if categories else str(place + 1)),
                *(each.values.get(place, "") for each in columns),
            ]
            for place in places
        )
        if places:
            blocks.table([header, *rows])
        else:
            blocks.paragraph("\n".join(dict.fromkeys(filter(None, header))))


def paragraphs(parent: Element) -> Iterator[str]:
    """Yield the paragraphs of a text in a drawing, without empty ones and without fields that repeat values."""
    for each in parent.iter("p"):
        written = ""
        for run in each:
            if run.tag == "br":
                written += "\n"
            elif run.tag != "fld" or run.get("type", "")[:1].islower():  # slidenum, datetime; not VALUE, CELLRANGE
                written += "".join(text.text or "" for text in run.iter("t"))
        if written.strip():
            yield written.strip()


def _joined(*texts: str) -> str:
    return " ".join(dict.fromkeys(filter(None, texts)))


def _title(parent: Element) -> str:
    title = parent.find("title")
    return "" if title is None else _text(title.find("tx"))


def _text(source: Element | None) -> str:
    """Return a text that is in the chart, or kept from a cell."""
    if source is None:
        return ""
    return " ".join(paragraphs(source)) or " ".join(each.text for each in source.iter("v") if each.text)


def _classic(root: Element, chart: Element) -> Iterator[Series]:
    since_1904 = _value(root, "date1904") in _ON
    area = chart.find("plotArea")
    axes = {} if area is None else {_value(each, "axId"): each for each in area if each.tag.endswith("Ax")}
    titles = {own: _title(each) for own, each in axes.items() if _value(each, "delete") not in _ON}
    codes = {own: code.get("formatCode") for own, each in axes.items() if (code := each.find("numFmt")) is not None}
    for plot in area if area is not None else ():
        own_axes = [each.get("val") for each in plot.findall("axId")]
        own_axes.sort(key=lambda own: own in axes and axes[own].tag not in _CATEGORY_AXES)
        along, up, *_ = [*own_axes, None, None]
        shared: Mapping[int, str] = {}
        for each in plot.findall("ser"):
            if (across := each.find("xVal")) is not None:
                categories: Mapping[int, str] = _points(across, codes.get(along), since_1904=since_1904)
            else:  # those of the first series are those of all
                categories = shared = shared or _points(each.find("cat"), codes.get(along), since_1904=since_1904)
            values = each.find("val") if each.find("val") is not None else each.find("yVal")
            labelled = _points(values, codes.get(up), since_1904=since_1904)
            labels = _points(next(each.iter("datalabelsRange"), None))
            for label in each.iterfind("dLbls/dLbl"):
                if text := _text(label.find("tx")):
                    labels[whole_number(_value(label, "idx"), -1)] = text
            for place, text in labels.items():
                labelled[place] = _joined(labelled.get(place, ""), text)
            yield Series(_text(each.find("tx")), categories, labelled, (titles.get(along, ""), titles.get(up, "")))


def _extended(root: Element, chart: Element) -> Iterator[Series]:
    data = {each.get("id"): each for each in root.iterfind("chartData/data")}
    for each in chart.iter("series"):
        if each.get("hidden") in _ON:
            continue
        source = data.get(_value(each, "dataId"))
        parts = {} if source is None else {part.get("type", ""): part for part in source if part.tag.endswith("Dim")}
        categories = _points(parts.get("cat"))
        # Without categories, a histogram or a box plot draws no single value.
        values = _points(parts.get("val", parts.get("size"))) if categories else {}
        yield Series(_text(each.find("tx")), categories, values)


def _points(data: Element | None, axis_code: str | None = None, *, since_1904: bool = False) -> dict[int, str]:
    """Return the texts of points by their place; those of several levels from the outermost inwards.

    Args:
        data: Where the chart keeps them.
        axis_code: The format of numbers whose cells have none.
        since_1904: Whether days count from 1904.
    """
    if data is None:
        return {}
    sources = [data, *data.iter()]
    levels = [*data.iter("lvl")] or [each for each in sources if each.tag in _TEXTS + _NUMBERS][:1]
    is_number = any(each.tag in _NUMBERS for each in sources)
    found: dict[int, str] = {}
    for level in levels:  # the innermost first
        code = level.get("formatCode") or level.findtext("formatCode") or GENERAL
        code = axis_code or code if code == GENERAL else code
        points: dict[int, str] = {}
        for each in level.findall("pt"):
            text = (each.findtext("v") or each.text or "").strip()
            if is_number:
                text = _formatted(text, each.get("formatCode") or code, since_1904=since_1904)
            if text:
                points[whole_number(each.get("idx"), len(points))] = text
        if found:
            starts = sorted(points)
            for place, inner in found.items():
                if begin := bisect_right(starts, place):
                    found[place] = f"{points[starts[begin - 1]]} {inner}"
        else:
            found = points
    return found


def _formatted(text: str, code: str, *, since_1904: bool) -> str:
    try:
        return shown(float(text), code, since_1904=since_1904)
    except ValueError:
        return text  # #N/A


def _value(parent: Element, name: str) -> str | None:
    found = parent.find(name)
    return None if found is None else found.get("val", "1")
