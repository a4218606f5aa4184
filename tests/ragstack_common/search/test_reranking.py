"""The lexical reranker: what each signal sees, the order, and the weights."""

import copy
import itertools
import unicodedata
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstack_common.core.errors import ConfigurationError
from ragstack_common.reranking import (
    LexicalReranker,
    Passage,
    RerankingWeights,
    Signals,
    configure_reranker,
    weights_in_force,
)

if TYPE_CHECKING:
    from ragstack_common.multislice_retriever import Reranker


@pytest.fixture(autouse=True)
def _defaults() -> Iterator[None]:
    yield
    configure_reranker()


def signals(query: str, *texts: str, **options: Any) -> list[Signals]:
    return LexicalReranker(**options).score(query, texts)


def best(query: str, *texts: str) -> str:
    return texts[LexicalReranker().order(query, texts)[0][0]]


def test_the_score_is_the_weighted_sum_of_the_signals() -> None:
    passages = [
        Passage("annual leave of staff", {"speaker": "Seddon", "year": 1893, "topic": "gold"}, score=0.5),
        Passage("other", {"topic": "wool"}),
    ]

    first, _ = LexicalReranker().score("annual leave Seddon 1893", passages)

    assert first.matched == ("speaker", "year")
    assert first.total == pytest.approx(
        0.5 * first.phrase + 0.3 * first.frequency + 0.2 * first.proximity + 0.5 * 2 + 1.0 * 0.5
    )


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("annual leave", "The annual leave of staff"),
        ("Annual Leave?", "the ANNUAL leave."),
        ("annual leave", "the annual\r\n   leave"),
        ("annual leave", "annual\u00a0leave"),
        ("annual leave", "an\u00adnual leave"),
        ("What is the UK?", "so what is the UK"),
        ("straße", "DIE STRASSE"),
        (unicodedata.normalize("NFD", "café crème"), unicodedata.normalize("NFC", "un Café crème")),
        (unicodedata.normalize("NFC", "café crème"), unicodedata.normalize("NFD", "un Café crème")),
        ("ﬁnance", "Finance"),
        ("\uff21\uff29", "ai"),
        ("co operate", "they co-operate"),
        ("it's", "it\u2019s"),
        ("東京都の人口", "日本の東京都の人口は多い"),
        ("AI", "東京のAIは"),
        ("हिन्दी भाषा", "यह हिन्दी भाषा है"),
    ],
)
def test_a_phrase_is_found_despite_case_form_and_punctuation(query: str, text: str) -> None:
    assert signals(query, text)[0].phrase == 1.0


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("art", "start with parts"),
        ("art", "articles"),
        ("annual leave", "annual sick leave"),
        ("annual leave", "leave annual"),
        ("annual leave", "biannual leaves"),
        ("2024-11", "2024-12, 12024-11"),
        ("हिन्द", "यह हिन्दी है"),
        ("C", "CC cc"),
        ("?!", "?!"),
        ("annual leave", ""),
    ],
)
def test_a_phrase_is_not_found_in_parts_of_words_nor_in_another_order(query: str, text: str) -> None:
    assert signals(query, text)[0].phrase == 0.0


def test_a_phrase_without_the_outer_stop_words_counts_less() -> None:
    whole, core, none = signals("What is the annual leave?", "what is the annual leave", "annual leave", "leave")

    assert whole.phrase == 1.0
    assert core.phrase == pytest.approx(2 / 5)
    assert none.phrase == 0.0


def test_quoted_parts_of_a_query_are_the_phrases() -> None:
    both, one, none = signals(
        'rules for "annual leave" and “night work”',
        "night work gives more annual leave",
        "annual leave rules",
        "leave, annual; work at night",
    )

    assert (both.phrase, one.phrase, none.phrase) == (1.0, 0.5, 0.0)


