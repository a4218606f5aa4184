"""StartIngestionJob, GetIngestionJob, ListIngestionJobs."""

from typing import Final

from ragstack_local.bedrock.faults import Conflict, InvalidRequest
from ragstack_local.bedrock.operations.context import Answer, Context, Request, available_data_source
from ragstack_local.bedrock.operations.paging import DEFAULT_PAGE, read_token, write_token
from ragstack_local.bedrock.store import jobs, resources
from ragstack_local.bedrock.store.database import Change
from ragstack_local.bedrock.store.jobs import Job
from ragstack_local.bedrock.store.resources import DataSource
from ragstack_local.bedrock.store.tokens import once

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
    return {"ingestionJob": {**_summary(job), "failureReasons": list(job.failures)}}


def list_(context: Context, request: Request) -> Answer:
    """List those of a data source, the newest first unless asked otherwise."""
    position = read_token(request.get("nextToken"), offset=int)
    offset = max(0, position["offset"]) if position else 0
    size = request.get("maxResults", DEFAULT_PAGE)
    with context.database.read() as view:
        source = resources.find_data_source(view.connection, request["knowledgeBaseId"], request["dataSourceId"])
        found = jobs.of_data_source(view.connection, source.id)
    for condition in request.get("filters", ()):
        found = [job for job in found if job.status in condition["values"]]
    order = request.get("sortBy", {"attribute": "STARTED_AT", "order": "DESCENDING"})
    found.sort(key=_SORTED_BY[order["attribute"]], reverse=order["order"] == "DESCENDING")
    more = write_token({"offset": offset + size}) if len(found) > offset + size else None
    return {"ingestionJobSummaries": [_summary(job) for job in found[offset : offset + size]], "nextToken": more}


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
