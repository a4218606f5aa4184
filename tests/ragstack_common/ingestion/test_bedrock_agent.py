"""The ingestion helpers against a service that checks each request, without waiting for any delay."""

import copy
import json
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from ragstack_common.core.errors import InvalidDocumentError
from ragstack_common.ingestion import (
    batch_check_document_statuses,
    check_document_status,
    delete_documents_with_retry,
    ingest_documents_with_retry,
    start_ingestion_with_retry,
)
from ragstack_common.ingestion.bedrock_agent import PacedAgent
from ragstack_common.ingestion.requests import identifier_key
from ragstack_common.registry.document_status import DocumentStatus
from tests.support.aws_service import AwsService, Dropped, Fault, Raw
from tests.support.documents import accept, answer_with, asked_uris, detail, job
from tests.support.knowledge_base import DATA_SOURCE, KNOWLEDGE_BASE

START = "StartIngestionJob"
INGEST, GET, DELETE = (f"{verb}KnowledgeBaseDocuments" for verb in ("Ingest", "Get", "Delete"))
TOO_LONG = "Value at 'documents' failed to satisfy constraint: Member must have length less than or equal to 3"

RETRYABLE = [
    Fault("ConflictException", "Another job is running."),
    Fault("ValidationException", "There is an ongoing ingestion job for this data source."),
    Fault("ValidationException", "An ingestion job is running."),
    Fault("ValidationException", "Concurrent requests can't exceed 10."),
    Fault("ThrottlingException", "Rate exceeded."),
    Fault("TooManyRequestsException", "Rate exceeded.", 429),
    Fault("ServiceQuotaExceededException", "The number of requests exceeds the service quota."),
    Fault("InternalServerException", "Oops.", 500),
    Fault("ServiceUnavailableException", "Later.", 503),
    Fault("NeverHeardOfException", "Oops.", 502),
    Dropped,
]
FINAL = [
    Fault("AccessDeniedException", "no"),
    Fault("ResourceNotFoundException", "gone"),
    Fault("ValidationException", "The data source is no S3 data source."),
    Fault("ValidationException", "The document s3://bucket/running-shoes/ongoing.txt has no supported format."),
    Fault("UnrecognizedClientException", "who?", 403),
    Fault("NeverHeardOfException", "no", 418),
]


def documents(*names: str) -> list[dict[str, Any]]:
    return [{"dataSourceId": DATA_SOURCE, "s3": {"uri": f"s3://bucket/{name}"}} for name in names]


def uris(count: int) -> list[str]:
    return [f"s3://bucket/{number}.txt" for number in range(count)]


def start(agent: AwsService, **options: Any) -> dict[str, Any]:
    return start_ingestion_with_retry(
        KNOWLEDGE_BASE, DATA_SOURCE, **{"client": agent.client(), "sleep": lambda _: None, **options}
    )


def ingest(agent: AwsService, given: list[dict[str, Any]], **options: Any) -> dict[str, Any]:
    return ingest_documents_with_retry(
        KNOWLEDGE_BASE,
        DATA_SOURCE,
        given,
        **{"client": agent.client(), "sleep": lambda _: None, "find_sidecars": False, **options},
    )


def statuses(agent: AwsService, given: list[str], **options: Any) -> dict[str, DocumentStatus]:
    return batch_check_document_statuses(
        KNOWLEDGE_BASE, DATA_SOURCE, given, **{"client": agent.client(), "sleep": lambda _: None, **options}
    )


@pytest.mark.parametrize("fault", RETRYABLE)
@pytest.mark.parametrize("operation", [START, INGEST])
def test_a_transient_error_is_retried_with_the_same_client_token(agent: AwsService, operation: str, fault: Any) -> None:
    agent.program(operation, fault, fault, job() if operation == START else accept)
    delays: list[float] = []

    if operation == START:
        start(agent, sleep=delays.append)
    else:
        ingest(agent, documents("a.txt"), sleep=delays.append)

    tokens = [parameters["clientToken"] for parameters in agent.asked(operation)]
    assert len(tokens) == 3
    assert len(set(tokens)) == 1
    assert len(delays) == 2
    assert agent.refusals == []


