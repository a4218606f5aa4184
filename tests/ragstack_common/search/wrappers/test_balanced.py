"""Equal numbers of candidates from each corpus."""

import asyncio
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from ragstack_common.core.deadline import seconds_left
from ragstack_common.core.errors import ServiceUnavailableError
from ragstack_common.filters import Filter, parse
from ragstack_common.search import CorpusCount, RetrievalBackend, RetrievedChunk, SearchRequest
from ragstack_common.search.engine import Engine
from ragstack_common.search.inference import Vocabulary
from ragstack_common.search.models import SearchOutcome, SliceReport
from ragstack_common.search.rerank.chunks import LexicalChunkReranker
from ragstack_common.search.wrappers.balanced import BalancedBackend
from ragstack_common.search.wrappers.cached import CachedRetrievalBackend
from ragstack_common.search.wrappers.federated import FederatedBackend
from ragstack_common.search.wrappers.multislice import MultiSliceBackend
from ragstack_common.search.wrappers.reranked import RerankedBackend
from tests.support.backends import Shelf
from tests.support.virtual_time import run_in_virtual_time

CORPORA = ("legal_us", "legal_uk", "legislation_nz")
APPEAL = "appeal to the tribunal"


def chunk(content: str, score: float, corpus: Any, **more: Any) -> RetrievedChunk:
    source = more.pop("source", f"{corpus}/{content}")
    return RetrievedChunk(content=content, score=score, source=source, metadata={"corpus": corpus}, **more)


class Store(Shelf):
    """A shelf that fails or hangs for some corpora."""

    def __init__(self, *chunks: RetrievedChunk, behaviour: Mapping[str, Callable[[], Any]] | None = None) -> None:
        super().__init__(*sorted(chunks, key=lambda c: -c.score), name="store")
        self.behaviour = behaviour or {}

    async def _search(self, request: SearchRequest) -> SearchOutcome:
        for name, behave in self.behaviour.items():
            if name in str(request.filters):
                await behave()
        if request.metadata_filter is not None:
            self.parts = tuple(
                SliceReport(slice=name, status="ok", milliseconds=1.0) for name in ("filtered", "unfiltered")
            )
        return await super()._search(request)


async def fail() -> None:
    raise ServiceUnavailableError("the corpus burns")


async def hang() -> None:
    await asyncio.Event().wait()


def library(**options: Any) -> Store:
    """A thousand chunks of one corpus that are nearer than the few of the two others."""
    many = [chunk(f"appeal {n}", 0.9 - n / 10_000, "legal_us") for n in range(1_000)]
    few = [chunk(f"{APPEAL} {n}", 0.3, corpus) for corpus in CORPORA[1:] for n in range(3)]
    return Store(*many, *few, **options)


def search(
    backend: BalancedBackend, query: str = APPEAL, corpus_filter: str | None = None, **request: Any
) -> SearchOutcome:
    return asyncio.run(backend.search(SearchRequest(query, corpus_filter=corpus_filter, **request)))


def retrieve(backend: BalancedBackend, *arguments: Any, **named: Any) -> list[RetrievedChunk]:
    return asyncio.run(backend.retrieve(*arguments, **named))


def test_the_reranker_decides_among_equal_shares_of_each_corpus() -> None:
    store = library()

    outcome = search(BalancedBackend(store, CORPORA, per_corpus=20), top_k=7)

    assert [request.top_k for request in store.requests] == [20, 20, 20]
    assert outcome.corpora == (
        CorpusCount("legal_us", 20, 1),
        CorpusCount("legal_uk", 3, 3),
        CorpusCount("legislation_nz", 3, 3),
    )
    assert {found.metadata["corpus"] for found in outcome.chunks[:6]} == set(CORPORA[1:])


