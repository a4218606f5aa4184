"""Submitting and following documents when the knowledge base answers with errors, refusals or nothing."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from moto import mock_aws
from moto.moto_api._internal.models import moto_api_backend

from ragstack_common.ingestion.follow import FollowingService
from ragstack_common.ingestion.messages import MAX_PAUSE_SECONDS, QueueMessage, check, follow, read_compare
from ragstack_common.ingestion.services import Services
from ragstack_common.ingestion.submit import IngestionService
from ragstack_common.registry.documents import RecordChange
from ragstack_common.registry.lifecycle import compared
from ragstack_common.registry.receipts import READERS, Receipt
from ragstack_common.registry.records import DocumentRecord, OperationKind, Status
from ragstack_common.settings.ingestion import IngestionSettings
from tests.support.aws_service import AwsService, Dropped, Fault
from tests.support.documents import accept, answer_with, asked_uris, detail
from tests.support.events import s3_notification
from tests.support.knowledge_base import DATA_SOURCE, KNOWLEDGE_BASE
from tests.support.registry_table import TABLE, create_table

BUCKET = "documents"
REGION = "eu-west-1"
INGEST, DELETE, GET = (f"{verb}KnowledgeBaseDocuments" for verb in ("Ingest", "Delete", "Get"))


class Metrics:
    def __init__(self) -> None:
        self.sums: dict[str, float] = {}

    def add_metric(self, name: str, unit: str, value: float) -> None:
        assert unit == ("Seconds" if "Seconds" in name else "Count")
        self.sums[name] = self.sums.get(name, 0) + value


@dataclass
class Path:
    """Both functions, with moto's services and an agent that answers as a test programs it."""

    services: Services
    s3: Any
    sqs: Any
    now: list[float] = field(default_factory=list)

    def set(self, **settings: Any) -> None:
        self.services.settings = self.services.settings.model_copy(update=settings)

    def put(self, *keys: str, body: bytes = b"text") -> None:
        for key in keys:
            self.s3.put_object(Bucket=BUCKET, Key=key, Body=body)

    def ingest(self, *messages: QueueMessage) -> list[str]:
        return IngestionService(self.services).process(messages, 60.0)

    def follow(self, *messages: QueueMessage) -> list[str]:
        return FollowingService(self.services).process(messages)

    def record(self, key: str) -> DocumentRecord:
        uri = f"s3://{BUCKET}/{key}"
        return self.services.registry.read([uri])[uri]

    def sent(self, url: str) -> list[dict[str, Any]]:
        found: list[Any] = []
        while answer := self.sqs.receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"]
        ).get("Messages"):
            found += answer
        return found

    def followed(self) -> list[QueueMessage]:
        sent = self.sent(self.services.settings.status_queue_url)
        return [QueueMessage(letter["MessageId"], letter["Body"], 1) for letter in sent]

    def compared(self) -> list[dict[str, Any]]:
        return self.sent(self.services.settings.receipts_queue_url)

    def indexed(self, key: str) -> None:
        """Compare a document, of which the index has everything."""
        [letter] = self.compared()
        receipt = Receipt(self.now[0], READERS, chunks=1, words=1, compared=1, read=1)
        before = self.record(key)
        after, _ = compared(before, read_compare(letter["Body"]).answer, receipt, self.now[0])
        assert not self.services.registry.write([RecordChange(before, after)])

    def dead(self) -> list[dict[str, Any]]:
        return self.sent(self.services.settings.dead_letter_queue_url)


@pytest.fixture(scope="module")
def clients() -> Iterator[SimpleNamespace]:
    """Clients that no test changes, made once because their models are large."""
    with mock_aws():
        session: Any = boto3.Session("test", "test", region_name=REGION)
        made = {name: session.client(name) for name in ("s3", "dynamodb", "events")}
        yield SimpleNamespace(**made, new=session.client)


@pytest.fixture
def path(agent: AwsService, clients: SimpleNamespace) -> Path:
    agent.program(INGEST, accept)
    agent.program(DELETE, lambda p: {"documentDetails": [detail(u, "DELETING") for u in asked_uris(p)]})
    moto_api_backend.reset()
    clients.s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
    clients.s3.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
    create_table(clients.dynamodb)
    sqs = clients.new("sqs")
    settings = IngestionSettings(
        knowledge_base_id=KNOWLEDGE_BASE,
        data_source_id=DATA_SOURCE,
        registry_table=TABLE,
        ingestion_queue_url=sqs.create_queue(QueueName="ingestion")["QueueUrl"],
        status_queue_url=sqs.create_queue(QueueName="status")["QueueUrl"],
        conversion_queue_url=sqs.create_queue(QueueName="conversions")["QueueUrl"],
        large_conversion_queue_url=sqs.create_queue(QueueName="large")["QueueUrl"],
        receipts_queue_url=sqs.create_queue(QueueName="receipts")["QueueUrl"],
        dead_letter_queue_url=sqs.create_queue(QueueName="dead")["QueueUrl"],
        jobs_queue_url=sqs.create_queue(QueueName="jobs")["QueueUrl"],
        max_receives=3,
        max_retries=1,
        base_delay_seconds=0.0,
        first_delay_seconds=0.0,
    )
    now = [1_800_000_000.0]
    services = Services(
        settings,
        agent=agent.client(),
        dynamodb=clients.dynamodb,
        events=clients.events,
        s3=clients.s3,
        sqs=sqs,
        metrics=Metrics(),
        clock=lambda: now[0],
        sleep=lambda seconds: now.__setitem__(0, now[0] + seconds),
    )
    return Path(services, clients.s3, sqs, now)


