"""The measurements of a backend, whose answers stay the same."""

import json
from typing import Any

import pytest
from aws_lambda_powertools import Metrics

from ragstack_common.core.errors import ConfigurationError, InvalidFilterError, ThrottledError
from ragstack_common.search import SearchRequest, create_retrieval_backend
from ragstack_common.search.wrappers.cached import CachedRetrievalBackend
from ragstack_common.search.wrappers.federated import FederatedBackend
from ragstack_common.search.wrappers.metered import MeteredBackend
from tests.support.backends import Ledger, Shelf, chunk, names


class Ticks:
    """A clock that advances by the next of these numbers of seconds at each look."""

    def __init__(self, *seconds: float) -> None:
        self._seconds = list(seconds)
        self._now = 0.0

    def __call__(self) -> float:
        self._now += self._seconds.pop(0) if self._seconds else 0.0
        return self._now


async def test_a_measured_search_has_an_unchanged_answer() -> None:
    ledger = Ledger()
    shelf = Shelf(chunk("a", 0.95), chunk("b", 0.4), chunk("c", 0.15))
    backend = MeteredBackend(shelf, ledger, "docs", clock=Ticks(0, 0.25))

    outcome = await backend.search(SearchRequest("q"))

    assert outcome == await shelf.search(SearchRequest("q"))
    assert ledger.lines == [
        ("docs.Latency", "Milliseconds", pytest.approx(250)),
        ("docs.Hits", "Count", 3),
        ("docs.CacheHits", "Count", 0),
        ("docs.Incomplete", "Count", 0),
        ("docs.TopScore", "None", 0.95),
        ("docs.ScoreSpread", "None", pytest.approx(0.8)),
    ]


async def test_hits_of_a_cache_within_are_counted() -> None:
    ledger = Ledger()
    backend = MeteredBackend(CachedRetrievalBackend(Shelf(chunk("a"))), ledger)

    for _ in range(3):
        await backend.retrieve("q")

    assert ledger["cached.CacheHits"] == [0, 1, 1]


async def test_a_part_that_failed_is_counted_by_its_name() -> None:
    ledger = Ledger()
    down = Shelf(name="down")
    down.error = ThrottledError("slow down")
    backend = MeteredBackend(FederatedBackend({"up": Shelf(chunk("a")), "down": down}), ledger, "all")

    await backend.retrieve("q")

    assert ledger["all.Incomplete"] == [1]
    assert ledger["all.down.Failures"] == [1]
    assert ledger["all.Failures"] == []


async def test_an_error_is_counted_by_its_class_and_goes_on_to_the_caller() -> None:
    ledger, shelf = Ledger(), Shelf(chunk("a"))
    backend = MeteredBackend(shelf, ledger)

    for error in (ThrottledError("slow"), InvalidFilterError("no"), ThrottledError("slow")):
        shelf.error = error
        with pytest.raises(type(error)):
            await backend.retrieve("q")
        with pytest.raises(type(error)):
            await backend.retrieve_batch(["q"])

    assert (len(ledger["shelf.Failures"]), len(ledger["shelf.Refusals"])) == (4, 2)
    assert ledger["shelf.Latency"] == []


async def test_a_batch_is_measured_as_one() -> None:
    ledger = Ledger()
    backend = MeteredBackend(Shelf(chunk("a"), chunk("b")), ledger, clock=Ticks(0, 2))

    answers = await backend.retrieve_batch(["one", "two"])

    assert [names(answer) for answer in answers] == ["a b", "a b"]
    assert ledger.lines == [("shelf.BatchLatency", "Milliseconds", 2000), ("shelf.BatchQueries", "Count", 2)]


async def test_indexing_is_measured() -> None:
    class Writable(Shelf):
        async def index(self, documents: Any) -> list[str]:
            return [document["id"] for document in documents]

    ledger = Ledger()

    await MeteredBackend(Writable(), ledger, clock=Ticks(0, 2)).index([{"id": "1"}, {"id": "2"}])

    assert ledger.lines == [("shelf.IndexLatency", "Milliseconds", 2000), ("shelf.IndexedDocuments", "Count", 2)]


async def test_a_search_answers_even_if_the_sink_fails(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def add_metric(self, name: str, unit: str, value: float) -> None:
            raise OSError(f"no room for {name}, {value} {unit}")

    backend = MeteredBackend(Shelf(chunk("a")), Broken())

    assert names(await backend.retrieve("secret question")) == "a"
    assert "OSError" in caplog.text
    assert "secret" not in caplog.text


async def test_powertools_is_a_sink(capsys: pytest.CaptureFixture[str]) -> None:
    metrics = Metrics(namespace="RAGStack", service="query")
    backend = MeteredBackend(Shelf(chunk("a", 0.5)), metrics, "docs")

    await backend.retrieve("q")
    metrics.flush_metrics()

    written = json.loads(capsys.readouterr().out)
    (described,) = written["_aws"]["CloudWatchMetrics"]
    assert written["docs.TopScore"] == [0.5]
    assert {"Name": "docs.Latency", "Unit": "Milliseconds"} in described["Metrics"]


@pytest.mark.parametrize("name", ["", "x" * 101])
def test_an_invalid_name_is_rejected(name: str) -> None:
    with pytest.raises(ConfigurationError, match="name must have"):
        create_retrieval_backend({"type": "metered", "backend": Shelf(), "name": name})