@pytest.mark.parametrize("fault", FINAL)
@pytest.mark.parametrize("operation", [START, INGEST])
def test_a_permanent_error_is_raised_at_once(agent: AwsService, operation: str, fault: Fault) -> None:
    agent.program(operation, fault)

    with pytest.raises(ClientError) as caught:
        start(agent) if operation == START else ingest(agent, documents("a.txt"))

    assert caught.value.response["Error"]["Code"] == fault.code
    assert len(agent.asked(operation)) == 1


@pytest.mark.parametrize(("max_retries", "own_client"), [(0, False), (3, False), (3, True)])
def test_max_retries_counts_the_calls_after_the_first(
    agent: AwsService, monkeypatch: pytest.MonkeyPatch, max_retries: int, own_client: bool
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_AGENT", agent.endpoint)
    agent.program(START, Fault("ThrottlingException"))

    with pytest.raises(ClientError) as caught:
        start(agent, max_retries=max_retries, client=None if own_client else agent.client())

    assert caught.value.response["Error"]["Code"] == "ThrottlingException"
    assert len(agent.requests) == max_retries + 1


def test_the_delays_grow_from_the_base_delay_to_a_minute(agent: AwsService) -> None:
    agent.program(START, *[Fault("ConflictException")] * 5, job())
    delays: list[float] = []

    start(agent, base_delay=5, sleep=delays.append)

    assert all(longest / 2 <= delay <= longest for delay, longest in zip(delays, [5, 10, 20, 40, 60], strict=True))


def test_each_submission_has_its_own_client_token_by_default(agent: AwsService) -> None:
    agent.program(INGEST, accept)

    for options in [{}, {}, {"client_token": "mine"}, {"client_token": "mine"}]:
        ingest(agent, documents("a.txt"), **options)

    first, second, third, fourth = [parameters["clientToken"] for parameters in agent.asked(INGEST)]
    assert first != second
    assert third == fourth
    assert third not in (first, second)


def test_every_batch_has_its_own_client_token_of_valid_length(agent: AwsService) -> None:
    agent.program(INGEST, accept)

    ingest(agent, documents(*(f"{number}.txt" for number in range(25))))

    asked = agent.asked(INGEST)
    assert [len(parameters["documents"]) for parameters in asked] == [10, 10, 5]
    assert len({parameters["clientToken"] for parameters in asked}) == 3
    assert all(33 <= len(parameters["clientToken"]) <= 256 for parameters in asked)
    assert agent.refusals == []


@pytest.mark.parametrize("form", ["specification", "service"])
def test_both_forms_of_a_document_are_sent_in_the_form_of_the_service(agent: AwsService, form: str) -> None:
    agent.program(INGEST, accept)
    metadata = {"type": "S3_LOCATION", "s3Location": {"uri": "s3://bucket/a.txt.metadata.json"}}
    service_form = {"content": {"dataSourceType": "S3", "s3": {"s3Location": {"uri": "s3://bucket/a.txt"}}}}
    given = documents("a.txt")[0] if form == "specification" else copy.deepcopy(service_form)

    ingest(agent, [{**given, "metadata": metadata}])

    assert agent.asked(INGEST)[0]["documents"] == [{**service_form, "metadata": metadata}]


def test_a_custom_document_is_identified_by_its_id(agent: AwsService) -> None:
    custom = {"dataSourceType": "CUSTOM", "custom": {"id": "doc-1"}}
    agent.program(INGEST, {"documentDetails": [{**detail("s3://b/x"), "identifier": custom}]})
    document = {
        "content": {
            "dataSourceType": "CUSTOM",
            "custom": {
                "customDocumentIdentifier": {"id": "doc-1"},
                "sourceType": "IN_LINE",
                "inlineContent": {"type": "TEXT", "textContent": {"data": "hello"}},
            },
        }
    }

    [answer] = ingest(agent, [document])["documentDetails"]

    assert (answer["identifier"], answer["status"]) == (custom, "STARTING")


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"s3": {"uri": ""}},
        {"s3": {"uri": "https://bucket/a.txt"}},
        {"content": {"dataSourceType": "CUSTOM"}},
        {"content": {"dataSourceType": "S3", "s3": {}}},
        {"dataSourceId": "DSOTHEROT1", "s3": {"uri": "s3://bucket/a.txt"}},
    ],
)
def test_an_invalid_document_is_refused_before_any_call(agent: AwsService, document: dict[str, Any]) -> None:
    with pytest.raises(InvalidDocumentError):
        ingest(agent, [*documents("fine.txt"), document])

    assert agent.requests == []


