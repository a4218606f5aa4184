"""Corpora and versions as the document registry counts them, from the query function."""

import asyncio
import json
from collections.abc import Iterator
from itertools import count
from threading import Event
from typing import Any

import boto3
import pytest
from moto import mock_aws
from moto.moto_api._internal.models import moto_api_backend

from lambdas.query import handler as query
from ragstack_common.access.rules import EVERYTHING
from ragstack_common.registry.catalogue import Catalogue, SharedValues, counted_under
from ragstack_common.registry.documents import DocumentRegistry, RecordChange
from ragstack_common.registry.records import DocumentRecord, Observation, Status
from ragstack_common.registry.snapshot import SnapshotRequests, SnapshotWriter
from ragstack_common.search import register_backend
from ragstack_common.services.catalogue import (
    REMEMBERED_SECONDS,
    VOCABULARY_SECONDS,
    SnapshotVocabulary,
    values_of_engine,
)
from ragstack_common.services.known_corpora import FoundCorpora
from tests.contract.cases.third_party import InMemoryBackend
from tests.contract.documents import Document
from tests.ingestion.clock import Clock
from tests.ragstack_common.services.conftest import Call
from tests.support.aws_service import AwsService
from tests.support.knowledge_base import hit, hits, is_filtered, is_unfiltered, search_of
from tests.support.registry_table import TABLE, create_table
from tests.support.waiting import eventually


