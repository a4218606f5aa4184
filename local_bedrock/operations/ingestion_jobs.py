"""StartIngestionJob, GetIngestionJob, ListIngestionJobs, StopIngestionJob."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from local_bedrock.faults import Conflict, InvalidRequest
from local_bedrock.operations.context import Answer, Context, Request, available_data_source
from local_bedrock.operations.paging import DEFAULT_PAGE, Listing
from local_bedrock.store import jobs, resources, submissions
from local_bedrock.store.database import Change
from local_bedrock.store.jobs import Failure, Job
from local_bedrock.store.resources import DataSource
from local_bedrock.store.tokens import once

LONGEST_FAILURE_REASON: Final = 2048
"""Characters. Source: bedrock-agent, shape FailureReason."""

_IGNORED: Final = "Ignored {} files: {} [Files: {}]. Call to Customer Source did not succeed."
"""Source: the form of failure reasons that clients of StartIngestionJob parse; the middle of it is ours."""

_ID_BYTES: Final = 64
"""Memory of one id in a list, rounded up."""

_ENDED: Final = ("COMPLETE", "FAILED")
_STOPPED: Final = ("STOPPING", "STOPPED")
_SORTED_BY: Final = {"STATUS": lambda job: (job.status, job.id), "STARTED_AT": lambda job: (job.started_at, job.id)}


def start(context: Context, request: Request) -> Answer:
    """Begin to compare the bucket with the index."""
    started: list[Job] = []
    with context.database.write() as change:
        source = available_data_source(change.connection, request)
        if source.type != "S3":
            raise InvalidRequest("A CUSTOM data source has nothing to scan: use IngestKnowledgeBaseDocuments")
        answer = once(
            change,
            "StartIngestionJob",
            source.id,
            request,
            context.clock(),
            lambda: _start(context, change, source, request, started),
        )
    for job in started:
        context.synchronisation.start(job)
    return answer


def get(context: Context, request: Request) -> Answer:
    """Describe one."""
    with context.database.read() as view:
        source = resources.find_data_source(view.connection, request["knowledgeBaseId"], request["dataSourceId"])
        job = jobs.find(view.connection, source.id, request["ingestionJobId"])
    return {"ingestionJob": _described(job)}


def list_(context: Context, request: Request) -> Answer:
    """List those of a data source, the newest first unless asked otherwise."""
    listing = Listing("ListIngestionJobs", request)
    continued = context.snapshots.continued(listing)
    size = request.get("maxResults", DEFAULT_PAGE)
    with context.database.read() as view:
        source = resources.find_data_source(view.connection, request["knowledgeBaseId"], request["dataSourceId"])
        found = jobs.of_data_source(view.connection, source.id)
    if continued is None:
        offset, ordered = 0, [job.id for job in _chosen(found, request)]
    else:
        ordered, offset = continued
    end = offset + size
    more = None
    if len(ordered) > end:
        more = context.snapshots.token(listing, ordered, len(ordered) * _ID_BYTES, end)
    jobs_by_id = {job.id: job for job in found}
    return {"ingestionJobSummaries": [_summary(jobs_by_id[id_]) for id_ in ordered[offset:end]], "nextToken": more}


def _chosen(found: Iterable[Job], request: Request) -> list[Job]:
    for condition in request.get("filters", ()):
        found = [job for job in found if job.status in condition["values"]]
    order = request.get("sortBy", {"attribute": "STARTED_AT", "order": "DESCENDING"})
    return sorted(found, key=_SORTED_BY[order["attribute"]], reverse=order["order"] == "DESCENDING")


def stop(context: Context, request: Request) -> Answer:
    """Stop a job: what it indexed stays, what nobody has begun is as it was before, what is begun is finished."""
    with context.database.write() as change:
        source = resources.find_data_source(change.connection, request["knowledgeBaseId"], request["dataSourceId"])
        job = jobs.find(change.connection, source.id, request["ingestionJobId"])
        if job.status in _ENDED:
            raise Conflict(f"The ingestion job {job.id} is {job.status} and cannot be stopped")
        if job.status not in _STOPPED:
            job = replace(job, status="STOPPING", updated_at=context.clock())
            jobs.save(change, job)
            submissions.withdraw(change, job_id=job.id)
    return {"ingestionJob": _described(job)}


def _start(context: Context, change: Change, source: DataSource, request: Request, started: list[Job]) -> Answer:
    running = jobs.running(change.connection, source.knowledge_base_id)
    if running:
        raise Conflict(
            f"There is an ongoing ingestion job {running[0].id} on data source {running[0].data_source_id}."
            " Wait for its end and retry your request."
        )
    now = context.clock()
    job = Job(
        id=context.make_id(),
        knowledge_base_id=source.knowledge_base_id,
        data_source_id=source.id,
        description=request.get("description"),
        status="STARTING",
        started_at=now,
        updated_at=now,
    )
    jobs.save(change, job)
    started.append(job)
    return {"ingestionJob": _summary(job)}


def _described(job: Job) -> Answer:
    return {**_summary(job), "failureReasons": list(_reasons(job.failures))}


def _reasons(failures: Sequence[Failure]) -> Iterator[str]:
    """Yield the reasons as AWS words them: each a JSON list of one sentence that names the files it is true of."""
    names: dict[str, list[str]] = {}
    for failure in failures:
        if failure.name is None:
            yield _reason(failure.reason)
        else:
            names.setdefault(failure.reason, []).append(failure.name)
    for reason, files in names.items():
        for batch in _batches(files, LONGEST_FAILURE_REASON - len(_reason(_IGNORED.format(len(files), reason, "")))):
            yield _reason(_IGNORED.format(len(batch), reason, ", ".join(batch)))


def _reason(sentence: str) -> str:
    return json.dumps([f"Encountered error: {sentence}"], ensure_ascii=False)[:LONGEST_FAILURE_REASON]


def _batches(files: Sequence[str], characters: int) -> Iterator[list[str]]:
    batch: list[str] = []
    for file in files:
        if batch and sum(map(len, batch)) + 2 * len(batch) + len(file) > characters:
            yield batch
            batch = []
        batch.append(file)
    yield batch


def _summary(job: Job) -> Answer:
    return {
        "knowledgeBaseId": job.knowledge_base_id,
        "dataSourceId": job.data_source_id,
        "ingestionJobId": job.id,
        "description": job.description,
        "status": job.status,
        "statistics": job.statistics,
        "startedAt": job.started_at,
        "updatedAt": job.updated_at,
    }