def test_a_duplicate_document_is_sent_once_and_has_two_details(agent: AwsService) -> None:
    agent.program(INGEST, accept)

    details = ingest(agent, documents("a.txt", "b.txt", "a.txt"))["documentDetails"]

    assert [asked_uris(p) for p in agent.asked(INGEST)] == [["s3://bucket/a.txt", "s3://bucket/b.txt"]]
    assert [identifier_key(d["identifier"])[-5:] for d in details] == ["a.txt", "b.txt", "a.txt"]


def test_a_document_missing_from_the_response_is_unknown(agent: AwsService) -> None:
    silent: dict[str, Any] = {"documentDetails": []}
    agent.program(INGEST, {"documentDetails": [detail("s3://bucket/a.txt")]}, silent)

    first, second = ingest(agent, documents("a.txt", "b.txt"))["documentDetails"]

    assert first["status"] == "STARTING"
    assert (second["status"], identifier_key(second["identifier"])) == ("UNKNOWN", "s3://bucket/b.txt")
    assert second["statusReason"]
    assert ingest(agent, documents("c.txt"))["documentDetails"][0]["status"] == "UNKNOWN"


@pytest.mark.parametrize("body", [b"", b"{}", b'{"documentDeta'])
def test_a_truncated_response_is_retried(agent: AwsService, body: bytes) -> None:
    agent.program(INGEST, Raw(body), {"documentDetails": [detail("s3://bucket/a.txt")]})

    [answer] = ingest(agent, documents("a.txt"))["documentDetails"]

    assert answer["status"] == "STARTING"
    assert len(agent.asked(INGEST)) == 2


@pytest.mark.parametrize(("failing_batch", "fault"), [(0, Dropped), (2, Fault("AccessDeniedException", "no"))])
def test_only_the_documents_of_a_failed_batch_are_unknown(agent: AwsService, failing_batch: int, fault: Any) -> None:
    agent.program(INGEST, accept)
    agent.program(INGEST, fault, when=lambda p: f"s3://bucket/{failing_batch}0" in asked_uris(p))
    names = [f"{number:02}" for number in range(30)]

    details = ingest(agent, documents(*names), max_retries=1)["documentDetails"]

    unknown = [d for d in details if d["status"] == "UNKNOWN"]
    assert [identifier_key(d["identifier"])[-2:] for d in unknown] == names[
        failing_batch * 10 : failing_batch * 10 + 10
    ]
    assert all(d["statusReason"] for d in unknown)
    assert len(details) == 30


def test_only_a_batch_that_botocore_rejects_is_unknown(agent: AwsService) -> None:
    agent.program(INGEST, accept)
    bad = {**documents("bad")[0], "metadata": {"type": "S3_LOCATION", "s3Location": {"uri": 7}}}

    details = ingest(agent, [*documents(*map(str, range(10))), bad])["documentDetails"]

    assert [d["status"] for d in details] == ["STARTING"] * 10 + ["UNKNOWN"]
    assert "s3Location.uri" in details[-1]["statusReason"]