def message(*keys: str, name: str = "message-1", receives: int = 1, sequencer: str = "01") -> QueueMessage:
    return QueueMessage(name, s3_notification(*[(key, sequencer) for key in keys]), receives)


@pytest.mark.parametrize(("documents", "delay"), [(1, 2), (9, 2), (10, 4)])
def test_documents_that_do_not_fill_a_call_are_checked_sooner(path: Path, documents: int, delay: int) -> None:
    names = [f"{number}.txt" for number in range(documents)]
    path.put(*names)
    delays: list[int] = []
    path.sqs.meta.events.register(
        "provide-client-params.sqs.SendMessageBatch",
        lambda params, **_: delays.extend(
            entry["DelaySeconds"] for entry in params["Entries"] if not params["QueueUrl"].endswith("/jobs")
        ),
    )

    path.set(first_delay_seconds=2.0)
    path.ingest(message(*names))

    assert set(delays) == {delay}


def test_a_repeated_submission_has_the_same_client_token(path: Path, agent: AwsService) -> None:
    path.put("a.txt")
    agent.program(INGEST, Dropped, Dropped, accept)

    assert path.ingest(message("a.txt")) == ["message-1"]
    assert path.ingest(message("a.txt", receives=2)) == []
    path.put("b.txt")
    path.ingest(message("b.txt"))

    *same, other = [p["clientToken"] for p in agent.asked(INGEST)]
    assert len(same) == 3
    assert len(set(same)) == 1
    assert other not in same


def test_a_failed_submission_does_not_affect_an_accepted_deletion(path: Path, agent: AwsService) -> None:
    path.put("a.txt")
    agent.program(INGEST, Fault("ThrottlingException"))

    again = path.ingest(message("a.txt"), QueueMessage("message-2", check([f"s3://{BUCKET}/gone.txt"]), 1))

    assert again == ["message-1"]
    assert path.record("gone.txt").status is Status.DELETING
    [followed] = path.followed()
    assert "gone.txt" in followed.body


def test_a_status_that_is_not_known_is_shown_and_followed(path: Path, agent: AwsService) -> None:
    def not_in_the_model(parsed: dict[str, Any], **_: Any) -> None:
        parsed["documentDetails"][0]["status"] = "TEXT_INDEXED"

    hooks = path.services.agent.meta.events
    hooks.register(f"after-call.bedrock-agent.{GET}", not_in_the_model)
    path.put("a.txt")
    agent.program(GET, answer_with())
    path.ingest(message("a.txt"))
    [followed] = path.followed()

    for _ in range(3):
        path.now[0] += 100
        path.follow(followed)
    shown = path.record("a.txt")
    hooks.unregister(f"after-call.bedrock-agent.{GET}", not_in_the_model)
    path.follow(followed)
    path.indexed("a.txt")

    assert (shown.status, shown.reason) == (
        Status.INDEXING,
        "The knowledge base reports TEXT_INDEXED, which is not known to be final",
    )
    assert [each.status for each in path.record("a.txt").history].count(Status.INDEXING) == 2
    assert path.record("a.txt").status is Status.INDEXED


@pytest.mark.parametrize("status", ["FAILED", "IGNORED"])
def test_a_document_refused_at_once_is_removed_and_fails(path: Path, agent: AwsService, status: str) -> None:
    path.put("good.txt", "bad.txt")
    agent.program(INGEST, answer_with(**{"bad.txt": status, "good.txt": "STARTING"}))
    agent.program(GET, answer_with(**{"bad.txt": "NOT_FOUND", "good.txt": "STARTING"}))

    assert path.ingest(message("good.txt"), message("bad.txt", name="message-2")) == ["message-2"]
    assert path.ingest(message("bad.txt", name="message-2", receives=2)) == []
    path.follow(*path.followed())

    assert [asked_uris(p) for p in agent.asked(DELETE)] == [[f"s3://{BUCKET}/bad.txt"]]
    record = path.record("bad.txt")
    assert (record.status, record.reason) == (
        Status.FAILED,
        f"because {status}" if status == "FAILED" else f"{status}: because {status}",
    )
    assert path.record("good.txt").status is Status.INDEXING


