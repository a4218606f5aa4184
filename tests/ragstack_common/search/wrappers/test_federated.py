"""Several backends searched as one."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragstack_common.core.errors import ConfigurationError, InvalidFilterError, ServiceUnavailableError
from ragstack_common.filters import parse
from ragstack_common.search import SearchRequest, create_retrieval_backend
from ragstack_common.search.merge import fuse
from ragstack_common.search.models import RAW_SCORE_KEY
from ragstack_common.search.wrappers.federated import FederatedBackend
from tests.support.backends import Shelf, chunk, names
from tests.support.virtual_time import in_virtual_time


def shelf(text: str, **options: Any) -> Shelf:
    """Make a shelf of the chunks that a text names, best first."""
    found = text.split()
    return Shelf(*(chunk(name, 1 - place / 100) for place, name in enumerate(found)), **options)


def failing(error: Exception, text: str = "x") -> Shelf:
    broken = shelf(text)
    broken.error = error
    return broken


async def test_scores_are_weighted_means_of_reciprocal_ranks() -> None:
    backend = FederatedBackend({"a": shelf("one two"), "b": shelf("two")}, weights={"a": 3})

    two, one = sorted(await backend.retrieve("q"), key=lambda found: found.content, reverse=True)

    assert one.score == pytest.approx(3 * (61 / 61) / 4)
    assert two.score == pytest.approx((3 * (61 / 62) + 1 * (61 / 61)) / 4)
    assert two.ranking is not None
    assert two.ranking.found_by == ("a", "b")
    assert two.ranking.contributions == pytest.approx({"a": 3 * (61 / 62) / 4, "b": 1 / 4})
    assert two.ranking.base_score == 1.0


@settings(deadline=None)
@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=12), st.floats(0.5, 200))
def test_a_chunk_that_is_first_everywhere_scores_exactly_1(weights: list[float], rank_constant: float) -> None:
    shelves = {str(number): [chunk("one"), chunk("two")] for number in range(len(weights))}

    best = fuse(shelves, dict(zip(shelves, weights, strict=True)), rank_constant=rank_constant)[0]

    assert best.score == 1.0
    assert RAW_SCORE_KEY not in best.metadata


def test_a_repeated_chunk_counts_once_at_its_better_rank() -> None:
    footer = [chunk("footer", source="s", chunk_id=name) for name in ("1", "2")]

    fused = fuse({"a": [footer[0], chunk("x"), footer[1]], "b": [chunk("x")]}, {"a": 1, "b": 1}, "text")

    assert names(fused) == "x footer"
    assert fused[1].score == 0.5
    assert fused[1].chunk_id == "1"


async def test_a_chunk_under_two_ids_keeps_the_first_backends() -> None:
    left = Shelf(chunk("text", 0.4, source="s.md", chunk_id="17", content="The  same\ntext"))
    right = Shelf(chunk("text", 0.9, source="s.md", chunk_id="uuid", content="The same text"))
    third = Shelf(chunk("text", 0.6, source="s.md", content=" The same text "))

    chunks = await FederatedBackend({"left": left, "right": right, "third": third}).retrieve("q")

    assert [(found.chunk_id, found.content) for found in chunks] == [("17", "The  same\ntext")]
    assert chunks[0].ranking is not None
    assert chunks[0].ranking.found_by == ("left", "right", "third")
    assert chunks[0].ranking.base_score == 0.9


async def test_an_inexpressible_filter_fails_only_that_backend() -> None:
    able = Shelf(chunk("right", metadata={"v": 1}), chunk("wrong", metadata={"v": 2}))
    unable = failing(InvalidFilterError("equals(v) cannot be expressed"), "anything")
    backend = FederatedBackend({"able": able, "unable": unable})

    outcome = await backend.search(SearchRequest("q", filters={"v": 1}))

    assert names(outcome.chunks) == "right"
    assert [part.status for part in outcome.parts] == ["ok", "failed"]
    assert able.requests[0].filters == unable.requests[0].filters == parse({"v": 1})


async def test_a_minimal_score_is_one_of_the_fusion() -> None:
    backend = FederatedBackend({"a": shelf("one two"), "b": shelf("two")})

    chunks = await backend.retrieve("q", min_score=0.6)

    assert names(chunks) == "two"
    assert all(part.requests[0].min_score is None for part in backend.backends.values() if isinstance(part, Shelf))


async def test_an_id_is_looked_up_in_the_order_of_the_backends() -> None:
    left, right = Shelf(chunk("left", chunk_id="1")), Shelf(chunk("right", chunk_id="1"), chunk("b"))
    backend = FederatedBackend([left, right])

    found = [await backend.get_by_id(wanted) for wanted in ("1", "b", "none")]

    assert list(backend.backends) == ["shelf-1", "shelf-2"]
    assert [found and found.content for found in found] == ["left", "b", None]


async def test_a_lookup_fails_only_if_no_other_backend_has_the_chunk() -> None:
    backend = FederatedBackend({"down": failing(ServiceUnavailableError("no way to it")), "a": shelf("one")})

    assert await backend.get_by_id("one") is not None
    with pytest.raises(ServiceUnavailableError, match="no way to it"):
        await backend.get_by_id("none")


@in_virtual_time
async def test_it_is_healthy_if_one_backend_would_answer_in_time() -> None:
    late, down = shelf("x"), failing(ServiceUnavailableError("down"))
    late.gate.clear()

    assert await FederatedBackend({"up": shelf("x"), "down": down, "late": late}).health_check()
    assert not await FederatedBackend({"down": down, "late": late}).health_check()


async def test_closing_closes_all_backends_even_if_one_fails_to_close() -> None:
    broken, fine = failing(OSError("disk")), shelf("x")

    with pytest.raises(OSError, match="disk"):
        await FederatedBackend([fine, broken, fine]).close()

    assert (broken.closed, fine.closed) == (1, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"backends": []}, "one backend at least"),
        ({"weights": {"c": 1}}, "weights names c"),
        ({"weights": {"a": 0}}, "weight of a"),
        ({"timeout_seconds": math.inf}, "timeout_seconds"),
        ({"candidates": 0}, "candidates"),
        ({"merge": "votes"}, "merge must be"),
        ({"merge": "scores", "weights": {"a": 1}}, "weights are for"),
    ],
    ids=str,
)
def test_an_invalid_configuration_is_rejected_by_name(options: dict[str, Any], message: str) -> None:
    config = {"type": "federated", "backends": {"a": shelf("x"), "b": shelf("y")}, **options}

    with pytest.raises(ConfigurationError, match=message):
        create_retrieval_backend(config)


async def test_the_documented_configuration_makes_a_backend_that_answers() -> None:
    text = (Path(__file__).parents[4] / "docs" / "LIBRARY.md").read_text()
    section = text.split("## Wrappers\n")[1]
    config = json.loads(section.split("```json\n")[1].split("```")[0])
    federation = config["backend"]
    for name in federation["backends"]:
        federation["backends"][name] = shelf(name)

    async with create_retrieval_backend(config) as backend:
        answer = await backend.retrieve("q")

    assert names(answer) == "handbook manuals"
