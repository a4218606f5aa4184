"""The state of a deployment at a glance, for operators: documents, queues, alarms, jobs and throughput."""

import time
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
from ragstack_common.registry.hours import HOUR_SECONDS, Hour, read_hours
from ragstack_common.registry.jobs import RECONCILE, JobStore
from ragstack_common.registry.records import Status
from ragstack_common.services.jobs import JobAnswer, to_answer
from ragstack_common.services.word_search import WordSearch, WordSearchSource

if TYPE_CHECKING:
    from botocore.client import BaseClient
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_sqs import SQSClient

HOURS: Final = 24

DEAD_LETTERS: Final = "dead letters"

WITHOUT_CLOUDWATCH: Final = "The alarms could not be read from CloudWatch"
WITHOUT_ALARMS: Final = "This deployment has no alarms, or does not know its own name"

AGE_SECONDS: Final = 600
"""How far back the age of the oldest message is looked for: SQS reports it every minute, and later for a queue that was
not used."""

_WAITING: Final = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesDelayed")
_IN_FLIGHT: Final = "ApproximateNumberOfMessagesNotVisible"


class QueueDepth(BaseModel, defer_build=True):
    """The messages of a queue, as SQS counts them, approximately."""

    name: str
    waiting: int = Field(description="Messages that wait, also for a delay")
    in_flight: int = Field(description="Messages that a function works on")
    oldest_seconds: float | None = Field(
        default=None, description="Age of the oldest message; null if none waits, or CloudWatch does not know it"
    )


class AlarmState(BaseModel, defer_build=True):
    """An alarm and its state."""

    name: str
    state: Literal["OK", "ALARM", "INSUFFICIENT_DATA"]
    reason: str = Field(description="For an alarm that fires, what to do")
    since: Time


class HourlyThroughput(BaseModel, defer_build=True):
    """Documents that reached a final state in an hour."""

    hour: Time = Field(description="Its beginning")
    indexed: int
    failed: int


class StatusReport(BaseModel, defer_build=True):
    """The state of a deployment."""

    documents: dict[str, int] = Field(
        description="Number of documents by status; deleted documents, and statuses without any, are left out"
    )
    queues: list[QueueDepth]
    dead_letters: int
    alarms: list[AlarmState] | None = Field(description="Firing ones first; null if they are unknown, and a note why")
    last_reconciliation: JobAnswer | None
    throughput: list[HourlyThroughput] = Field(
        description=f"The last {HOURS} hours, oldest first. A document counts each time that it is indexed or fails"
    )
    word_search: WordSearch | None = Field(
        default=None, description="How the knowledge base is searched; null if the deployment has none"
    )
    notes: list[str] = Field(description="What is missing, and why")


@dataclass(frozen=True)
class DeploymentStatus:
    """Looks at a deployment.

    A report takes about a dozen calls and a few read units, however many documents there are.

    The *prefix* of the stacks' names is None if it is unknown; queue URLs are by name.
    """

    dynamodb: "DynamoDBClient"
    table: str
    sqs: "SQSClient"
    queue_urls: dict[str, str]
    cloudwatch: "BaseClient"
    prefix: str | None
    word_search: WordSearchSource = lambda: None
    clock: Callable[[], float] = time.time

    def report(self) -> StatusReport:
        """Return the state now.

        Raises:
            RegistryError: The registry could not be read.
            ServiceUnavailableError: A queue could not be read.
        """
        notes: list[str] = []
        with reaching_the_registry():
            documents, throughput = self._documents(), self._throughput()
            job = self._last_reconciliation()
        with failing_as(ServiceUnavailableError, "The queues could not be read"):
            queues = [read_depth(self.sqs, name, url) for name, url in self.queue_urls.items()]
        self._add_ages(queues)
        dead = sum(each.waiting + each.in_flight for each in queues if each.name == DEAD_LETTERS)
        return StatusReport(
            documents=documents,
            queues=queues,
            dead_letters=dead,
            alarms=self._alarms(notes),
            last_reconciliation=job,
            throughput=throughput,
            word_search=self.word_search(),
            notes=notes,
        )

    def _add_ages(self, queues: Sequence[QueueDepth]) -> None:
        # Each metric costs as much as the list of alarms, so only those of queues in which something waits are read.
        waiting = [each for each in queues if each.waiting]
        if not waiting:
            return
        try:
            ages = read_ages(self.cloudwatch, [self.queue_urls[each.name] for each in waiting], self.clock())
        except (ClientError, BotoCoreError) as error:
            LOGGER.warning("The ages of messages could not be read from CloudWatch: %s", error)
            return
        for queue, age in zip(waiting, ages, strict=True):
            queue.oldest_seconds = age

    def _documents(self) -> dict[str, int]:
        counts = Catalogue(self.dynamodb, self.table).statuses()
        return {str(status): counts[status] for status in Status if status in counts}

    def _throughput(self) -> list[HourlyThroughput]:
        first = (int(self.clock()) // HOUR_SECONDS - HOURS + 1) * HOUR_SECONDS
        found = read_hours(self.dynamodb, self.table, first)
        starts = range(first, first + HOURS * HOUR_SECONDS, HOUR_SECONDS)
        return [HourlyThroughput(hour=iso(start), **found.get(start, Hour())._asdict()) for start in starts]

    def _last_reconciliation(self) -> JobAnswer | None:
        job = JobStore(self.table, self.dynamodb).last(RECONCILE)
        return None if job is None else to_answer(job)

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


def read_ages(cloudwatch: Any, queue_urls: Sequence[str], now: float) -> list[float | None]:
    """Return the age in seconds of the oldest message of each queue, as SQS last reported it; None if it did not."""
    queries = [
        {
            "Id": f"queue{number}",
            "MetricStat": {
                "Metric": {
                    "Namespace": "AWS/SQS",
                    "MetricName": "ApproximateAgeOfOldestMessage",
                    "Dimensions": [{"Name": "QueueName", "Value": url.rpartition("/")[2]}],
                },
                "Period": 60,
                "Stat": "Maximum",
            },
        }
        for number, url in enumerate(queue_urls)
    ]
    answer = cloudwatch.get_metric_data(
        MetricDataQueries=queries, StartTime=now - AGE_SECONDS, EndTime=now, ScanBy="TimestampDescending"
    )
    values = {each["Id"]: each["Values"] for each in answer["MetricDataResults"]}
    return [next(iter(values.get(query["Id"], ())), None) for query in queries]