@pytest.mark.parametrize(
    "request_of",
    [
        lambda: {"corpus_filter": "legal_uk"},
        lambda: {"filters": {"corpus": "legal_uk"}},
        lambda: {"filters": {"$and": [{"corpus": {"$eq": "legal_uk"}}, {"corpus": {"$ne": "x"}}]}},
        lambda: {"filters": {"equals": {"key": "corpus", "value": "legal_uk"}}},
    ],
)
def test_a_named_corpus_alone_is_searched_for_more_candidates(request_of: Callable[[], dict[str, Any]]) -> None:
    store = library()

    outcome = search(BalancedBackend(store, CORPORA), **request_of())

    assert [request.top_k for request in store.requests] == [500]
    assert outcome.corpora == (CorpusCount("legal_uk", 3, 3),)


def test_the_corpus_key_and_the_filters_of_the_request_hold_together() -> None:
    store = Store()

    search(BalancedBackend(store, ["a", "b"], corpus_key="collection"), filters={"year": 1893})

    assert [request.filters for request in store.requests] == [
        parse({"$and": [{"year": 1893}, {"collection": name}]}) for name in "ab"
    ]


def test_a_corpus_that_fails_is_reported_and_the_others_answer() -> None:
    outcome = search(BalancedBackend(library(behaviour={"legal_uk": fail}), CORPORA))

    assert not outcome.complete
    assert [(part.name, part.status) for part in outcome.parts] == [
        ("legal_us", "ok"),
        ("legal_uk", "failed"),
        ("legislation_nz", "ok"),
    ]
    assert outcome.parts[1].error == "the corpus burns"
    assert outcome.corpora[1] == CorpusCount("legal_uk", 0, 0)
    assert {found.metadata["corpus"] for found in outcome.chunks} == {"legal_us", "legislation_nz"}


def test_candidates_are_limited_by_the_engine() -> None:
    store = library()
    store.max_top_k = 100

    search(BalancedBackend(store, CORPORA), top_k=2)

    assert {request.top_k for request in store.requests} == {100}


@pytest.mark.parametrize(("corpus", "candidates"), [("all", [3, 3, 3]), ("legal_us", [2])])
def test_candidates_are_as_configured_for_any_number_of_results(corpus: str, candidates: list[int]) -> None:
    backend = BalancedBackend(library(), CORPORA, per_corpus=3, single_corpus=2)

    few, many = (search(backend, top_k=top_k, corpus_filter=corpus) for top_k in (1, 20))

    for outcome in (few, many):
        assert [count.candidates for count in outcome.corpora] == candidates
    assert len(many.chunks) == sum(candidates)
    assert few.notes == ()
    variable = "LARGE_RETRIEVAL_SIZE_ALL_CORPUS=3" if corpus == "all" else "LARGE_RETRIEVAL_SIZE_SINGLE_CORPUS=2"
    assert [note.text for note in many.notes] == [f"{variable} allows no more results: raise it"]


def test_a_small_reranker_gets_equal_shares_of_each_corpus() -> None:
    class Small(LexicalChunkReranker):
        max_chunks = 8

    outcome = search(BalancedBackend(library(), CORPORA, reranker=Small()), top_k=8)

    assert [count.candidates for count in outcome.corpora] == [2, 2, 2]
    assert outcome.notes == ()


def test_the_preference_and_deduplication_reach_every_corpus() -> None:
    store = library()

    outcome = search(BalancedBackend(store, CORPORA[:2]), metadata_filter={"a": 1}, deduplicate_by="document")

    assert {(r.metadata_filter, r.deduplicate_by) for r in store.requests} == {(parse({"a": 1}), "document")}
    assert [part.name for part in outcome.parts] == [
        "legal_us: filtered",
        "legal_us: unfiltered",
        "legal_uk: filtered",
        "legal_uk: unfiltered",
    ]


