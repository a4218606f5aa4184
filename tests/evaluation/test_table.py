"""One table in every form."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from evaluation.metrics import Difference, Interval
from evaluation.table import Table, draw

SVG = "{http://www.w3.org/2000/svg}"
BARS = Table(
    "birds: 3 queries",
    ["setup", "nDCG@10", "Δ", "ms"],
    [
        ["BM25 & <more>", Interval(0.5, 0.4, 0.6), None, 1200],
        ["HYBRID", 0.25, Difference(-0.25, -0.3, -0.2), 7],
    ],
    ["nDCG@10"],
    ["A note."],
)
CURVE = Table("boost", ["value", "right"], [[1.0, Difference(0, 0, 0)], [1.25, Difference(0.1, 0, 0.2)]], ["right"])


def texts(path: Path) -> set[str]:
    """Return the words of a picture."""
    return {"".join(text.itertext()).strip() for text in ET.parse(path).getroot().iter(f"{SVG}text")}


def test_markdown_has_intervals_and_stars() -> None:
    assert BARS.markdown.splitlines() == [
        "birds: 3 queries.",
        "",
        "| setup | nDCG@10 | Δ | ms |",
        "|---|---:|---:|---:|",
        "| BM25 & <more> | 0.500 (0.400 to 0.600) |  | 1,200 |",
        "| HYBRID | 0.250 | -0.250* (-0.300 to -0.200) | 7 |",
        "",
        "A note.",
    ]


def test_json_has_every_digit() -> None:
    assert BARS.json["rows"][1] == {
        "setup": "HYBRID",
        "nDCG@10": 0.25,
        "Δ": {"mean": -0.25, "low": -0.3, "high": -0.2},
        "ms": 7,
    }


def test_the_terminal_shows_no_intervals(capsys: pytest.CaptureFixture[str]) -> None:
    BARS.print()

    printed = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["HYBRID", "0.250", "-0.250*", "7"] in printed
    assert ["A", "note."] in printed


def test_a_picture_names_rows_columns_and_values(tmp_path: Path) -> None:
    draw(tmp_path / "all.svg", [BARS, CURVE])

    words = texts(tmp_path / "all.svg")
    assert {"birds: 3 queries", "BM25 & <more>", "HYBRID", "nDCG@10", "boost", "value", "right"} <= words


@pytest.mark.parametrize("name", ["table.png", "table.svg"])
def test_the_same_figures_are_the_same_file(tmp_path: Path, name: str) -> None:
    for number in (1, 2):
        draw(tmp_path / f"{number}-{name}", [BARS, CURVE])

    assert (tmp_path / f"1-{name}").read_bytes() == (tmp_path / f"2-{name}").read_bytes()
