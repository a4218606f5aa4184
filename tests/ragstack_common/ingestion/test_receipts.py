"""The function `receipts`, when Retrieve finds everything, a part, nothing, other things, or does not answer."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from moto import mock_aws
from moto.moto_api._internal.models import moto_api_backend

from ragstack_common.ingestion.messages import QueueMessage, compare
from ragstack_common.ingestion.receipts import (
    CHUNKS_PER_LOOKUP,
    MAX_LOOKUPS,
    SECONDS_FOR_ONE,
    ReceiptService,
    to_receipt,
)
from ragstack_common.ingestion.services import Services
from ragstack_common.reading.census.comparison import Comparison
from ragstack_common.reading.census.counting import count
from ragstack_common.reading.census.parts import Census, Part
from ragstack_common.reading.census.pdf import DRAWN
from ragstack_common.registry import lifecycle
from ragstack_common.registry.document_status import DocumentStatus
from ragstack_common.registry.documents import RecordChange
from ragstack_common.registry.receipts import Recognized
from ragstack_common.registry.records import DocumentRecord, Observation, Operation, OperationKind, Status
from ragstack_common.settings.ingestion import IngestionSettings
from ragstack_common.settings.names import MANAGED, SOURCE_URI_KEY
from ragstack_common.text.positions import PAGE_KEY
from tests.support.aws_service import AwsService, Fault, aws_service
from tests.support.knowledge_base import DATA_SOURCE, KNOWLEDGE_BASE
from tests.support.pdf_files import pages, text
from tests.support.registry_table import TABLE, create_table

BUCKET, KEY = "documents", "guide.md"
URI = f"s3://{BUCKET}/{KEY}"
REGION = "eu-west-1"
NOW = 1_800_000_000.0
QUEUES = ("ingestion", "conversion", "large_conversion", "status", "receipts", "dead", "jobs")


@dataclass
class Comparing:
    """The function with moto's services, and a Retrieve that answers as a test programs it."""

    services: Services
    runtime: AwsService
    s3: Any
    sqs: Any
    sums: dict[str, float]

    def indexed(
        self, body: bytes, answer: DocumentStatus | None = None, key: str = KEY, name: str = "message-1"
    ) -> QueueMessage:
        """Put a document that the knowledge base is done with, and return the message about it."""
        self.s3.put_object(Bucket=BUCKET, Key=key, Body=body)
        observed = Observation.from_head(self.s3.head_object(Bucket=BUCKET, Key=key))
        before = DocumentRecord(f"s3://{BUCKET}/{key}")
        operation = Operation("op1", OperationKind.INGEST, NOW + 60)
        claimed = lifecycle.claimed(before, observed, lifecycle.EventMarks("01"), operation, NOW)
        change = RecordChange(before, lifecycle.accepted(claimed, NOW))
        assert not self.services.registry.write([change])
        said = answer or DocumentStatus("INDEXED", None, datetime.fromtimestamp(NOW - 3600, UTC))
        return QueueMessage(name, compare(change.written, said), 1)

    def answer(self, *chunks: str) -> None:
        self.runtime.program("Retrieve", {"retrievalResults": [{"content": {"text": text}} for text in chunks]})

    def process(self, *messages: QueueMessage, seconds_left: float = SECONDS_FOR_ONE) -> list[str]:
        client = boto3.client("bedrock-agent-runtime", region_name=REGION, endpoint_url=self.runtime.endpoint)
        return ReceiptService(self.services, client, self.s3, count).process(messages, lambda: seconds_left)

    def record(self, key: str = KEY) -> DocumentRecord:
        uri = f"s3://{BUCKET}/{key}"
        return self.services.registry.read([uri])[uri]

    def sent(self, queue: str) -> list[dict[str, Any]]:
        answer = self.sqs.receive_message(QueueUrl=f"{self._base}/{queue}", MaxNumberOfMessages=10)
        return [json.loads(letter["Body"]) for letter in answer.get("Messages", [])]

    @property
    def _base(self) -> str:
        return self.services.settings.ingestion_queue_url.rpartition("/")[0]


