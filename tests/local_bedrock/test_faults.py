"""Faults on purpose, as boto3 sees them."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3
from botocore.exceptions import ClientError, ConnectionClosedError, ResponseStreamingError
from hypothesis import given
from hypothesis import strategies as st
from urllib3.exceptions import ProtocolError

from local_bedrock import server
from local_bedrock.http.connections import bounded
from local_bedrock.limits.fault_injection import FaultError, FaultInjection, FaultRule, Kind, When
from local_bedrock.server import running
from ragstack_common.ingestion.requests import text_document
from tests.local_bedrock.support import TEXT_MODEL, Bedrock, ask, client, custom_identifier

OPERATIONS = ["Retrieve", "RetrieveAndGenerate", "IngestKnowledgeBaseDocuments"]


class Faulty:
    """A local Bedrock that fails by the given rules."""

    def __init__(self, url: str) -> None:
        self._bedrock = Bedrock.at(url)

    def by(self, *rules: dict[str, Any]) -> Bedrock:
        answer = urllib3.request("PUT", f"{self._bedrock.url}/_ragstack/faults", json={"rules": rules}, retries=False)
        assert answer.status == 200, answer.data
        return self._bedrock


@pytest.fixture(scope="module", params=["h11", "httptools"])
def each_protocol(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Faulty]:
    """Run the test with each of uvicorn's implementations of HTTP: an installation has one or both."""
    name = {"h11": "H11Protocol", "httptools": "HttpToolsProtocol"}[request.param]
    module = pytest.importorskip(f"uvicorn.protocols.http.{request.param}_impl")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server, "Protocol", bounded(getattr(module, name)))
        with running(tmp_path_factory.mktemp(request.param), admin=True) as url:
            yield Faulty(url)


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Faulty]:
    with running(tmp_path_factory.mktemp("faulty"), admin=True) as url:
        yield Faulty(url)


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
        ("denied", "list_knowledge_bases", 403, "AccessDeniedException"),
    ],
)
def test_a_fault_has_the_code_and_status_of_the_operations_model(
    faulty: Faulty, kind: str, operation: str, status: int, code: str
) -> None:
    bedrock = faulty.by({"kind": kind})
    agent = client("bedrock-agent", bedrock.url, validate=False)

    assert refused(getattr(agent, operation)) == (status, code)


def test_a_denied_call_names_its_action(faulty: Faulty) -> None:
    bedrock = faulty.by({"kind": "denied"})
    s3_vectors = client("s3vectors", bedrock.url)

    with pytest.raises(ClientError, match="not authorized to perform: s3vectors:ListVectorBuckets because"):
        s3_vectors.list_vector_buckets()
    with pytest.raises(ClientError, match="not authorized to perform: bedrock:ListKnowledgeBases because"):
        bedrock.agent.list_knowledge_bases()


def test_only_the_named_operations_fail_and_only_so_often(faulty: Faulty) -> None:
    bedrock = faulty.by({"operation": "List*", "kind": "internal", "count": 2})
    bedrock.knowledge_base("works")

    assert refused(bedrock.agent.list_knowledge_bases)[0] == 500
    assert refused(bedrock.agent.list_knowledge_bases)[0] == 500
    assert bedrock.agent.list_knowledge_bases()["knowledgeBaseSummaries"]


def test_latency_comes_on_top_and_nothing_fails(faulty: Faulty) -> None:
    bedrock = faulty.by(
        {"operation": "ListKnowledgeBases", "kind": "latency", "milliseconds": 100},
        {"kind": "latency", "milliseconds": 50},
    )
    start = time.monotonic()
    bedrock.agent.list_knowledge_bases()

    assert time.monotonic() - start >= 0.15


def test_a_dropped_connection_ends_without_an_answer(each_protocol: Faulty) -> None:
    bedrock = each_protocol.by({"operation": "CreateKnowledgeBase", "kind": "drop", "count": 1})
    with pytest.raises(ConnectionClosedError):
        bedrock.knowledge_base("dropped")

    found = bedrock.agent.list_knowledge_bases(maxResults=100)["knowledgeBaseSummaries"]
    assert not [base for base in found if base["name"].startswith("dropped")]


def test_a_drop_after_the_work_loses_nothing_but_the_acknowledgement(each_protocol: Faulty) -> None:
    bedrock = each_protocol.by(
        {"operation": "IngestKnowledgeBaseDocuments", "kind": "drop", "when": "after", "count": 1}
    )
    source = bedrock.custom_source(bedrock.knowledge_base("acknowledged"))

    with pytest.raises(ConnectionClosedError):
        source.ingest(text_document("heron", "A heron waits."))

    assert source.settled(custom_identifier("heron"))[0]["status"] == "INDEXED"


def test_a_retry_with_its_client_token_does_the_work_once(faulty: Faulty) -> None:
    bedrock = faulty.by({"operation": "CreateDataSource", "kind": "internal", "when": "after", "count": 1})
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


