"""The query function, from API Gateway's event to its answer."""

import json
import random
from collections.abc import Callable, Iterator
from functools import partial
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.routing import Route

from lambdas.documents import handler as documents
from lambdas.query import handler as query
from ragstack_common.http.asgi import create_app
from ragstack_common.http.route_table import ROUTES
from ragstack_common.text.contextual_headers import prepend
from tests.ragstack_common.services.conftest import Call, error_of
from tests.support.aws_service import AwsService, Dropped, Fault, Late
from tests.support.callers import open_callers
from tests.support.events import Context, api_event, sample
from tests.support.knowledge_base import (
    DATA_SOURCE,
    KNOWLEDGE_BASE,
    hit,
    hits,
    is_filtered,
    is_unfiltered,
    search_of,
)
from tests.support.waiting import eventually

Retrieve = Callable[..., tuple[int, Any]]


@pytest.fixture
def retrieve(ask: Call, monkeypatch: pytest.MonkeyPatch) -> Retrieve:
    """Search one data source."""
    monkeypatch.setenv("DATA_SOURCE_ID", DATA_SOURCE)
    return partial(ask, "POST", "/api/retrieve")


def test_a_sample_request_gets_ranked_results_with_sources(ask: Call, searches: AwsService) -> None:
    searches.program("Retrieve", hits(hit("s3://b/train.md", 0.6, "Book early.")), when=is_filtered)
    searches.program("Retrieve", hits(hit("s3://b/bus.md", 0.7, "By bus.")), when=is_unfiltered)

    status, body = ask("", "", **sample("api_gateway_retrieve"))

    assert status == 200
    assert [(r["source"], r["score"], r["content"]) for r in body["results"]] == [
        ("s3://b/bus.md", pytest.approx(0.98), "By bus."),
        ("s3://b/train.md", pytest.approx(0.02), "Book early."),
    ]
    assert body["slices"][0]["trust"] == 0.02
    assert body["slices"][0]["reason"] == "The question names no value, and 0 of the 1 best results match the filter"
    assert body["complete"] is True
    assert [(s["slice"], s["status"], s["hits"]) for s in body["slices"]] == [
        ("filtered", "ok", 1),
        ("unfiltered", "ok", 1),
    ]
    assert searches.refusals == []


@pytest.mark.parametrize(
    ("query", "text", "answerable"),
    [
        ("How late may trains leave?", "The last trains leave at midnight.", True),
        ("How late may trains leave?", "Der letzte Zug fährt um Mitternacht.", None),
        ("How late may trains leave?", "The train.", None),
        ("?", "The last trains leave at midnight.", None),
    ],
)
def test_without_a_calibration_words_say_what_is_answerable(
    retrieve: Retrieve, searches: AwsService, query: str, text: str, answerable: bool | None
) -> None:
    searches.program("Retrieve", hits(hit("s3://b/train.md", 0.9, text=text)))

    _, body = retrieve({"query": query})

    assert (body["answerable"], body["best_relevance"]) == (answerable, None)


