"""How far a metadata filter is trusted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstack_common.filters import parse
from ragstack_common.search.trust import BEST_MATCHES, MAX_TRUST, MIN_TRUST, Trust, estimate_trust

OTHERS = [
    {"company": "Boeing", "year": 2022},
    {"company": "Pfizer", "year": 2021},
    {"company": "Pfizer", "year": 2023},
    {"company": "Boeing", "year": 2021},
]
BOEING = {"company": "Boeing", "year": 2022}


def trust(query: str, filters: object = BOEING, unfiltered: object = OTHERS, filtered: object = (BOEING,)) -> Trust:
    return estimate_trust(query, parse(filters), filtered, unfiltered)  # type: ignore[arg-type]


def test_a_filter_is_trusted_when_the_question_names_all_its_values() -> None:
    found = trust("How cyclical was Boeing's business in FY2022?")

    assert found == Trust(MAX_TRUST, "The question names company and year")


def test_another_named_value_is_evidence_against_the_filter() -> None:
    assert trust("How cyclical was Pfizer's business in FY2022?") == Trust(
        MIN_TRUST, "The question names Pfizer, not the filter's company"
    )
    assert trust("How cyclical was Boeing's business in FY2021?").value == MIN_TRUST


def test_a_value_that_the_question_leaves_open_lowers_the_trust() -> None:
    found = trust("How cyclical is Boeing's business?")

    assert found == Trust(0.35, "The question names company, but not year")


def test_a_comparison_of_several_values_shares_the_trust() -> None:
    assert trust("Compare Boeing with Pfizer in FY2022").value == 0.5
    assert trust("Boeing's growth from FY2021 to FY2022").value == 0.8
    assert trust("Boeing's growth from FY2021 to FY2022", {"company": "Boeing", "year": 2021}).value == 0.1


def test_a_range_is_trusted_if_it_contains_the_named_year() -> None:
    assert trust("Boeing in FY2022", {"company": "Boeing", "year": {"$gte": 2022}}).value == MAX_TRUST
    assert trust("Boeing in FY2021", {"company": "Boeing", "year": {"$gte": 2022}}).value == MIN_TRUST


def test_an_excluded_value_that_the_question_names_is_not_trusted() -> None:
    assert trust("What does Boeing build?", {"company": {"$ne": "Boeing"}}).value == MIN_TRUST


def test_without_a_name_the_hits_decide() -> None:
    agreeing = trust("Is the business cyclical?", unfiltered=[BOEING] * 10)
    first = trust("Is the business cyclical?", unfiltered=[BOEING] + [{"company": "Pfizer"}] * 9)
    last = trust("Is the business cyclical?", unfiltered=[{"company": "Pfizer"}] * 9 + [BOEING])
    contradicting = trust("Is the business cyclical?", unfiltered=[{"company": "Pfizer"}] * 10)

    assert MAX_TRUST == agreeing.value > first.value == BEST_MATCHES > last.value > contradicting.value == MIN_TRUST
    assert first.reason == "The question names no value, and 1 of the 10 best results match the filter"


def test_hits_about_another_value_overrule_a_partly_named_filter() -> None:
    about_pfizer = [{"company": "Pfizer", "year": 2022}] * 7

    found = trust("Did Boeing supply the vaccine's transport?", unfiltered=about_pfizer)

    assert found.value == 0.3
    assert found.reason.endswith("most of the best results without the filter are about Pfizer")


def test_attributes_that_are_lists_or_absent_are_understood() -> None:
    hits = [{"topics": ["trains", "tickets"]}, {}, {"topics": "parking"}]

    assert trust("When do I book tickets?", {"topics": {"$listContains": "tickets"}}, hits).value == MAX_TRUST
    assert trust("When do I book tickets?", {"topics": "parking"}, hits).value == MIN_TRUST


def test_nested_attributes_are_ignored() -> None:
    hits = [{"topics": {"main": "tickets"}}, {"topics": [["tickets"], "trains"]}]

    assert trust("When do I book tickets?", {"topics": "tickets"}, hits).value == MAX_TRUST


def test_one_of_fifty_named_values_is_not_another_value() -> None:
    cities = [f"City{number}" for number in range(50)]

    found = trust(" ".join(cities), {"city": "City7"}, [{"city": city} for city in cities])

    assert found.reason == "The question names city"


@pytest.mark.parametrize("filters", [{"$or": [{"company": "Boeing"}, {"year": 2021}]}, {"$not": {"company": "Pfizer"}}])
def test_alternatives_and_negations_are_judged_by_the_hits(filters: object) -> None:
    assert 0 < trust("Is the business cyclical?", filters).value < MAX_TRUST


@given(st.lists(st.booleans(), min_size=1, max_size=12), st.integers(0, 11))
def test_a_hit_more_that_matches_never_lowers_the_trust(matching: list[bool], place: int) -> None:
    hits = [BOEING if matches else {"company": "Pfizer"} for matches in matching]
    better = [BOEING if number == place else hit for number, hit in enumerate(hits)]

    assert trust("Is it cyclical?", unfiltered=better).value >= trust("Is it cyclical?", unfiltered=hits).value


@given(st.text(max_size=300))
def test_any_question_has_a_trust_between_its_bounds(question: str) -> None:
    assert MIN_TRUST <= trust(question).value <= MAX_TRUST
