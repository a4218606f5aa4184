"""Ingestion jobs in the tables."""

from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import apsw

from local_bedrock.http.errors import NotFound
from local_bedrock.store.database import Transaction, insert, select

RUNNING: Final = ("STARTING", "IN_PROGRESS", "STOPPING")
MAX_FAILURES: Final = 1000

STATISTICS: Final = (
    "numberOfDocumentsScanned",
    "numberOfMetadataDocumentsScanned",
    "numberOfNewDocumentsIndexed",
    "numberOfModifiedDocumentsIndexed",
    "numberOfMetadataDocumentsModified",
    "numberOfDocumentsDeleted",
    "numberOfDocumentsFailed",
    "numberOfDocumentsSkipped",
)
"""Source: bedrock-agent, shape IngestionJobStatistics."""


class Failure(NamedTuple):
    """The reason of a failed document with its S3 URI, or of the job itself without a name."""

    reason: str
    name: str | None = None


@dataclass(frozen=True)
class Job:
    """One ingestion job; times are seconds since 1970."""

    id: str
    knowledge_base_id: str
    data_source_id: str
    description: str | None
    status: str
    started_at: float
    updated_at: float
    statistics: dict[str, int] = field(default_factory=lambda: dict.fromkeys(STATISTICS, 0))
    failures: tuple[Failure, ...] = ()

    def counted(self, name: str, by: int = 1) -> "Job":
        """Return the job with a higher count."""
        return replace(self, statistics={**self.statistics, name: self.statistics[name] + by})

    def failed(self, failure: Failure) -> "Job":
        """Return the job with one more failed document."""
        return self.counted("numberOfDocumentsFailed").noted(failure)

    def noted(self, failure: Failure) -> "Job":
        """Return the job with a reason, unless it has it already."""
        if failure in self.failures or len(self.failures) == MAX_FAILURES:
            return self
        return replace(self, failures=(*self.failures, failure))


def save(change: Transaction, job: Job) -> None:
    """Insert or update."""
    insert(change, "ingestion_job", vars(job), replace=True)


def find(connection: apsw.Connection, data_source_id: str, job_id: str) -> Job:
    """Return a job.

    Raises:
        NotFound: The data source has no job with this id.
    """
    jobs = _select(connection, "data_source_id = ? AND id = ?", data_source_id, job_id)
    if not jobs:
        raise NotFound(f"IngestionJob with id {job_id} in data source {data_source_id} does not exist")
    return jobs[0]


def list_jobs(connection: apsw.Connection, data_source_id: str) -> list[Job]:
    """List all jobs of a data source."""
    return _select(connection, "data_source_id = ?", data_source_id)


def running(
    connection: apsw.Connection, knowledge_base_id: str | None = None, data_source_id: str | None = None
) -> list[Job]:
    """List the running jobs of one knowledge base, of one data source, or of all."""
    return _select(
        connection,
        f"status IN ({', '.join('?' * len(RUNNING))}) AND knowledge_base_id = coalesce(?, knowledge_base_id)"
        " AND data_source_id = coalesce(?, data_source_id)",
        *RUNNING,
        knowledge_base_id,
        data_source_id,
    )


def unfinished_documents(connection: apsw.Connection, job_id: str) -> int:
    """Count the documents of a job that are still being processed."""
    return int(connection.execute("SELECT count(*) FROM submission WHERE job_id = ?", (job_id,)).get)


def _select(connection: apsw.Connection, condition: str, *parameters: Any) -> list[Job]:
    found = select(connection, Job, f"ingestion_job WHERE {condition} ORDER BY started_at, id", *parameters)
    return [replace(job, failures=tuple(Failure(*entry) for entry in job.failures)) for job in found]