@pytest.mark.parametrize("query", ["AI", "UK", "Is it in the UK?", "C", "S3", "11", "é", "中"])
def test_short_terms_count(query: str) -> None:
    with_term, without = signals(query, f"about {query.rstrip('?').split()[-1]} and more", "about something else")

    assert with_term.frequency > without.frequency == 0.0


def test_a_query_of_only_stop_words_is_searched_too() -> None:
    assert best("The Who", "nothing of them", "who are the best", "The Who were loud") == "The Who were loud"


def test_more_hits_count_more_but_each_less_than_the_one_before() -> None:
    filler = " word" * 20
    frequencies = [s.frequency for s in signals("leave", *(f"{'leave ' * n}{filler[: 120 - 6 * n]}" for n in range(5)))]

    steps = [after - before for before, after in itertools.pairwise(frequencies)]
    assert all(step > 0 for step in steps)
    assert steps == sorted(steps, reverse=True)


def test_a_rare_keyword_counts_more_than_a_common_one() -> None:
    rare, common, *_ = signals("court tribunal", "the tribunal", "the court00", *["the court"] * 5)

    assert rare.frequency > signals("court tribunal", "the tribunal", *["the court"] * 5)[1].frequency
    assert common.frequency == 0.0


def test_a_long_text_needs_more_hits_than_a_short_one() -> None:
    short, long = signals("leave", "annual leave", "annual leave " + "and other matters " * 200)

    assert short.frequency > long.frequency > 0


def test_closer_keywords_count_more_and_line_breaks_do_not_part_them() -> None:
    side_by_side, near, far, one = (
        s.proximity
        for s in signals(
            "tenant appeal", "tenant\nappeal", "tenant may appeal", "tenant " + "x " * 200 + "appeal", "tenant only"
        )
    )

    assert side_by_side == 1.0
    assert side_by_side > near > far > one == 0.0


def test_the_score_of_the_search_orders_what_the_signals_leave_equal() -> None:
    passages = [Passage("same text", score=score) for score in (0.3, 0.9, 0.6)]

    order = [number for number, _ in LexicalReranker().order("something else", passages)]

    assert order == [1, 2, 0]


@pytest.mark.parametrize(
    ("query", "metadata", "matched"),
    [
        ("What did Richard Seddon say?", {"speaker": "Richard Seddon"}, ("speaker",)),
        ("What did Seddon say?", {"speaker": "Richard Seddon"}, ()),
        ("debates of 1893", {"date": "1893-07-04"}, ("date",)),
        ("debates of 1893-07", {"date": "1893-07-04T10:00:00Z"}, ("date",)),
        ("debates of 1893-08", {"date": "1893-07-04"}, ()),
        ("debates of 1893", {"year": 1893}, ("year",)),
        ("gold and wool", {"tags": ["gold", "coal"], "other": ["coal"]}, ("tags",)),
        ("is it 3 or 4", {"version": "3", "part": 4, "public": True, "word": "it"}, ()),
        ("start", {"topic": "art"}, ()),
        ("die Strasse", {"topic": "STRAẞE"}, ("topic",)),
        ("東京の人口", {"city": "東京"}, ("city",)),
        ("gold", {"x-amz-bedrock-kb-topic": "gold", "ragstack_topic": "gold", "_topic": "gold"}, ()),
        ("gold", {"nothing": None, "nested": {"gold": "gold"}, "empty": "", "list": []}, ()),
    ],
)
def test_an_attribute_matches_if_the_query_contains_its_value(
    query: str, metadata: dict[str, Any], matched: tuple[str, ...]
) -> None:
    (found,) = LexicalReranker().score(query, [Passage("text", metadata)])

    assert found.matched == matched