@pytest.fixture
def registry(ask: Call, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The registry of a function that was just deployed."""
    with mock_aws():
        moto_api_backend.reset()
        client = boto3.client("dynamodb", region_name="eu-west-1")
        create_table(client, TABLE)
        monkeypatch.setenv("REGISTRY_TABLE", TABLE)
        yield client


def write(client: Any, key: str, status: Status, **attributes: Any) -> None:
    counted = counted_under(attributes) if status is Status.INDEXED else ()
    record = DocumentRecord(
        f"s3://documents/{key}", status=status, observed=Observation('"e"', attributes=attributes), counted=counted
    )
    assert DocumentRegistry(TABLE, client).write([RecordChange(DocumentRecord(record.uri), record)]) == set()


def test_corpora_come_from_settings_and_documents_with_counts(
    ask: Call, registry: Any, searches: AwsService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MULTI_CORPUS_METADATA", "law,people")
    for number in range(3):
        write(registry, f"{number}.md", Status.INDEXED, corpus="people")
    write(registry, "more.md", Status.INDEXED, corpus=["product", "people"])
    for number, unchoosable in enumerate((7, "all", "", True)):
        write(registry, f"unchoosable-{number}.md", Status.INDEXED, corpus=unchoosable)
    write(registry, "text.md", Status.INDEXED, corpus="7")
    write(registry, "failed.md", Status.FAILED, corpus="law")

    assert ask("GET", "/api/corpora") == (
        200,
        {
            "corpora": [
                {"name": "law", "configured": True, "searchable": False, "documents": 0},
                {"name": "people", "configured": True, "searchable": True, "documents": 4},
                {"name": "7", "configured": False, "searchable": True, "documents": 1},
                {"name": "product", "configured": False, "searchable": True, "documents": 1},
            ],
            "complete": True,
        },
    )
    assert searches.requests == []


def test_versions_are_in_natural_order_with_their_types_and_counts(
    ask: Call, registry: Any, searches: AwsService
) -> None:
    for key, version in (("a", "10"), ("b", "9"), ("c", 9), ("d", True), ("e", "9"), ("f", "v1.10"), ("g", "v1.9")):
        write(registry, key, Status.INDEXED, version=version)
    write(registry, "h", Status.INDEXED, versions="not this one")

    assert ask("GET", "/api/versions") == (
        200,
        {"versions": [True, 9, "9", "10", "v1.9", "v1.10"], "documents": [1, 1, 2, 1, 1, 1], "complete": True},
    )
    assert searches.requests == []


def test_all_is_balanced_over_the_20_largest_corpora_of_the_registry(
    ask: Call, registry: Any, searches: AwsService
) -> None:
    names = [f"corpus-{number:02}" for number in range(22)]
    write(registry, "a.md", Status.INDEXED, corpus=names)
    write(registry, "b.md", Status.INDEXED, corpus=[*names[:9], *names[11:]])
    searches.program("Retrieve", hits())

    status, answer = ask("POST", "/api/retrieve", {"query": "q", "corpus_filter": "all", "infer_filter": False})

    sent = [search_of(request).get("filter") for request in searches.asked("Retrieve")]
    largest = [name for name in names if name not in ("corpus-09", "corpus-10")]
    assert status == 200
    assert [each["name"] for each in answer["corpora"]] == largest
    assert sorted(filter_["equals"]["value"] for filter_ in sent if filter_) == largest
    assert len(sent) == 21  # of everything too
    assert [note["text"].partition(":")[0] for note in answer["notes"]] == [
        "The search was balanced over 20 of the corpora, and searched the others together"
    ]


def test_corpora_may_expire_while_they_are_looked_up() -> None:
    seconds = count(step=REMEMBERED_SECONDS / 3)
    engine = InMemoryBackend([Document("a", "text", "s3://b/a", {"corpus": "people"})])
    source = values_of_engine(engine, 10.0, lambda: next(seconds))
    corpora = FoundCorpora(source, lambda: next(seconds))

    async def look(times: int) -> list[tuple[list[Any], tuple[str, ...]]]:
        return [
            ([*(await source("corpus", EVERYTHING)).values], (await corpora(EVERYTHING)).names) for _ in range(times)
        ]

    assert asyncio.run(look(9)) == [(["people"], ("people",))] * 9


@pytest.mark.parametrize("body", [{"query": "q"}, {"query": "q", "corpus_filter": "people"}])
def test_searches_do_not_need_the_registry(
    ask: Call, registry: Any, searches: AwsService, body: dict[str, str]
) -> None:
    registry.delete_table(TableName=TABLE)
    searches.program("Retrieve", hits())

    answer = ask("POST", "/api/retrieve", body)

    assert answer[0] == 200
    assert "_values" not in vars(query.service())


def test_for_another_engine_the_registry_is_not_read(ask: Call, registry: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    register_backend("in_memory", lambda documents: InMemoryBackend([Document(**each) for each in documents]))
    law = {"id": "a", "source": "a.md", "text": "A law.", "metadata": {"corpus": "law"}}
    monkeypatch.setenv("RETRIEVAL_ENGINE", "in_memory")
    monkeypatch.setenv("RETRIEVAL_ENGINE_CONFIG", json.dumps({"documents": [law]}))
    write(registry, "a.md", Status.INDEXED, corpus="people")

    assert ask("GET", "/api/corpora")[1]["corpora"] == [
        {"name": "law", "configured": False, "searchable": True, "documents": None}
    ]


def test_a_question_prefers_documents_with_a_value_of_the_snapshot(
    ask: Call, registry: Any, searches: AwsService, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        write(registry, f"{number}.md", Status.INDEXED, topic=["Amcor", "Boeing"][number % 2])
    s3 = boto3.client("s3", region_name="us-east-1")
    s3.create_bucket(Bucket="snapshot")
    SnapshotWriter(Catalogue(registry, TABLE), SnapshotRequests(registry, TABLE), s3, "snapshot", (), 100).write()
    monkeypatch.setenv("SNAPSHOT_BUCKET", "snapshot")
    searches.program("Retrieve", hits(hit("s3://b/amcor", 0.4, metadata={"topic": "Amcor"})), when=is_filtered)
    searches.program("Retrieve", hits(hit("s3://b/boeing", 0.9)), when=is_unfiltered)
    question = {"query": "What did Amcor earn?"}

    body = eventually(
        lambda: answer if (answer := ask("POST", "/api/retrieve", question)[1])["inferred_filter"] else None
    )
    _, without = ask("POST", "/api/retrieve", {**question, "infer_filter": False})

    assert body["inferred_filter"] == {
        "filter": {"topic": "Amcor"},
        "trust": 0.3,
        "reason": "The question names topic = Amcor",
    }
    assert [(s["slice"], s["trust"]) for s in body["slices"]] == [("unfiltered", None), ("inferred", 0.3)]
    assert {r["source"] for r in body["results"]} == {"s3://b/amcor", "s3://b/boeing"}
    assert (without["inferred_filter"], len(without["slices"])) == (None, 1)


def test_a_newer_snapshot_is_read_while_searches_use_the_old_one() -> None:
    clock, tags, allowed = Clock(0.0), [], Event()
    first, second = (SharedValues(documents, {"topic": {"a": 2, "b": 2}}, 0) for documents in (4, 5))

    def read(_bucket: str, etag: str | None) -> tuple[SharedValues, str] | None:
        tags.append(etag)
        if len(tags) == 3:
            allowed.wait()
        return [(first, "1"), None, (second, "2"), None][len(tags) - 1]

    vocabulary = SnapshotVocabulary("snapshot", read=read, clock=clock)

    used = asyncio.run(vocabulary())
    assert used is not None
    assert asyncio.run(vocabulary()) is used
    clock.sleep(VOCABULARY_SECONDS)
    asyncio.run(vocabulary())
    eventually(lambda: tags == [None, "1"])
    assert asyncio.run(vocabulary()) is used
    clock.sleep(VOCABULARY_SECONDS)
    assert asyncio.run(vocabulary()) is used
    clock.sleep(VOCABULARY_SECONDS)
    assert asyncio.run(vocabulary()) is used
    assert tags == [None, "1", "1"], "no reading begins before the earlier one has ended"
    allowed.set()
    eventually(lambda: asyncio.run(vocabulary()) is not used)
    eventually(lambda: tags == [None, "1", "1", "2"])


def test_searches_do_without_a_snapshot_that_cannot_be_read(caplog: pytest.LogCaptureFixture) -> None:
    def read(bucket: str, _etag: str | None) -> None:
        raise OSError(bucket)

    assert asyncio.run(SnapshotVocabulary("snapshot", read=read)()) is None
    assert "The snapshot of the catalogue could not be read: OSError" in caplog.text


@pytest.mark.parametrize("found", [(None, None), (SharedValues(0, {}, 0), "1")])
def test_without_documents_values_come_from_the_first_hits(found: Any) -> None:
    assert asyncio.run(SnapshotVocabulary("snapshot", read=lambda _bucket, _etag: found)()) is None
