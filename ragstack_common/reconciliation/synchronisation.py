"""A full synchronisation, in steps: Bedrock compares the whole bucket with its index. No function waits between steps.

Direct ingestion and an ingestion job conflict. So the gate is closed first; the operations that were accepted before
end; then the job is started and followed; and the gate is opened, however the job ended.

If tenants have knowledge bases of their own, their data sources are synchronised one after the other. The shared one is
not: its data source reads the whole bucket, and would index the documents of every tenant.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from ragstack_common.access.policy import AccessPolicy
from ragstack_common.access.tenants import KnowledgeBaseIds, KnowledgeBases
from ragstack_common.core.telemetry import LOGGER
from ragstack_common.ingestion.bedrock_agent import in_one_line, is_retryable, start_ingestion_with_retry
from ragstack_common.registry.coordination import Gate
from ragstack_common.registry.documents import MAX_LIMIT, DocumentRegistry, Listing
from ragstack_common.registry.jobs import Job
from ragstack_common.registry.records import WORKED_ON
from ragstack_common.settings.ingestion import ReconcileSettings

if TYPE_CHECKING:
    from mypy_boto3_bedrock_agent import AgentsforBedrockClient

GATE_SECONDS: Final = 3600.0
"""Time that the gate stays closed without a step: the message of a function that died is redelivered earlier."""

REPORT: Final = "synchronisation"
"""Key in the job's report that describes how Bedrock's job ended."""

SO_FAR: Final = "synchronised"
"""Key in the job's report that describes the data sources that are done while others are not."""

WITHOUT_SHARED: Final = (
    "The shared data source was left out, because it reads the documents of tenants too: the reconciliation compares"
    " its documents one by one"
)

_REASONS: Final = 20


class NotStartedError(Exception):
    """Bedrock's job was never started, so that the synchronisation has failed."""


