"""What the table of filters says about a way to filter."""

import numpy as np
import pytest

from evaluation.filter_table import cell

WITHOUT = np.tile([0.2, 0.4], 20)
ALONE = WITHOUT + 0.2
CLUSTERS = np.arange(40)


def test_a_right_filter_is_compared_with_the_gain_of_the_filter_alone() -> None:
    found = cell(WITHOUT + 0.15, WITHOUT, ALONE, CLUSTERS)

    assert found.lines == ("0.450", "75 % kept", "(75 to 75)")


def test_a_wrong_filter_is_compared_with_no_filter() -> None:
    found = cell(WITHOUT * 0.9, WITHOUT, None, CLUSTERS)

    assert found.lines == ("0.270", "-10 %", "(-10 to -10)")


@pytest.mark.parametrize("gain", [np.tile([0.1, -0.1], 20), np.full(40, 0.01)])
def test_a_gain_that_is_small_or_within_chance_has_no_share(gain: np.ndarray) -> None:
    alone = WITHOUT + gain

    found = cell(WITHOUT + 0.01, WITHOUT, alone, CLUSTERS)

    assert found.lines == ("0.310", "+0.010", "(+0.010 to +0.010)")


@pytest.mark.parametrize("figures", [np.zeros(40), np.tile([0.0, 0.5], 20)])
def test_nothing_found_without_a_filter_gives_a_difference(figures: np.ndarray) -> None:
    found = cell(figures, np.zeros(40), None, CLUSTERS)

    assert found.lines[1] == f"{figures.mean():+.3f}"