class Sums(dict[str, float]):
    """Metrics, added up."""

    def add_metric(self, name: str, unit: str, value: float) -> None:
        assert unit
        self[name] = self.get(name, 0) + value


@pytest.fixture
def comparing() -> Iterator[Comparing]:
    with mock_aws(), aws_service("bedrock-agent-runtime") as runtime:
        moto_api_backend.reset()
        session: Any = boto3.Session("test", "test", region_name=REGION)
        s3, sqs, dynamodb = (session.client(name) for name in ("s3", "sqs", "dynamodb"))
        s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
        create_table(dynamodb)
        urls = {name: sqs.create_queue(QueueName=name)["QueueUrl"] for name in QUEUES}
        settings = IngestionSettings(
            knowledge_base_id=KNOWLEDGE_BASE,
            data_source_id=DATA_SOURCE,
            registry_table=TABLE,
            dead_letter_queue_url=urls["dead"],
            **{f"{name}_queue_url": url for name, url in urls.items() if name != "dead"},
        )
        sums = Sums()
        services = Services(
            settings,
            agent=session.client("bedrock-agent"),
            dynamodb=dynamodb,
            events=session.client("events"),
            s3=s3,
            sqs=sqs,
            metrics=sums,
            clock=lambda: NOW,
            sleep=lambda _: None,
        )
        yield Comparing(services, runtime, s3, sqs, sums)
        assert runtime.refusals == []


def test_a_document_of_which_the_index_has_every_word_is_indexed(comparing: Comparing) -> None:
    comparing.answer("# Leave\n\nTwenty-seven days.")

    assert comparing.process(comparing.indexed(b"# Leave\n\nTwenty-seven days.")) == []

    record = comparing.record()
    assert record.receipt is not None
    assert (record.status, record.reason, record.receipt.read, record.receipt.words) == (Status.INDEXED, None, 4, 4)
    [asked] = comparing.runtime.asked("Retrieve")
    search = asked["retrievalConfiguration"]["vectorSearchConfiguration"]
    assert search["numberOfResults"] == CHUNKS_PER_LOOKUP
    assert search["filter"] == {"equals": {"key": "x-amz-bedrock-kb-source-uri", "value": URI}}


@pytest.mark.parametrize("source", [URI, f"https://{BUCKET}.s3.{REGION}.amazonaws.com/{KEY}"])
def test_a_managed_knowledge_base_is_asked_for_all_text_in_its_own_form(comparing: Comparing, source: str) -> None:
    """Its reranker would leave out text, and documents may have other names than the identifier."""
    comparing.services.settings = comparing.services.settings.model_copy(update={"vector_store": MANAGED})
    found = [("Tea at four.", source), ("Tea at five.", "s3://documents/other.md")]
    hits = [{"content": {"text": text}, "metadata": {"_source_uri": uri}} for text, uri in found]
    comparing.runtime.program("Retrieve", {"retrievalResults": hits})
    messages = [
        comparing.indexed(b"Tea at four."),
        comparing.indexed(b"Tea at five.", key="other.md", name="message-2"),
    ]

    comparing.process(*messages)

    assert (comparing.record().status, comparing.record("other.md").status) == (Status.INDEXED, Status.INDEXED)
    [asked] = comparing.runtime.asked("Retrieve")
    names = [
        name
        for key in (KEY, "other.md")
        for name in (
            f"s3://{BUCKET}/{key}",
            f"https://{BUCKET}.s3.{REGION}.amazonaws.com/{key}",
            f"https://{BUCKET}.s3.amazonaws.com/{key}",
        )
    ]
    assert asked["retrievalConfiguration"] == {
        "managedSearchConfiguration": {
            "numberOfResults": CHUNKS_PER_LOOKUP,
            "rerankingModelType": "NONE",
            "filter": {"in": {"key": "_source_uri", "value": names}},
        }
    }


