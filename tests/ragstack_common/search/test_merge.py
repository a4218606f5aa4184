"""Merging rankings."""

import math
import random
from threading import Event
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragstack_common.core.deadline import wait_for
from ragstack_common.multislice_retriever import MultiSliceRetriever
from ragstack_common.reranking import LexicalReranker, RerankingWeights
from ragstack_common.search import RetrievedChunk
from ragstack_common.search.engines.hits import document_uri, to_chunk
from ragstack_common.search.merge import best_first, fuse, merge_slices
from ragstack_common.search.models import UNNAMED_SOURCE, Ranking
from ragstack_common.search.rerank.chunks import LexicalChunkReranker
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


SHARES = st.floats(0, 1)
WORDS = st.sampled_from(["annual leave", "leave the annual report", "hotel", "a night in a hotel", ""])


@st.composite
def rankings(draw: st.DrawFn) -> list[RetrievedChunk]:
    scores = sorted(draw(st.lists(SHARES, max_size=6)), reverse=True)
    sources = draw(st.permutations(["a", "b", "c", "d", "e", "f"]))
    return [
        RetrievedChunk(content=draw(WORDS), score=score, source=source, chunk_id=source).ranked(
            Ranking(base_score=score, score=score, signals={"vector": score})
        )
        for score, source in zip(scores, sources, strict=False)
    ]


def adds_up(chunk: RetrievedChunk) -> bool:
    ranking = chunk.ranked_by
    return math.fsum(ranking.contributions.values()) == pytest.approx(ranking.score, abs=1e-9)


@given(rankings(), rankings(), SHARES, st.floats(0.1, 4), st.lists(SHARES, min_size=5, max_size=5))
def test_each_step_keeps_every_chunk_and_adds_up_its_score(
    filtered: list[RetrievedChunk],
    unfiltered: list[RetrievedChunk],
    trust: float,
    boost: float,
    weights: list[float],
) -> None:
    lists = {"filtered": filtered, "unfiltered": unfiltered}
    reranker = LexicalChunkReranker(LexicalReranker(RerankingWeights(*weights)))

    trusted = fuse(lists, {"filtered": trust, "unfiltered": 1 - trust})
    boosted = [*merge_slices({"filtered": trusted}, {"filtered": boost})]
    federated = fuse(lists, {"filtered": 1.0, "unfiltered": 2.0}, "text")
    reranked = wait_for(reranker.rerank("annual leave in a hotel", boosted))

    assert {chunk.source for chunk in trusted} == {chunk.source for chunk in (*filtered, *unfiltered)}
    assert len({chunk.source for chunk in trusted}) == len(trusted)
    assert trusted == best_first(trusted)
    assert all(0 <= chunk.score <= 1 for chunk in (*trusted, *federated))
    assert all(adds_up(chunk) for chunk in [*trusted, *boosted, *federated, *reranked])
    assert all(chunk.ranked_by.signals for chunk in [*trusted, *boosted, *federated, *reranked])
    assert sorted(chunk.ranked_by.reranked_from or 0 for chunk in reranked) == [*range(1, len(boosted) + 1)]


def merged(filtered: list[Any], unfiltered: list[Any], boost: float) -> list[RetrievedChunk]:
    slices = {"filtered": [*map(to_chunk, filtered)], "unfiltered": [*map(to_chunk, unfiltered)]}
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


@settings(max_examples=20, deadline=None)
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
        uri = document_uri(each)
        if uri is not None:
            best[uri] = max(best.get(uri, 0.0), (each.get("score") or 0.0) * factor)

    chunks = merged(filtered, unfiltered, boost)

    scores = [chunk.ranked_by.score for chunk in chunks]
    assert {c.source: c.ranked_by.score for c in chunks if not c.source.startswith(UNNAMED_SOURCE)} == best
    assert scores == sorted(scores, reverse=True)


def test_a_tie_is_broken_by_the_base_score_and_then_by_the_uri() -> None:
    chunks = merged([hit("s3://b/a", 0.4)], [hit("s3://b/c", 0.5), hit("s3://b/b", 0.5)], 1.25)

    assert [chunk.source for chunk in chunks] == ["s3://b/b", "s3://b/c", "s3://b/a"]
