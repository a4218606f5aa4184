"""The first synchronisation of new data sources: once, in turn, and never the end of a deployment."""

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from infra.constructs.first_sync import JOBS_AT_ONCE
from tests.infra.conftest import Assembly
from tests.infra.inline_code import InlineCode, service_of_function
from tests.support.aws_service import AwsService, Fault

pytestmark = pytest.mark.xdist_group("synthesized stacks")

SOURCE = "ABCDEFGHIJ/KLMNOPQRST"


class Jobs:
    """Jobs of Bedrock, each of which takes a time."""

    def __init__(self, service: AwsService, code: InlineCode, seconds: float = 30.0) -> None:
        self.code, self.seconds = code, seconds
        self.started: dict[str, float] = {}
        self.at_once: list[int] = []
        service.program("ListIngestionJobs", {"ingestionJobSummaries": []})
        service.program("ListKnowledgeBaseDocuments", {"documentDetails": []})
        service.program("StartIngestionJob", self.start)
        service.program("GetIngestionJob", self.get)

    def start(self, asked: dict[str, Any]) -> Any:
        job = f"JOB{len(self.started):07}"
        self.started[job] = self.code.seconds
        self.at_once.append(sum(self.status(name) != "COMPLETE" for name in self.started))
        return {"ingestionJob": self.job(asked, job)}

    def get(self, asked: dict[str, Any]) -> Any:
        return {"ingestionJob": self.job(asked, asked["ingestionJobId"])}

    def status(self, job: str) -> str:
        return "COMPLETE" if self.code.seconds - self.started[job] >= self.seconds else "IN_PROGRESS"

    def job(self, asked: dict[str, Any], job: str) -> dict[str, Any]:
        ids = {name: asked[name] for name in ("knowledgeBaseId", "dataSourceId")}
        return {**ids, "ingestionJobId": job, "status": self.status(job), "startedAt": 1, "updatedAt": 1}


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> Iterator[AwsService]:
    with service_of_function("bedrock-agent", monkeypatch) as running:
        yield running


@pytest.fixture
def code(aws: Assembly, monkeypatch: pytest.MonkeyPatch) -> InlineCode:
    return InlineCode(aws.inline_code("FirstSync"), monkeypatch)


def synchronise(code: InlineCode, *sources: str, request: str = "Create") -> str:
    answer = code.run(request, {"Sources": [*sources]})
    assert answer is not None
    assert (answer["status"], answer["id"]) == ("SUCCESS", "first-sync")
    state: str = answer["data"]["State"]
    return state


def test_a_new_data_source_is_synchronised_and_waited_for(code: InlineCode, agent: AwsService) -> None:
    jobs = Jobs(agent, code)

    assert synchronise(code, SOURCE) == "COMPLETE (1)"

    assert len(jobs.started) == 1
    assert code.seconds >= 30


@pytest.mark.parametrize(
    ("operation", "found"),
    [
        (
            "ListIngestionJobs",
            {
                "ingestionJobSummaries": [
                    {
                        "knowledgeBaseId": "ABCDEFGHIJ",
                        "dataSourceId": "KLMNOPQRST",
                        "ingestionJobId": "ABCDEFGHIJ",
                        "status": "COMPLETE",
                        "startedAt": 1,
                        "updatedAt": 1,
                    }
                ]
            },
        ),
        (
            "ListKnowledgeBaseDocuments",
            {
                "documentDetails": [
                    {
                        "knowledgeBaseId": "ABCDEFGHIJ",
                        "dataSourceId": "KLMNOPQRST",
                        "status": "INDEXED",
                        "identifier": {"dataSourceType": "S3", "s3": {"uri": "s3://documents/a.md"}},
                    }
                ]
            },
        ),
    ],
)
def test_a_data_source_that_is_in_use_is_not_read_again(
    code: InlineCode, agent: AwsService, operation: str, found: dict[str, Any]
) -> None:
    """As after an update from a version that synchronised none, or when a tenant is added."""
    jobs = Jobs(agent, code)
    agent.program(operation, found)

    assert synchronise(code, SOURCE, request="Update") == "COMPLETE (1)"
    assert jobs.started == {}


def test_a_new_tenant_among_many_is_not_waited_for_long(code: InlineCode, agent: AwsService) -> None:
    jobs = Jobs(agent, code)
    old = [f"KB{number:08}/DS{number:08}" for number in range(90)]
    job = {"ingestionJobId": "ABCDEFGHIJ", "status": "COMPLETE", "startedAt": 1, "updatedAt": 1}

    def listed(asked: dict[str, Any]) -> Any:
        ids = {name: asked[name] for name in ("knowledgeBaseId", "dataSourceId")}
        return {"ingestionJobSummaries": [] if "/".join(ids.values()) == SOURCE else [{**ids, **job}]}

    agent.program("ListIngestionJobs", listed)

    assert synchronise(code, *old, SOURCE, request="Update") == "COMPLETE (91)"
    assert len(jobs.started) == 1
    assert code.seconds < 60


