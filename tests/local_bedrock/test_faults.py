"""Faults on purpose, as boto3 sees them."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import urllib3
from botocore.exceptions import ClientError, ConnectionClosedError, ResponseStreamingError
from hypothesis import given
from hypothesis import strategies as st
from urllib3.exceptions import ProtocolError

from local_bedrock import server
from local_bedrock.connections import bounded
from local_bedrock.limits.fault_injection import FaultError, FaultInjection, FaultRule, Kind, When
from local_bedrock.options import Pace
from local_bedrock.server import running
from tests.local_bedrock.support import Bedrock, ask, client, custom_identifier, text_document

TEXT_MODEL = "anthropic.claude-3-haiku-20240307-v1:0"
OPERATIONS = ["Retrieve", "RetrieveAndGenerate", "IngestKnowledgeBaseDocuments"]


@contextmanager
def faulty(folder: Path, *rules: str, **options: Any) -> Iterator[Bedrock]:
    with running(folder, faults=tuple(map(FaultRule.of_text, rules)), **options) as url:
        yield Bedrock.at(url)


@pytest.fixture(params=["h11", "httptools"])
def protocol(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the test with each of uvicorn's implementations of HTTP: an installation has one or both."""
    name = {"h11": "H11Protocol", "httptools": "HttpToolsProtocol"}[request.param]
    module = pytest.importorskip(f"uvicorn.protocols.http.{request.param}_impl")
    monkeypatch.setattr(server, "Protocol", bounded(getattr(module, name)))


def list_raw(url: str) -> urllib3.BaseHTTPResponse:
    return urllib3.request("POST", f"{url}/knowledgebases/", body=b"{}", preload_content=False, retries=False)


def refused(call: Any, **arguments: Any) -> tuple[int, str]:
    with pytest.raises(ClientError) as refusal:
        call(**arguments)
    answer = refusal.value.response
    return answer["ResponseMetadata"]["HTTPStatusCode"], answer["Error"]["Code"]


@pytest.mark.parametrize(
    ("kind", "operation", "status", "code"),
    [
        ("throttling", "list_knowledge_bases", 429, "ThrottlingException"),
        ("internal", "list_knowledge_bases", 500, "InternalServerException"),
        ("unavailable", "list_knowledge_bases", 503, "ServiceUnavailableException"),
        ("contention", "list_knowledge_bases", 400, "ValidationException"),
        ("conflict", "create_knowledge_base", 409, "ConflictException"),
        ("conflict", "list_knowledge_bases", 503, "ServiceUnavailableException"),
    ],
)
def test_a_fault_has_the_code_and_status_of_the_operations_model(
    tmp_path: Path, kind: str, operation: str, status: int, code: str
) -> None:
    with faulty(tmp_path, f"kind={kind}") as bedrock:
        agent = client("bedrock-agent", bedrock.url, validate=False)

        assert refused(getattr(agent, operation)) == (status, code)


def test_only_the_named_operations_fail_and_only_so_often(tmp_path: Path) -> None:
    with faulty(tmp_path, "operation=List*,kind=internal,count=2") as bedrock:
        bedrock.knowledge_base("works")

        assert refused(bedrock.agent.list_knowledge_bases)[0] == 500
        assert refused(bedrock.agent.list_knowledge_bases)[0] == 500
        assert len(bedrock.agent.list_knowledge_bases()["knowledgeBaseSummaries"]) == 1


def test_a_retrying_client_gets_over_a_few_faults(tmp_path: Path) -> None:
    with faulty(tmp_path, "operation=ListKnowledgeBases,kind=throttling,count=1") as bedrock:
        retrying = client("bedrock-agent", bedrock.url, retries={"total_max_attempts": 3, "mode": "standard"})

        answer = retrying.list_knowledge_bases()

        assert answer["ResponseMetadata"]["RetryAttempts"] == 1


def test_latency_comes_on_top_and_nothing_fails(tmp_path: Path) -> None:
    with faulty(
        tmp_path, "operation=ListKnowledgeBases,kind=latency,milliseconds=100", "kind=latency,milliseconds=50"
    ) as bedrock:
        start = time.monotonic()
        bedrock.agent.list_knowledge_bases()

        assert time.monotonic() - start >= 0.15