def test_the_first_error_is_raised_if_every_batch_fails(agent: AwsService) -> None:
    agent.program(INGEST, Fault("AccessDeniedException"), Fault("ResourceNotFoundException"))

    with pytest.raises(ClientError) as caught:
        ingest(agent, documents(*map(str, range(20))))

    assert caught.value.response["Error"]["Code"] == "AccessDeniedException"


def test_a_batch_that_is_too_long_is_halved_until_it_fits(agent: AwsService) -> None:
    agent.program(INGEST, accept)
    agent.program(INGEST, Fault("ValidationException", TOO_LONG), when=lambda p: len(p["documents"]) > 3)

    details = ingest(agent, documents(*map(str, range(12))))["documentDetails"]

    assert [d["status"] for d in details] == ["STARTING"] * 12
    assert [len(p["documents"]) for p in agent.asked(INGEST)] == [10, 5, 2, 3, 5, 2, 3, 2]


def test_a_refused_document_does_not_fail_its_batch(agent: AwsService) -> None:
    too_long = "x" * 200  # the service takes keys of 1 to 128 characters with their bucket
    agent.program(INGEST, accept)

    details = ingest(agent, documents("a", "b", too_long, "d", "e"))["documentDetails"]

    assert [d["status"] for d in details] == ["STARTING", "STARTING", "UNKNOWN", "STARTING", "STARTING"]
    assert "regular expression" in details[2]["statusReason"]


@pytest.mark.parametrize("size", [0, -1])
def test_batches_of_less_than_one_document_are_refused(agent: AwsService, size: int) -> None:
    with pytest.raises(ValueError, match="1 or more"):
        ingest(agent, documents("a"), documents_per_call=size)
    with pytest.raises(ValueError, match="1 or more"):
        statuses(agent, uris(1), batch_size=size)

    assert agent.requests == []


def test_deletions_are_batched_and_have_details_in_order(agent: AwsService) -> None:
    agent.program(DELETE, lambda p: {"documentDetails": [detail(uri, "DELETING") for uri in asked_uris(p)]})

    details = delete_documents_with_retry(KNOWLEDGE_BASE, DATA_SOURCE, uris(12), client=agent.client())

    assert [(identifier_key(d["identifier"]), d["status"]) for d in details] == [(uri, "DELETING") for uri in uris(12)]
    assert [len(p["documentIdentifiers"]) for p in agent.asked(DELETE)] == [10, 2]
    assert agent.refusals == []


def test_a_custom_source_knows_documents_by_their_uris(agent: AwsService) -> None:
    [uri] = uris(1)
    custom = {"dataSourceType": "CUSTOM", "custom": {"id": uri}}
    answer = {"documentDetails": [detail(uri, "INDEXED", source_type="CUSTOM")]}
    agent.program(INGEST, answer)
    agent.program(GET, answer)
    agent.program(DELETE, answer)
    options: Any = {"client": agent.client(), "source_type": "CUSTOM"}

    ingested = ingest(agent, documents("0.txt"), source_type="CUSTOM")["documentDetails"]
    status = check_document_status(KNOWLEDGE_BASE, DATA_SOURCE, uri, sleep_first=False, **options)
    [deleted] = delete_documents_with_retry(KNOWLEDGE_BASE, DATA_SOURCE, [uri], **options)

    [sent] = agent.asked(INGEST)
    assert sent["documents"] == [
        {
            "content": {
                "dataSourceType": "CUSTOM",
                "custom": {
                    "customDocumentIdentifier": {"id": uri},
                    "sourceType": "S3_LOCATION",
                    "s3Location": {"uri": uri},
                },
            }
        }
    ]
    assert [[custom]] * 2 == [agent.asked(operation)[0]["documentIdentifiers"] for operation in (GET, DELETE)]
    assert ([each["identifier"] for each in ingested], status, deleted["identifier"]) == ([custom], "INDEXED", custom)
    assert agent.refusals == []