def test_a_deletion_does_nothing(code: InlineCode, agent: AwsService) -> None:
    assert synchronise(code, SOURCE, request="Delete") == ""
    assert agent.requests == []


def test_the_data_sources_of_many_tenants_take_their_turn(
    code: InlineCode, agent: AwsService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than one invocation has time for; the function starts itself again."""
    jobs = Jobs(agent, code, seconds=45)
    invoked: list[dict[str, Any]] = []
    client = code.names["boto3"].client

    class Functions:
        def invoke(self, **asked: Any) -> None:
            invoked.append(asked)

    monkeypatch.setattr(code.names["boto3"], "client", lambda name: Functions() if name == "lambda" else client(name))
    answer = code.run("Create", {"Sources": [f"KB{number:08}/DS{number:08}" for number in range(91)]})
    while answer is None:
        assert (invoked[-1]["FunctionName"], invoked[-1]["InvocationType"]) == ("function", "Event")
        event = json.loads(invoked[-1]["Payload"])
        answer = code.run(event["RequestType"], event["ResourceProperties"], State=event["State"])

    assert answer["data"]["State"] == "COMPLETE (91)"
    assert invoked
    assert len(jobs.started) == 91
    assert max(jobs.at_once) <= JOBS_AT_ONCE
    starts = [*jobs.started.values()]
    assert all(later - earlier >= 10 for earlier, later in pairwise(starts))
    assert code.seconds < 3600


def test_a_job_that_never_ends_is_left_to_itself(code: InlineCode, agent: AwsService, monkeypatch: Any) -> None:
    """As for an existing bucket with millions of documents."""
    Jobs(agent, code, seconds=10**6)
    monkeypatch.setattr(code, "get_remaining_time_in_millis", lambda: 900_000)

    assert synchronise(code, SOURCE) == "NOT ENDED IN TIME (1)"
    assert code.seconds < 3600


def test_an_invocation_that_cannot_go_on_answers(code: InlineCode, agent: AwsService, monkeypatch: Any) -> None:
    Jobs(agent, code, seconds=10**6)
    monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", "http://127.0.0.1:9")

    assert synchronise(code, SOURCE) == "NOT ENDED IN TIME (1)"


@pytest.mark.parametrize(
    "fault",
    ["ConflictException", "ThrottlingException", "ServiceQuotaExceededException", "AccessDeniedException"],
)
def test_a_start_that_must_wait_is_tried_again(code: InlineCode, agent: AwsService, fault: str) -> None:
    jobs = Jobs(agent, code)
    agent.program("StartIngestionJob", Fault(fault), Fault(fault), jobs.start)

    assert synchronise(code, SOURCE) == "COMPLETE (1)"


@pytest.mark.parametrize("fault", ["AccessDeniedException", "ValidationException", "ResourceNotFoundException"])
def test_a_refusal_is_told_and_does_not_fail_the_deployment(code: InlineCode, agent: AwsService, fault: str) -> None:
    Jobs(agent, code)
    agent.program("StartIngestionJob", Fault(fault, "Not here."))

    state = synchronise(code, SOURCE)

    assert state.startswith("FAILED: ")
    assert "Not here." in state


def test_a_failed_job_is_told_with_its_reason(code: InlineCode, agent: AwsService) -> None:
    jobs = Jobs(agent, code)
    agent.program(
        "GetIngestionJob",
        lambda asked: {
            "ingestionJob": {
                **jobs.job(asked, "JOB0000000"),
                "status": "FAILED",
                "failureReasons": ["No model access."],
            }
        },
    )

    assert synchronise(code, SOURCE) == "FAILED: No model access. (1)"


def test_it_follows_the_data_source_and_precedes_ingestion(aws: Assembly) -> None:
    (source,) = aws.resources("AWS::Bedrock::DataSource")

    assert source in json.dumps(aws.only("Custom::FirstSync")["Sources"])
    assert aws.only("Custom::FirstSync")["ServiceTimeout"] == "3600"
    assert "State" in json.dumps(aws.templates["RagStackKnowledgeBase"]["Outputs"]["FirstSync"])
    manifest = json.loads((aws.folder / "manifest.json").read_text())
    assert any(
        "KnowledgeBase" in dependency for dependency in manifest["artifacts"]["RagStackIngestion"]["dependencies"]
    )


def test_its_role_may_start_jobs_and_itself(aws: Assembly) -> None:
    (role,) = [name for name in aws.resources("AWS::IAM::Role") if "FirstSync" in name]

    assert aws.rights_of(role).keys() == {
        "bedrock:GetIngestionJob",
        "bedrock:ListIngestionJobs",
        "bedrock:ListKnowledgeBaseDocuments",
        "bedrock:StartIngestionJob",
        "lambda:InvokeFunction",
    }