@dataclass(frozen=True)
class Synchronisation:
    """Takes the steps of a full synchronisation. The gate is kept closed from the first step on."""

    settings: ReconcileSettings
    agent: "AgentsforBedrockClient"
    registry: DocumentRegistry
    gate: Gate
    policy: AccessPolicy | None = None
    clock: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep

    def take_step(self, job: Job) -> Job:
        """Take the next step. Once Bedrock's job has ended, the report of the returned job describes how.

        Raises:
            NotStartedError: Bedrock's job cannot be started, or not in time.
            ClientError, BotoCoreError, RegistryError: The registry's table did not answer.
        """
        if not self.gate.close(job.id, self.clock() + GATE_SECONDS):
            return self._wait(job, "Another synchronisation keeps the gate closed")
        return self._start(job) if job.ingestion_job_id is None else self._follow(job, job.ingestion_job_id)

    def _start(self, job: Job) -> Job:
        if job.step == 0:
            # A function that found the gate open a moment ago may be about to claim documents.
            return self._wait(job, "The gate was closed")
        if (document := self._worked_on()) is not None:
            return self._wait(job, f"The knowledge base is working on documents, such as {document}")
        place = self._place(job)
        own = "" if place == self._knowledge_bases.shared else f"-{place.id}"
        try:
            started = start_ingestion_with_retry(
                *place,
                2,  # retries
                1.0,  # seconds before the first of them
                self.agent,
                # The same for each attempt, so that a function that died after the call does not start a second job.
                client_token=f"synchronisation-{job.id}{own}",
                sleep=self.sleep,
            )
        except (ClientError, BotoCoreError) as error:
            if not is_retryable(error):
                raise NotStartedError(in_one_line(error)) from error
            return self._wait(job, in_one_line(error))
        LOGGER.info("job %s started ingestion job %s", job.id, started["ingestionJobId"])
        return replace(job, ingestion_job_id=started["ingestionJobId"], reason=None)

    def _wait(self, job: Job, reason: str) -> Job:
        """Try again in the next step, unless it has taken too long."""
        limit = self.settings.wait_seconds + len(_done(job)) * self._seconds_each
        if self.clock() - (job.started_at or job.created_at) > limit:
            minutes = self.settings.wait_seconds / 60
            raise NotStartedError(f"It could not start within {minutes:.0f} min: {reason}")
        return replace(job, reason=reason)

    def _worked_on(self) -> str | None:
        """Return a document that has an operation in progress; None without one.

        An abandoned claim does not count: only a check takes it over, and that waits behind the gate.
        """
        for status in WORKED_ON:
            token = None
            while True:
                page = self.registry.page(Listing(status), limit=MAX_LIMIT, token=token)
                for record in self.registry.read(document.uri for document in page.documents).values():
                    if record.is_followed or record.is_claimed(self.clock()):
                        return record.uri
                if (token := page.next_token) is None:
                    break
        return None

    def _follow(self, job: Job, ingestion_job_id: str) -> Job:
        place = self._place(job)
        try:
            found = self.agent.get_ingestion_job(
                knowledgeBaseId=place.id, dataSourceId=place.data_source_id, ingestionJobId=ingestion_job_id
            )["ingestionJob"]
        except (ClientError, BotoCoreError) as error:
            reason = in_one_line(error)
            if is_retryable(error) and self._has_time(job):
                return replace(job, reason=reason)
            return self._ended(job, status="UNKNOWN", failure=f"Bedrock's job cannot be followed: {reason}")
        outcome = _read_outcome(found)
        status = found["status"]
        if status == "COMPLETE":
            return self._ended(job, **outcome)
        if status in ("FAILED", "STOPPED"):
            return self._ended(job, **outcome, failure=f"Bedrock's job is {status}")
        if self._has_time(job):
            return replace(job, reason=f"Bedrock's job is {status}")
        hours = self.settings.follow_seconds / 3600
        return self._ended(job, **outcome, failure=f"Bedrock's job is still {status} after {hours:.0f} hours")

    def _has_time(self, job: Job) -> bool:
        limit = (len(_done(job)) + 1) * self._seconds_each
        return self.clock() - (job.started_at or job.created_at) <= limit

    def _ended(self, job: Job, **outcome: Any) -> Job:
        """Continue with the next data source; after the last one, end."""
        tenants, done = self._knowledge_bases.tenants, _done(job)
        if tenants:
            tenant = next(name for name in tenants if name not in done)
            done = [*done, tenant]
            outcome = {**_joined(job.report.get(SO_FAR, {}), outcome, tenant), "tenants": done}
        if len(done) < len(tenants):
            return replace(job, reason=None, ingestion_job_id=None, report={**job.report, SO_FAR: outcome})
        self.gate.open(job.id)
        left_out = {"left_out": WITHOUT_SHARED} if tenants else {}
        report = {name: part for name, part in job.report.items() if name != SO_FAR}
        return replace(job, reason=None, report={**report, REPORT: {**outcome, **left_out}})

    def _place(self, job: Job) -> KnowledgeBaseIds:
        """Return the knowledge base whose turn it is."""
        done = _done(job)
        return next(
            (place for name, place in self._knowledge_bases.tenants.items() if name not in done),
            self._knowledge_bases.shared,
        )

    @cached_property
    def _knowledge_bases(self) -> KnowledgeBases:
        return KnowledgeBases.of(self.settings, self.policy)

    @property
    def _seconds_each(self) -> float:
        return self.settings.wait_seconds + self.settings.follow_seconds


def _done(job: Job) -> list[str]:
    """Return the tenants whose data sources are synchronised."""
    return list(job.report.get(SO_FAR, {}).get("tenants", []))


def _joined(earlier: Mapping[str, Any], outcome: Mapping[str, Any], tenant: str) -> dict[str, Any]:
    """Add the outcome of one data source to that of the earlier ones: sums, the first reasons, the first failure."""
    counts = Counter(earlier.get("statistics", {}))
    counts.update(outcome.get("statistics", {}))
    joined = {
        "status": outcome["status"] if earlier.get("status", "COMPLETE") == "COMPLETE" else earlier["status"],
        "statistics": dict(counts),
        "failure_reasons": [*earlier.get("failure_reasons", []), *outcome.get("failure_reasons", [])][:_REASONS],
        "failure_reasons_in_all": earlier.get("failure_reasons_in_all", 0) + outcome.get("failure_reasons_in_all", 0),
    }
    if "failure" in earlier:
        return {**joined, "failure": earlier["failure"]}
    return {**joined, "failure": f"{tenant}: {outcome['failure']}"} if "failure" in outcome else joined


def _read_outcome(found: Mapping[str, Any]) -> dict[str, Any]:
    reasons = [str(reason)[:1000] for reason in found.get("failureReasons", [])]
    return {
        "status": found["status"],
        "statistics": dict(found.get("statistics", {})),
        "failure_reasons": reasons[:_REASONS],
        "failure_reasons_in_all": len(reasons),
    }
