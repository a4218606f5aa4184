"""Pictures that can be read."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from evaluation import report
from evaluation.metrics import Interval
from evaluation.report import Curve

SVG = "{http://www.w3.org/2000/svg}"


def texts(path: Path) -> list[str]:
    """Return the words of a picture."""
    root = ET.parse(path).getroot()
    assert root.tag == f"{SVG}svg"
    return ["".join(text.itertext()).strip() for text in root.iter(f"{SVG}text")]


def test_bars_carry_names_figures_and_the_unit(tmp_path: Path) -> None:
    rows = [("BM25 & <more>", Interval(0.5, 0.4, 0.6)), ("HYBRID", Interval(0.25, 0.2, 0.3))]

    report.draw_bars(tmp_path / "new" / "bars.svg", "birds: 3 queries", "nDCG@10", rows)

    words = texts(tmp_path / "new" / "bars.svg")
    assert {"birds: 3 queries", "BM25 & <more>", "HYBRID", "0.500", "0.250"} <= set(words)
    assert "nDCG@10, mean and 95 % interval" in words


def test_curves_carry_both_axes_every_value_and_the_legend(tmp_path: Path) -> None:
    points = [Interval(-0.1, -0.2, 0.0), Interval(0, 0, 0), Interval(0.05, 0.0, 0.1)]

    report.draw_curves(
        tmp_path / "curve.svg", "birds: boost", "boost", "nDCG@10", (1, 1.25, 5), [Curve("right", points)], 1.25
    )

    words = texts(tmp_path / "curve.svg")
    assert {"boost", "nDCG@10, difference to the default", "1", "1.25", "5", "right", "default"} <= set(words)


@pytest.mark.parametrize("name", ["bars.png", "bars.svg"])
def test_the_same_figures_are_the_same_file(tmp_path: Path, name: str) -> None:
    for folder in ("one", "two"):
        report.draw_bars(tmp_path / folder / name, "t", "u", [("a", Interval(0.5, 0.4, 0.6))])

    assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
