"""The texts of numbers are those that LibreOffice shows, but for the differences that are named here.

Part of `make soak`, because LibreOffice takes seconds: `apt install libreoffice-calc`.
"""

# ruff: noqa: E501 - codes

import csv
import re
import shutil
import subprocess
from itertools import product
from pathlib import Path
from typing import Final

import openpyxl
import pytest
from openpyxl.utils.datetime import CALENDAR_MAC_1904, CALENDAR_WINDOWS_1900

from ragstack_common.reading.sheets import workbooks
from ragstack_common.reading.sheets.sheet import text as text_of_sheets
from tests.support.soak import SOAK

NUMBER_CODES: Final = [
    "General", "0", "0.00", "#,##0", "#,##0.00", "#", "#.##", "0.0#", "00000", "0%", "0.0%", "0.00E+00", "##0.0E+0",
    "0E+0", "# ?/?", "# ??/??", "# ?/8", "?/?", "#,##0.00;(#,##0.00)", '0.0;[Red]-0.0;"zero"', "0;-0;;@", '"a"0"b"', "0,",
    '0.0,,"M"', "[$€-407] #,##0.00", "#,##0.00 [$€-1]", "[$USD] 0", "$#,##0.00", '0\\ "kg"', "0.000", '"text"',
    '[>=100]0.0;[<0]"neg "0;0.000', "[<1]0.00;[>10]0;0.0", "000-00-0000", "(000) 000-0000", 'General" kg"', "*x0", "0_)",
    '_-* #,##0.00_-;\\-* #,##0.00_-;_-* "-"??_-;_-@_-', "?0.0?", "0.???", "#,##0,", "0.0%%", "+0;-0", '0 "°C"',
]  # fmt: skip
NUMBERS: Final = [
    0, 1, -1, 0.5, -0.5, 1.005, 1234.5, -1234.567, 0.001, 1e-7, 123456789, 1e15, 12345678901234567, 99.995, -0.001,
    0.325, 2.25, 1 / 3, 100, 10,
]  # fmt: skip
DATE_CODES: Final = [
    "d mmm yyyy", "dd mmmm yyyy", "dddd, d mmmm yyyy", "mmm-yy", "d-mmm", "h:mm", "hh:mm:ss", "h:mm AM/PM",
    "h:mm:ss AM/PM", "[h]:mm", "[mm]:ss", "[ss]", "mm:ss.0", "ss.00", 'yyyy"Q"', "d. mmmm", "[$-407]d. mmmm yyyy",
    "[$-40C]dddd d mmmm yyyy", "[$-409]mmmm d", "[$-410]d mmmm", "[$-C0A]dddd", "mmmmm", "ddd", "yy", "h", "m/d",
    "h:mm:ss.000", "yyyy-mm-dd", "yyyy-mm-dd hh:mm",
]  # fmt: skip
DATES: Final = [46205, 46205.51, 1, 59, 61, 0.75, 0.999, 0.000011, 1.5, 2.25, 45000.123456, 36526]
TEXT_CODES: Final = ["@", "General", "0.00", '"No. "@', '0;-0;;"<"@">"', ";;;", '0;0;0;@" kg"', '@*x"end"']
TEXTS: Final = ["word", "01067", "a b"]
CELLS: Final[list[tuple[str, float | str]]] = [
    *product(NUMBER_CODES, NUMBERS),
    *product(DATE_CODES, DATES),
    *product(TEXT_CODES, TEXTS),
]


def departure(code: str, value: float | str, epoch: str) -> str | None:
    """Return why LibreOffice shows another text."""
    if isinstance(value, str):
        return None
    is_date = code in DATE_CODES and not code.startswith("[h") and code not in ("[mm]:ss", "[ss]")
    if is_date and epoch == "1900" and value < 60 and re.search("[dmy]", re.sub(r"\[.*?\]|:m+|h:m+|m+:", "", code)):
        return "Excel counts 29 February 1900, which was not; LibreOffice begins a day earlier (ECMA-376 1, 18.17.4.1)"
    if is_date and "s" in code and value % 1:
        return "LibreOffice cuts seconds off, Excel rounds them"
    if code == "0%" and value == 1.005:
        return "LibreOffice multiplies before it rounds to 15 digits: 100.49999999999999"
    if code == "0.0%%":
        return "each percent sign is a factor of 100 in Excel (ECMA-376 1, 18.8.31), only the first in LibreOffice"
    if code == "0.???":
        return "a point without decimals is left out on purpose"
    if "/" in code and abs(value) >= 1e15:
        return "LibreOffice shows #FMT"
    if code.startswith("General") and value == 12345678901234567:
        return "a number without a format has all of its 15 digits on purpose"
    return None


def normal(text: str) -> str:
    """Return a text without the spaces that only align the digits of two rows."""
    return re.sub(r"^- ", "-", re.sub(r"\s+", " ", text.strip()))


@pytest.mark.skipif(not SOAK, reason="part of the long run")
@pytest.mark.skipif(shutil.which("soffice") is None, reason="apt install libreoffice-calc")
@pytest.mark.parametrize("epoch", ["1900", "1904"])
def test_libreoffice_shows_the_same(tmp_path: Path, epoch: str) -> None:
    file = tmp_path / "formats.xlsx"
    book = openpyxl.Workbook()
    book.epoch = CALENDAR_WINDOWS_1900 if epoch == "1900" else CALENDAR_MAC_1904
    sheet = book.worksheets[0]
    sheet.column_dimensions["B"].width = 80  # or ### is shown
    for row, (code, value) in enumerate(CELLS, start=1):
        sheet.cell(row, 1, f"r{row}")
        sheet.cell(row, 2, value).number_format = code
    book.save(file)

    profile = f"-env:UserInstallation={(tmp_path / 'profile').as_uri()}"
    # Its third number is UTF-8; texts are exported as they are shown.
    command = ["soffice", profile, "--headless", "--convert-to", "csv:Text - txt - csv (StarCalc):44,34,76"]
    subprocess.run([*command, "--outdir", tmp_path, file], capture_output=True, check=True, timeout=120)
    shown = {row[0]: row[1] for row in csv.reader((tmp_path / "formats.csv").read_text().splitlines())}
    lines = text_of_sheets(workbooks.XlsxWorkbook(file.read_bytes()).sheets()).splitlines()
    read = {cells[1].strip(): cells[2] for line in lines if len(cells := line.split("|")) == 4}

    differing = {
        (code, value): (normal(shown[f"r{row}"]), normal(read[f"r{row}"]))
        for row, (code, value) in enumerate(CELLS, start=1)
        if not departure(code, value, epoch) and normal(shown[f"r{row}"]) != normal(read[f"r{row}"])
    }
    assert differing == {}
