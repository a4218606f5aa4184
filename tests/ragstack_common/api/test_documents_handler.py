"""The function for documents as a whole: facets, failures behind it, its description, and what it does not serve."""

from collections.abc import Mapping
from typing import Any

import pytest

from lambdas.documents import handler as documents
from lambdas.query import handler as query
from ragstack_common.registry.records import Observation, Status
from tests.ragstack_common.api.conftest import Aws, Call, error_of

ROUTES = {
    ("post", "/api/documents"),
    ("get", "/api/documents"),
    ("get", "/api/documents/{id}"),
    ("delete", "/api/documents/{id}"),
    ("get", "/api/facets"),
    ("post", "/api/ingestion-jobs"),
    ("get", "/api/ingestion-jobs"),
    ("get", "/api/ingestion-jobs/{id}"),
}


def with_attributes(attributes: Mapping[str, Any]) -> Observation:
    return Observation(etag='"e"', attributes=attributes)


def test_facets_count_searchable_documents_by_attribute_in_natural_order(aws: Aws, call: Call) -> None:
    aws.record("a.md", Status.INDEXED, with_attributes({"corpus": "people", "version": "10", "tags": ["x", "y"]}))
    aws.record("b.md", Status.PARTIALLY_INDEXED, with_attributes({"corpus": "people", "version": "9", "tags": ["y"]}))
    aws.record("c.md", Status.INDEXED, with_attributes({"version": 9, "public": False}))
    aws.record("d.md", Status.FAILED, with_attributes({"corpus": "law"}))

    status, answer = call("GET", "/api/facets")
    _, versions = call("GET", "/api/facets", key="version")
    _, nothing = call("GET", "/api/facets", key="vers")

    assert status == 200
    assert answer["documents"] == versions["documents"] == nothing["documents"] == 3
    assert {facet["key"]: counts(facet) for facet in answer["facets"]} == {
        "corpus": [("people", 2)],
        "public": [(False, 1)],
        "tags": [("x", 1), ("y", 2)],
        "version": [(9, 1), ("9", 1), ("10", 1)],
    }
    assert versions["facets"] == [facet for facet in answer["facets"] if facet["key"] == "version"]
    assert nothing["facets"] == []


def counts(facet: dict[str, Any]) -> list[tuple[Any, int]]:
    return [(each["value"], each["documents"]) for each in facet["values"]]


@pytest.mark.parametrize(
    ("method", "path", "parameters"),
    [
        ("GET", "/api/documents", {}),
        ("GET", "/api/documents/x", {}),
        ("GET", "/api/facets", {}),
        ("POST", "/api/ingestion-jobs", {}),
        ("GET", "/api/ingestion-jobs/20260102T030405006-0a1b2c3d", {}),
    ],
    ids=str,
)
def test_an_unreachable_registry_is_reported(
    aws: Aws, call: Call, caplog: pytest.LogCaptureFixture, method: str, path: str, parameters: dict[str, str]
) -> None:
    aws.dynamodb.delete_table(TableName="registry")

    answer = call(method, path, **parameters)

    assert error_of(answer) == (502, "Registry")
    assert "ResourceNotFoundException" in answer[1]["error"]["message"]
    assert "ResourceNotFoundException" in caplog.text
    assert aws.messages() == []


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_an_unreachable_bucket_is_reported(aws: Aws, call: Call, method: str) -> None:
    record = aws.record("a.md", Status.INDEXED, aws.put("a.md"))

    with aws.s3_out_of_reach("HeadObject"):
        answer = call(method, f"/api/documents/{record.id}")

    assert error_of(answer) == (502, "ServiceUnavailable")
    assert "EndpointConnectionError" in answer[1]["error"]["message"]
    assert aws.keys() == ["a.md"]


def test_the_description_of_the_interface_names_every_route_of_all_functions_once(ask: Call) -> None:
    _, described = ask("GET", "/openapi.json")

    routes = [(method, path) for path, operations in described["paths"].items() for method in operations]
    assert len(routes) == len(set(routes))
    assert set(routes) >= ROUTES
    served = {
        (route.method.lower(), route.openapi_path)
        for app in (query.app, documents.app)
        for route in (*app._static_routes, *app._dynamic_routes)
        if route.openapi_path != "/openapi.json"
    }
    assert set(routes) == served | {("post", "/api/ask"), ("post", "/api/ask/stream")}
    names = [
        operation["operationId"] for operations in described["paths"].values() for operation in operations.values()
    ]
    assert len(names) == len(set(names))
