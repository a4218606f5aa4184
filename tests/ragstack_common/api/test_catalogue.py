"""Corpora and versions as the document registry counts them, from the query function."""

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws
from moto.moto_api._internal.models import moto_api_backend

from lambdas.query import handler as query
from ragstack_common.registry.catalogue import counted_under
from ragstack_common.registry.documents import Change, DocumentRegistry
from ragstack_common.registry.records import DocumentRecord, Observation, Status
from ragstack_common.retrieval import register_backend
from tests.contract.cases.third_party import InMemoryBackend
from tests.contract.documents import Document
from tests.ragstack_common.api.conftest import Call
from tests.support.aws_service import AwsService
from tests.support.knowledge_base import hits
from tests.support.registry_table import TABLE, create_table


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
    assert DocumentRegistry(TABLE, client).write([Change(DocumentRecord(record.uri), record)]) == set()


def test_corpora_are_the_configured_ones_and_those_of_documents_with_their_counts(
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


def test_searches_do_not_need_the_registry(ask: Call, registry: Any, searches: AwsService) -> None:
    registry.delete_table(TableName=TABLE)
    searches.program("Retrieve", hits())

    answer = ask("POST", "/api/retrieve", {"query": "q"})

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