def test_a_calibrated_search_says_whether_anything_relevant_was_found(
    retrieve: Retrieve, searches: AwsService, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = {"embedding": None, "search_type": None, "intercept": -4, "weights": {"score": 4}}
    monkeypatch.setenv("RELEVANCE_CALIBRATION", json.dumps({"calibrations": [own]}))
    monkeypatch.setenv("ANSWERABLE_RELEVANCE", "0.4")
    searches.program("Retrieve", hits(hit("s3://b/train.md", 0.9), hit("s3://b/bus.md", 0.1)))

    _, found = retrieve({"query": "trains"})
    _, few = retrieve({"query": "trains", "min_relevance": 0.3})
    _, none = retrieve({"query": "trains", "min_relevance": 0.5})

    assert [result["relevance"] for result in found["results"]] == [0.4013, 0.0266]
    assert [result["source"] for result in few["results"]] == ["s3://b/train.md"]
    assert none["results"] == []
    assert [(each["answerable"], each["best_relevance"]) for each in (found, few, none)] == [(True, 0.4013)] * 3


def test_a_calibration_that_cannot_be_used_is_a_configuration_error(
    retrieve: Retrieve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RELEVANCE_CALIBRATION", '{"calibrations": [{"embedding": "hashed"}]}')

    status, body = retrieve({"query": "trains"})

    assert status == 500
    assert "RELEVANCE_CALIBRATION" in body["error"]["message"]


def test_a_document_has_three_passages_or_as_many_as_requested(retrieve: Retrieve, searches: AwsService) -> None:
    searches.program("Retrieve", hits(*(hit("s3://b/a", 0.9 - n / 10, f"Passage {n}.") for n in range(5))))

    [[default], [two], [one]] = (
        retrieve({"query": "trains", **asked})[1]["results"] for asked in ({}, {"passages": 2}, {"passages": 1})
    )

    assert [(p["content"], p["score"]) for p in default["passages"]] == [
        ("Passage 0.", 0.9),
        ("Passage 1.", pytest.approx(0.8)),
        ("Passage 2.", pytest.approx(0.7)),
    ]
    assert [p["content"] for p in two["passages"]] == ["Passage 0.", "Passage 1."]
    assert (default["passages_found"], two["passages_found"]) == (5, 5)
    assert (one["content"], one["passages"], one["passages_found"]) == ("Passage 0.", None, None)


def test_documents_whose_names_differ_in_digits_keep_their_order_and_scores(
    retrieve: Retrieve, searches: AwsService
) -> None:
    found = [("s3://b/invoice-1001.md", 0.9), ("s3://b/invoice-1002.md", 0.89), ("s3://b/invoice-1003.md", 0.88)]
    searches.program(
        "Retrieve",
        hits(*(hit(uri, score, metadata={"year": 2024 + n}) for n, (uri, score) in enumerate(found))),
    )

    _, body = retrieve({"query": "How much is the invoice?"})

    assert [(result["source"], result["score"]) for result in body["results"]] == found
    assert body["notes"] == []


def test_a_result_and_its_passages_say_where_they_are(retrieve: Retrieve, searches: AwsService) -> None:
    first = {"x-amz-bedrock-kb-document-page-number": 4.0, "ragstack_last_page": 5, "topic": "leave"}
    second = {"ragstack_section": "Leave > Sick leave", "ragstack_sheet": "Days"}
    searches.program(
        "Retrieve", hits(hit("s3://b/a", 0.9, "One.", metadata=first), hit("s3://b/a", 0.8, metadata=second))
    )

    [result] = retrieve({"query": "trains"})[1]["results"]

    assert {name: result[name] for name in ("page", "last_page", "sheet", "section")} == {
        "page": 4,
        "last_page": 5,
        "sheet": None,
        "section": None,
    }
    assert result["metadata"] == {"x-amz-bedrock-kb-document-page-number": 4.0, "topic": "leave"}
    assert [(p["page"], p["sheet"], p["section"]) for p in result["passages"]] == [
        (4, None, None),
        (None, "Days", "Leave > Sick leave"),
    ]


def test_a_result_has_a_link_to_the_picture_of_the_closest_sentence(retrieve: Retrieve, searches: AwsService) -> None:
    text, page = "Trains are late. Planes leave at noon.", {"x-amz-bedrock-kb-document-page-number": 2.0}
    searches.program("Retrieve", hits(hit("s3://b/a.pdf", 0.9, text, metadata=page), hit("s3://b/a.md", 0.8, text)))

    first, second = retrieve({"query": "When do planes leave?"})[1]["results"]

    passage = "Trains%20are%20late.%20Planes%20leave%20at%20noon."
    assert first["picture"] == f"/api/view?uri=s3%3A%2F%2Fb%2Fa.pdf&page=2&passage={passage}&marks=17-38"
    assert second["picture"] is None


@pytest.mark.parametrize(
    ("query", "section"),
    [
        ("How many requests a minute?", "Reach API > Rate limits"),
        ("Which response has the header Retry-After?", "Reach API > Response when the limit is exceeded"),
        ("Kündigungsfrist", "Reach API > Response when the limit is exceeded"),
    ],
)
def test_the_section_contains_the_words_of_the_query(
    retrieve: Retrieve, searches: AwsService, query: str, section: str
) -> None:
    text = (
        "## Rate limits\n\nEach key may send 600 requests a minute.\n\n## Response when the limit is exceeded\n\n"
        "The response has the status 429, a header Retry-After, and a body with the reason and the date of the reset."
    )
    own = {"ragstack_section": "Reach API > Response when the limit is exceeded"}
    searches.program("Retrieve", hits(hit("s3://b/a", 0.9, text, metadata=own)))

    [result] = retrieve({"query": query})[1]["results"]

    assert result["section"] == section


def test_the_score_is_explained_on_request(retrieve: Retrieve, searches: AwsService) -> None:
    searches.program("Retrieve", hits(hit("s3://b/a", 0.5)))

    _, plain = retrieve({"query": "trains"})
    _, explained = retrieve({"query": "trains", "explain": True})

    assert plain["results"][0]["ranking"] is None
    assert explained["results"][0]["ranking"] == {
        "base_score": 0.5,
        "boost": 1.0,
        "found_by": ["unfiltered"],
        "signals": {},
        "contributions": {},
        "ranks": {},
        "reranked_from": None,
        "score": 0.5,
        "reason": "Ranked by the engine's score",
    }


def test_the_parameters_of_a_deployment_rank(
    retrieve: Retrieve, searches: AwsService, monkeypatch: pytest.MonkeyPatch
) -> None:
    match = hit("s3://b/a", 0.5, "trains run", metadata={"topic": "travel"})
    searches.program("Retrieve", hits(match), when=is_filtered)
    searches.program("Retrieve", hits(hit("s3://b/b", 0.9), match), when=is_unfiltered)
    monkeypatch.setenv("RERANKING_WEIGHTS", json.dumps({"vector": 0, "phrase": 0, "proximity": 0}))

    _, reranked = retrieve({"query": "trains run", "rerank": True, "explain": True})

    parts = reranked["results"][0]["ranking"]["contributions"]
    assert (parts["vector"], parts["phrase"], parts["proximity"]) == (0, 0, 0)


def test_a_boosted_score_over_one_is_returned_as_ranked(
    retrieve: Retrieve, searches: AwsService, monkeypatch: pytest.MonkeyPatch
) -> None:
    searches.program("Retrieve", hits(hit("s3://b/a", 0.96), hit("s3://b/b", 0.88)), when=is_filtered)
    searches.program("Retrieve", hits(hit("s3://b/c", 1.0)), when=is_unfiltered)

    monkeypatch.setenv("SLICE_MERGE", "boost")

    _, body = retrieve({"query": "trains", "metadata_filter": {"topic": "travel"}})
    _, best = retrieve({"query": "trains", "metadata_filter": {"topic": "travel"}, "min_score": 1.15})

    assert [result["score"] for result in body["results"]] == [pytest.approx(1.2), pytest.approx(1.1), 1.0]
    assert [result["metadata"] for result in body["results"]] == [{}, {}, {}]
    assert [result["source"] for result in best["results"]] == ["s3://b/a"]


@pytest.mark.parametrize(
    ("mode", "effect"), [("prefer", "so these results ignore it"), ("strict", "so nothing was found")]
)
def test_a_filter_that_matches_no_document_is_noted(
    retrieve: Retrieve, searches: AwsService, mode: str, effect: str
) -> None:
    searches.program("Retrieve", hits(), when=is_filtered)
    searches.program("Retrieve", hits(hit("s3://b/c", 0.9)), when=is_unfiltered)

    _, body = retrieve({"query": "trains", "metadata_filter": {"topic": "x"}, "filter_mode": mode})
    _, without = retrieve({"query": "trains"})

    assert body["notes"] == [{"kind": "filter", "text": f'No document matches the filter {{"topic": "x"}}, {effect}'}]
    assert without["notes"] == []


def test_a_result_without_a_location_has_no_source(retrieve: Retrieve, searches: AwsService) -> None:
    searches.program("Retrieve", hits(hit(None, 0.5, "One."), hit(None, 0.4, "Two.")))

    _, body = retrieve({"query": "trains"})

    assert [(result["source"], result["content"]) for result in body["results"]] == [(None, "One."), (None, "Two.")]


def test_the_data_of_a_picture_is_not_returned_as_metadata(retrieve: Retrieve, searches: AwsService) -> None:
    picture = {"content": {"type": "IMAGE", "byteContent": "data:image/png;base64,aGk="}, "score": 0.5}
    searches.program("Retrieve", hits({**picture, "metadata": {"topic": "x"}}))

    _, body = retrieve({"query": "trains"})

    assert (body["results"][0]["content_type"], body["results"][0]["metadata"]) == ("IMAGE", {"topic": "x"})


def test_a_version_and_a_corpus_restrict_every_slice(retrieve: Retrieve, searches: AwsService) -> None:
    searches.program("Retrieve", hits())

    retrieve(
        {"query": "q", "version_filter": "2", "corpus_filter": "people", "metadata_filter": {"topic": "genealogy"}}
    )

    sent = [json.dumps(search_of(request)["filter"]) for request in searches.asked("Retrieve")]
    assert len(sent) == 2
    for text in sent:
        assert '{"equals": {"key": "version", "value": "2"}}' in text
        assert '{"equals": {"key": "corpus", "value": "people"}}' in text
        assert DATA_SOURCE in text
    assert searches.refusals == []


def test_a_contextual_header_is_not_part_of_the_content(retrieve: Retrieve, searches: AwsService) -> None:
    with_header = prepend("leave policy\nAnnual leave", "Up to five days.")
    searches.program("Retrieve", hits(hit("s3://b/a", 0.5, with_header), hit("s3://b/b", 0.4, "No header.")))

    _, body = retrieve({"query": "leave"})

    assert [(result["content"], result["context"]) for result in body["results"]] == [
        ("Up to five days.", "leave policy\nAnnual leave"),
        ("No header.", None),
    ]


@pytest.mark.parametrize(
    ("body", "names", "says"),
    [
        ({"query": "q", "corpus_filter": ["legal_us"]}, "corpus_filter", ""),
        ({"query": "q", "version_filter": ""}, "version_filter", "Write a text of 1 to 200 characters, or a number"),
        ({"query": "q", "version_filter": True}, "version_filter", "Write a text of 1 to 200 characters, or a number"),
        ({"query": "q", "rerank": "cohere"}, "rerank", "Write true, false or"),
        ({"query": "q", "rerank": 1}, "rerank", "Write true, false or"),
        ({"query": "q", "explain": "very"}, "explain", ""),
        ({}, "query", ""),
        ({"query": 7}, "query", ""),
        ({"query": "x" * 20_001}, "query", ""),
        ({"query": "q", "top_k": 0}, "top_k", ""),
        ({"query": "q", "top_k": 101}, "top_k", ""),
        ({"query": "q", "top_k": "5"}, "top_k", ""),
        ({"query": "q", "top_k": True}, "top_k", ""),
        ({"query": "q", "topk": 5}, "topk", ""),
        ({"query": "q", "metadata_filter": "topic"}, "metadata_filter", ""),
        ({"query": "q", "min_score": -1}, "min_score", ""),
        ({"query": "q", "deduplicate_by": "page"}, "deduplicate_by", ""),
        ({"query": "q", "scope_filter": {"tenant": "other"}}, "scope_filter", ""),
    ],
)
def test_a_member_that_does_not_fit_is_named(
    retrieve: Retrieve, searches: AwsService, body: dict[str, Any], names: str, says: str
) -> None:
    answer = retrieve(body)

    assert error_of(answer) == (400, "InvalidRequest")
    (detail,) = answer[1]["error"]["details"]
    assert detail["member"] == names
    assert says in detail["problem"]
    assert searches.requests == []


@pytest.mark.parametrize("filter_", [{"topic": {"$equal": 1}}, {"topic": []}, {"$and": []}, {"year": {"$gt": "x"}}])
def test_a_malformed_filter_is_a_bad_request_that_says_what_is_wrong(
    retrieve: Retrieve, searches: AwsService, filter_: dict[str, Any]
) -> None:
    assert error_of(retrieve({"query": "q", "metadata_filter": filter_})) == (400, "InvalidFilter")
    assert searches.requests == []


def test_a_body_of_megabytes_is_a_bad_request_before_it_is_parsed(retrieve: Retrieve, searches: AwsService) -> None:
    status, body = retrieve({"query": "q", **{f"member {n}": 1 for n in range(200_000)}})

    assert (status, body["error"]["code"]) == (400, "InvalidRequest")
    assert "at most 2,097,152 characters are accepted" in body["error"]["message"]
    assert searches.requests == []


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Fault("ResourceNotFoundException"), (502, "KnowledgeBaseNotFound")),
        (Fault("AccessDeniedException"), (502, "UpstreamAccessDenied")),
        (Fault("ValidationException"), (400, "InvalidRequest")),
        (Dropped, (502, "ServiceUnavailable")),
        (Fault("DependencyFailedException"), (502, "ServiceUnavailable")),
    ],
)
def test_a_failed_search_has_the_status_and_code_of_its_cause(
    retrieve: Retrieve, searches: AwsService, fault: Any, expected: tuple[int, str]
) -> None:
    searches.program("Retrieve", fault)

    assert error_of(retrieve({"query": "q"})) == expected


