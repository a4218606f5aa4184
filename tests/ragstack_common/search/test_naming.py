"""Which values a question names."""

from collections.abc import Iterable

import pytest

from ragstack_common.filters.tree import Scalar
from ragstack_common.search.naming import QuestionTerms, Values, attributes
from ragstack_common.settings.limits import MAX_QUERY_CHARACTERS

COMPANIES = [
    "Foot Locker",
    "Johnson & Johnson",
    "American Express",
    "American Water Works",
    "MGM Resorts",
    "3M",
    "Block",
    "Nestlé",
    "Activision Blizzard",
]


def named(question: str, values: Iterable[Scalar]) -> set[Scalar]:
    return set(Values(values).named_in(QuestionTerms(question)))


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What did foot locker earn?", {"Foot Locker"}),
        ("What did Footlocker's stores earn?", {"Foot Locker"}),
        ("What did FOOT-LOCKER earn?", {"Foot Locker"}),
        ("Does JnJ pay a dividend?", {"Johnson & Johnson"}),
        ("Does J&J pay a dividend?", {"Johnson & Johnson"}),
        ("Does Johnson and Johnson pay a dividend?", {"Johnson & Johnson"}),
        ("Does AMEX pay a dividend?", {"American Express"}),
        ("Which region earned most for MGM?", {"MGM Resorts"}),
        ("What was 3M's revenue?", {"3M"}),
        ("Was nestle sued?", {"Nestlé"}),
        ("Compare Block with MGM Resorts", {"Block", "MGM Resorts"}),
        ("Who is American?", set()),
        ("How many people work there?", set()),
        ("Which resorts opened?", set()),
    ],
)
def test_a_question_names_a_company_in_the_usual_ways(question: str, expected: set[str]) -> None:
    assert named(question, COMPANIES) == expected


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What was revenue in FY18?", {2018}),
        ("What was revenue in FY2018Q1?", {2018}),
        ("How did Q2 2023 go?", {2023}),
        ("How did Q2'2023 go?", {2023}),
        ("How did 2023Q2 go?", {2023}),
        ("Growth from FY2018 to FY2023?", {2018, 2023}),
        ("What does the act (2018) say?", set()),
        ("What changed since 2018?", set()),
        ("How many of the 2018000 items?", set()),
        ("Who leads?", set()),
    ],
)
def test_a_question_names_years_in_the_usual_ways(question: str, expected: set[int]) -> None:
    assert named(question, [2018, 2023]) == expected


def test_the_longer_of_two_overlapping_names_counts() -> None:
    values = ["Lambda", "Lambda Edge", "S3"]

    assert named("How do I log in Lambda Edge?", values) == {"Lambda Edge"}
    assert named("How do I log in Lambda?", values) == {"Lambda"}


def test_rare_words_of_a_long_value_name_it() -> None:
    values = ["Amazon Simple Storage Service", "Amazon Simple Queue Service", "Amazon Managed Grafana", "Amazon Lambda"]

    assert named("Does simple storage keep versions?", values) == {"Amazon Simple Storage Service"}
    assert named("Is any Amazon product simple?", values) == set()


def test_a_large_catalogue_is_looked_up_through_an_index() -> None:
    many = Values([f"Company {number} Holdings" for number in range(20_000)])

    assert set(many.named_in(QuestionTerms("What did Company 4711 Holdings earn?"))) == {"Company 4711 Holdings"}


def test_the_longest_question_with_common_words_ends_quickly() -> None:
    values = [f"alpha x{n} beta y{n} gamma z{n}" for n in range(200)]

    assert named(("alpha beta gamma " * 2_000)[:MAX_QUERY_CHARACTERS], values) == set()


def test_attributes_are_texts_without_what_services_add() -> None:
    metadata = {
        "year": 2024.0,
        "score": 1.5,
        "team": ["Sales", 3.0, None],
        "draft": True,
        "x-amz-bedrock-kb-document-page-number": 2.0,
        "ragstack_raw_score": 3.0,
        "_source_uri": "s3://b/a.md",
        "nothing": None,
    }

    assert dict(attributes(metadata)) == {"year": ("2024",), "score": ("1.5",), "team": ("Sales", "3")}
