"""Merging and deduplicating: exact, and the same whichever slice answers first."""

import copy
import random
from threading import Event
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragstack_common import multislice_retriever
from ragstack_common.multislice_retriever import MultiSliceRetriever, deduplicate_results
from ragstack_common.search import RetrievedChunk
from ragstack_common.search.engines.bedrock import chunk_of, uri_of
from ragstack_common.search.merge import merge_slices
from ragstack_common.search.models import UNNAMED_SOURCE
from ragstack_common.text.contextual_headers import prepend
from tests.support.knowledge_base import KNOWLEDGE_BASE, TOPIC, chunk, hit, hits, is_filtered

SCORES = st.none() | st.sampled_from([0.0, 0.25, 0.5, 0.625, 1.0]) | st.floats(0, 1)
HITS = st.lists(
    st.builds(
        chunk,
        st.none() | st.sampled_from(["s3://b/x", "s3://b/y", "s3://b/z"]),
        SCORES,
        st.sampled_from(["", "1", "2", "3"]),
        st.sampled_from(["one", "two"]),
    ),
    max_size=8,
)


def merged(filtered: list[Any], unfiltered: list[Any], boost: float) -> list[RetrievedChunk]:
    slices = {"filtered": [*map(chunk_of, filtered)], "unfiltered": [*map(chunk_of, unfiltered)]}
    return list(merge_slices(slices, {"filtered": boost}, "document"))


class InOrder:
    """A client whose slices answer in the order that is asked for."""

    def __init__(self, filtered: list[Any], unfiltered: list[Any], *, filtered_first: bool) -> None:
        self.answers = {True: hits(*filtered), False: hits(*unfiltered)}
        self.first = filtered_first
        self.answered = Event()

    def retrieve(self, **parameters: Any) -> dict[str, Any]:
        filtered = is_filtered(parameters)
        if filtered == self.first:
            self.answered.set()
        else:
            assert self.answered.wait(30)
        return self.answers[filtered]


@settings(max_examples=60, deadline=None)
@given(HITS, HITS, st.randoms(use_true_random=False))
def test_the_outcome_does_not_depend_on_which_slice_answers_first(
    filtered: list[Any], unfiltered: list[Any], random_: random.Random
) -> None:
    shuffled = random_.sample(unfiltered, len(unfiltered))
    clients = [
        InOrder(filtered, unfiltered, filtered_first=True),
        InOrder(filtered, unfiltered, filtered_first=False),
        InOrder(filtered, shuffled, filtered_first=False),
    ]

    outcomes = [MultiSliceRetriever(client).retrieve("q", KNOWLEDGE_BASE, None, TOPIC, 4) for client in clients]  # type: ignore[arg-type]

    assert outcomes[0] == outcomes[1] == outcomes[2]


@given(HITS, HITS, st.floats(0.5, 2))
def test_a_merge_keeps_every_document_with_its_best_score(
    filtered: list[Any], unfiltered: list[Any], boost: float
) -> None:
    best: dict[str, float] = {}
    for each, factor in [*((f, boost) for f in filtered), *((u, 1.0) for u in unfiltered)]:
        uri = uri_of(each)
        if uri is not None:
            best[uri] = max(best.get(uri, 0.0), (each.get("score") or 0.0) * factor)

    chunks = merged(filtered, unfiltered, boost)

    scores = [chunk.ranked_by.score for chunk in chunks]
    assert {c.source: c.ranked_by.score for c in chunks if not c.source.startswith(UNNAMED_SOURCE)} == best
    assert scores == sorted(scores, reverse=True)


def test_a_tie_is_broken_by_the_base_score_and_then_by_the_uri() -> None:
    chunks = merged([hit("s3://b/a", 0.4)], [hit("s3://b/c", 0.5), hit("s3://b/b", 0.5)], 1.25)

    assert [chunk.source for chunk in chunks] == ["s3://b/b", "s3://b/c", "s3://b/a"]


def test_a_contextual_header_is_separated_from_the_content() -> None:
    headed, plain = chunk_of(hit(text=prepend("Leave", "Up to five days."))), chunk_of(hit(text="Plain."))

    assert (headed.content, headed.context) == ("Up to five days.", "Leave")
    assert (plain.content, plain.context) == ("Plain.", None)


def test_deduplicating_returns_the_results_unchanged() -> None:
    results = [hit("s3://b/a", 0.3), hit("s3://b/a", 0.5), hit("s3://b/b", None)]
    before = copy.deepcopy(results)

    unique = deduplicate_results(results)

    assert results == before
    assert unique[0] is results[1]
    assert unique[1] is results[2]


@pytest.mark.parametrize("none_first", [True, False])
def test_a_score_of_none_ranks_below_every_number_when_deduplicating(none_first: bool) -> None:
    results = [{**hit("s3://b/a"), "score": None}, {**hit("s3://b/a"), "score": -1.0}]

    unique = deduplicate_results(results if none_first else results[::-1])

    assert [r["score"] for r in unique] == [-1.0]


@pytest.mark.parametrize("results", [[], [{}], [{"score": None}], [{"score": 1, "location": None, "metadata": None}]])
def test_deduplicating_takes_results_that_hold_next_to_nothing(results: list[dict[str, Any]]) -> None:
    assert deduplicate_results(results) == results


def test_deduplicating_keeps_different_results_without_a_uri() -> None:
    results = [{"score": 0.5, "content": "one"}, {"score": 0.5, "content": "two"}, {"score": 0.4, "content": "one"}]

    assert multislice_retriever.deduplicate_results(results) == results[:2]


@given(HITS)
def test_deduplicating_twice_is_deduplicating_once(results: list[Any]) -> None:
    once = deduplicate_results(results)

    assert deduplicate_results(once) == once
