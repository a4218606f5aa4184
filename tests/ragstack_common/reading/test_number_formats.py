"""The text that a spreadsheet shows for a number."""

import pytest

from ragstack_common.reading.number_formats import shown, shown_text

DAY = 46205  # 2 July 2026


@pytest.mark.parametrize(
    ("value", "code", "text"),
    [
        (1250000.75, "General", "1250000.75"),
        (0.00012, "General", "0.00012"),
        (4006381333931, "General", "4006381333931"),
        (0.1 + 0.2, "General", "0.3"),
        (1e-12, "General", "1E-12"),
        (1e25, "General", "1E+25"),
        (0, "General", "0"),
        (-3.5, 'General" kg"', "-3.5 kg"),
        (1067, "00000", "01067"),
        (0.325, "0.0%", "32.5%"),
        (1.005, "0.00", "1.01"),
        (-1234.5, '#,##0.00\\ "€";[Red]\\-#,##0.00\\ "€"', "-1,234.50 €"),
        (1234.5, "[$€-407] #,##0.00", "€ 1,234.50"),
        (0, '_-* #,##0.00_-;\\-* #,##0.00_-;_-* "-"??_-;_-@_-', "-"),
        (-3.5, "0.0;(0.0)", "(3.5)"),
        (1234567, '0.0,,"M"', "1.2M"),
        (12345.678, "0.00E+00", "1.23E+04"),
        (0.00012, "##0.0E+0", "120.0E-6"),
        (0.5, "# ?/?", "1/2"),
        (2.25, "# ?/8", "2 2/8"),
        (5551234567, "(000) 000-0000", "(555) 123-4567"),
        (12, "#.##", "12"),
        (3, '"yes";"no"', "yes"),
        (-3, '"yes";"no"', "no"),
        (75, '[>=100]"high";[<50]"low";"mid"', "mid"),
        (5, ";;;", ""),
    ],
)
def test_a_number_has_the_text_of_its_format(value: float, code: str, text: str) -> None:
    assert shown(value, code) == text


@pytest.mark.parametrize(
    ("value", "code", "text"),
    [
        (DAY, "yyyy-mm-dd", "2026-07-02"),
        (DAY, "dd.mm.yyyy", "2026-07-02"),
        (DAY + 0.51, "m/d/yy h:mm", "2026-07-02 12:14"),
        (DAY, "[$-F800]dddd, mmmm dd, yyyy", "2026-07-02"),
        (DAY, "d mmm yyyy", "2 Jul 2026"),
        (DAY, "[$-407]dddd, d. mmmm yyyy", "Donnerstag, 2. Juli 2026"),
        (DAY, 'yyyy"年"m"月"d"日"', "2026年7月2日"),
        (DAY + 0.75, "h:mm AM/PM", "6:00 PM"),
        (0.999999, "h:mm:ss", "0:00:00"),
        (1.5, "[h]:mm:ss", "36:00:00"),
        (0.001, "mm:ss.0", "01:26.4"),
        (1, "d mmm yyyy", "1 Jan 1900"),
        (61, "d mmm yyyy", "1 Mar 1900"),
        (-1, "yyyy-mm-dd", "-1"),
    ],
)
def test_a_date_or_time_has_the_text_of_its_format(value: float, code: str, text: str) -> None:
    assert shown(value, code) == text


def test_days_can_count_from_1904() -> None:
    assert shown(DAY - 1462, "yyyy-mm-dd", since_1904=True) == "2026-07-02"
    assert shown(0.75, "[h]:mm", since_1904=True) == "18:00"


@pytest.mark.parametrize(
    "code", ["0." + "0" * 120, "0" * 200, "[<1..2]0", "[>]0", "0" * 5000, "[$-" + "F" * 200 + "]m"]
)
def test_endless_and_wrong_formats_show_something(code: str) -> None:
    assert shown(1.5, code)
    assert shown(1.5e300, code)


def test_hours_of_more_days_than_there_are_dates_are_a_number() -> None:
    assert shown(-3_000_000, "[h]:mm") == "-3000000"
    assert shown(-1.5, "[h]:mm") == "-36:00"


def test_a_format_can_add_to_a_text() -> None:
    assert shown_text("7", '"No. "@') == "No. 7"
    assert shown_text("7", "0.00") == "7"


def test_a_format_can_hide_a_text() -> None:
    assert shown_text("7", ";;;") == ""
    assert shown_text("7", '0;-0;0;"hidden"') == "hidden"
    assert shown_text("7", "0;-0;0") == "7"
