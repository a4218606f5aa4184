"""Direct ingestion of documents, and ingestion jobs."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import apsw

from local_bedrock.http.errors import Conflict, InvalidRequest
from local_bedrock.operations.context import (
    Answer,
    Context,
    Request,
    available_data_source,
    new_id,
    requested_data_source,
    required_member,
)
from local_bedrock.operations.paging import DEFAULT_PAGE, Listing
from local_bedrock.reading import access_control, metadata
from local_bedrock.store import documents, jobs, submissions
from local_bedrock.store.database import Transaction
from local_bedrock.store.documents import Document, DocumentKey
from local_bedrock.store.jobs import Failure, Job
from local_bedrock.store.resources import DataSource, once
from ragstack_common.core.errors import InvalidDocumentError
from ragstack_common.reading import formats

MAX_PAYLOAD_BYTES: Final = 6 * 1024**2
"""Inline content in one request. Source: quotas of Amazon Bedrock Knowledge Bases."""


@dataclass(frozen=True)
class _Submitted:
    name: str
    request: dict[str, Any]
    content: bytes | None


def ingest_documents(context: Context, request: Request) -> Answer:
    """Accept documents, which are ingested in the background."""
    with context.database.write() as change:
        source = available_data_source(change.connection, request)
        _check_takes_documents(source)
        submitted = [_submitted(source, document) for document in request["documents"]]
        _check_different([document.name for document in submitted])
        _check_payload(submitted)
        ingest = partial(_ingest, context, change, source, submitted)
        answer = once(change, "IngestKnowledgeBaseDocuments", source.id, request, context.clock(), ingest)
    context.ingestion.wake()
    return answer


def get_documents(context: Context, request: Request) -> Answer:
    """Describe documents, in the order of the request; unknown ones are NOT_FOUND."""
    with context.database.read() as view:
        source = requested_data_source(view.connection, request)
        names = [_named(source, identifier) for identifier in request["documentIdentifiers"]]
        details = [_detail(view.connection, source, name) for name in names]
        return {"documentDetails": [_with_obstacle(context, detail) for detail in details]}


def list_documents(context: Context, request: Request) -> Answer:
    """List documents in the order of their first submission."""
    with context.database.read() as view:
        source = requested_data_source(view.connection, request)
        fetch = partial(documents.page, view.connection, source.id)
        found, more = Listing("ListKnowledgeBaseDocuments", request).page(0, "id", fetch)
    details = [_with_obstacle(context, _described_document(document)) for document in found]
    return {"documentDetails": details, "nextToken": more}


def delete_documents(context: Context, request: Request) -> Answer:
    """Accept deletions; unknown documents are NOT_FOUND."""
    with context.database.write() as change:
        source = available_data_source(change.connection, request)
        _check_takes_documents(source)
        names = [_named(source, identifier) for identifier in request["documentIdentifiers"]]
        _check_different(names)
        delete = partial(_delete, context, change, source, names)
        answer = once(change, "DeleteKnowledgeBaseDocuments", source.id, request, context.clock(), delete)
    context.ingestion.wake()
    return answer


def _ingest(context: Context, change: Transaction, source: DataSource, submitted: list[_Submitted]) -> Answer:
    _check_no_job(change, source)
    request_id = new_id()
    for document in submitted:
        submissions.submit(
            change,
            _key(source, document.name),
            submissions.INGEST,
            now=context.clock(),
            request=document.request,
            content=document.content,
            request_id=request_id,
            speed=formats.speed(document.request, len(document.content or b"")),
            seconds=context.options.pace.indexing_seconds,
        )
    return {"documentDetails": [_detail(change.connection, source, document.name) for document in submitted]}


def _delete(context: Context, change: Transaction, source: DataSource, names: list[str]) -> Answer:
    _check_no_job(change, source)
    request_id = new_id()
    for name in names:
        if documents.find(change.connection, source.id, name) is not None:
            submissions.submit(
                change,
                _key(source, name),
                submissions.DELETE,
                now=context.clock(),
                request={"change": "gone"},
                request_id=request_id,
                seconds=context.options.pace.deletion_seconds,
            )
    return {"documentDetails": [_detail(change.connection, source, name) for name in names]}


def _check_takes_documents(source: DataSource) -> None:
    if source.connector is not None and source.type != "CUSTOM":
        raise InvalidRequest(
            f"The connector {source.type} takes no documents directly, as far as AWS documents: use StartIngestionJob,"
            " or a data source with the connector CUSTOM"
        )


def _submitted(source: DataSource, document: Request) -> _Submitted:
    content = document["content"]
    _check_type(source, content["dataSourceType"])
    if source.type == "S3":
        document_in_s3 = required_member(content, "The content of a document of an S3 data source", "s3", "custom")
        uri = document_in_s3["s3Location"]["uri"]
        found = _Submitted(uri, {"uri": uri}, None)
    else:
        found = _custom_document(content)
    uri = found.request.get("uri", "")
    if source.connector is not None and formats.is_read_by_managed(uri):
        found.request["format"] = formats.of_name(uri)
    found.request.update(_metadata(source, document.get("metadata")))
    return found


def _custom_document(content: Request) -> _Submitted:
    custom = required_member(content, "The content of a document of a CUSTOM data source", "custom", "s3")
    name = custom["customDocumentIdentifier"]["id"]
    if custom["sourceType"] == "S3_LOCATION":
        what = "A document of sourceType S3_LOCATION"
        return _Submitted(name, {"uri": required_member(custom, what, "s3Location", "inlineContent")["uri"]}, None)
    inline = required_member(custom, "A document of sourceType IN_LINE", "inlineContent", "s3Location")
    if inline["type"] == "TEXT":
        text = required_member(inline, "inlineContent of type TEXT", "textContent", "byteContent")["data"]
        return _Submitted(name, {"format": "md"}, text.encode())
    content = required_member(inline, "inlineContent of type BYTE", "byteContent", "textContent")
    return _Submitted(name, {"mimeType": content["mimeType"]}, content["data"])


def _metadata(source: DataSource, given: Request | None) -> dict[str, Any]:
    if given is None:
        return {}
    if "accessControlList" in given and not source.has_access_control:
        raise InvalidRequest(
            "The data source has no access control: omit accessControlList, or set aclEnabled in the parameters of the"
            " connector of a managed knowledge base"
        )
    if given["type"] == "S3_LOCATION":
        what, others = "Metadata of type S3_LOCATION", ("inlineAttributes", "accessControlList")
        return {"metadataUri": required_member(given, what, "s3Location", *others)["uri"]}
    if source.type == "S3":
        raise InvalidRequest("A document of an S3 data source takes its metadata from S3: use the type S3_LOCATION")
    acl = {}
    if "accessControlList" in given:
        acl = {"acl": access_control.parse_inline(given["accessControlList"])}
        given = {"inlineAttributes": [], **given}  # a list needs no attributes
    attributes = required_member(given, "Metadata of type IN_LINE_ATTRIBUTE", "inlineAttributes", "s3Location")
    try:
        metadata.parse_inline(attributes)
    except InvalidDocumentError as error:
        raise InvalidRequest(f"The inline attributes cannot be used: {error}") from None
    return {"attributes": attributes, **acl}


def _named(source: DataSource, identifier: Request) -> str:
    _check_type(source, identifier["dataSourceType"])
    member, name = ("s3", "uri") if source.type == "S3" else ("custom", "id")
    if set(identifier) != {"dataSourceType", member}:
        raise InvalidRequest(f"A document identifier of type {source.type} has the member {member} and no other")
    return str(identifier[member][name])


def _check_type(source: DataSource, given: str) -> None:
    if given != source.type:
        raise InvalidRequest(
            f"The dataSourceType that you specified in {given} doesn't match the type of the data source"
            f" ({source.type}). Check that both types match and retry your request."
        )


def _check_different(names: list[str]) -> None:
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InvalidRequest(f"The document {twice[0]} occurs more than once in the request")


def _check_payload(submitted: list[_Submitted]) -> None:
    size = sum(len(document.content or b"") for document in submitted)
    if size > MAX_PAYLOAD_BYTES:
        raise InvalidRequest(
            f"The documents of the request have {size:,} bytes together; the maximum is {MAX_PAYLOAD_BYTES:,} (6 MB):"
            " send them in several requests, or put them into S3"
        )


def _check_no_job(change: Transaction, source: DataSource) -> None:
    for job in jobs.running(change.connection, source.knowledge_base_id, source.id):
        raise InvalidRequest(
            f"There is an ongoing ingestion job {job.id} on data source {source.id}."
            " Documents cannot be ingested or deleted directly until it ends. Retry your request then."
        )


def _key(source: DataSource, name: str) -> DocumentKey:
    return DocumentKey(source.knowledge_base_id, source.id, source.type, name)


def _detail(connection: apsw.Connection, source: DataSource, name: str) -> Answer:
    found = documents.find(connection, source.id, name)
    if found is not None:
        return _described_document(found)
    return {
        "knowledgeBaseId": source.knowledge_base_id,
        "dataSourceId": source.id,
        "status": "NOT_FOUND",
        "identifier": _identifier(source.type, name),
    }


def _described_document(document: Document) -> Answer:
    return {
        "knowledgeBaseId": document.knowledge_base_id,
        "dataSourceId": document.data_source_id,
        "status": document.status,
        "identifier": _identifier(document.type, document.name),
        "statusReason": document.reason,
        "updatedAt": document.updated_at,
    }


def _with_obstacle(context: Context, detail: Answer) -> Answer:
    """Add the reason why a document that is under way does not proceed, if there is one."""
    obstacle = context.database.obstacle
    return {**detail, "statusReason": obstacle} if obstacle and detail["status"] in submissions.UNDER_WAY else detail


def _identifier(kind: str, name: str) -> Answer:
    if kind == "S3":
        return {"dataSourceType": "S3", "s3": {"uri": name}}
    return {"dataSourceType": "CUSTOM", "custom": {"id": name}}


MAX_REASON_CHARACTERS: Final = 2048
"""Source: bedrock-agent, shape FailureReason."""

_IGNORED: Final = "Ignored {} files: {} [Files: {}]. Call to Customer Source did not succeed."
"""Source: the form of failure reasons that clients of StartIngestionJob parse; the second placeholder is ours."""

_ENDED: Final = ("COMPLETE", "FAILED")
_STOPPED: Final = ("STOPPING", "STOPPED")
_SORTED_BY: Final = {"STATUS": lambda job: (job.status, job.id), "STARTED_AT": lambda job: (job.started_at, job.id)}


def start_job(context: Context, request: Request) -> Answer:
    """Start an ingestion job."""
    started: list[Job] = []
    with context.database.write() as change:
        source = available_data_source(change.connection, request)
        if source.type != "S3":
            raise InvalidRequest("A CUSTOM data source has no bucket to scan: use IngestKnowledgeBaseDocuments")
        start = partial(_start, context, change, source, request, started)
        answer = once(change, "StartIngestionJob", source.id, request, context.clock(), start)
    for job in started:
        context.synchronisation.start(job)
    return answer


def get_job(context: Context, request: Request) -> Answer:
    """Describe an ingestion job."""
    with context.database.read() as view:
        source = requested_data_source(view.connection, request)
        job = jobs.find(view.connection, source.id, request["ingestionJobId"])
    return {"ingestionJob": _described_job(source, job)}


def list_jobs(context: Context, request: Request) -> Answer:
    """List the jobs of a data source, by default newest first."""
    listing = Listing("ListIngestionJobs", request)
    start = listing.position(0)
    end = start + request.get("maxResults", DEFAULT_PAGE)
    with context.database.read() as view:
        source = requested_data_source(view.connection, request)
        found = _chosen(jobs.list_jobs(view.connection, source.id), request)
    more = listing.token(end) if len(found) > end else None
    return {"ingestionJobSummaries": [_summary(source, job) for job in found[start:end]], "nextToken": more}


def _chosen(found: Iterable[Job], request: Request) -> list[Job]:
    for status_filter in request.get("filters", ()):
        found = [job for job in found if job.status in status_filter["values"]]
    order = request.get("sortBy", {"attribute": "STARTED_AT", "order": "DESCENDING"})
    return sorted(found, key=_SORTED_BY[order["attribute"]], reverse=order["order"] == "DESCENDING")


def stop_job(context: Context, request: Request) -> Answer:
    """Stop a job: started documents are finished, and the others keep their earlier state."""
    with context.database.write() as change:
        source = requested_data_source(change.connection, request)
        job = jobs.find(change.connection, source.id, request["ingestionJobId"])
        if job.status in _ENDED:
            raise Conflict(f"The ingestion job {job.id} is {job.status} and cannot be stopped")
        if job.status not in _STOPPED:
            job = replace(job, status="STOPPING", updated_at=context.clock())
            jobs.save(change, job)
            submissions.withdraw(change, job_id=job.id)
    return {"ingestionJob": _described_job(source, job)}


def _start(context: Context, change: Transaction, source: DataSource, request: Request, started: list[Job]) -> Answer:
    # Managed knowledge bases run several jobs at once, one for each data source.
    one_at_a_time = source.id if source.connector is not None else None
    running = jobs.running(change.connection, source.knowledge_base_id, one_at_a_time)
    if running:
        raise Conflict(
            f"There is an ongoing ingestion job {running[0].id} on data source {running[0].data_source_id}."
            " Wait until it ends, then retry your request."
        )
    now = context.clock()
    job = Job(
        id=new_id(),
        knowledge_base_id=source.knowledge_base_id,
        data_source_id=source.id,
        description=request.get("description"),
        status="STARTING",
        started_at=now,
        updated_at=now,
    )
    jobs.save(change, job)
    started.append(job)
    return {"ingestionJob": _summary(source, job)}


def _described_job(source: DataSource, job: Job) -> Answer:
    return {**_summary(source, job), "failureReasons": list(_reasons(job.failures))}


def _reasons(failures: Sequence[Failure]) -> Iterator[str]:
    """Yield the reasons in AWS's form: each is a JSON list of one sentence that names the files."""
    names: dict[str, list[str]] = {}
    for failure in failures:
        if failure.name is None:
            yield _reason(failure.reason)
        else:
            names.setdefault(failure.reason, []).append(failure.name)
    for reason, files in names.items():
        for batch in _batches(files, MAX_REASON_CHARACTERS - len(_reason(_IGNORED.format(len(files), reason, "")))):
            yield _reason(_IGNORED.format(len(batch), reason, ", ".join(batch)))


def _reason(sentence: str) -> str:
    return json.dumps([f"Encountered error: {sentence}"], ensure_ascii=False)[:MAX_REASON_CHARACTERS]


def _batches(files: Sequence[str], characters: int) -> Iterator[list[str]]:
    batch: list[str] = []
    for file in files:
        if batch and sum(map(len, batch)) + 2 * len(batch) + len(file) > characters:
            yield batch
            batch = []
        batch.append(file)
    yield batch


def _summary(source: DataSource, job: Job) -> Answer:
    return {
        "knowledgeBaseId": job.knowledge_base_id,
        "dataSourceId": job.data_source_id,
        "ingestionJobId": job.id,
        "description": job.description,
        "status": job.status,
        "statistics": job.statistics,
        "startedAt": job.started_at,
        "updatedAt": job.updated_at,
        "textReadyAt": job.updated_at if source.connector is not None and job.status == "COMPLETE" else None,
    }
