"""The filtered and the unfiltered search on any backend."""

import asyncio
import logging
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstack_common.core.errors import ConfigurationError, InvalidFilterError, RetrievalTimeoutError, ThrottledError
from ragstack_common.search import Ranking, RetrievedChunk, SearchOutcome, SearchRequest, create_retrieval_backend
from ragstack_common.search.models import RAW_SCORE_KEY, Note
from ragstack_common.search.wrappers.multislice import MultiSliceBackend
from tests.support.backends import Shelf
from tests.support.virtual_time import run_in_virtual_time

TOPIC = {"topic": "genealogy"}
NEVER_MIND_SECONDS = 30.0


class Programmed(Shelf):
    """Answers the two slices with chunks, with a whole outcome or with an error, or after a number of seconds."""

    def __init__(self, filtered: Any, unfiltered: Any) -> None:
        super().__init__()
        self._answers = {True: filtered, False: unfiltered}

    async def _search(self, request: SearchRequest) -> SearchOutcome:
        self.requests.append(request)
        answer = self._answers["topic" in str(request.filters)]
        if isinstance(answer, float):
            await asyncio.sleep(answer)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, SearchOutcome):
            return answer
        return SearchOutcome(answer, (), 1.0)


def chunk(name: str, score: float, source: str | None = None, **metadata: Any) -> RetrievedChunk:
    return RetrievedChunk(content=name, score=score, source=source or name, chunk_id=name, metadata=metadata)


def search(filtered: Any, unfiltered: Any, request: SearchRequest | None = None, **options: Any) -> SearchOutcome:
    wanted = request or SearchRequest("Judy", metadata_filter=TOPIC)
    return run_in_virtual_time(MultiSliceBackend(Programmed(filtered, unfiltered), **options).search(wanted))


def boosted(filtered: Any, unfiltered: Any, request: SearchRequest | None = None) -> SearchOutcome:
    return search(filtered, unfiltered, request, merge="boost")


def named(outcome: SearchOutcome) -> list[tuple[str, float]]:
    return [(each.content, round(each.ranking.score if each.ranking else each.score, 6)) for each in outcome.chunks]


def test_a_boosted_hit_outranks_a_closer_unfiltered_one_and_says_why() -> None:
    outcome = boosted([chunk("f", 0.75)], [chunk("u", 0.80), chunk("f", 0.75)])

    assert named(outcome) == [("f", 0.9375), ("u", 0.80)]
    assert outcome.chunks[0].ranking == Ranking(
        base_score=0.75, boost=1.25, score=0.9375, found_by=("filtered", "unfiltered")
    )
    assert [(part.name, part.status, part.hits) for part in outcome.parts] == [
        ("filtered", "ok", 1),
        ("unfiltered", "ok", 2),
    ]
    assert outcome.complete


def test_scores_over_1_decide_the_order_and_are_shown_within_0_and_1() -> None:
    outcome = boosted([chunk("a", 0.9), chunk("b", 0.95)], [chunk("u", 1.0)])

    assert named(outcome) == [("b", 1.1875), ("a", 1.125), ("u", 1.0)]
    assert [each.score for each in outcome.chunks] == [1.0, 1.0, 1.0]
    assert outcome.chunks[0].metadata[RAW_SCORE_KEY] == pytest.approx(1.1875)


def test_one_chunk_of_each_document_is_its_best_of_both_slices() -> None:
    request = SearchRequest("Judy", metadata_filter=TOPIC, deduplicate_by="document")

    outcome = boosted(
        [chunk("x1", 0.4, "x"), chunk("x2", 0.6, "x")], [chunk("x3", 0.7, "x"), chunk("y1", 0.1, "y")], request
    )

    assert named(outcome) == [("x2", 0.75), ("y1", 0.1)]
    assert outcome.chunks[0].ranking is not None
    assert outcome.chunks[0].ranking.found_by == ("filtered", "unfiltered")


def test_the_ranking_of_the_wrapped_backend_is_kept() -> None:
    inner = chunk("f", 0.5).ranked(Ranking(base_score=0.3, boost=2.0, score=0.6, found_by=("legal",), signals={"w": 1}))

    [found] = boosted([inner], []).chunks

    assert found.ranking == Ranking(
        base_score=0.3, boost=2.5, score=0.75, found_by=("filtered", "legal"), signals={"w": 1}
    )


