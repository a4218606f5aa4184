"""A full synchronisation: Bedrock compares the whole bucket with its index. In steps between which nobody waits.

Direct ingestion and an ingestion job refuse each other, so the gate is closed first; what was accepted before is
awaited; then the job is started and followed; and the gate is opened however it ended.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from ragstack_common.ingestion.bedrock_agent import is_retryable, start_ingestion_with_retry
from ragstack_common.reconciliation.settings import ReconcileSettings
from ragstack_common.registry.documents import DocumentRegistry
from ragstack_common.registry.gate import Gate
from ragstack_common.registry.job_records import Job
from ragstack_common.registry.listing import MAX_LIMIT, Listing
from ragstack_common.registry.records import DocumentRecord, Status
from ragstack_common.telemetry import LOGGER

if TYPE_CHECKING:
    from mypy_boto3_bedrock_agent import AgentsforBedrockClient
    from mypy_boto3_dynamodb import DynamoDBClient

GATE_SECONDS: Final = 3600.0
"""So long the gate stays closed without a step: longer than a message stays away whose function died."""

REPORT: Final = "synchronisation"
"""Under this name the job's report says how Bedrock's job ended."""

START_RETRIES: Final = 2
START_BASE_SECONDS: Final = 1.0

_WORKED_ON: Final = (Status.SUBMITTING, Status.INDEXING, Status.DELETING)
_ENDED: Final = frozenset({"COMPLETE", "FAILED", "STOPPED"})
_REASONS: Final = 20
_REASON_CHARACTERS: Final = 1000


@dataclass(frozen=True)
class Step:
    """What a step came to.

    Attributes:
        job: As it is after the step; once Bedrock's job ended, its report says how.
        failure: Why Bedrock's job was never started; the whole of it has failed then.
    """

    job: Job
    failure: str | None = None


@dataclass(frozen=True)
class Synchronisation:
    """Brings a full synchronisation one step further.

    Attributes:
        settings: Whose knowledge base and registry.
        agent: A client of bedrock-agent.
        dynamodb: A client of DynamoDB.
        gate: Kept closed from the first step on.
        clock: Seconds since 1970.
        sleep: Waits that many seconds.
    """

    settings: ReconcileSettings
    agent: "AgentsforBedrockClient"
    dynamodb: "DynamoDBClient"
    gate: Gate
    clock: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep

    def go_on(self, job: Job) -> Step:
        """Take the next step.

        Raises:
            ClientError, BotoCoreError, RegistryError: The registry's table did not answer.
        """
        if not self.gate.close(job.id, self.clock() + GATE_SECONDS):
            return self._wait(job, "Another synchronisation keeps the gate closed")
        return self._start(job) if job.ingestion_job_id is None else self._follow(job, job.ingestion_job_id)

    def _start(self, job: Job) -> Step:
        if job.step == 0:
            # Who found the gate open a moment ago may be about to claim documents.
            return self._wait(job, "The gate was closed")
        if (document := self._worked_on()) is not None:
            return self._wait(job, f"The knowledge base works on documents, such as {document}")
        try:
            started = start_ingestion_with_retry(
                self.settings.knowledge_base_id,
                self.settings.data_source_id,
                START_RETRIES,
                START_BASE_SECONDS,
                self.agent,
                # The same for each attempt at this step: a function that died after the call starts no second job.
                client_token=f"synchronisation-{job.id}",
                sleep=self.sleep,
            )
        except (ClientError, BotoCoreError) as error:
            reason = _in_one_line(error)
            return self._wait(job, reason) if is_retryable(error) else Step(job, failure=reason)
        LOGGER.info("job %s started ingestion job %s", job.id, started["ingestionJobId"])
        return Step(replace(job, ingestion_job_id=started["ingestionJobId"], reason=None))

    def _wait(self, job: Job, reason: str) -> Step:
        """Come back later, unless it has taken too long."""
        if self.clock() - (job.started_at or job.created_at) > self.settings.wait_seconds:
            return Step(job, failure=f"It did not get its turn in {self.settings.wait_seconds / 60:.0f} min: {reason}")
        return Step(replace(job, reason=reason))

    def _worked_on(self) -> str | None:
        """Name a document that the knowledge base is working on, or about to be told of; None where there is none."""
        listing = Listing(self.dynamodb, self.settings.registry_table)
        registry = DocumentRegistry(self.settings.registry_table, self.dynamodb, sleep=self.sleep)
        for status in _WORKED_ON:
            token = None
            while True:
                page = listing.page(status=status, limit=MAX_LIMIT, token=token)
                # Whoever claimed a document and died is not waited for: only a look takes it over, behind the gate.
                for record in registry.read_each(document.uri for document in page.documents).values():
                    # Nor is one whose record cannot be read: Bedrock itself refuses while it works on documents.
                    if isinstance(record, DocumentRecord) and (record.is_followed or record.is_claimed(self.clock())):
                        return record.uri
                if (token := page.next_token) is None:
                    break
        return None

    def _follow(self, job: Job, ingestion_job_id: str) -> Step:
        try:
            found = self.agent.get_ingestion_job(
                knowledgeBaseId=self.settings.knowledge_base_id,
                dataSourceId=self.settings.data_source_id,
                ingestionJobId=ingestion_job_id,
            )["ingestionJob"]
        except (ClientError, BotoCoreError) as error:
            reason = _in_one_line(error)
            if is_retryable(error) and self._has_time(job):
                return Step(replace(job, reason=reason))
            return self._ended(job, {"status": "UNKNOWN", "failure": f"Bedrock's job cannot be followed: {reason}"})
        status = found["status"]
        told = {"status": status, **_told(found)}
        if status in _ENDED:
            return self._ended(job, told if status == "COMPLETE" else {**told, "failure": f"Bedrock's job is {status}"})
        if self._has_time(job):
            return Step(replace(job, reason=f"Bedrock's job is {status}"))
        hours = self.settings.follow_seconds / 3600
        return self._ended(job, {**told, "failure": f"Bedrock's job is still {status} after {hours:.0f} hours"})

    def _has_time(self, job: Job) -> bool:
        limit = self.settings.wait_seconds + self.settings.follow_seconds
        return self.clock() - (job.started_at or job.created_at) <= limit

    def _ended(self, job: Job, told: Mapping[str, Any]) -> Step:
        self.gate.open(job.id)
        return Step(replace(job, reason=None, report={**job.report, REPORT: dict(told)}))


def _told(found: Mapping[str, Any]) -> dict[str, Any]:
    reasons = [str(reason)[:_REASON_CHARACTERS] for reason in found.get("failureReasons", [])]
    return {
        "statistics": dict(found.get("statistics", {})),
        "failure_reasons": reasons[:_REASONS],
        "failure_reasons_in_all": len(reasons),
    }


def _in_one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:_REASON_CHARACTERS]
