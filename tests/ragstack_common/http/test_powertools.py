"""The edge that both functions behind API Gateway share: what they read, and that no request makes them fail."""

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lambdas.documents import handler as documents
from lambdas.query import handler as query
from ragstack_common.core.reporting import MAX_DETAILS
from ragstack_common.services.search_models import RetrieveRequest
from ragstack_common.services.uploads import UploadRequest
from tests.ragstack_common.services.conftest import Aws, Call
from tests.support.aws_service import AwsService
from tests.support.events import REQUEST_ID, Context, api_event
from tests.support.knowledge_base import KNOWLEDGE_BASE, hit, hits
from tests.support.soak import examples

FUNCTIONS = {
    "/api/retrieve": query,
    "/api/corpora": query,
    "/api/versions": query,
    "/tools": query,
    "/tools/retriever": query,
    "/health": query,
    "/openapi.json": query,
    "/api/documents": documents,
    "/api/documents/x": documents,
    "/api/facets": documents,
    "/api/ingestion-jobs": documents,
    "/api/ingestion-jobs/x": documents,
}
WITH_BODY = ("/api/retrieve", "/tools/retriever", "/api/documents", "/api/ingestion-jobs")
BODIES: dict[str, dict[str, Any]] = {
    "/api/retrieve": {"query": "trains"},
    "/tools/retriever": {"input": {"collection_name": KNOWLEDGE_BASE, "texts": ["trains"]}},
    "/api/documents": {"key": "a.md", "content_type": "text/markdown", "size": 7},
    "/api/ingestion-jobs": {"kind": "reconcile"},
}

Send = Callable[..., tuple[int, Any]]


@pytest.fixture
def send(aws: Aws, ask: Call, searches: AwsService, monkeypatch: pytest.MonkeyPatch) -> Send:
    """Send a request to the function that serves its path."""
    searches.program("Retrieve", hits(hit()))
    documents.service()
    monkeypatch.delenv("REGISTRY_TABLE")

    def send(method: str, path: str, body: Any = None, /, **more: Any) -> tuple[int, Any]:
        answer = FUNCTIONS[path].handler({**api_event(method, path, body), **more}, Context())
        return answer["statusCode"], json.loads(answer["body"])

    return send


def public_message(body: dict[str, Any]) -> str:
    """The error of either form."""
    message: str = body["error"] if "success" in body else body["error"]["message"]
    return message


def with_type(content_type: str | None) -> dict[str, Any]:
    return {"headers": {} if content_type is None else {"cOnTent-type": content_type}, "multiValueHeaders": None}


@pytest.mark.parametrize("content_type", [None, "APPLICATION/JSON", 'application/json;charset="utf-8"'])
def test_json_is_read_with_every_spelling_of_its_type(send: Send, content_type: str | None) -> None:
    for path, request in BODIES.items():
        status, body = send("POST", path, request, **with_type(content_type))

        assert status in (200, 201, 202), body


@pytest.mark.parametrize("path", ["/tools/retriever", "/api/documents"])
@pytest.mark.parametrize(
    "content_type",
    [
        "text/plain",
        "multipart/form-data; boundary=x",
        "application/json, text/plain",
        "application/json; charset=utf-16",
        "é",
        "x" * 10_000,
    ],
)
def test_another_content_type_is_rejected_with_the_right_one(
    send: Send, aws: Aws, path: str, content_type: str
) -> None:
    status, body = send("POST", path, BODIES[path], **with_type(content_type))

    assert status == 415
    assert "Content-Type: application/json" in public_message(body)
    assert aws.messages() == []


UNREADABLE = {
    "a list": '[{"kind": "full"}]',
    "null": "null",
    "cut off": '{"query": ',
    "NaN": '{"query": NaN}',
    "Infinity": '{"min_score": -Infinity}',
    "5,000 digits": '{"top_k": ' + "9" * 5_000 + "}",
    "500 lists": '{"query": ' + "[" * 500 + "]" * 500 + "}",
    "500 objects": '{"a":' * 500 + "1" + "}" * 500,
    "100,000 lists": "[" * 100_000,
    "half a surrogate pair": '{"query": "\\ud800"}',
    "half a surrogate pair as a name": '{"\\udc00": 1}',
    "a byte order mark": '\ufeff{"query": "a"}',
    "text": "trains",
}


@pytest.mark.parametrize("path", ["/tools/retriever", "/api/documents"])
@pytest.mark.parametrize("text", UNREADABLE.values(), ids=UNREADABLE)
def test_a_body_that_is_not_a_plain_json_object_is_a_bad_request(
    send: Send, aws: Aws, searches: AwsService, path: str, text: str
) -> None:
    status, body = send("POST", path, text)

    assert status == 400, body
    assert "equest body" in public_message(body)
    assert (aws.messages(), aws.keys(), searches.requests) == ([], [], [])


@pytest.mark.parametrize("number", ["1e999", "9" * 4_300], ids=["1e999", "4,300 digits"])
@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/api/retrieve", '{"query": "a", "top_k": %s}'),
        ("/api/retrieve", '{"query": "a", "min_score": %s}'),
        ("/api/retrieve", '{"query": "a", "metadata_filter": {"year": %s}}'),
        ("/tools/retriever", '{"input": {"collection_name": "KB", "texts": ["a"], "top_k": %s}}'),
        ("/api/documents", '{"key": "a.md", "content_type": "text/markdown", "size": %s}'),
        ("/api/documents", '{"key": "a.md", "content_type": "text/markdown", "size": 7, "attributes": {"year": %s}}'),
    ],
)
def test_a_number_that_no_float_can_hold_is_a_bad_request(send: Send, path: str, text: str, number: str) -> None:
    assert send("POST", path, text % number)[0] == 400


