"""Chunks that are ranked anew."""

import pytest

from ragstack_common.retrieval import Ranking, RetrievedChunk
from ragstack_common.retrieval.parts import ask_together


class Page(RetrievedChunk):
    """A chunk of a class of one's own."""

    number: int


def test_a_chunk_of_a_class_of_ones_own_stays_one_when_it_is_ranked() -> None:
    page = Page(content="a", score=0.5, source="a", number=7)

    ranked = page.ranked(Ranking(base_score=0.5, score=0.25))

    assert ranked == Page(content="a", score=0.25, source="a", number=7, ranking=Ranking(base_score=0.5, score=0.25))


def test_what_is_done_to_the_metadata_of_a_ranked_chunk_is_not_seen_by_the_one_before() -> None:
    before = RetrievedChunk(content="a", score=0.5, source="a", metadata={"year": 2024})

    before.ranked(Ranking(base_score=0.5, score=0.5)).metadata.clear()

    assert before.metadata == {"year": 2024}


@pytest.mark.asyncio
async def test_a_part_that_answers_none_is_not_late() -> None:
    async def nothing() -> None:
        return None

    ended = (await ask_together({"empty": nothing}, 5))["empty"]

    assert (ended.value, ended.error, ended.late, ended.status) == (None, None, False, "ok")