def test_results_are_reranked_in_copies_with_their_signals() -> None:
    results: list[dict[str, Any]] = [
        {"score": 0.9, "content": "other things", "metadata": {}, "ranking": {"base_score": 0.72, "boost": 1.25}},
        {"score": 0.4, "content": "the annual leave", "metadata": {}, "location": {"type": "S3"}},
        {"score": None, "content": None, "metadata": None},
    ]
    before = copy.deepcopy(results)
    reranker: Reranker = LexicalReranker()

    reranked = reranker.rerank("annual leave", results)

    assert [result["content"] for result in reranked] == ["the annual leave", "other things", None]
    assert [r["score"] for r in reranked] == sorted((r["score"] for r in reranked), reverse=True)
    assert reranked[0]["location"] == {"type": "S3"}
    assert reranked[0]["ranking"]["base_score"] == 0.4
    assert reranked[1]["ranking"] | {"contributions": 0} == {
        "base_score": 0.72,
        "boost": 1.25,
        "contributions": 0,
        "matched": [],
    }
    assert set(reranked[0]["ranking"]["contributions"]) == {"phrase", "frequency", "proximity", "metadata", "vector"}
    assert results == before


def test_the_header_that_a_result_was_indexed_with_is_read_too() -> None:
    results = [{"score": 0.5, "content": "thirty days"}, {"score": 0.4, "content": "thirty days", "context": "Leave"}]

    assert LexicalReranker().rerank("leave", results)[0]["score"] > 0.4
    assert LexicalReranker().rerank("leave", results)[0]["context"] == "Leave"


@pytest.mark.parametrize("value", [-0.1, float("nan"), float("inf"), "1"])
def test_an_invalid_weight_is_rejected_by_name(value: Any) -> None:
    with pytest.raises(ConfigurationError, match="proximity"):
        RerankingWeights(proximity=value)


def test_the_reranker_is_tuned_at_run_time() -> None:
    reranker = LexicalReranker()
    texts = ["annual leave", "annual " + "x " * 100 + "leave leave leave"]
    before = [n for n, _ in reranker.order("annual leave", texts)]

    configured = configure_reranker(phrase=0, proximity=0, frequency=1)

    assert before == [0, 1]
    assert LexicalReranker(RerankingWeights(phrase=7)).weights.phrase == 7
    assert configured == weights_in_force() == RerankingWeights(phrase=0, proximity=0, frequency=1)
    assert reranker.score("annual leave", texts)[0].total == reranker.score("annual leave", texts)[0].frequency


@pytest.mark.parametrize("weights", [{"phrases": 1.0}, {"phrase": -1}])
def test_an_unusable_configuration_changes_nothing(weights: dict[str, Any]) -> None:
    configure_reranker(phrase=0.7)

    with pytest.raises(ConfigurationError, match="phrase"):
        configure_reranker(**weights)

    assert weights_in_force().phrase == 0.7


TEXTS = st.text(st.sampled_from("aAbßéÉ \n\t-'\u2019\"?.,_1 2中文かन्‍ि") | st.characters(), max_size=60)
ATTRIBUTES = st.dictionaries(
    st.sampled_from(["a", "date", "x"]),
    TEXTS | st.integers() | st.floats() | st.booleans() | st.none() | st.lists(TEXTS),
)


@given(TEXTS, st.lists(st.builds(Passage, TEXTS, ATTRIBUTES, st.floats()), max_size=6))
def test_any_text_is_scored_within_bounds_and_the_same_each_time(query: str, passages: list[Passage]) -> None:
    scored = LexicalReranker().score(query, passages)

    assert scored == LexicalReranker().score(query, passages)
    for s in scored:
        assert all(0.0 <= value <= 1.0 for value in (s.phrase, s.frequency, s.proximity, s.metadata, s.vector, s.score))


@given(TEXTS, st.lists(TEXTS, min_size=1, max_size=5), st.randoms())
def test_the_order_in_which_texts_come_changes_no_signal(query: str, texts: list[str], random: Any) -> None:
    shuffled = texts[:]
    random.shuffle(shuffled)

    first = dict(zip(texts, LexicalReranker().score(query, texts), strict=True))
    second = dict(zip(shuffled, LexicalReranker().score(query, shuffled), strict=True))

    assert all(first[text].total == pytest.approx(second[text].total) for text in texts)
