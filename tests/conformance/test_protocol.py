"""What comes over the wire that no AWS client writes: never a 500, never silence."""

import json

import pytest

from tests.conformance import raw
from tests.conformance.world import World

REFUSED = ("ValidationException", "SerializationException")
_DEEP = 10_000


@pytest.fixture(scope="session")
def retrieve(world: World) -> str:
    return f"/knowledgebases/{world.knowledge_base_id}/retrieve"


def test_a_path_without_an_operation_is_unknown(world: World) -> None:
    answer = raw.send(world.bedrock.url, "GET", "/no/such/path")

    assert (answer.status, answer.code) == (404, "UnknownOperationException")
    assert "/no/such/path" in answer.message


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"no json", id="text"),
        pytest.param(b'{"retrievalQuery": {"text": "x"}', id="cut off"),
        pytest.param(b'[{"retrievalQuery": {"text": "x"}}]', id="an array"),
        pytest.param(b"null", id="null"),
        pytest.param(b'{"retrievalQuery": {"text": "\xff\xfe"}}', id="bytes that are not UTF-8"),
        pytest.param(b'{"retrievalQuery": {"text": NaN}}', id="NaN"),
        pytest.param(b'{"retrievalQuery": {"text": ' + b"[" * _DEEP + b"]" * _DEEP + b"}}", id="deep arrays"),
        pytest.param(b'{"retrievalQuery":' * _DEEP + b"1" + b"}" * _DEEP, id="deep objects"),
    ],
)
def test_a_body_that_cannot_be_read_is_refused(world: World, retrieve: str, body: bytes) -> None:
    answer = raw.send(world.bedrock.url, "POST", retrieve, body)

    assert answer.status == 400
    assert answer.code in REFUSED
    assert answer.message


@pytest.mark.parametrize("body", [None, b"", b"{}", b'{"retrievalQuery": null}'])
def test_an_error_names_the_missing_member(world: World, retrieve: str, body: bytes | None) -> None:
    answer = raw.send(world.bedrock.url, "POST", retrieve, body)

    assert (answer.status, answer.code) == (400, "ValidationException")
    assert "Value null at 'retrievalQuery' failed to satisfy constraint: Member must not be null" in answer.message


@pytest.mark.parametrize("number", ["1e400", "9" * 5_000, "1e-400", "-0.0"])
def test_a_number_of_any_size_in_a_filter_breaks_nothing(world: World, retrieve: str, number: str) -> None:
    body = (
        '{"retrievalQuery": {"text": "x"}, "retrievalConfiguration": {"vectorSearchConfiguration":'
        ' {"filter": {"greaterThan": {"key": "year", "value": %s}}}}}'
    )

    answer = raw.send(world.bedrock.url, "POST", retrieve, (body % number).encode())

    assert answer.status in (200, 400)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(r"\ud800", id="half a surrogate pair"),
        pytest.param(r"cheetah\u0000snail", id="NUL within"),
        pytest.param(r"\ud83d\udc06 \uffff", id="a leopard and no character"),
        pytest.param(r"^ : ( ) { } - + ~ AND OR NOT", id="the syntax of full-text search"),
    ],
)
def test_any_text_is_searched_or_refused(world: World, retrieve: str, text: str) -> None:
    for kind in ("SEMANTIC", "HYBRID"):
        body = (
            '{"retrievalQuery": {"text": "%s"}, "retrievalConfiguration":'
            ' {"vectorSearchConfiguration": {"overrideSearchType": "%s"}}}'
        )

        answer = raw.send(world.bedrock.url, "POST", retrieve, (body % (text, kind)).encode())

        assert answer.status == 200 or (answer.status == 400 and answer.code in REFUSED)


@pytest.mark.parametrize("text", [r"\ud800", r"a\u0000b"])
def test_a_document_of_any_text_is_indexed_or_refused(world: World, text: str) -> None:
    source = world.expendable_source()
    path = f"/knowledgebases/{source.knowledge_base_id}/datasources/{source.id}/documents"
    document = (
        '{"documents": [{"content": {"dataSourceType": "CUSTOM", "custom": {"customDocumentIdentifier": {"id": "x"},'
        ' "sourceType": "IN_LINE", "inlineContent": {"type": "TEXT", "textContent": {"data": "%s"}}}}}]}'
    )

    answer = raw.send(world.bedrock.url, "PUT", path, (document % text).encode())

    assert answer.status == 202 or (answer.status == 400 and answer.code in REFUSED)
    if answer.status == 202:
        identifier = {"dataSourceType": "CUSTOM", "custom": {"id": "x"}}
        assert source.settled(identifier)[0]["status"] in ("INDEXED", "FAILED")


@pytest.mark.parametrize(("length", "status"), [(20_000, 200), (20_001, 400)])
def test_a_query_may_have_twenty_thousand_characters(world: World, retrieve: str, length: int, status: int) -> None:
    text = ("cheetah " * length)[:length]

    answer = raw.send(world.bedrock.url, "POST", retrieve, json.dumps({"retrievalQuery": {"text": text}}).encode())

    assert answer.status == status


def test_members_and_parameters_that_the_model_lacks_are_ignored(world: World, retrieve: str) -> None:
    body = b'{"retrievalQuery": {"text": "snail", "x": 1}, "unknown": {"a": [null]}}'

    answer = raw.send(world.bedrock.url, "POST", f"{retrieve}?x=1&maxResults=a&x", body)

    assert answer.status == 200
    assert answer.document["retrievalResults"][0]["metadata"]["animal"] == "snail"


@pytest.mark.parametrize(
    "identifier",
    ["%2e%2e%2f%2e%2e", "%00%00%00%00%00%00%00%00%00%00", "%ff%fe%ff%fe%ff", "%zz%zz%zz", "..", "a%20b", "%"],
)
def test_an_invalid_id_is_refused(world: World, identifier: str) -> None:
    answer = raw.send(world.bedrock.url, "GET", f"/knowledgebases/{identifier}")

    assert (answer.status, answer.code) in ((400, "ValidationException"), (404, "UnknownOperationException"))