def test_a_document_missing_from_the_response_is_submitted_again(path: Path, agent: AwsService) -> None:
    path.put("a.txt", "b.txt")
    agent.program(INGEST, {"documentDetails": [detail(f"s3://{BUCKET}/a.txt")]})

    assert path.ingest(message("a.txt"), message("b.txt", name="message-2")) == ["message-2"]
    assert (path.record("a.txt").status, path.record("b.txt").status) == (Status.INDEXING, Status.WAITING)


def test_a_transient_problem_redelivers_a_message_with_a_failure(path: Path, agent: AwsService) -> None:
    path.put("bad.txt", "silent.txt")
    agent.program(INGEST, {"documentDetails": [detail(f"s3://{BUCKET}/bad.txt", "FAILED", "No.")]})

    assert path.ingest(message("bad.txt", "silent.txt")) == ["message-1"]


def test_a_message_returns_until_its_final_state_is_announced(path: Path) -> None:
    path.put("a.txt", "a.txt.metadata.json", body=b"no JSON")
    outcomes, dead_letters = path.services.outcomes, path.services.dead_letters
    path.services.dead_letters = replace(dead_letters, url="https://sqs.eu-west-1.amazonaws.com/1/gone")
    path.services.outcomes = replace(outcomes, dead_letters=path.services.dead_letters)
    assert path.ingest(message("a.txt", receives=9)) == ["message-1"]

    path.services.outcomes, path.services.dead_letters = outcomes, dead_letters
    assert path.ingest(message("a.txt", receives=2)) == []
    assert [json.loads(letter["Body"])["failed"]["uri"] for letter in path.dead()] == [f"s3://{BUCKET}/a.txt"]


@pytest.mark.parametrize(("receives", "seconds"), [(1, 5), (3, 20), (99, MAX_PAUSE_SECONDS)])
def test_the_redelivery_delay_grows_with_the_deliveries(
    path: Path, agent: AwsService, receives: int, seconds: int
) -> None:
    path.put("a.txt")
    agent.program(INGEST, Fault("ThrottlingException"))
    asked: list[Any] = []
    path.set(max_receives=100)
    url = path.services.settings.ingestion_queue_url
    path.sqs.send_message(QueueUrl=url, MessageBody=message("a.txt").body)
    [received] = path.sent(url)
    path.sqs.meta.events.register(
        "provide-client-params.sqs.ChangeMessageVisibility", lambda params, **_: asked.append(params)
    )

    delivered = replace(message("a.txt", receives=receives), receipt_handle=received["ReceiptHandle"])
    assert path.ingest(delivered) == ["message-1"]

    [changed] = asked
    assert changed == {"QueueUrl": url, "ReceiptHandle": received["ReceiptHandle"], "VisibilityTimeout": seconds}


@pytest.mark.parametrize("status", ["INDEXED", "FAILED"])
def test_the_status_of_an_earlier_operation_does_not_end_a_new_one(path: Path, agent: AwsService, status: str) -> None:
    path.put("a.txt")
    agent.program(GET, answer_with())
    path.ingest(message("a.txt"))
    path.follow(*path.followed())
    path.indexed("a.txt")
    path.put("a.txt", body=b"other")
    path.ingest(message("a.txt", sequencer="02"))
    agent.program(GET, answer_with(**{"a.txt": "INDEXED"}))

    path.follow(*path.followed())

    assert path.record("a.txt").status is Status.INDEXING, "that is as of when the first version was indexed"
    agent.program(GET, answer_with(**{"a.txt": status}))
    path.now[0] += 3600
    path.follow(QueueMessage("later", follow([path.record("a.txt")], checks=9), 1))
    assert [json.loads(letter["Body"])["status"] for letter in path.compared()] == [status]


def test_a_message_about_a_superseded_operation_is_dropped(path: Path, agent: AwsService) -> None:
    path.put("a.txt")
    path.ingest(message("a.txt"))
    record = path.record("a.txt")
    assert record.operation is not None
    other = replace(record, operation=replace(record.operation, id="other", kind=OperationKind.DELETE))

    assert path.follow(QueueMessage("old", follow([other], checks=0), 1)) == []

    assert agent.asked(GET) == []
    assert path.record("a.txt") == record


def test_metrics_count_submissions_final_states_and_retries(path: Path, agent: AwsService) -> None:
    path.put("good.txt", "bad.txt")
    agent.program(INGEST, answer_with(**{"bad.txt": "FAILED", "good.txt": "STARTING"}))
    agent.program(GET, answer_with(**{"bad.txt": "NOT_FOUND"}))

    path.ingest(message("good.txt"), message("bad.txt", name="message-2"))
    path.ingest(message("bad.txt", name="message-2", receives=2))
    path.follow(*path.followed())

    metrics = path.services.metrics
    assert isinstance(metrics, Metrics)
    expected = {"DocumentsSubmitted": 2, "DocumentsFailed": 1, "MessagesRetried": 1}
    assert metrics.sums.items() >= expected.items()