@pytest.mark.parametrize("path", WITH_BODY)
def test_an_unknown_member_is_rejected(send: Send, aws: Aws, path: str) -> None:
    status, body = send("POST", path, {**BODIES[path], "unknown": 1})

    assert status == 400
    assert "unknown" in public_message(body)
    assert aws.messages() == []


@pytest.mark.parametrize(
    ("method", "path", "more"),
    [
        ("GET", "/api/documents/x", {"path": "/api/documents/" + "x" * 5_000}),
        ("DELETE", "/api/documents/x", {"path": "/api/documents/" + "x" * 5_000}),
        ("GET", "/api/ingestion-jobs/x", {"path": "/api/ingestion-jobs/" + "x" * 5_000}),
        *(
            ("GET", path, {"multiValueQueryStringParameters": {name: ["x" * 5_000]}})
            for path, name in [
                ("/api/documents", "key"),
                ("/api/documents", "uri"),
                ("/api/documents", "corpus"),
                ("/api/documents", "next_token"),
                ("/api/ingestion-jobs", "next_token"),
                ("/api/facets", "key"),
                ("/api/facets", "prefix"),
                ("/api/facets", "next_token"),
            ]
        ),
    ],
)
def test_a_name_of_five_thousand_characters_is_a_bad_request(
    send: Send, method: str, path: str, more: dict[str, Any]
) -> None:
    assert send(method, path, **more)[0] == 400


def test_a_body_in_base64_is_decoded(send: Send, searches: AwsService) -> None:
    encoded = base64.b64encode('{"query": "Größe"}'.encode()).decode()

    assert send("POST", "/api/retrieve", encoded, isBase64Encoded=True)[0] == 200
    assert searches.asked("Retrieve")[0]["retrievalQuery"]["text"] == "Größe"


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", path) for path in FUNCTIONS if path not in ("/api/retrieve", "/tools/retriever")]
    + [("DELETE", "/api/documents/x")]
    + [("POST", path) for path in WITH_BODY],
)
def test_an_unknown_query_parameter_is_rejected_on_every_route(send: Send, aws: Aws, method: str, path: str) -> None:
    given = {"queryStringParameters": {"unknown": "1"}, "multiValueQueryStringParameters": {"unknown": ["1"]}}

    status, body = send(method, path, BODIES.get(path) if method == "POST" else None, **given)

    assert status == 400
    assert public_message(body).startswith("unknown: unknown parameter")
    assert aws.messages() == []


def test_a_body_with_countless_members_is_refused_unread(send: Send) -> None:
    status, body = send("POST", "/api/retrieve", {"query": "q", **dict.fromkeys(map(str, range(100_000)), 1)})

    assert status == 400
    assert "has 100,001 members; at most 100" in body["error"]["message"]


def test_a_body_with_many_unknown_members_gets_a_short_answer(send: Send) -> None:
    status, body = send("POST", "/api/retrieve", {"query": "q", **dict.fromkeys(map(str, range(50)), 1)})

    assert status == 400
    assert len(body["error"]["details"]) == MAX_DETAILS
    assert "and 30 more" in body["error"]["message"]


def test_a_long_name_is_shortened_in_the_answer(send: Send) -> None:
    _, unknown = send("POST", "/api/retrieve", {"query": "q", "x" * 1_000_000: 1})

    assert len(json.dumps(unknown)) < 500


def test_an_error_has_the_id_of_the_request_in_the_log(send: Send, capsys: pytest.CaptureFixture[str]) -> None:
    _, body = send("POST", "/api/retrieve", {"query": ""})
    _, without = send("GET", "/api/documents/x", requestContext=None)

    assert body["error"]["requestId"] == REQUEST_ID
    assert without["error"]["requestId"] == Context().aws_request_id


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=20,
)
NAMES = [
    *RetrieveRequest.model_fields,
    *UploadRequest.model_fields,
    *("input", "collection_name", "partition_name", "texts", "kind"),
    *("$and", "$or", "$not", "$in", "$eq", "topic", "andAll", "equals", "value"),
]
LIKELY = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 200) | st.floats() | st.text(max_size=9) | st.sampled_from(NAMES),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5),
    max_leaves=15,
)
PARAMETERS = st.none() | st.dictionaries(
    st.sampled_from(["status", "corpus", "limit", "next_token", "key", "uri", "prefix", "name"]) | st.text(max_size=5),
    st.lists(
        st.text(max_size=30) | st.sampled_from(["FAILED", "7", "0", "s3://documents/a.md", "a.md"]),
        min_size=1,
        max_size=2,
    ),
    max_size=3,
)


@settings(max_examples=examples(250), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    method=st.sampled_from(["GET", "POST", "DELETE"]),
    path=st.sampled_from(sorted(FUNCTIONS)),
    tail=st.just("") | st.text(max_size=10),
    body=st.none() | LIKELY.map(json.dumps) | JSON.map(json.dumps) | st.text(max_size=50),
    content_type=st.sampled_from(["application/json", None, "text/plain"]) | st.text(max_size=10),
    parameters=PARAMETERS,
    encoded=st.booleans(),
)
def test_no_malformed_request_is_answered_with_500(
    send: Send,
    method: str,
    path: str,
    tail: str,
    body: str | None,
    content_type: str | None,
    parameters: dict[str, list[str]] | None,
    encoded: bool,
) -> None:
    event: dict[str, Any] = {
        **with_type(content_type),
        "path": path + tail,
        "isBase64Encoded": encoded,
        "multiValueQueryStringParameters": parameters,
        "queryStringParameters": parameters and {name: values[-1] for name, values in parameters.items()},
    }

    status, answer = send(method, path, body, **event)

    assert status < 500, answer
    if status >= 400:
        assert public_message(answer)