def test_a_document_of_two_corpora_is_returned_once() -> None:
    store = Store(chunk(APPEAL, 0.5, "a", source="same"), chunk("appeal", 0.9, "b", source="same"))

    outcome = search(BalancedBackend(store, ["a", "b"]), deduplicate_by="document")

    assert [found.content for found in outcome.chunks] == [APPEAL]


def test_a_chunk_of_several_corpora_is_returned_once_with_both() -> None:
    outcome = search(BalancedBackend(Store(chunk(APPEAL, 0.5, ["a", "b"], chunk_id="1")), ["a", "b"]))

    assert len(outcome.chunks) == 1
    assert outcome.chunks[0].ranking is not None
    assert outcome.chunks[0].ranking.found_by == ("a", "b")
    assert outcome.corpora == (CorpusCount("a", 1, 1), CorpusCount("b", 1, 1))


def test_the_counts_of_each_corpus_are_logged_without_the_query(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "ragstack"):
        search(BalancedBackend(library(), CORPORA), top_k=7)

    (record,) = caplog.records
    assert record.__dict__["corpora"]["legal_uk"] == {"candidates": 3, "results": 3}
    assert "tribunal" not in str(record.__dict__)


def test_a_stream_is_one_ordered_search() -> None:
    async def streamed() -> list[str]:
        backend = BalancedBackend(library(), CORPORA)
        return [found.content + found.source async for found in backend.stream(APPEAL, limit=40, page_size=3)]

    assert asyncio.run(streamed()) == [
        c.content + c.source for c in search(BalancedBackend(library(), CORPORA), top_k=40).chunks
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"corpora": []}, "corpora"),
        ({"corpora": "legal"}, "corpora"),
        ({"corpora": ["a", "a"]}, "once"),
        ({"corpora": ["a", "all"]}, "all"),
        ({"corpora": ["a"], "per_corpus": 0}, "per_corpus"),
        ({"corpora": ["a"], "search_k": 10_001}, "search_k"),
        ({"corpora": ["a"], "timeout_seconds": float("nan")}, "timeout_seconds"),
    ],
)
def test_invalid_arguments_are_rejected_by_name(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BalancedBackend(**{"backend": Store(), **options})


class Sleepy(Engine):
    """Answers at once, but hangs for some pairs of a corpus and a slice."""

    name = "sleepy"

    def __init__(self, *hanging: tuple[str, bool]) -> None:
        super().__init__(timeout_seconds=5.0)
        self._hanging = hanging

    async def _find(self, query: str, count: int, condition: Filter | None) -> list[RetrievedChunk]:
        assert query
        filtered = "topic" in str(condition)
        [corpus] = [name for name in "abcd" if f"'{name}'" in str(condition)]
        if (corpus, filtered) in self._hanging:
            await hang()
        return [chunk(f"{corpus} {filtered}", 0.5, corpus)][:count]


class AsTheyAre:
    """Leaves chunks in their order, in no time."""

    name = "as they are"
    max_chunks = 1_000

    async def rerank(self, _query: str, chunks: Sequence[RetrievedChunk]) -> list[RetrievedChunk]:
        return list(chunks)

    async def close(self) -> None:
        pass


def _sliced(*hanging: tuple[str, bool]) -> RetrievalBackend:
    return MultiSliceBackend(Sleepy(*hanging))


def _around(kind: str, engine: RetrievalBackend) -> RetrievalBackend:
    balanced = BalancedBackend(engine, list("abcd"), reranker=None)
    match kind:
        case "reranked":
            return RerankedBackend(balanced, AsTheyAre())
        case "cached":
            return CachedRetrievalBackend(balanced)
        case "federated":
            return FederatedBackend([balanced])
    return balanced


@pytest.mark.parametrize("kind", ["balanced", "reranked", "cached", "federated"])
@pytest.mark.parametrize(
    "hanging",
    [
        pytest.param([("a", True)], id="one slice"),
        pytest.param([(corpus, True) for corpus in "abcd"], id="a slice of every corpus"),
        pytest.param([*((c, f) for c in "abc" for f in (True, False)), ("d", True)], id="all but one slice"),
    ],
)
def test_results_that_arrive_in_time_are_returned(kind: str, hanging: list[tuple[str, bool]]) -> None:
    backend = _around(kind, _sliced(*hanging))

    outcome = run_in_virtual_time(backend.search(SearchRequest("q", 20, metadata_filter={"topic": "x"})))

    arrived = {f"{c} {f}" for c in "abcd" for f in (True, False) if (c, f) not in hanging}
    assert {found.content for found in outcome.chunks} == arrived
    assert not outcome.complete
    assert "timeout" in {part.status for part in outcome.parts}


def test_a_second_round_of_slices_keeps_the_deadline_of_the_first() -> None:
    ends = []

    class Slow(Engine):
        name = "slow"

        async def _find(self, query: str, count: int, condition: Filter | None) -> list[RetrievedChunk]:
            assert condition is not None
            now = asyncio.get_running_loop().time
            ends.append(now() + seconds_left(math.inf))
            await asyncio.sleep(1)
            topics = ["Travel", "Travel", "Food", "Food"]
            found = [chunk(f"{query} {n}", 0.5, "a") for n in range(len(topics))][:count]
            return [c.model_copy(update={"metadata": {"topic": t}}) for c, t in zip(found, topics, strict=False)]

    balanced = BalancedBackend(MultiSliceBackend(Slow(), timeout_seconds=30), ["a"], reranker=None, timeout_seconds=3)

    async def started_and_searched() -> float:
        start = asyncio.get_running_loop().time()
        await balanced.search(SearchRequest("Who writes about Travel?", infer_filter=True))
        return start

    start = run_in_virtual_time(started_and_searched())

    assert len(ends) == 2
    assert max(ends) <= start + 3


def test_trust_depends_on_the_results_of_all_corpora() -> None:
    store = Store(*(chunk(f"{corpus} {n}", 0.9 - n / 100, corpus) for corpus in CORPORA[:2] for n in range(5)))
    balanced = BalancedBackend(MultiSliceBackend(store), CORPORA[:2], reranker=None)

    outcome = search(balanced, "What do courts say?", top_k=6, metadata_filter={"corpus": "legal_uk"})

    assert [part.name for part in outcome.parts] == [
        "legal_us: filtered",
        "legal_uk: filtered",
        "legal_us: unfiltered",
        "legal_uk: unfiltered",
    ]
    trust, same = (part.trust for part in outcome.parts[:2])
    assert trust == same == 0.7
    assert outcome.chunks[0].metadata == {"corpus": "legal_uk"}
    assert [count.candidates for count in outcome.corpora] == [5, 5]


@pytest.mark.parametrize("corpora", [CORPORA[:2], CORPORA[:1]])
def test_reports_name_corpus_and_slice(corpora: Sequence[str]) -> None:
    outcome = search(BalancedBackend(MultiSliceBackend(library()), corpora))

    assert [(part.backend, part.corpus, part.slice) for part in outcome.parts] == [
        (None, corpus, "unfiltered") for corpus in corpora
    ]


def test_another_corpus_is_not_inferred_within_one() -> None:
    async def vocabulary() -> Vocabulary:
        return Vocabulary({"corpus": {"Amcor": 2, "Boeing": 2}}, 4)

    store = Store(*(chunk(f"earnings {n}", 0.5, corpus) for corpus in ("Amcor", "Boeing") for n in range(2)))
    balanced = BalancedBackend(MultiSliceBackend(store, vocabulary=vocabulary), ["Amcor", "Boeing"])
    question = "What did Amcor earn?"

    everything = search(balanced, question, infer_filter=True)
    within = search(balanced, question, "Boeing", infer_filter=True)

    assert everything.inferred is not None
    assert within.inferred is None
    assert [part.corpus for part in within.parts] == ["Boeing"]
