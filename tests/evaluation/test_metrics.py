"""Measures against figures worked out by hand, and intervals that can be repeated."""

import math
from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra.numpy import arrays
from hypothesis.strategies import floats, permutations

from evaluation import metrics

JUDGMENTS = {"a": {"x": 1, "y": 1}, "b": {"x": 2, "z": 1}, "c": {"x": 1}}


def test_measures_are_those_worked_out_by_hand() -> None:
    rankings = {"a": ["n", "x", "m", "y"], "b": ["z", "x"], "d": ["x"]}

    found = metrics.by_query(JUDGMENTS, rankings)

    ideal_a = 1 + 1 / math.log2(3)
    of_a = (1 / math.log2(3) + 1 / math.log2(5)) / ideal_a
    of_b = (1 + 2 / math.log2(3)) / (2 + 1 / math.log2(3))
    assert found["nDCG@10"] == pytest.approx([of_a, of_b, 0])
    assert found["R@10"] == pytest.approx([1, 1, 0])
    assert found["RR@10"] == pytest.approx([0.5, 1, 0])


def test_results_after_the_tenth_do_not_count() -> None:
    rankings = {"c": [*(f"n{number}" for number in range(10)), "x"]}

    found = metrics.by_query({"c": {"x": 1}}, rankings, (*metrics.MEASURES, metrics.DEEP_MEASURE))

    assert {name: values.tolist() for name, values in found.items()} == {
        "nDCG@10": [0],
        "R@10": [0],
        "RR@10": [0],
        "R@100": [1],
    }


def test_an_interval_depends_on_its_seed_only() -> None:
    values = np.random.default_rng(1).random(50)

    assert metrics.mean_interval(values) == metrics.mean_interval(values)
    assert metrics.mean_interval(values) != metrics.mean_interval(values, seed=7)


def test_an_interval_of_many_values_is_normal() -> None:
    values = np.random.default_rng(1).normal(0.5, 0.1, 2_000)

    found = metrics.mean_interval(values)

    half = 1.96 * values.std() / math.sqrt(len(values))
    assert (found.low, found.high) == pytest.approx((found.mean - half, found.mean + half), abs=half / 10)


def test_a_difference_is_taken_query_by_query() -> None:
    baseline = np.random.default_rng(1).random(40)

    found = metrics.difference_interval(baseline + 0.01, baseline)

    assert (found.mean, found.low, found.high) == pytest.approx((0.01, 0.01, 0.01))
    assert found.excludes_zero


@given(arrays(float, 12, elements=floats(0, 1)), permutations(range(12)))
def test_clusters_of_one_query_give_the_interval_by_query(values: metrics.Values, numbers: list[int]) -> None:
    by_query = metrics.mean_interval(values[np.argsort(numbers)], samples=50)

    found = metrics.mean_interval(values, numbers, samples=50)

    assert astuple(found) == pytest.approx(astuple(by_query))


def test_queries_of_a_cluster_that_are_alike_count_once() -> None:
    of_companies = np.random.default_rng(1).random(8)

    found = metrics.mean_interval(of_companies.repeat(5), np.arange(8).repeat(5))

    assert (found.mean, found.low, found.high) == pytest.approx(astuple(metrics.mean_interval(of_companies)))