def test_a_trusted_filter_puts_its_chunks_first() -> None:
    filtered, unfiltered = [chunk("f", 0.1, topic="genealogy")], [chunk("u", 0.9, topic="trains"), chunk("v", 0.8)]

    trusted = search(filtered, unfiltered, SearchRequest("Who records genealogy?", metadata_filter=TOPIC))
    doubted = search(filtered, unfiltered, SearchRequest("Do trains run?", metadata_filter=TOPIC))

    assert [each.content for each in trusted.chunks] == ["f", "u", "v"]
    assert (trusted.parts[0].trust, trusted.parts[0].reason) == (0.98, "The question names topic")
    assert trusted.chunks[1].ranked_by.ranks == {"unfiltered": 1}
    assert trusted.chunks[1].ranked_by.contributions == {"unfiltered": pytest.approx(0.02)}
    assert [each.content for each in doubted.chunks] == ["u", "v", "f"]
    assert (doubted.parts[0].trust, doubted.parts[1].trust) == (0.02, None)


def test_the_caller_can_choose_the_trust() -> None:
    request = SearchRequest("Judy", metadata_filter=TOPIC, filter_trust=0.75)

    outcome = search([chunk("f", 0.1)], [chunk("u", 0.9)], request)

    assert named(outcome) == [("f", 0.75), ("u", 0.25)]
    assert outcome.parts[0].reason == "The caller chose it"


@given(st.lists(st.integers(0, 12), max_size=8, unique=True), st.lists(st.integers(0, 12), max_size=8, unique=True))
def test_a_merge_by_trust_depends_on_ranks_alone_and_loses_nothing(filtered: list[int], unfiltered: list[int]) -> None:
    def slice_of(names: list[int], scale: float) -> list[RetrievedChunk]:
        return [chunk(str(name), 0.9 * scale - place / 100 * scale) for place, name in enumerate(names)]

    def merged_at(scale: float) -> list[tuple[str, float]]:
        return named(search(slice_of(filtered, scale), slice_of(unfiltered, scale), request))

    request = SearchRequest("Judy", 20, metadata_filter=TOPIC, filter_trust=0.6)

    merged = merged_at(1.0)

    assert {name for name, _ in merged} == {str(name) for name in (*filtered, *unfiltered)}
    assert sorted(merged_at(0.1)) == sorted(merged)


@given(st.floats(0, 1), st.floats(0, 1))
def test_more_trust_never_lowers_a_chunk_that_only_the_filter_finds(one: float, other: float) -> None:
    def place(trust: float) -> int:
        request = SearchRequest("Judy", metadata_filter=TOPIC, filter_trust=trust)
        found = search([chunk("g", 0.5), chunk("f", 0.4)], [chunk(name, 0.3) for name in "uvwg"], request)
        return [each.content for each in found.chunks].index("f")

    assert place(max(one, other)) <= place(min(one, other))


def test_the_filter_narrows_one_slice_and_the_hard_filters_both() -> None:
    backend = Programmed([], [])
    request = SearchRequest("Judy", 7, 0.5, {"tenant": "t1"}, TOPIC, "document")

    asyncio.run(MultiSliceBackend(backend).search(request))

    shared = replace(request, top_k=40, metadata_filter=None, min_score=None, deduplicate_by="chunk", documents=7)
    assert backend.requests == [replace(shared, filters={"$and": [{"tenant": "t1"}, TOPIC]}), shared]


def test_the_minimal_score_is_compared_with_the_boosted_one() -> None:
    request = SearchRequest("Judy", min_score=0.5, metadata_filter=TOPIC)

    assert named(boosted([chunk("f", 0.42)], [chunk("u", 0.49)], request)) == [("f", 0.525)]