def test_a_document_that_lost_a_paragraph_is_partially_indexed_and_says_which(comparing: Comparing) -> None:
    comparing.answer("# Leave\n\nTwenty-seven days.")

    comparing.process(comparing.indexed(b"# Leave\n\nTwenty-seven days.\n\nAsk your manager before Friday.\n"))

    record = comparing.record()
    assert record.status is Status.PARTIALLY_INDEXED
    assert "missing from the index: 5 of 9 words" in str(record.reason)
    assert record.receipt is not None
    assert record.receipt.not_read[0].example == "Ask your manager before Friday."


def test_a_document_of_which_the_index_has_nothing_is_removed_and_fails(comparing: Comparing) -> None:
    """Its deletion is requested first: the index may have an earlier version."""
    comparing.answer()

    assert comparing.process(comparing.indexed(b"# Leave\n\nTwenty-seven days.")) == []

    record = comparing.record()
    assert (record.status, record.observed.refusal) == (Status.WAITING, record.reason)
    assert "Nothing could be read" in str(record.reason)
    assert comparing.sent("ingestion") == [{"check": [URI], "forced": False}]


def test_what_the_knowledge_base_refused_gets_a_receipt_without_a_lookup(comparing: Comparing) -> None:
    message = comparing.indexed(b"# Leave", DocumentStatus("FAILED", "Too complex"))

    comparing.process(message)

    record = comparing.record()
    assert (record.status, record.reason) == (Status.WAITING, "Too complex")
    assert record.receipt is not None
    assert (record.receipt.words, record.receipt.read) == (1, 0)
    assert comparing.runtime.asked("Retrieve") == []


@pytest.mark.parametrize(("chunks", "status"), [(["pages"], Status.PARTIALLY_INDEXED), ([], Status.WAITING)])
def test_a_file_that_cannot_be_counted_is_never_indexed(
    comparing: Comparing, chunks: list[str], status: Status
) -> None:
    comparing.answer(*chunks)

    comparing.process(comparing.indexed(b"%PDF-1.4 broken", key="broken.pdf"))

    record = comparing.record("broken.pdf")
    assert record.status is status
    assert "could not be compared with the index: The .pdf file is damaged" in str(record.reason)


def test_missing_text_is_looked_for_again_until_the_index_had_its_time(comparing: Comparing) -> None:
    fresh = DocumentStatus("INDEXED", None, datetime.fromtimestamp(NOW - 20, UTC))
    message = comparing.indexed(b"# Leave\n\nTwenty-seven days.", fresh)
    comparing.answer()

    assert comparing.process(message) == ["message-1"]

    assert comparing.record().status is Status.INDEXING
    comparing.answer("# Leave\n\nTwenty-seven days.")
    assert comparing.process(message) == []
    assert comparing.record().status is Status.INDEXED


def test_a_query_has_the_text_behind_any_number_of_blanks(comparing: Comparing) -> None:
    """Third parties report that Retrieve refuses a query of blanks."""
    comparing.answer("Tea at four.")

    comparing.process(comparing.indexed(b" " * 2000 + b"Tea at four.", key="tea.txt"))

    assert [asked["retrievalQuery"]["text"] for asked in comparing.runtime.asked("Retrieve")] == ["Tea at four."]