def test_documents_without_an_answer_are_unknown_in_a_custom_source_too(agent: AwsService) -> None:
    for operation in (INGEST, DELETE):
        agent.program(operation, {"documentDetails": []})

    [ingested] = ingest(agent, documents("0.txt"), source_type="CUSTOM")["documentDetails"]
    [deleted] = delete_documents_with_retry(
        KNOWLEDGE_BASE, DATA_SOURCE, uris(1), client=agent.client(), source_type="CUSTOM"
    )

    for answer in (ingested, deleted):
        assert (answer["status"], answer["identifier"]["custom"]["id"]) == ("UNKNOWN", uris(1)[0])


@pytest.mark.parametrize(("batch_size", "sizes"), [(25, [10, 10, 5]), (10, [10, 10, 5]), (7, [7, 7, 7, 4])])
def test_status_checks_are_batched_within_the_modelled_limit(
    agent: AwsService, batch_size: int, sizes: list[int]
) -> None:
    agent.program(GET, answer_with())

    found = statuses(agent, uris(25), batch_size=batch_size)

    assert list(found) == uris(25)
    assert [len(asked_uris(p)) for p in agent.asked(GET)] == sizes
    assert agent.refusals == []


def test_a_uri_missing_from_the_response_is_not_found(agent: AwsService) -> None:
    agent.program(GET, {"documentDetails": [detail(uris(2)[0], "FAILED", "empty file")]})

    first, second = statuses(agent, uris(2)).values()

    assert (first, first.reason) == ("FAILED", "empty file")
    assert second == "NOT_FOUND"
    assert second.reason


@pytest.mark.parametrize(("sleep_first", "expected"), [(True, [2.0]), (False, [])])
def test_a_status_check_waits_two_seconds_on_request(
    agent: AwsService, sleep_first: bool, expected: list[float]
) -> None:
    agent.program(GET, answer_with())
    delays: list[float] = []

    status = check_document_status(
        KNOWLEDGE_BASE, DATA_SOURCE, uris(1)[0], sleep_first, client=agent.client(), sleep=delays.append
    )

    assert (status, delays) == ("INDEXED", expected)


def test_a_status_is_a_string_that_knows_its_reason() -> None:
    status = DocumentStatus("FAILED", "empty file")

    assert {"FAILED": 1}[status] == 1
    assert json.dumps({"status": status}) == '{"status": "FAILED"}'
    assert status.reason == "empty file"
    assert copy.deepcopy(status).reason == "empty file"
    assert DocumentStatus("INDEXED").reason is None


def test_the_log_has_the_submission_id_but_no_document_names(
    agent: AwsService, caplog: pytest.LogCaptureFixture
) -> None:
    agent.program(INGEST, accept)

    with caplog.at_level("INFO"):
        submission = ingest(agent, documents("secret-merger.docx"))["ingestionJobId"]

    assert f"submission {submission}: 1 documents" in caplog.text
    assert "secret-merger" not in "".join(r.getMessage() for r in caplog.records if r.name == "ragstack")


def test_the_duration_of_a_call_is_recorded_without_its_wait() -> None:
    times = [0.0]

    def take(seconds: float) -> dict[str, list[Any]]:
        times[0] += seconds
        return {"documentDetails": []}

    recorded: list[tuple[str, str, float]] = []
    sink = SimpleNamespace(add_metric=lambda *metric: recorded.append(metric))
    service: Any = SimpleNamespace(get_knowledge_base_documents=lambda: take(1.5), get_ingestion_job=lambda: take(9))
    rate: Any = SimpleNamespace(wait=lambda _: take(7))
    agent: Any = PacedAgent(service, rate, sink, clock=lambda: times[0])

    agent.get_knowledge_base_documents()
    agent.get_ingestion_job()

    assert recorded == [("SecondsPerCall", "Seconds", 1.5)]