def test_without_a_filter_there_is_one_search_with_the_whole_request() -> None:
    backend, request = Programmed([], [chunk("u", 0.5)]), SearchRequest("Judy", 3, 0.2, deduplicate_by="document")

    outcome = asyncio.run(MultiSliceBackend(backend).search(request))

    assert backend.requests == [request]
    assert [(part.name, part.status) for part in outcome.parts] == [("unfiltered", "ok")]
    assert outcome.chunks[0].ranked_by.found_by == ("unfiltered",)


@pytest.mark.parametrize("error", [ThrottledError("Slow down."), KeyError("a bug")])
@pytest.mark.parametrize("failing", ["filtered", "unfiltered"])
def test_a_slice_that_fails_is_reported_and_leaves_the_other(
    failing: str, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    answers = {"filtered": [chunk("f", 0.5)], "unfiltered": [chunk("u", 0.5)], failing: error}

    with caplog.at_level(logging.INFO, "ragstack"):
        outcome = search(answers["filtered"], answers["unfiltered"])

    [bad] = [part for part in outcome.parts if part.slice == failing]
    assert named(outcome) == [("u" if failing == "filtered" else "f", 1.0)]
    assert not outcome.complete
    assert bad.status == "failed"
    assert bad.error == ("Slow down." if isinstance(error, ThrottledError) else "KeyError")
    assert str(error.args[0]) in caplog.text or isinstance(error, ThrottledError)
    assert f"{failing} failed" in caplog.text


@pytest.mark.parametrize("late", ["filtered", "unfiltered"])
def test_a_late_slice_leaves_the_results_of_the_other(late: str) -> None:
    answers = {"filtered": [chunk("f", 0.5)], "unfiltered": [chunk("u", 0.5)], late: NEVER_MIND_SECONDS}

    outcome = search(answers["filtered"], answers["unfiltered"], timeout_seconds=NEVER_MIND_SECONDS / 10)

    assert [each.content for each in outcome.chunks] == ["u" if late == "filtered" else "f"]
    assert {part.name: part.status for part in outcome.parts}[late] == "timeout"


def test_a_search_without_any_result_by_the_deadline_is_an_error() -> None:
    with pytest.raises(RetrievalTimeoutError):
        search(NEVER_MIND_SECONDS, NEVER_MIND_SECONDS, timeout_seconds=NEVER_MIND_SECONDS / 10)


def test_an_inexpressible_filter_fails_the_search() -> None:
    with pytest.raises(InvalidFilterError, match=r"startsWith\(topic"):
        search(InvalidFilterError("startsWith(topic, 'x') is not known here"), [chunk("u", 0.5)])


@pytest.mark.parametrize("options", [{"filtered_score_boost": 0}, {"timeout_seconds": 0}])
def test_a_configuration_out_of_range_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="multislice"):
        create_retrieval_backend({"type": "multislice", "backend": Shelf(), **options})


def test_a_shortage_is_dropped_if_the_slices_together_have_enough() -> None:
    short = SearchOutcome(
        [chunk("f", 0.5)], (), 1.0, notes=(Note("shortage", "Found 1 of 2"), Note("reranker", "slow today"))
    )
    two = SearchRequest("Judy", 2, metadata_filter=TOPIC, deduplicate_by="document")

    enough = search(short, [chunk("u", 0.4)], two)
    still_short = search(short, [chunk("f", 0.4)], two)

    assert enough.notes == (Note("reranker", "filtered: slow today"),)
    assert still_short.notes[0] == Note("shortage", "filtered: Found 1 of 2")


@pytest.mark.parametrize("merge", ["trust", "boost"])
def test_passages_come_from_both_slices_best_first(merge: Any) -> None:
    def passage(number: int, score: float) -> RetrievedChunk:
        return RetrievedChunk(content=f"p{number}", score=score, source="s3://b/a", chunk_id=f"{number}")

    engine = Programmed([passage(1, 0.5), passage(2, 0.3)], [passage(3, 0.6), passage(1, 0.5), passage(4, 0.1)])
    request = SearchRequest("q", metadata_filter=TOPIC, deduplicate_by="document", passages=3)

    [found] = asyncio.run(MultiSliceBackend(engine, merge=merge).search(request)).chunks

    others = [content for content in ("p3", "p1", "p2") if content != found.content]
    assert [each.content for each in found.passages] == [found.content, *others]
    assert found.passages_found == 4