def test_a_dropped_connection_ends_without_an_answer(tmp_path: Path, protocol: None) -> None:
    with faulty(tmp_path, "operation=CreateKnowledgeBase,kind=drop,count=1") as bedrock:
        with pytest.raises(ConnectionClosedError):
            bedrock.knowledge_base("dropped")

        assert bedrock.agent.list_knowledge_bases()["knowledgeBaseSummaries"] == []


def test_a_drop_after_the_work_loses_nothing_but_the_acknowledgement(tmp_path: Path, protocol: None) -> None:
    with faulty(tmp_path, "operation=IngestKnowledgeBaseDocuments,kind=drop,when=after,count=1") as bedrock:
        source = bedrock.custom_source(bedrock.knowledge_base("acknowledged"))

        with pytest.raises(ConnectionClosedError):
            source.ingest(text_document("heron", "A heron waits."))

        assert source.settled(custom_identifier("heron"))[0]["status"] == "INDEXED"


def test_the_same_client_token_after_a_lost_acknowledgement_does_the_work_once(tmp_path: Path) -> None:
    rule = "operation=CreateDataSource,kind=internal,when=after,count=1"
    with faulty(tmp_path, rule) as bedrock:
        request = {
            "knowledgeBaseId": bedrock.knowledge_base("once"),
            "name": "texts",
            "dataSourceConfiguration": {"type": "CUSTOM"},
            "clientToken": "t" * 40,
        }

        first = refused(bedrock.agent.create_data_source, **request)
        second = bedrock.agent.create_data_source(**request)["dataSource"]["dataSourceId"]
        listed = bedrock.agent.list_data_sources(knowledgeBaseId=request["knowledgeBaseId"])["dataSourceSummaries"]

        assert first[0] == 500
        assert [source["dataSourceId"] for source in listed] == [second]


@pytest.mark.parametrize("after_bytes", [0, 5, 1_000_000])
def test_a_truncated_answer_breaks_off_though_its_headers_promise_more(
    tmp_path: Path, protocol: None, after_bytes: int
) -> None:
    with faulty(tmp_path, f"operation=List*,kind=truncate,after_bytes={after_bytes},count=1") as bedrock:
        whole = b'{"knowledgeBaseSummaries": []}'

        answer = list_raw(bedrock.url)
        with pytest.raises(ProtocolError, match="more expected"):
            answer.read()

        assert answer.status == 200
        assert answer.headers["content-length"] == str(len(whole))
        assert list_raw(bedrock.url).read() == whole


def test_a_stream_breaks_off_in_the_middle(tmp_path: Path, protocol: None) -> None:
    with faulty(tmp_path, "operation=ConverseStream,kind=truncate,after_bytes=200,count=1") as bedrock:
        runtime = client("bedrock-runtime", bedrock.url)
        question = [{"role": "user", "content": [{"text": "The heron waits in the marsh. Where does the heron wait?"}]}]

        broken = runtime.converse_stream(modelId=TEXT_MODEL, messages=question)["stream"]
        with pytest.raises((ProtocolError, ResponseStreamingError)):
            list(broken)
        whole = list(runtime.converse_stream(modelId=TEXT_MODEL, messages=question)["stream"])

        assert "messageStop" in whole[-2]


def test_a_stream_that_fails_before_it_begins_is_an_ordinary_error(tmp_path: Path) -> None:
    with faulty(tmp_path, "operation=ConverseStream,kind=throttling,when=after") as bedrock:
        runtime = client("bedrock-runtime", bedrock.url)

        answer = refused(
            runtime.converse_stream, modelId=TEXT_MODEL, messages=[{"role": "user", "content": [{"text": "Where?"}]}]
        )

        assert answer == (429, "ThrottlingException")


@pytest.mark.parametrize(
    ("path", "code"),
    [("/knowledgebases/", "ThrottlingException"), ("/ListVectorBuckets", "TooManyRequestsException")],
)
def test_a_throttled_caller_is_told_when_to_come_back(tmp_path: Path, path: str, code: str) -> None:
    with faulty(tmp_path, "kind=throttling") as bedrock:
        status, headers, _ = ask(bedrock.url, "POST", path, b"{}")

    assert (status, headers["x-amzn-errortype"], headers["retry-after"]) == (429, code, "1")


