"""The state of a deployment at a glance, for operators: documents, queues, alarms, jobs and throughput."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from botocore.exceptions import BotoCoreError, ClientError
from pydantic import BaseModel, Field

from ragstack_common.core.errors import ServiceUnavailableError
from ragstack_common.core.metrics import STACKS
from ragstack_common.core.reporting import failing_as, reaching_the_registry
from ragstack_common.core.telemetry import LOGGER
from ragstack_common.core.times import Time, iso
from ragstack_common.registry.catalogue import Catalogue
from ragstack_common.registry.jobs import MAX_PAGE, RECONCILE, JobStore
from ragstack_common.registry.records import SEARCHABLE, Status
from ragstack_common.registry.table import BY_STATUS, STATUS, to_item
from ragstack_common.services.jobs import JobAnswer, to_answer

if TYPE_CHECKING:
    from botocore.client import BaseClient
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_sqs import SQSClient

HOURS: Final = 24
HOUR_SECONDS: Final = 3600

MAX_CALLS: Final = 50
"""Limit of calls that count the documents of a status. One reads 1 MB, about 2,000 documents, for 128 read units."""

DEAD_LETTERS: Final = "dead letters"

WITHOUT_CLOUDWATCH: Final = "The alarms could not be read from CloudWatch"
WITHOUT_ALARMS: Final = "This deployment has no alarms, or does not know its own name"

_WAITING: Final = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesDelayed")
_IN_FLIGHT: Final = "ApproximateNumberOfMessagesNotVisible"


class QueueDepth(BaseModel, defer_build=True):
    """The messages of a queue, as SQS counts them, approximately."""

    name: str
    waiting: int = Field(description="Messages that wait, also for a delay")
    in_flight: int = Field(description="Messages that a function works on")
    oldest_seconds: float | None = Field(
        default=None, description="Age of the oldest message; null, because SQS tells it to CloudWatch alone"
    )


class AlarmState(BaseModel, defer_build=True):
    """An alarm and its state."""

    name: str
    state: Literal["OK", "ALARM", "INSUFFICIENT_DATA"]
    reason: str = Field(description="For an alarm that fires, what to do")
    since: Time


class HourlyThroughput(BaseModel, defer_build=True):
    """Documents whose present state was reached in an hour."""

    hour: Time = Field(description="Its beginning")
    indexed: int
    failed: int


class StatusReport(BaseModel, defer_build=True):
    """The state of a deployment."""

    documents: dict[str, int] = Field(description="Number of documents by status; statuses without any are left out")
    queues: list[QueueDepth]
    dead_letters: int
    alarms: list[AlarmState] | None = Field(description="Firing ones first; null if they are unknown, and a note why")
    last_reconciliation: JobAnswer | None
    throughput: list[HourlyThroughput] = Field(
        description=f"The last {HOURS} hours, oldest first. A document counts in the hour of its last change"
    )
    notes: list[str] = Field(description="What is missing, and why")


@dataclass(frozen=True)
class DeploymentStatus:
    """Looks at a deployment.

    A report takes about a dozen calls, and one more for each 2,000 documents: their index is by status and not by time,
    so the throughput needs all of it. 100,000 documents take 50 calls and 6,400 read units.

    The *prefix* of the stacks' names is None if it is unknown; queue URLs are by name.
    """

    dynamodb: "DynamoDBClient"
    table: str
    sqs: "SQSClient"
    queue_urls: dict[str, str]
    cloudwatch: "BaseClient"
    prefix: str | None
    clock: Callable[[], float] = time.time

    def report(self) -> StatusReport:
        """Return the state now.

        Raises:
            RegistryError: The registry could not be read.
            ServiceUnavailableError: A queue could not be read.
        """
        notes: list[str] = []
        with reaching_the_registry():
            documents, throughput = self._documents(notes)
            job = self._last_reconciliation()
        with failing_as(ServiceUnavailableError, "The queues could not be read"):
            queues = [read_depth(self.sqs, name, url) for name, url in self.queue_urls.items()]
        dead = sum(each.waiting + each.in_flight for each in queues if each.name == DEAD_LETTERS)
        return StatusReport(
            documents=documents,
            queues=queues,
            dead_letters=dead,
            alarms=self._alarms(notes),
            last_reconciliation=job,
            throughput=throughput,
            notes=notes,
        )

    def _documents(self, notes: list[str]) -> tuple[dict[str, int], list[HourlyThroughput]]:
        """Count documents by status, and those that reached theirs in each of the last hours."""
        first = (int(self.clock()) // HOUR_SECONDS - HOURS + 1) * HOUR_SECONDS
        counts: dict[str, int] = {}
        hours = {outcome: Counter[int]() for outcome in ("indexed", "failed")}
        for status in Status:
            if status is Status.UPLOADED:
                continue  # never stored
            count, finished, is_complete = self._of_status(status, first)
            if not is_complete:
                notes.append(f"Only {count:,} of the documents that are {status} were looked at")
                if status is Status.INDEXED:  # one item has the number of all searchable documents
                    count = Catalogue(self.dynamodb, self.table).documents()
            if count:
                counts[status] = count
            if status in SEARCHABLE or status is Status.FAILED:
                hours["failed" if status is Status.FAILED else "indexed"].update(finished)
        starts = range(first, first + HOURS * HOUR_SECONDS, HOUR_SECONDS)
        return counts, [
            HourlyThroughput(hour=iso(start), indexed=hours["indexed"][start], failed=hours["failed"][start])
            for start in starts
        ]

    def _of_status(self, status: Status, since: int) -> tuple[int, Counter[int], bool]:
        """Return the number of documents of a status, when some of them ended, and whether all were counted."""
        count, finished = 0, Counter[int]()
        pages = self.dynamodb.get_paginator("query").paginate(
            TableName=self.table,
            IndexName=BY_STATUS,
            KeyConditionExpression="#status = :status",
            FilterExpression="finished_at >= :since",
            ProjectionExpression="finished_at",
            ExpressionAttributeNames={"#status": STATUS},
            ExpressionAttributeValues=to_item({":status": str(status), ":since": since}),
        )
        for number, page in enumerate(pages, 1):
            count += page["ScannedCount"]
            finished.update(
                int(float(item["finished_at"]["N"])) // HOUR_SECONDS * HOUR_SECONDS for item in page["Items"]
            )
            if number == MAX_CALLS and "LastEvaluatedKey" in page:
                return count, finished, False
        return count, finished, True

    def _last_reconciliation(self) -> JobAnswer | None:
        jobs = JobStore(self.table, self.dynamodb).page(MAX_PAGE).jobs
        return next((to_answer(job) for job in jobs if job.kind == RECONCILE), None)

    def _alarms(self, notes: list[str]) -> list[AlarmState] | None:
        found: Sequence[Mapping[str, Any]] = ()
        if self.prefix is not None:
            try:
                found = read_alarms(self.cloudwatch, self.prefix)
            except (ClientError, BotoCoreError) as error:
                LOGGER.warning("%s: %s", WITHOUT_CLOUDWATCH, error)
                notes.append(WITHOUT_CLOUDWATCH)
                return None
        if not found:
            notes.append(WITHOUT_ALARMS)
            return None
        alarms = [
            AlarmState(
                name=each["AlarmName"],
                state=each["StateValue"],
                reason=each.get("AlarmDescription", ""),
                since=iso(each["StateUpdatedTimestamp"].timestamp()),
            )
            for each in found
        ]
        return sorted(alarms, key=lambda each: (each.state != "ALARM", each.name))


def read_depth(sqs: "SQSClient", name: str, url: str) -> QueueDepth:
    """Count the messages of a queue; SQS counts approximately."""
    wanted: Any = [*_WAITING, _IN_FLIGHT]
    found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=wanted)["Attributes"]
    counts: dict[str, int] = {attribute: int(value) for attribute, value in found.items()}
    return QueueDepth(name=name, waiting=sum(counts[each] for each in _WAITING), in_flight=counts[_IN_FLIGHT])


def read_alarms(cloudwatch: "BaseClient", prefix: str) -> list[Mapping[str, Any]]:
    """Return the alarms of a deployment, given the prefix of its stacks."""
    pages = cloudwatch.get_paginator("describe_alarms").paginate(AlarmNamePrefix=prefix)
    # CloudFormation names an alarm STACK-ID-SUFFIX; another deployment's prefix may begin with this one.
    stacks = tuple(f"{prefix}{stack}-" for stack in STACKS)
    return [alarm for page in pages for alarm in page["MetricAlarms"] if alarm["AlarmName"].startswith(stacks)]
