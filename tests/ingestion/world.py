"""A bucket, its queues, both functions, the registry and the knowledge base, on one clock."""

import email
import itertools
import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.policy import default
from typing import Any

from ragstack_common.core.artefacts import mail_of, maker_of, text_of
from ragstack_common.core.uris import SIDECAR_SUFFIX, fault_of_uri
from ragstack_common.ingestion import messages
from ragstack_common.ingestion.converting import SECONDS_FOR_ONE as SECONDS_FOR_CONVERSION
from ragstack_common.ingestion.converting import ConversionService
from ragstack_common.ingestion.follow import FollowingService
from ragstack_common.ingestion.messages import QueueMessage
from ragstack_common.ingestion.receipts import SECONDS_FOR_ONE, ReceiptService
from ragstack_common.ingestion.requests import document_identifier, source_type_of
from ragstack_common.ingestion.services import Services
from ragstack_common.ingestion.submit import IngestionService
from ragstack_common.reading.census.counting import count
from ragstack_common.reading.converting import Converted, to_markdown
from ragstack_common.registry.catalogue import Catalogue, counted_under
from ragstack_common.registry.documents import DocumentRegistry
from ragstack_common.registry.records import SEARCHABLE, DocumentRecord, Status
from ragstack_common.settings.ingestion import IngestionSettings
from ragstack_common.settings.names import MANAGED
from tests.ingestion.queues import Held, PolledQueue, received
from tests.ingestion.services import Aws
from tests.local_bedrock.support import Source
from tests.support.events import s3_notification
from tests.support.registry_table import create_table

MEMORY_LIMIT = 1024**3

_numbers = itertools.count()

SECONDS_LEFT = 60.0
"""What a function has; its leases end with it, well before its messages come again."""

UNDER_WAY = {"STARTING", "PENDING", "IN_PROGRESS", "DELETING", "DELETE_IN_PROGRESS"}