def test_nothing_is_written_to_the_log_about_connections_closed_on_purpose(
    tmp_path: Path, protocol: None, caplog: pytest.LogCaptureFixture
) -> None:
    with faulty(tmp_path, "kind=drop,count=1", "kind=truncate,count=1") as bedrock:
        with pytest.raises(ConnectionClosedError):
            bedrock.agent.list_knowledge_bases()
        bedrock.agent.list_knowledge_bases()
        assert bedrock.agent.list_knowledge_bases()["knowledgeBaseSummaries"] == []

    assert [record.getMessage() for record in caplog.records if "uvicorn" in record.name] == []


def test_a_rule_for_no_operation_ends_the_start(tmp_path: Path) -> None:
    with pytest.raises(FaultError, match="did you mean Retrieve"), faulty(tmp_path, "operation=Retreive,kind=drop"):
        pass

    with running(tmp_path, pace=Pace()) as url:
        assert url


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "needs a kind: choose from throttling"),
        ("kind=teapot", "must be one of throttling, internal"),
        ("throttling", "Write a fault as operation=Retrieve"),
        ("kind=drop,rat=1", "has no 'rat': choose from kind, operation"),
        ("kind=drop,rate=0", "above 0 and at most 1, not 0"),
        ("kind=drop,rate=1.5", "above 0 and at most 1"),
        ("kind=drop,rate=NaN", "above 0 and at most 1"),
        ("kind=drop,rate=often", "a number, not 'often'"),
        ("kind=drop,count=0", "at least 1"),
        ("kind=drop,count=1.5", "a whole number"),
        ("kind=latency,milliseconds=-1", "at least 0"),
        ("kind=latency,milliseconds=Infinity", "at least 0"),
        ("kind=truncate,after_bytes=-1", "at least 0"),
        ("kind=drop,when=never", "one of before, after"),
        ("kind=drop,kind=internal", "sets kind twice"),
        ("kind=drop,operation=", "must be a name such as Retrieve"),
    ],
)
def test_an_invalid_rule_is_explained(text: str, words: str) -> None:
    with pytest.raises(FaultError, match=words):
        FaultRule.of_text(text)


rules = st.builds(
    FaultRule,
    kind=st.sampled_from(Kind),
    operation=st.sampled_from(["*", "Retrieve", "Retrieve*", "*Documents"]),
    rate=st.floats(0, 1, exclude_min=True),
    count=st.none() | st.integers(1, 5),
    when=st.sampled_from(When),
    milliseconds=st.floats(0, 1e6),
    after_bytes=st.integers(0, 1 << 20),
    seed=st.integers(),
)
calls = st.lists(st.sampled_from(OPERATIONS), max_size=60)


@given(rules)
def test_a_rule_is_written_as_it_is_read(rule: FaultRule) -> None:
    assert FaultRule.of_text(str(rule)) == rule


@given(st.lists(rules, max_size=4), calls)
def test_the_same_rules_fail_the_same_calls_again(given_rules: list[FaultRule], operations: list[str]) -> None:
    first, second = (FaultInjection(given_rules, OPERATIONS) for _ in range(2))

    assert [first.plan(operation) for operation in operations] == [second.plan(operation) for operation in operations]


@given(st.lists(rules, max_size=4), calls)
def test_a_rule_keeps_to_its_count_and_operations(given_rules: list[FaultRule], operations: list[str]) -> None:
    injection = FaultInjection(given_rules, OPERATIONS)

    plans = [(operation, injection.plan(operation)) for operation in operations]

    for rule, happened in injection.rules():
        assert rule.count is None or happened <= rule.count
    for operation, plan in plans:
        if plan.failure is not None and plan.failure.operation == "Retrieve":
            assert operation == "Retrieve"


def test_a_rate_is_the_share_of_calls_that_fail() -> None:
    injection = FaultInjection([FaultRule(Kind.DROP, rate=0.25, seed=7)], OPERATIONS)

    failed = sum(injection.plan("Retrieve").failure is not None for _ in range(4000))

    assert 900 < failed < 1100
