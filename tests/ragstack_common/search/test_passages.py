"""The passages of a document, through every wrapper."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragstack_common.search import RetrievedChunk
from tests.ragstack_common.search.test_relevance import FILTER, WRAPPERS, Store, search

DRAWN = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.sampled_from("abc")), min_size=1, max_size=30)


def store(drawn: list[tuple[float, float, str]]) -> Store:
    """Make chunks of three documents; those of one document have one topic."""
    return Store(
        *(
            RetrievedChunk(
                content=f"{n}",
                chunk_id=f"{n}",
                score=score,
                source=document,
                relevance=relevance,
                metadata={"topic": "a" if document == "a" else "b"},
            )
            for n, (score, relevance, document) in enumerate(drawn)
        )
    )


@pytest.mark.parametrize("wrapper", WRAPPERS)
@settings(max_examples=30)
@given(drawn=DRAWN, passages=st.integers(2, 10), least=st.none() | st.floats(0, 1))
def test_passages_are_the_best_chunks_and_change_no_ranking(
    wrapper: str, drawn: list[tuple[float, float, str]], passages: int, least: float | None
) -> None:
    asked: dict[str, Any] = {"deduplicate_by": "document", "min_relevance": least}
    asked |= {"metadata_filter": FILTER} if wrapper in ("trust", "boost") else {}
    backend = WRAPPERS[wrapper](store(drawn))

    plain = search(backend, **asked).chunks
    several = search(backend, **asked, passages=passages).chunks

    assert [chunk.model_copy(update={"passages": (), "passages_found": 0}) for chunk in several] == plain
    for chunk in several:
        first, *others = (passage.content for passage in chunk.passages)
        assert first == chunk.content
        assert len(chunk.passages) <= passages
        assert {passage.source for passage in chunk.passages} == {chunk.source}
        assert all((passage.relevance or 0) >= (least or 0) for passage in chunk.passages)
        scores = [drawn[int(number)][0] for number in others]
        assert scores == sorted(scores, reverse=True)
        assert len({first, *others}) == len(chunk.passages) <= chunk.passages_found


def test_changing_a_passage_does_not_change_the_cached_answer() -> None:
    backend = WRAPPERS["cached"](store([(0.9, 0.5, "a"), (0.8, 0.5, "a")]))
    asked: dict[str, Any] = {"deduplicate_by": "document", "passages": 2}

    search(backend, **asked).chunks[0].passages[1].metadata["topic"] = "changed"

    assert search(backend, **asked).chunks[0].passages[1].metadata == {"topic": "a"}