@dataclass
class World:
    """All parts of the ingestion path, and the changes of the bucket."""

    aws: Aws
    source: Source
    bucket: str
    settings: IngestionSettings
    keys: list[str] = field(default_factory=list)
    events: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, aws: Aws, source: Source, bucket: str, **more: Any) -> "World":
        """Make a new table and new queues."""
        name = f"world-{next(_numbers)}"
        create_table(aws.dynamodb, name)
        kinds = ("in", "conversions", "status", "receipts", "dead", "jobs")
        urls = {kind: aws.sqs.create_queue(QueueName=f"{name}-{kind}")["QueueUrl"] for kind in kinds}
        settings = IngestionSettings(
            knowledge_base_id=source.knowledge_base_id,
            data_source_id=source.id,
            registry_table=name,
            ingestion_queue_url=urls["in"],
            status_queue_url=urls["status"],
            conversion_queue_url=urls["conversions"],
            large_conversion_queue_url=urls["conversions"],
            receipts_queue_url=urls["receipts"],
            dead_letter_queue_url=urls["dead"],
            jobs_queue_url=urls["jobs"],
            max_retries=0,
            receipt_wait_seconds=0.0,
        )
        return cls(aws, source, bucket, settings.model_copy(update=more))

    def __post_init__(self) -> None:
        self.prefix = f"{self.settings.registry_table}/"
        self.ingestion_queue = PolledQueue(self.aws, self.settings.ingestion_queue_url)
        self.status_queue = PolledQueue(self.aws, self.settings.status_queue_url)
        self.conversion_queue = PolledQueue(self.aws, self.settings.conversion_queue_url)
        self.receipts_queue = PolledQueue(self.aws, self.settings.receipts_queue_url)
        self.registry = DocumentRegistry(self.settings.registry_table, self.aws.dynamodb)
        self.catalogue = Catalogue(self.aws.dynamodb, self.settings.registry_table)
        self._sequence = itertools.count(1)
        self._dead: list[dict[str, Any]] = []
        self.aws.calls.clear()
        self.aws.published.clear()

    # Changes of the bucket.

    def put(self, name: str, text: str | bytes = "a text about granite") -> str:
        """Put an object; its event waits in ``events``."""
        body = text.encode() if isinstance(text, str) else text
        if name.endswith(".eml") and body.strip():
            body = mail(text=body.decode(), attachment=b"an old stone" if b"old" in body else None)
        self.aws.s3.put_object(Bucket=self.bucket, Key=self.prefix + name, Body=body)
        return self._happened(name, "ObjectCreated:Put")

    def put_sidecar(self, name: str, attributes: Mapping[str, Any] | bytes) -> str:
        body = attributes if isinstance(attributes, bytes) else json.dumps({"metadataAttributes": dict(attributes)})
        return self.put(name + SIDECAR_SUFFIX, body)

    def delete(self, name: str) -> str:
        self.aws.s3.delete_object(Bucket=self.bucket, Key=self.prefix + name)
        return self._happened(name, "ObjectRemoved:DeleteMarkerCreated")

    def delete_sidecar(self, name: str) -> str:
        return self.delete(name + SIDECAR_SUFFIX)

    def _with_events_of_attachments(self, process: Callable[[], list[str]]) -> list[str]:
        """Have the bucket send the events of attachments that a function writes and deletes."""
        with self.aws.intercepted(lambda *_: None):
            before = self._attachments()
        try:
            return process()
        finally:
            with self.aws.intercepted(lambda *_: None):
                after = self._attachments()
            for name in sorted(before.keys() | after.keys()):
                if before.get(name) != after.get(name):
                    self._happened(name, "ObjectCreated:Put" if name in after else "ObjectRemoved:Delete")

    def _attachments(self) -> dict[str, str]:
        pages = self.aws.s3.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=self.prefix)
        entries = [entry for page in pages for entry in page.get("Contents", ()) if mail_of(entry["Key"])]
        return {entry["Key"].removeprefix(self.prefix): entry["ETag"] for entry in entries}

    def _happened(self, name: str, event: str) -> str:
        document = name.removesuffix(SIDECAR_SUFFIX)
        if document not in self.keys:
            self.keys.append(document)
        body = s3_notification((self.prefix + name, f"{next(self._sequence):016X}"), bucket=self.bucket, name=event)
        self.events.append(body)
        return body

    def announce(self, *bodies: str) -> None:
        """Send events to the queue; by default all that are waiting."""
        for body in bodies or self.events:
            self.aws.sqs.send_message(QueueUrl=self.settings.ingestion_queue_url, MessageBody=body)
        if not bodies:
            self.events.clear()

    def request_check(self, *names: str) -> None:
        self.announce(messages.check([self.uri(name) for name in names]))

    def uri(self, name: str) -> str:
        return f"s3://{self.bucket}/{self.prefix}{name}"

    # The functions.

    def services(self) -> Services:
        aws = self.aws
        return Services(
            self.settings,
            agent=aws.agent,
            dynamodb=aws.dynamodb,
            events=aws.events,
            s3=aws.s3,
            sqs=aws.sqs,
            clock=aws.clock,
            sleep=aws.clock.sleep,
        )

    def ingestion(self, delivered: list[QueueMessage]) -> list[str]:
        """Invoke the function in a new container."""
        service = IngestionService(self.services())
        return self._with_events_of_attachments(lambda: service.process(delivered, SECONDS_LEFT))

    def converting(self, delivered: list[QueueMessage]) -> list[str]:
        service = ConversionService(self.services(), converted)
        return self._with_events_of_attachments(lambda: service.process(delivered, lambda: SECONDS_FOR_CONVERSION))

    def following(self, delivered: list[QueueMessage]) -> list[str]:
        return FollowingService(self.services()).process(delivered)

    def comparing(self, delivered: list[QueueMessage]) -> list[str]:
        return ReceiptService(self.services(), self.aws.runtime, self.aws.s3, count).process(
            delivered, lambda: SECONDS_FOR_ONE
        )

    def ingest(self, chosen: Sequence[Held] | None = None) -> None:
        """Deliver the messages of the ingestion queue that are due, in batches of ten."""
        self._deliver(self.ingestion_queue, self.ingestion, chosen)

    def follow(self, chosen: Sequence[Held] | None = None) -> None:
        self._deliver(self.status_queue, self.following, chosen)

    def convert(self, chosen: Sequence[Held] | None = None) -> None:
        self._deliver(self.conversion_queue, self.converting, chosen)

    def compare(self, chosen: Sequence[Held] | None = None) -> None:
        self._deliver(self.receipts_queue, self.comparing, chosen)

    def _deliver(
        self, queue: PolledQueue, process: Callable[[list[QueueMessage]], list[str]], chosen: Sequence[Held] | None
    ) -> None:
        due = queue.due() if chosen is None else chosen
        for start in range(0, len(due), 10):
            queue.deliver(process, due[start : start + 10])

    def run(self, *, rounds: int = 300) -> None:
        """Announce waiting events and deliver messages until none are left."""
        for _ in range(rounds):
            if self.events:
                self.announce()
            if self.ingestion_queue.due():
                self.ingest()
            elif self.conversion_queue.due():
                self.convert()
            elif self.status_queue.due():
                self.settle()
                self.follow()
            elif self.receipts_queue.due():
                self.compare()
            elif waiting := self._waiting():
                self.aws.clock.now = max(self.aws.clock.now, min(message.due for message in waiting))
            else:
                return
        raise AssertionError(f"messages are left: {self._waiting()}")

    def _waiting(self) -> list[Held]:
        queues = (self.ingestion_queue, self.conversion_queue, self.status_queue, self.receipts_queue)
        return [message for queue in queues for message in queue.held]

    def settle(self) -> None:
        """Wait until the knowledge base has finished all accepted operations."""
        end = time.monotonic() + 120
        while time.monotonic() < end:
            if not any(detail["status"] in UNDER_WAY for detail in self.details().values()):
                return
            time.sleep(0.01)
        raise AssertionError("the knowledge base is not done")

    # Reading the state.

    def details(self) -> dict[str, dict[str, Any]]:
        """Return the knowledge base's details of each document."""
        found: dict[str, dict[str, Any]] = {name: {"status": "NOT_FOUND"} for name in self.keys}
        possible = [name for name in self.keys if not fault_of_uri(self.uri(name))]
        for start in range(0, len(possible), 10):
            names = possible[start : start + 10]
            source_type = source_type_of(self.settings.vector_store)
            identifiers = [document_identifier(self.indexed(name), source_type) for name in names]
            found |= dict(zip(names, self.source.details(*identifiers), strict=True))
        return found

    def indexed(self, name: str) -> str:
        """Return the name by which the knowledge base knows a document."""
        return text_of(self.uri(name)) if name.endswith((".eml", ".docx")) else self.uri(name)

    def record(self, name: str) -> DocumentRecord:
        return self.registry.read([self.uri(name)])[self.uri(name)]

    def chunks(self, name: str) -> list[dict[str, Any]]:
        """Return the chunks of a document that a search finds."""
        is_managed = self.settings.vector_store == MANAGED
        key = "_source_uri" if is_managed else "x-amz-bedrock-kb-source-uri"
        search: Any = {"filter": {"equals": {"key": key, "value": self.indexed(name)}}}
        if is_managed:
            configuration: Any = {"managedSearchConfiguration": {**search, "rerankingModelType": "NONE"}}
        else:
            configuration = {"vectorSearchConfiguration": search}
        answer = self.source.bedrock.runtime.retrieve(
            knowledgeBaseId=self.source.knowledge_base_id,
            retrievalQuery={"text": "granite"},
            retrievalConfiguration=configuration,
        )
        return list(answer["retrievalResults"])

    def object(self, key: str) -> tuple[bytes, Any] | None:
        try:
            answer = self.aws.s3.get_object(Bucket=self.bucket, Key=self.prefix + key)
        except self.aws.s3.exceptions.NoSuchKey:
            return None
        return answer["Body"].read(), answer

    def dead(self) -> list[dict[str, Any]]:
        """Return the dead letters so far."""
        self._dead += received(self.aws, self.settings.dead_letter_queue_url)
        return self._dead

    def outcomes(self, name: str) -> list[dict[str, Any]]:
        """Return the events about a document, without repetitions."""
        found: dict[Any, dict[str, Any]] = {}
        for entry in self.aws.published:
            detail = json.loads(entry["Detail"])
            if detail["uri"] == self.uri(name):
                found[entry["DetailType"], detail["operation"]] = {**detail, "type": entry["DetailType"]}
        return list(found.values())

    def count(self, operation: str) -> int:
        return self.aws.calls.count(operation)

    def check(self) -> None:
        """Check that bucket, registry, knowledge base and catalogue agree, and that final states were announced."""
        details = self.details()
        records = {name: self.record(name) for name in self.keys}
        for name, record in records.items():
            self._check_document(name, record, details[name])
        recounted = Counter(
            pair
            for record in records.values()
            if record.status in SEARCHABLE
            for pair in counted_under(record.observed.attributes)
            if pair[0]
        )
        counted = {(f.key, json.dumps(f.value, ensure_ascii=False)): f.documents for f in self.catalogue.facets()}
        assert counted == dict(recounted)
        searchable = [record for record in records.values() if record.status in SEARCHABLE]
        assert self.catalogue.documents() == len(searchable)
        assert not self.ingestion_queue.collect()
        assert not self.status_queue.collect()
        assert not self.receipts_queue.collect()
        assert not self.conversion_queue.collect()
        listed = self.aws.s3.list_objects_v2(Bucket=self.bucket, Prefix=self.prefix).get("Contents", ())
        present = {entry["Key"] for entry in listed}
        assert all((maker_of(key) or mail_of(key) or key) in present for key in present), present

    def _check_document(self, name: str, record: DocumentRecord, detail: dict[str, Any]) -> None:
        content, sidecar = self.object(name), self.object(name + SIDECAR_SUFFIX)
        assert record.again is False, record
        if content is None:
            assert record.status is Status.DELETED or record.revision == 0, record
            assert detail["status"] == "NOT_FOUND", (record, detail)
            assert self.chunks(name) == []
            if record.revision:
                assert self.outcomes(name)[-1]["type"] == "DocumentDeleted", self.outcomes(name)
            return
        assert record.is_final, record
        body, head = content
        event = self.outcomes(name)[-1]
        assert (record.observed.etag, record.observed.version_id) == (head["ETag"], head["VersionId"])
        assert record.observed.sidecar_etag == (sidecar[1]["ETag"] if sidecar else None), record
        if not body.strip() or (sidecar and not sidecar[0].startswith(b"{")):
            assert record.status is Status.FAILED, record
            assert record.reason
            assert self.chunks(name) == [], (record, detail)
            assert event["type"] == "DocumentFailed"
            assert event["reason"] == record.reason
            failures = [json.loads(letter["Body"]).get("failed", {}) for letter in self.dead()]
            mine = [failed for failed in failures if failed.get("uri") == self.uri(name)]
            assert mine, record
            assert mine[-1]["reason"] == record.reason
            return
        assert record.status is Status.INDEXED, record
        assert detail["status"] == "INDEXED", (record, detail)
        found = self.chunks(name)
        text = "".join(chunk["content"]["text"] for chunk in found)
        if name.endswith(".eml"):
            assert text.endswith(body_of(body)), record
        else:
            assert text == body.decode(), record
        attributes = json.loads(sidecar[0])["metadataAttributes"] if sidecar else {}
        assert record.observed.attributes == attributes
        for chunk in found:
            of_service = ("x-amz-", "ragstack_", "_")
            shown = {key: value for key, value in chunk["metadata"].items() if not key.startswith(of_service)}
            assert shown == attributes
        assert event["type"] == "DocumentIndexed", event
        assert event["etag"] == head["ETag"]


def converted(data: bytes, name: str, charset: str | None) -> Converted:
    """Convert in this process."""
    found = to_markdown(data, name, charset, "off", MEMORY_LIMIT)
    assert isinstance(found, Converted)
    return found


def mail(text: str, attachment: bytes | None = None) -> bytes:
    """Return a mail with a text, and perhaps a file."""
    made = EmailMessage(default)
    made["Subject"] = "Stones"
    made.set_content(text)
    if attachment is not None:
        made.add_attachment(attachment, maintype="text", subtype="plain", filename="part.txt")
        made.set_boundary("stones")
    return made.as_bytes()


def body_of(data: bytes) -> str:
    """Return the text of a mail that :func:`mail` made."""
    part = email.message_from_bytes(data, policy=default).get_body(("plain",))
    assert part is not None
    return str(part.get_content()).strip()
