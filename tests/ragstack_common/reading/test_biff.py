"""What lies on the sheets of a workbook of Excel 97 to 2003 follows their cells."""

import struct

from hypothesis import given
from hypothesis import strategies as st

from ragstack_common.reading.markdown import Blocks
from ragstack_common.reading.sheets import biff
from ragstack_common.reading.sheets.sheet import text
from ragstack_common.reading.sheets.workbooks import XlsWorkbook
from tests.support.office_files import label, number, record, short_text, substream, text_box, xls

PERCENT = 10


def read(data: bytes) -> str:
    return text(XlsWorkbook(data).sheets())


def source(which: int, code: int = 0) -> bytes:
    return record(0x1051, struct.pack("<BBHHH", which, 2, 0, code, 0))


def name(written: str) -> bytes:
    return record(0x100D, b"\0\0" + short_text(written))


def title(written: str, place: int) -> bytes:
    return record(0x1025, bytes(32)) + source(0) + name(written) + record(0x1027, struct.pack("<HHH", place, 0, 0))


SERIES = [
    record(0x1003, bytes(12)) + source(0) + name(written) + source(1, code) + source(2)
    for written, code in (("Costs", 0), ("Share", PERCENT))
]
CACHE = (
    record(0x1065, struct.pack("<H", 2))
    + b"".join(label(point, series, month) for point, month in enumerate(("Jan", "Feb")) for series in (0, 1))
    + record(0x1065, struct.pack("<H", 1))
    + b"".join(number(point, series, value) for point, series, value in ((0, 0, 12.5), (0, 1, 0.25), (1, 0, 7)))
)
CHART = substream(0x20, *SERIES, title("2026", 1), title("Month", 3), title("in euros", 2), CACHE)
COSTS = (
    "2026\n\n| Month | in euros Costs | in euros Share |\n| --- | --- | --- |\n| Jan | 12.5 | 25.00% |\n| Feb | 7 | |"
)


def test_text_boxes_and_charts_follow_the_cells() -> None:
    sheet = substream(0x10, label(0, 0, "a"), text_box("Stop: 7714"), text_box("secret", 0x19), CHART)

    assert read(xls({"S": (0, sheet)})) == f"## S\n\n| a |\n| --- |\n\nStop: 7714\n\n{COSTS}"


def test_a_chart_with_a_tab_of_its_own_is_read_between_the_sheets() -> None:
    cells = substream(0x10, label(0, 0, "a"))

    found = read(xls({"S": (0, cells), "Chart": (2, CHART), "T": (0, cells)}))

    assert found == f"## S\n\n| a |\n| --- |\n\n## Chart\n\n{COSTS}\n\n## T\n\n| a |\n| --- |"


@given(st.data())
def test_damaged_records_are_read_as_far_as_they_go(data: st.DataObject) -> None:
    stream = bytearray(substream(0x10, text_box("Stop: 7714"), CHART))
    for _ in range(data.draw(st.integers(1, 8))):
        stream[data.draw(st.integers(0, len(stream) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(stream)))

    biff.write(bytes(stream[:cut]), 0, lambda value, _: str(value), Blocks())
