"""Charts of OpenDocument files as tables, from the table that each keeps of its values."""

from collections.abc import Iterator
from typing import Final
from xml.etree.ElementTree import Element

from ragstack_common.reading import charts
from ragstack_common.reading.markdown import Blocks, one_line

_EMPTY: Final = frozenset({"NaN", "1.#NAN", "-1.#IND"})


def write(chart: Element, blocks: Blocks) -> None:
    """Write the titles of a chart and the table of its values."""
    titles = [_text(chart.find(f"chart.{name}")) for name in ("title", "subtitle")]
    plot = chart.find("chart.plot-area")
    axes = {
        each.get("chart.dimension", ""): _text(each.find("chart.title"))
        for each in (plot.findall("chart.axis") if plot is not None else ())
    }
    rows = [_cells(row) for row in chart.iterfind("table.table//table.table-row")]
    header, *others = rows or [[]]
    categories = {place: row[0] for place, row in enumerate(others) if row and row[0]}
    series = [
        charts.Series(
            name,
            categories,
            {place: row[column] for place, row in enumerate(others) if column < len(row) and row[column]},
            (axes.get("x", ""), axes.get("y", "")),
        )
        for column, name in enumerate(header)
        if column
    ]
    charts.write_tables("\n".join(filter(None, titles)), series, blocks)
    blocks.paragraph(_text(chart.find("chart.footer")))


def _text(parent: Element | None) -> str:
    return "" if parent is None else one_line(" ".join("".join(each.itertext()) for each in parent.iter("text.p")))


def _cells(row: Element) -> list[str]:
    return [*_shown(row)]


def _shown(row: Element) -> Iterator[str]:
    for cell in row:
        text = _text(cell)
        yield "" if text in _EMPTY else text