def test_small_documents_are_looked_up_together(comparing: Comparing) -> None:
    """Only one of which something is missing is looked up again by itself."""
    texts = {f"{number}.md": f"Rule {number}: leave has {number * 7 + 3} days." for number in range(10)}
    chunks = {f"s3://{BUCKET}/{key}": text for key, text in texts.items()}
    chunks[f"s3://{BUCKET}/3.md"] = "Something else"

    def found(asked: dict[str, Any]) -> dict[str, Any]:
        [(operator, condition)] = asked["retrievalConfiguration"]["vectorSearchConfiguration"]["filter"].items()
        uris = condition["value"] if operator == "in" else [condition["value"]]
        return {
            "retrievalResults": [{"content": {"text": chunks[uri]}, "metadata": {SOURCE_URI_KEY: uri}} for uri in uris]
        }

    comparing.runtime.program("Retrieve", found)
    messages = [comparing.indexed(text.encode(), key=key, name=key) for key, text in texts.items()]

    assert comparing.process(*messages) == []

    states = {key: comparing.record(key).status for key in texts}
    assert states.pop("3.md") is Status.WAITING
    assert set(states.values()) == {Status.INDEXED}
    assert len(comparing.runtime.asked("Retrieve")) == 2


def test_a_message_that_comes_twice_is_processed_once(comparing: Comparing) -> None:
    comparing.answer("# Leave")
    message = comparing.indexed(b"# Leave")

    assert comparing.process(message, replace(message, message_id="message-2")) == []

    assert comparing.record().status is Status.INDEXED
    assert len(comparing.runtime.asked("Retrieve")) == 1


def test_a_document_whose_acceptance_was_not_recorded_is_compared(comparing: Comparing) -> None:
    """The function that submitted it may have been killed, and its message was the status message's to replace."""
    comparing.answer("# Leave")
    message = comparing.indexed(b"# Leave")
    accepted = comparing.record()
    assert accepted.operation is not None
    not_yet = replace(accepted, status=Status.SUBMITTING, operation=replace(accepted.operation, accepted_at=None))
    assert not comparing.services.registry.write([RecordChange(accepted, not_yet)])

    assert comparing.process(message) == []

    assert comparing.record().status is Status.INDEXED


def test_a_document_that_changed_meanwhile_is_checked_again(comparing: Comparing) -> None:
    message = comparing.indexed(b"one")
    comparing.s3.put_object(Bucket=BUCKET, Key=KEY, Body=b"two")

    assert comparing.process(message) == []

    assert (comparing.record().status, comparing.record().receipt) == (Status.WAITING, None)
    assert comparing.sent("ingestion") == [{"check": [URI], "forced": False}]


def test_a_long_document_is_compared_with_chunks_of_many_lookups(comparing: Comparing) -> None:
    """Each lookup finds the chunks nearest to a text that is still missing."""
    passages = [f"page{number} " + " ".join(f"w{number}x{word}" for word in range(60)) for number in range(300)]

    def nearest(asked: dict[str, Any]) -> dict[str, Any]:
        first = passages.index(next(page for page in passages if asked["retrievalQuery"]["text"].startswith(page[:20])))
        near = passages[max(0, first - 10) : first + 10]
        return {"retrievalResults": [{"content": {"text": text}} for text in near]}

    comparing.runtime.program("Retrieve", nearest)

    comparing.process(comparing.indexed("\n\n".join(passages).encode()))

    record = comparing.record()
    assert record.status is Status.INDEXED, record.reason
    assert record.receipt is not None
    assert record.receipt.read == record.receipt.compared
    assert 15 <= len(comparing.runtime.asked("Retrieve")) <= MAX_LOOKUPS


def test_a_document_that_is_too_long_to_be_compared_as_a_whole_says_so(comparing: Comparing) -> None:
    passages = [f"page{number} " + " ".join(f"w{number}x{word}" for word in range(119)) for number in range(200)]

    def nearest(asked: dict[str, Any]) -> dict[str, Any]:
        found = next(page for page in passages if asked["retrievalQuery"]["text"].startswith(page[:20]))
        return {"retrievalResults": [{"content": {"text": found}}]}

    comparing.runtime.program("Retrieve", nearest)

    comparing.process(comparing.indexed("\n\n".join(passages).encode()))

    receipt = comparing.record().receipt
    assert receipt is not None
    assert receipt.compared == receipt.read < receipt.words == 24_000
    [words] = [each for each in receipt.counted if each.what == "words"]
    assert "only a sample of" in str(words.why)


