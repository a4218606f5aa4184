"""From queued events to submitted documents, over S3 and SQS of moto and an agent that checks each request."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber
from moto import mock_aws

from ragstack_common.ingestion_service import IngestionService, QueueMessage
from ragstack_common.settings import IngestionSettings
from tests.support.aws_service import AwsService, Dropped, Fault
from tests.support.documents import accept, answer_with, asked_uris, detail
from tests.support.events import s3_notification
from tests.support.knowledge_base import DATA_SOURCE, KNOWLEDGE_BASE

BUCKET = "documents"


@pytest.fixture
def aws() -> Iterator[Any]:
    with mock_aws():
        s3 = boto3.client("s3", region_name="eu-west-1")
        s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
        yield s3


@pytest.fixture
def service(aws: Any, agent: AwsService) -> IngestionService:
    agent.program("IngestKnowledgeBaseDocuments", accept)
    agent.program(
        "DeleteKnowledgeBaseDocuments", lambda p: {"documentDetails": [detail(u, "DELETING") for u in asked_uris(p)]}
    )
    sqs = boto3.client("sqs", region_name="eu-west-1")
    settings = IngestionSettings(
        knowledge_base_id=KNOWLEDGE_BASE,
        data_source_id=DATA_SOURCE,
        dead_letter_queue_url=sqs.create_queue(QueueName="dead")["QueueUrl"],
        max_receives=3,
        max_retries=1,
        base_delay_seconds=0.0,
    )
    return IngestionService(settings, agent=agent.client(), s3=aws, sqs=sqs)


def put(s3: Any, *keys: str, body: bytes = b"text") -> None:
    for key in keys:
        s3.put_object(Bucket=BUCKET, Key=key, Body=body)


def message(*changes: tuple[str, str] | str, name: str = "message-1", receives: int = 1) -> QueueMessage:
    pairs = [(change, "01") if isinstance(change, str) else change for change in changes]
    return QueueMessage(name, s3_notification(*pairs), receives)


def dead_letters(service: IngestionService) -> list[dict[str, Any]]:
    received = service.sqs.receive_message(
        QueueUrl=service.settings.dead_letter_queue_url, MaxNumberOfMessages=10, MessageAttributeNames=["All"]
    )
    letters: list[Any] = received.get("Messages", [])
    return letters


def cause_of(letter: dict[str, Any]) -> str:
    cause: str = letter["MessageAttributes"]["Cause"]["StringValue"]
    return cause


def submitted(agent: AwsService) -> list[Any]:
    return [d for p in agent.asked("IngestKnowledgeBaseDocuments") for d in p["documents"]]


def deleted(agent: AwsService) -> list[str]:
    return [uri for p in agent.asked("DeleteKnowledgeBaseDocuments") for uri in asked_uris(p)]


def test_a_document_that_was_put_is_submitted(service: IngestionService, aws: Any, agent: AwsService) -> None:
    put(aws, "a b+ü.txt")

    again = service.process([message("a b+ü.txt")])

    assert again == []
    assert submitted(agent) == [
        {"content": {"dataSourceType": "S3", "s3": {"s3Location": {"uri": f"s3://{BUCKET}/a b+ü.txt"}}}}
    ]
    assert agent.refusals == []
    assert dead_letters(service) == []


@pytest.mark.parametrize("changed", ["a.pdf", "a.pdf.metadata.json"])
def test_a_document_is_submitted_with_its_sidecar_whichever_of_the_two_came_last(
    service: IngestionService, aws: Any, agent: AwsService, changed: str
) -> None:
    put(aws, "a.pdf", "a.pdf.metadata.json")

    service.process([message(changed)])

    [document] = submitted(agent)
    assert document["content"]["s3"]["s3Location"]["uri"] == f"s3://{BUCKET}/a.pdf"
    assert document["metadata"] == {
        "type": "S3_LOCATION",
        "s3Location": {"uri": f"s3://{BUCKET}/a.pdf.metadata.json"},
    }
    assert agent.refusals == []


def test_a_document_whose_sidecar_is_gone_is_submitted_without_it(
    service: IngestionService, aws: Any, agent: AwsService
) -> None:
    put(aws, "a.pdf")

    service.process([message("a.pdf.metadata.json")])

    assert "metadata" not in submitted(agent)[0]


def test_a_document_that_is_gone_is_deleted(service: IngestionService, agent: AwsService) -> None:
    again = service.process([message("gone.txt")])

    assert again == []
    assert deleted(agent) == [f"s3://{BUCKET}/gone.txt"]
    assert submitted(agent) == []


def test_a_sidecar_that_comes_before_its_document_deletes_nothing(
    service: IngestionService, aws: Any, agent: AwsService
) -> None:
    put(aws, "a.pdf.metadata.json")

    again = service.process([message("a.pdf.metadata.json")])

    assert again == []
    assert agent.requests == []


def test_a_document_that_another_invocation_submitted_while_it_was_deleted_is_submitted_once_more(
    service: IngestionService, aws: Any, agent: AwsService
) -> None:
    def delete_while_it_comes_back(parameters: dict[str, Any]) -> dict[str, Any]:
        put(aws, "a.pdf")
        return {"documentDetails": [detail(uri, "DELETING") for uri in asked_uris(parameters)]}

    agent.program("DeleteKnowledgeBaseDocuments", delete_while_it_comes_back)

    first = service.process([message("a.pdf", name="removed")])
    second = service.process([message("a.pdf", name="removed", receives=2)])

    assert (first, second) == (["removed"], [])
    assert len(submitted(agent)) == 1


def test_the_bucket_decides_and_not_the_order_of_the_events(
    service: IngestionService, aws: Any, agent: AwsService
) -> None:
    put(aws, "back.txt")
    removed = QueueMessage("removed", s3_notification(("back.txt", "02"), name="ObjectRemoved:Delete"), 1)
    created = QueueMessage("created", s3_notification(("gone.txt", "01")), 1)

    service.process([removed, created])

    assert [d["content"]["s3"]["s3Location"]["uri"] for d in submitted(agent)] == [f"s3://{BUCKET}/back.txt"]
    assert deleted(agent) == [f"s3://{BUCKET}/gone.txt"]


def test_duplicate_events_of_one_batch_are_one_submission(
    service: IngestionService, aws: Any, agent: AwsService
) -> None:
    put(aws, "a.txt")

    service.process([message("a.txt"), message("a.txt", name="message-2"), message(("a.txt", "02"), name="message-3")])

    assert len(submitted(agent)) == 1


def test_the_same_event_delivered_again_is_the_same_submission(
    service: IngestionService, aws: Any, agent: AwsService
) -> None:
    put(aws, "a.txt")

    service.process([message("a.txt")])
    service.process([message("a.txt", receives=2)])

    first, second = [p["clientToken"] for p in agent.asked("IngestKnowledgeBaseDocuments")]
    assert first == second


@pytest.mark.parametrize("change", ["content", "sidecar", "sequencer"])
def test_a_new_version_of_a_document_or_its_sidecar_is_a_new_submission(
    service: IngestionService, aws: Any, agent: AwsService, change: str
) -> None:
    put(aws, "a.txt", "a.txt.metadata.json")
    service.process([message("a.txt")])
    if change != "sequencer":
        put(aws, "a.txt" if change == "content" else "a.txt.metadata.json", body=b"other")

    service.process([message(("a.txt", "02" if change == "sequencer" else "01"))])

    first, second = [p["clientToken"] for p in agent.asked("IngestKnowledgeBaseDocuments")]
    assert first != second


def test_many_documents_are_submitted_in_batches_that_the_service_takes(
    service: IngestionService, aws: Any, agent: AwsService
) -> None:
    keys = [f"{number}.txt" for number in range(12)]
    put(aws, *keys)

    service.process([message(key, name=key) for key in keys])

    assert [len(p["documents"]) for p in agent.asked("IngestKnowledgeBaseDocuments")] == [10, 2]
    assert agent.refusals == []


def test_what_carries_no_document_makes_no_call(service: IngestionService, agent: AwsService) -> None:
    test_event = QueueMessage("test", '{"Event": "s3:TestEvent", "Bucket": "documents"}', 1)

    assert service.process([test_event, message("folder/", name="folder")]) == []
    assert service.process([]) == []

    assert agent.requests == []
    assert dead_letters(service) == []


@pytest.mark.parametrize("fault", [Fault("ThrottlingException"), Fault("InternalServerException"), Dropped])
def test_a_passing_failure_has_its_messages_delivered_again(
    service: IngestionService, aws: Any, agent: AwsService, fault: Any
) -> None:
    put(aws, "a.txt")
    agent.program("IngestKnowledgeBaseDocuments", fault)

    assert service.process([message("a.txt", receives=2)]) == ["message-1"]

    assert len(agent.requests) == 2
    assert dead_letters(service) == []


def test_a_failure_of_the_submission_leaves_the_deletion_done(
    service: IngestionService, aws: Any, agent: AwsService
) -> None:
    put(aws, "a.txt")
    agent.program("IngestKnowledgeBaseDocuments", Fault("ThrottlingException"))

    again = service.process([message("a.txt"), message("gone.txt", name="message-2")])

    assert again == ["message-1"]
    assert deleted(agent) == [f"s3://{BUCKET}/gone.txt"]


def test_after_the_last_delivery_the_message_is_put_aside_with_its_cause(
    service: IngestionService, aws: Any, agent: AwsService
) -> None:
    put(aws, "a.txt")
    agent.program("IngestKnowledgeBaseDocuments", Fault("ThrottlingException", "Rate exceeded."))
    last = message("a.txt", receives=3)

    assert service.process([last]) == []

    [letter] = dead_letters(service)
    assert letter["Body"] == last.body
    assert "ThrottlingException" in cause_of(letter)
    assert "Rate exceeded." in cause_of(letter)
    assert letter["MessageAttributes"]["SourceMessageId"]["StringValue"] == "message-1"


@pytest.mark.parametrize("code", ["AccessDeniedException", "ResourceNotFoundException", "ValidationException"])
def test_a_lasting_failure_is_put_aside_at_once_with_its_cause(
    service: IngestionService, aws: Any, agent: AwsService, code: str
) -> None:
    put(aws, "a.txt")
    agent.program("IngestKnowledgeBaseDocuments", Fault(code, "This is why."))

    assert service.process([message("a.txt")]) == []

    [letter] = dead_letters(service)
    assert code in cause_of(letter)
    assert "This is why." in cause_of(letter)
    assert len(agent.requests) == 1


@pytest.mark.parametrize("status", ["FAILED", "IGNORED"])
def test_a_document_that_the_service_refuses_is_put_aside_with_its_reason_and_the_others_are_done(
    service: IngestionService, aws: Any, agent: AwsService, status: str
) -> None:
    put(aws, "good.txt", "bad.txt")
    agent.program("IngestKnowledgeBaseDocuments", answer_with(**{"bad.txt": status}))

    again = service.process([message("good.txt"), message("bad.txt", name="message-2")])

    assert again == []
    [letter] = dead_letters(service)
    assert letter["MessageAttributes"]["SourceMessageId"]["StringValue"] == "message-2"
    assert cause_of(letter) == f"{status}: because {status}"


def test_a_document_that_the_service_says_nothing_of_is_delivered_again(
    service: IngestionService, aws: Any, agent: AwsService
) -> None:
    put(aws, "a.txt", "b.txt")
    agent.program("IngestKnowledgeBaseDocuments", {"documentDetails": [detail(f"s3://{BUCKET}/a.txt")]})

    assert service.process([message("a.txt"), message("b.txt", name="message-2")]) == ["message-2"]


def test_a_message_with_a_passing_and_a_lasting_problem_is_delivered_again(
    service: IngestionService, aws: Any, agent: AwsService
) -> None:
    put(aws, "bad.txt", "silent.txt")
    agent.program("IngestKnowledgeBaseDocuments", {"documentDetails": [detail(f"s3://{BUCKET}/bad.txt", "FAILED")]})

    assert service.process([message("bad.txt", "silent.txt")]) == ["message-1"]


@pytest.mark.parametrize("body", ["not json", "{}", '{"Records": [{}]}'])
def test_a_message_that_is_no_notification_is_put_aside_and_the_others_are_done(
    service: IngestionService, aws: Any, agent: AwsService, body: str
) -> None:
    put(aws, "a.txt")

    assert service.process([QueueMessage("strange", body, 1), message("a.txt")]) == []

    [letter] = dead_letters(service)
    assert letter["Body"] == body
    assert "no S3 event notification" in cause_of(letter)
    assert len(submitted(agent)) == 1


def test_a_message_that_cannot_be_put_aside_is_delivered_again(
    service: IngestionService, aws: Any, agent: AwsService
) -> None:
    put(aws, "a.txt")
    agent.program("IngestKnowledgeBaseDocuments", Fault("AccessDeniedException"))
    elsewhere = replace(service.settings, dead_letter_queue_url=service.settings.dead_letter_queue_url + "-gone")

    assert replace(service, settings=elsewhere).process([message("a.txt", receives=9)]) == ["message-1"]


@pytest.mark.parametrize(
    ("code", "status", "again"), [("403", 403, []), ("503", 503, ["message-1"]), ("SlowDown", 503, ["message-1"])]
)
def test_a_bucket_that_cannot_be_looked_into_is_a_problem_and_never_a_deletion(
    service: IngestionService, agent: AwsService, code: str, status: int, again: list[str]
) -> None:
    s3 = boto3.client("s3", region_name="eu-west-1")

    with Stubber(s3) as stubber:
        stubber.add_client_error("head_object", code, http_status_code=status)
        assert replace(service, s3=s3).process([message("a.txt")]) == again

    assert agent.requests == []
    assert len(dead_letters(service)) == (0 if again else 1)


def test_deleting_what_was_never_there_is_a_success(service: IngestionService, agent: AwsService) -> None:
    agent.program(
        "DeleteKnowledgeBaseDocuments", lambda p: {"documentDetails": [detail(u, "NOT_FOUND") for u in asked_uris(p)]}
    )

    assert service.process([message("gone.txt")]) == []
    assert dead_letters(service) == []


@pytest.mark.parametrize(("receives", "seconds"), [(1, 10), (2, 20), (5, 160), (9, 600)])
def test_a_message_that_is_delivered_again_comes_back_after_a_growing_delay(
    service: IngestionService, aws: Any, agent: AwsService, receives: int, seconds: int
) -> None:
    put(aws, "a.txt")
    agent.program("IngestKnowledgeBaseDocuments", Fault("ThrottlingException"))
    settings = replace(service.settings, ingestion_queue_url="https://sqs/queue", max_receives=99)
    sqs = boto3.client("sqs", region_name="eu-west-1")

    with Stubber(sqs) as stubber:
        stubber.add_response(
            "change_message_visibility",
            {},
            {"QueueUrl": "https://sqs/queue", "ReceiptHandle": "receipt", "VisibilityTimeout": seconds},
        )
        again = replace(service, settings=settings, sqs=sqs).process(
            [replace(message("a.txt", receives=receives), receipt_handle="receipt")]
        )
        stubber.assert_no_pending_responses()

    assert again == ["message-1"]


def test_a_message_whose_delay_cannot_be_set_is_delivered_again_all_the_same(
    service: IngestionService, aws: Any, agent: AwsService
) -> None:
    put(aws, "a.txt")
    agent.program("IngestKnowledgeBaseDocuments", Fault("ThrottlingException"))
    gone = replace(service.settings, ingestion_queue_url=service.settings.dead_letter_queue_url + "-gone")

    again = replace(service, settings=gone).process([replace(message("a.txt"), receipt_handle="receipt")])

    assert again == ["message-1"]


def test_metrics_tell_what_became_of_the_messages(service: IngestionService, aws: Any, agent: AwsService) -> None:
    class Metrics:
        def __init__(self) -> None:
            self.sums: dict[str, float] = {}

        def add_metric(self, name: str, unit: str, value: float) -> None:
            assert unit == "Count"
            self.sums[name] = self.sums.get(name, 0) + value

    put(aws, "good.txt", "bad.txt")
    agent.program("IngestKnowledgeBaseDocuments", answer_with(**{"bad.txt": "FAILED"}))
    metrics = Metrics()

    replace(service, metrics=metrics).process(
        [message("good.txt"), message("bad.txt", name="message-2"), message("gone.txt", name="message-3")]
    )

    assert metrics.sums == {
        "DocumentsSubmitted": 1,
        "DocumentsDeleted": 1,
        "MessagesDeadLettered": 1,
        "MessagesRetried": 0,
    }