@pytest.mark.parametrize("after_bytes", [0, 5])
def test_a_truncated_answer_is_shorter_than_its_headers_say(each_protocol: Faulty, after_bytes: int) -> None:
    bedrock = each_protocol.by({"operation": "List*", "kind": "truncate", "after_bytes": after_bytes, "count": 1})

    answer = list_raw(bedrock.url)
    with pytest.raises(ProtocolError, match="more expected"):
        answer.read()

    assert answer.status == 200
    assert answer.headers["content-length"] == str(len(list_raw(bedrock.url).read()))


def test_a_stream_breaks_off_in_the_middle(each_protocol: Faulty) -> None:
    bedrock = each_protocol.by({"operation": "ConverseStream", "kind": "truncate", "after_bytes": 200, "count": 1})
    runtime = client("bedrock-runtime", bedrock.url)
    question = [
        {"role": "user", "content": [{"text": "<document>The heron waits in the marsh.</document>Where does it wait?"}]}
    ]

    broken = runtime.converse_stream(modelId=TEXT_MODEL, messages=question)["stream"]
    with pytest.raises((ProtocolError, ResponseStreamingError)):
        list(broken)
    whole = list(runtime.converse_stream(modelId=TEXT_MODEL, messages=question)["stream"])

    assert "messageStop" in whole[-2]


def test_a_stream_that_fails_before_it_begins_is_an_ordinary_error(faulty: Faulty) -> None:
    bedrock = faulty.by({"operation": "ConverseStream", "kind": "throttling", "when": "after"})
    runtime = client("bedrock-runtime", bedrock.url)

    answer = refused(
        runtime.converse_stream, modelId=TEXT_MODEL, messages=[{"role": "user", "content": [{"text": "Where?"}]}]
    )

    assert answer == (429, "ThrottlingException")


@pytest.mark.parametrize(
    ("path", "code"),
    [("/knowledgebases/", "ThrottlingException"), ("/ListVectorBuckets", "TooManyRequestsException")],
)
def test_a_throttled_caller_learns_when_to_retry(faulty: Faulty, path: str, code: str) -> None:
    bedrock = faulty.by({"kind": "throttling"})

    status, headers, _ = ask(bedrock.url, "POST", path, b"{}")

    assert (status, headers["x-amzn-errortype"], headers["retry-after"]) == (429, code, "1")


def test_connections_closed_on_purpose_are_not_logged(each_protocol: Faulty, caplog: pytest.LogCaptureFixture) -> None:
    bedrock = each_protocol.by({"kind": "drop", "count": 1}, {"kind": "truncate", "count": 1})

    with pytest.raises(ConnectionClosedError):
        bedrock.agent.list_knowledge_bases()
    bedrock.agent.list_knowledge_bases()
    bedrock.agent.list_knowledge_bases()

    assert [record.getMessage() for record in caplog.records if "uvicorn" in record.name] == []


def test_rules_of_the_start_are_in_force(tmp_path: Path) -> None:
    rules = (FaultRule.parse("operation=ListKnowledgeBases,kind=internal"),)
    with running(tmp_path, faults=rules) as url:
        assert refused(Bedrock.at(url).agent.list_knowledge_bases)[0] == 500


def test_a_rule_for_no_operation_ends_the_start(tmp_path: Path) -> None:
    unknown = (FaultRule.parse("operation=Retreive,kind=drop"),)
    with pytest.raises(FaultError, match="No operation matches 'Retreive'"), running(tmp_path, faults=unknown):
        pass


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("operation=Retrieve", "kind"),
        ("kind=teapot", "kind"),
        ("throttling", "throttling"),
        ("kind=drop,rat=1", "rat"),
        ("kind=drop,rate=0", "rate"),
        ("kind=drop,rate=NaN", "rate"),
        ("kind=drop,count=0", "count"),
        ("kind=drop,count=1.5", "count"),
        ("kind=latency,milliseconds=Infinity", "milliseconds"),
        ("kind=truncate,after_bytes=-1", "after_bytes"),
        ("kind=drop,when=never", "when"),
        ("kind=drop,operation=", "operation"),
    ],
)
def test_an_invalid_rule_is_refused_by_the_name_of_its_mistake(text: str, wrong: str) -> None:
    with pytest.raises(FaultError, match=f"{wrong}: .*Write a fault as"):
        FaultRule.parse(text)


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
    assert FaultRule.parse(str(rule)) == rule


@given(st.lists(rules, max_size=4), calls)
def test_a_rule_keeps_to_its_count_and_operations_and_repeats_itself(
    given_rules: list[FaultRule], operations: list[str]
) -> None:
    injection = FaultInjection(given_rules, OPERATIONS)

    plans = [(operation, injection.plan(operation)) for operation in operations]
    again = FaultInjection(given_rules, OPERATIONS)

    assert [again.plan(operation) for operation in operations] == [plan for _, plan in plans]
    assert all(rule.count is None or happened <= rule.count for rule, happened in injection.rules())
    for operation, plan in plans:
        if plan.failure is not None and plan.failure.operation == "Retrieve":
            assert operation == "Retrieve"


def test_a_rate_is_the_share_of_calls_that_fail() -> None:
    injection = FaultInjection([FaultRule(Kind.DROP, rate=0.25, seed=7)], OPERATIONS)

    failed = sum(injection.plan("Retrieve").failure is not None for _ in range(4000))

    assert 900 < failed < 1100
