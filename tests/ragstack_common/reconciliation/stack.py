"""Changes bucket, registry and knowledge base behind the back of the functions, and runs the functions."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, ClassVar

from ragstack_common.access.policy import AccessPolicy
from ragstack_common.ingestion.converting import ConversionService
from ragstack_common.ingestion.follow import FollowingService
from ragstack_common.ingestion.messages import QueueMessage, check
from ragstack_common.ingestion.receipts import ReceiptService
from ragstack_common.ingestion.requests import document_identifier, s3_document, source_type_of, to_request
from ragstack_common.ingestion.services import Services
from ragstack_common.ingestion.submit import IngestionService
from ragstack_common.reading.census.counting import count
from ragstack_common.reconciliation.service import ReconcileService
from ragstack_common.registry.documents import DocumentRegistry, RecordChange
from ragstack_common.registry.jobs import Job, JobKind, JobStore
from ragstack_common.registry.records import DocumentRecord
from ragstack_common.settings.ingestion import IngestionSettings, ReconcileSettings
from ragstack_common.settings.names import OTHER_STORE
from tests.ingestion.world import converted
from tests.local_bedrock.support import Source
from tests.ragstack_common.reconciliation.clients import patient, undelayed

HOUR = 3600.0
LONG = 900.0
MOST = 10
"""Messages that SQS hands out at once, and documents that the knowledge base is asked about."""

PATIENCE_SECONDS = 120.0
"""Until functions that never come to rest are given up; real time, of which those that do need a second."""


@dataclass
class Clock:
    """Real time, and what was added to it."""

    ahead: float = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead


class Measured:
    """Keeps what was measured."""

    def __init__(self) -> None:
        self.values: dict[str, tuple[str, float]] = {}

    def add_metric(self, name: str, unit: str, value: float) -> None:
        self.values[name] = (unit, value)


@dataclass
class Stack:
    """Bucket, registry, knowledge base and queues, with the functions between them."""

    QUEUES: ClassVar = ("ingestion", "conversions", "status", "receipts", "dead", "jobs", "snapshots")

    aws: SimpleNamespace
    bucket: str
    queues: Mapping[str, str]
    source: Source
    vector_store: str = OTHER_STORE
    tenants: Mapping[str, Source] = field(default_factory=dict)
    policy: AccessPolicy | None = None
    clock: Clock = field(default_factory=Clock)
    metrics: Measured = field(default_factory=Measured)
    slept: list[float] = field(default_factory=list)

    # what is there

    @property
    def settings(self) -> ReconcileSettings:
        return ReconcileSettings(
            knowledge_base_id=self.source.knowledge_base_id,
            data_source_id=self.source.id,
            vector_store=self.vector_store,
            tenant_knowledge_bases=self.tenant_ids,
            registry_table=self.bucket,
            documents_bucket=self.bucket,
            snapshot_bucket=f"{self.bucket}-snapshot",
            ingestion_queue_url=self.queues["ingestion"],
            jobs_queue_url=self.queues["jobs"],
            calls_per_second=10_000.0,
            poll_seconds=0.0,
        )

    def service(self, mortal: Callable[[Any], Any] = lambda client: client, **changes: Any) -> ReconcileService:
        """Make the function, with settings that differ, and with clients that may fail."""
        settings = self.settings.model_copy(update=changes)
        return ReconcileService.of(
            settings,
            agent=mortal(self.agent),
            dynamodb=mortal(self.aws.dynamodb),
            s3=mortal(self.aws.s3),
            sqs=mortal(undelayed(self.aws.sqs)),
            metrics=self.metrics,
            policy=self.policy,
            clock=self.clock,
            sleep=self.slept.append,
        )

    @property
    def agent(self) -> Any:
        """The knowledge base's client, whose answer about an ingestion job is the last one."""
        return patient(self.source, *self.tenants.values())

    @property
    def tenant_ids(self) -> dict[str, str]:
        return {name: f"{source.knowledge_base_id}/{source.id}" for name, source in self.tenants.items()}

    def source_of(self, key: str) -> Source:
        """The data source that has a document if tenants have knowledge bases of their own."""
        tenant = self.policy and self.policy.tenant_of(key)
        return self.tenants.get(tenant or "", self.source)

    @property
    def jobs(self) -> JobStore:
        return JobStore(self.bucket, self.aws.dynamodb, clock=self.clock)

    @property
    def registry(self) -> DocumentRegistry:
        return DocumentRegistry(self.bucket, self.aws.dynamodb)

    def uri(self, key: str) -> str:
        return f"s3://{self.bucket}/{key}"

    def identifier(self, key: str) -> dict[str, Any]:
        return document_identifier(self.uri(key), source_type_of(self.vector_store))

    def record(self, key: str) -> DocumentRecord:
        return self.registry.read([self.uri(key)])[self.uri(key)]

    def in_knowledge_base(self, key: str) -> str:
        return str(self.source_of(key).details(self.identifier(key))[0]["status"])

    def etag(self, key: str) -> str:
        return str(self.aws.s3.head_object(Bucket=self.bucket, Key=key)["ETag"])

    # what is done

    def put(self, key: str, text: str = "A text.", attributes: Mapping[str, Any] | None = None) -> str:
        """Put a document without an event."""
        self.aws.s3.put_object(Bucket=self.bucket, Key=key, Body=text.encode())
        if attributes is not None:
            body = json.dumps({"metadataAttributes": dict(attributes)})
            self.aws.s3.put_object(Bucket=self.bucket, Key=f"{key}.metadata.json", Body=body.encode())
        return key

    def remove(self, key: str) -> None:
        self.aws.s3.delete_object(Bucket=self.bucket, Key=key)

    def indexed(self, *keys: str, **attributes: Any) -> None:
        """Put documents, and have them indexed; then an hour passes."""
        for key in keys:
            self.put(key, f"The text of {key}.", attributes or None)
        self.request_check(*keys)
        self.rest()
        assert {self.record(key).status for key in keys} == {"INDEXED"}, [self.record(key).reason for key in keys]
        self.clock.ahead += HOUR

    def request_check(self, *keys: str) -> None:
        """Have documents looked at."""
        self.aws.sqs.send_message(QueueUrl=self.queues["ingestion"], MessageBody=check(self.uri(key) for key in keys))

    def ingest_behind_the_back(self, key: str) -> None:
        self.ingest_into(self.source_of(key), key)

    def ingest_into(self, source: Source, key: str) -> None:
        document = s3_document(self.uri(key), source.id)
        source.ingested(to_request(document, source.id, source_type_of(self.vector_store)))

    def delete_behind_the_back(self, key: str) -> None:
        self.source_of(key).delete(self.identifier(key))
        self.source_of(key).settled(self.identifier(key))

    def claim(self, key: str, **changes: Any) -> None:
        """Write into the registry what is not so, an hour ago."""
        before = self.record(key)
        changes.setdefault("updated_at", self.clock() - HOUR)
        after = replace(before, **changes)
        assert not self.registry.write([RecordChange(before, after)])

    # what happens then

    def services(self) -> Services:
        """What both functions of the path work with."""
        return Services(
            IngestionSettings(
                knowledge_base_id=self.source.knowledge_base_id,
                data_source_id=self.source.id,
                vector_store=self.vector_store,
                tenant_knowledge_bases=self.tenant_ids,
                registry_table=self.bucket,
                ingestion_queue_url=self.queues["ingestion"],
                status_queue_url=self.queues["status"],
                conversion_queue_url=self.queues["conversions"],
                large_conversion_queue_url=self.queues["conversions"],
                receipts_queue_url=self.queues["receipts"],
                receipt_wait_seconds=0.0,
                dead_letter_queue_url=self.queues["dead"],
                jobs_queue_url=self.queues["snapshots"],  # apart from jobs, which tests count
                calls_per_second=10_000.0,
                first_delay_seconds=0.0,
            ),
            agent=self.source.bedrock.agent,
            dynamodb=self.aws.dynamodb,
            events=self.aws.events,
            s3=self.aws.s3,
            sqs=undelayed(self.aws.sqs),
            policy=self.policy,
            clock=self.clock,
            sleep=self.slept.append,
        )

    def rest(self) -> None:
        """Have the functions work until no message is left; they ask when the knowledge base has done its part."""
        services = self.services()
        ingestion, following = IngestionService(services), FollowingService(services)
        converting = ConversionService(services, converted)
        comparing = ReceiptService(services, self.source.bedrock.runtime, self.aws.s3, count)
        end = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < end:
            checks, conversions = self.take("ingestion"), self.take("conversions")
            follows, compared = self.take("status"), self.take("receipts")
            if not (checks or conversions or follows or compared):
                return
            assert not conversions or converting.process(conversions, lambda: LONG) == []
            assert not checks or ingestion.process(checks, LONG) == []
            self._settle(follows)
            assert not follows or following.process(follows) == []
            assert not compared or comparing.process(compared, lambda: LONG) == []
        raise AssertionError("the queues do not come to rest")

    def _settle(self, follows: list[QueueMessage]) -> None:
        uris = [uri for message in follows for uri, _operation in json.loads(message.body)["follow"]]
        by_source: dict[Source, list[dict[str, Any]]] = {}
        names = [record.indexed_uri for record in self.registry.read(uris).values()]
        for key in (name.removeprefix(self.uri("")) for name in names):
            by_source.setdefault(self.source_of(key), []).append(self.identifier(key))
        for source, identifiers in by_source.items():
            for start in range(0, len(identifiers), MOST):
                source.settled(*identifiers[start : start + MOST])

    def take(self, queue: str) -> list[QueueMessage]:
        """Take the messages of a queue."""
        taken: list[QueueMessage] = []
        url = self.queues[queue]
        while True:
            answer = self.aws.sqs.receive_message(
                QueueUrl=url, MaxNumberOfMessages=MOST, WaitTimeSeconds=0, AttributeNames=["All"]
            )
            messages = answer.get("Messages", [])
            if messages:
                entries = [{"Id": m["MessageId"], "ReceiptHandle": m["ReceiptHandle"]} for m in messages]
                self.aws.sqs.delete_message_batch(QueueUrl=url, Entries=entries)
            taken += [QueueMessage(message["MessageId"], message["Body"], 1) for message in messages]
            if len(messages) < MOST:  # moto's queue hands out all that it has
                return taken

    def requested(self) -> list[str]:
        """Take the documents that are to be looked at, by key."""
        messages = self.take("ingestion")
        return sorted(uri.removeprefix(self.uri("")) for m in messages for uri in json.loads(m.body)["check"])

    def reconcile(self, kind: JobKind = "reconcile", seconds_left: float = LONG, **changes: Any) -> Job:
        """Run a job to its end, and hand it back."""
        job = self.jobs.create(kind, "test")
        self.send_job({"job": job.id})
        self.run_jobs(seconds_left=seconds_left, **changes)
        return self.jobs.get(job.id)

    def send_job(self, body: Mapping[str, Any]) -> None:
        self.aws.sqs.send_message(QueueUrl=self.queues["jobs"], MessageBody=json.dumps(body))

    def run_jobs(self, *, seconds_left: float = LONG, **changes: Any) -> int:
        """Have the function work until no message is left; tell how many there were."""
        service = self.service(**changes)
        worked = 0
        end = time.monotonic() + PATIENCE_SECONDS
        while messages := self.take("jobs"):
            assert time.monotonic() < end, "the jobs do not come to rest"
            for message in messages:
                assert service.process([message], lambda: seconds_left) == []
            worked += len(messages)
        return worked