@pytest.mark.usefixtures("ask")
def test_a_throttled_search_is_answered_with_429(searches: AwsService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random, "random", lambda: 0.0)  # botocore's back-off
    searches.program("Retrieve", Fault("ThrottlingException", "Rate exceeded."))

    answer = query.handler(api_event("POST", "/api/retrieve", {"query": "q"}), Context())

    assert error_of((answer["statusCode"], json.loads(answer["body"]))) == (429, "Throttled")
    assert answer["multiValueHeaders"]["Retry-After"] == ["1"]


def test_a_service_that_does_not_answer_in_time_is_a_gateway_timeout(
    retrieve: Retrieve, searches: AwsService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RETRIEVAL_TIMEOUT_SECONDS", "0.2")
    searches.program("Retrieve", Late(hits(), until=Event()))

    assert error_of(retrieve({"query": "q"})) == (504, "RetrievalTimeout")
    # An abandoned call that still creates its client would find the service of the next test.
    assert eventually(lambda: searches.asked("Retrieve"))


@pytest.mark.parametrize("path", ["/api/retrieve", "/health"])
def test_a_function_without_its_settings_says_which_is_missing(
    ask: Call, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.delenv("KNOWLEDGE_BASE_ID")

    answer = ask("GET" if path == "/health" else "POST", path, {"query": "q"})

    assert error_of(answer) == (500, "Configuration")
    assert "KNOWLEDGE_BASE_ID" in answer[1]["error"]["message"]


def test_the_trace_of_a_bug_is_in_the_log_only(
    ask: Call, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> Any:
        raise RuntimeError("secret detail")

    with monkeypatch.context() as patch:
        patch.setattr(query, "service", broken)
        status, body = ask("POST", "/api/retrieve", {"query": "q"})

    assert error_of((status, body)) == (500, "InternalError")
    assert "secret" not in str(body)
    assert "Traceback" not in str(body)
    assert "secret detail" in caplog.text


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/"), ("GET", "/api/retrieve"), ("POST", "/api/retrieve/x"), ("DELETE", "/health"), ("GET", "/api/ask")],
)
def test_an_unknown_path_is_not_found(ask: Call, method: str, path: str) -> None:
    assert error_of(ask(method, path)) == (404, "NotFound")


def test_a_healthy_function_says_so_without_searching(ask: Call, searches: AwsService) -> None:
    assert ask("GET", "/health") == (200, {"status": "ok"})
    assert searches.requests == []


def test_the_functions_serve_the_routes_of_the_table() -> None:
    never: Any = SimpleNamespace
    served = {
        function: {(route.method, route.openapi_path) for route in (*app._static_routes, *app._dynamic_routes)}
        for function, app in (("query", query.app), ("documents", documents.app))
    }
    answers = {route.path for route in create_app(never, open_callers, mcp=never).routes if isinstance(route, Route)}

    for function, found in served.items():
        assert found == {(route.method, route.path) for route in ROUTES.values() if route.function == function}
    assert answers == {route.path for route in ROUTES.values() if route.function == "answers"} | {"/health"}


def test_the_description_has_complete_references_and_responses(ask: Call) -> None:
    _, described = ask("GET", "/openapi.json")

    for reference in references(described):
        part: Any = described
        for name in reference.removeprefix("#/").split("/"):
            part = part[name]
        assert isinstance(part, dict)
    assert {
        (method.upper(), path): operation["operationId"]
        for path, operations in described["paths"].items()
        for method, operation in operations.items()
    } == {(route.method, route.path): name for name, route in ROUTES.items() if route.summary}
    for operations in described["paths"].values():
        for operation in operations.values():
            assert operation["summary"]
            assert {"200", "201", "202"} & set(operation["responses"])
            assert all(response["description"] for response in operation["responses"].values())


def references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"]
        for member in part.values():
            yield from references(member)
    elif isinstance(part, list):
        for member in part:
            yield from references(member)


@pytest.mark.parametrize(
    "answer", [hits(hit()), Fault("ValidationException", "Value 'QUERYTEXT' at 'text' is bad"), Dropped]
)
def test_no_text_of_a_query_or_a_document_is_in_the_log(
    retrieve: Retrieve,
    searches: AwsService,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    answer: Any,
) -> None:
    searches.program("Retrieve", answer)

    with caplog.at_level("INFO"):
        retrieve({"query": "QUERYTEXT"})

    written = capsys.readouterr()
    assert "QUERYTEXT" not in written.out + written.err + caplog.text
    assert "A passage." not in written.out + written.err + caplog.text


def test_no_value_of_a_rejected_filter_is_in_the_log(
    retrieve: Retrieve, searches: AwsService, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO"):
        status, answer = retrieve({"query": "q", "metadata_filter": {"name": {"$gt": "Judy Doe"}}})

    written = capsys.readouterr()
    logged = written.out + written.err + caplog.text
    assert (status, searches.requests) == (400, [])
    assert "Judy Doe" in answer["error"]["message"]
    assert "greaterThan(name)" in logged
    assert "Judy" not in logged


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/retrieve", {"query": "q"}),
        ("/tools/retriever", {"input": {"collection_name": KNOWLEDGE_BASE, "texts": ["q"]}}),
    ],
)
def test_a_lost_permission_is_a_502_and_is_counted(
    ask: Call, searches: AwsService, capsys: pytest.CaptureFixture[str], path: str, body: Any
) -> None:
    searches.program("Retrieve", Fault("AccessDeniedException"))

    status, _ = ask("POST", path, body)

    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if '"_aws"' in line]
    assert (status, lines[0]["DeploymentFaults"]) == (502, [1.0])


def test_a_request_is_counted(retrieve: Retrieve, searches: AwsService, capsys: pytest.CaptureFixture[str]) -> None:
    searches.program("Retrieve", hits(hit()))

    retrieve({"query": "q"})

    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if '"_aws"' in line]
    assert lines[0]["Requests"] == [1.0]
    assert len(lines[0]["SliceLatency"]) == 1