@pytest.mark.parametrize(
    "fault", [Fault("ThrottlingException", status=429), Fault("InternalServerException", status=500)]
)
def test_a_lookup_that_fails_has_the_message_redelivered(comparing: Comparing, fault: Fault) -> None:
    message = comparing.indexed(b"# Leave")
    comparing.runtime.program("Retrieve", fault)

    assert comparing.process(message) == ["message-1"]
    assert comparing.record().status is Status.INDEXING


def test_without_time_for_another_document_its_message_is_redelivered_at_once(comparing: Comparing) -> None:
    message = comparing.indexed(b"# Leave")

    assert comparing.process(message, seconds_left=SECONDS_FOR_ONE - 1) == ["message-1"]
    assert comparing.runtime.asked("Retrieve") == []


@pytest.mark.parametrize("body", ["no JSON", '{"compare": 3}', '{"compare": "s3://b/k", "status": "PENDING"}'])
def test_a_malformed_message_is_dead_lettered(comparing: Comparing, body: str) -> None:
    assert comparing.process(QueueMessage("message-1", body, 1)) == []

    answer = comparing.sqs.receive_message(QueueUrl=comparing.services.settings.dead_letter_queue_url)
    assert [letter["Body"] for letter in answer["Messages"]] == [body]


def test_pages_that_show_something_without_text_are_named_and_counted(comparing: Comparing) -> None:
    drawing = b"100 100 200 200 re f"
    file = pages(text((700, 12, b"(Twenty-seven days of leave)")), drawing, b"")
    comparing.answer("Twenty-seven days of leave")

    comparing.process(comparing.indexed(file, key="leave.pdf"))

    record = comparing.record("leave.pdf")
    assert record.status is Status.PARTIALLY_INDEXED
    assert record.reason == f"Some parts could not be read: page 2 ({DRAWN})"
    assert record.receipt is not None
    assert [(each.what, each.number, each.read) for each in record.receipt.counted] == [
        ("pages", 3, 2),
        ("words", 5, 5),
    ]
    assert comparing.sums["PagesNotRead"] == 1


def test_a_page_without_text_is_not_waited_for(comparing: Comparing) -> None:
    file = pages(text((700, 12, b"(Twenty-seven days of leave)")), b"100 100 200 200 re f")
    fresh = DocumentStatus("INDEXED", None, datetime.fromtimestamp(NOW - 20, UTC))
    comparing.answer("Twenty-seven days of leave")

    assert comparing.process(comparing.indexed(file, fresh, key="leave.pdf")) == []

    assert comparing.record("leave.pdf").status is Status.PARTIALLY_INDEXED


def test_a_page_that_a_parser_read_although_it_is_a_picture_counts_as_read(comparing: Comparing) -> None:
    """A knowledge base may have a parser of its own that recognizes text."""
    file = pages(text((700, 12, b"(Twenty-seven days of leave)")), b"100 100 200 200 re f")
    first = {"content": {"text": "Twenty-seven days of leave"}, "metadata": {PAGE_KEY: 1}}
    second = {"content": {"text": "A recognized text"}, "metadata": {PAGE_KEY: 2}}
    comparing.runtime.program("Retrieve", {"retrievalResults": [first, second]})

    comparing.process(comparing.indexed(file, key="leave.pdf"))

    assert comparing.record("leave.pdf").status is Status.INDEXED


def test_a_receipt_names_the_recognized_pages_with_the_least_certain_first() -> None:
    parts = [Part("page 1", ["Leave"]), Part("page 2", ["Fees"], confidence=0.97), Part("page 3", confidence=0.8)]
    comparison = Comparison(Census(parts, "pages"))

    receipt = to_receipt(comparison, set(), NOW)

    assert receipt.recognized == (Recognized("page 3", 0.8), Recognized("page 2", 0.97))
