"""Ingestion jobs as a program asks for them and is answered about them, as JSON."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from ragstack_common.api.documents.models import Time
from ragstack_common.registry.job_records import JobKind, JobStatus


class JobRequest(BaseModel):
    """A job that is to be done. A name that is not listed here is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: JobKind = Field(
        default="reconcile",
        description="reconcile compares bucket, registry and knowledge base, and repairs what differs; full has the "
        "knowledge base read the whole bucket",
    )


class JobAnswer(BaseModel):
    """A job, and how far it has come."""

    id: str
    kind: JobKind
    status: JobStatus = Field(description="INCOMPLETE: what is reported is true, and not everything was compared")
    by: str = Field(description="Who asked for it")
    created_at: Time
    started_at: Time | None
    finished_at: Time | None
    reason: str | None
    report: dict[str, Any] = Field(description="What was found and done")
    ingestion_job_id: str | None = Field(description="Bedrock's own job, of a full one")


class JobList(BaseModel):
    """A page of jobs, the newest first."""

    jobs: list[JobAnswer]
    next_token: str | None = Field(description="Asks for those before; null at the end")
    unreadable: list[str] = Field(
        default=[], description="What is wrong with items of this page that cannot be read, and what to do"
    )
