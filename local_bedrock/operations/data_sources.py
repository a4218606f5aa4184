"""CreateDataSource, GetDataSource, ListDataSources, UpdateDataSource, DeleteDataSource."""

from dataclasses import replace
from typing import Final

from local_bedrock.faults import Conflict, InvalidRequest
from local_bedrock.operations.chunking_configuration import check_chunking
from local_bedrock.operations.context import (
    Answer,
    Context,
    Request,
    active_knowledge_base,
    available_data_source,
)
from local_bedrock.operations.paging import DEFAULT_PAGE, Listing
from local_bedrock.store import jobs, resources
from local_bedrock.store.database import Change
from local_bedrock.store.resources import DataSource
from local_bedrock.store.tokens import once

_TYPES: Final = ("S3", "CUSTOM")
_NOT_IMITATED: Final = ("customTransformationConfiguration", "parsingConfiguration", "contextEnrichmentConfiguration")


def create(context: Context, request: Request) -> Answer:
    """Create a data source; it is AVAILABLE at once."""
    _check(request)
    with context.database.write() as change:
        return once(
            change,
            "CreateDataSource",
            request["knowledgeBaseId"],
            request,
            context.clock(),
            lambda: _create(context, change, request),
        )


def get(context: Context, request: Request) -> Answer:
    """Describe one."""
    with context.database.read() as view:
        found = resources.find_data_source(view.connection, request["knowledgeBaseId"], request["dataSourceId"])
    return {"dataSource": _described(found)}


def list_(context: Context, request: Request) -> Answer:
    """List those of a knowledge base by id."""
    listing = Listing("ListDataSources", request)
    after = listing.position("")
    size = request.get("maxResults", DEFAULT_PAGE)
    with context.database.read() as view:
        resources.find_knowledge_base(view.connection, request["knowledgeBaseId"])
        found = resources.data_sources(
            view.connection,
            request["knowledgeBaseId"],
            after=after,
            limit=size + 1,
        )
    summaries = [
        {
            "knowledgeBaseId": source.knowledge_base_id,
            "dataSourceId": source.id,
            "name": source.name,
            "status": source.status,
            "description": source.request.get("description"),
            "updatedAt": source.updated_at,
        }
        for source in found[:size]
    ]
    more = listing.token(found[size - 1].id) if len(found) > size else None
    return {"dataSourceSummaries": summaries, "nextToken": more}


def update(context: Context, request: Request) -> Answer:
    """Change a data source; every field is overwritten, and one that is left out is gone."""
    _check(request)
    with context.database.write() as change:
        source = available_data_source(change.connection, request)
        _check_not_changed(source, request)
        if jobs.running(change.connection, source.knowledge_base_id, source.id):
            raise Conflict(f"Data source {source.id} has an ongoing ingestion job: wait for its end")
        named = resources.data_source_named(change.connection, source.knowledge_base_id, request["name"])
        if named not in (None, source.id):
            raise Conflict(f"DataSource with name {request['name']} already exists.")
        source = replace(source, name=request["name"], request=dict(request), updated_at=context.clock())
        resources.update_data_source(change, source)
    return {"dataSource": _described(source)}


def delete(context: Context, request: Request) -> Answer:
    """Delete one, in the background, with its documents unless its dataDeletionPolicy is RETAIN."""
    with context.database.write() as change:
        source = resources.find_data_source(change.connection, request["knowledgeBaseId"], request["dataSourceId"])
        if jobs.running(change.connection, source.knowledge_base_id, source.id):
            raise Conflict(f"Data source {source.id} has an ongoing ingestion job: wait for its end")
        seconds = context.options.pace.deletion_seconds
        resources.mark_deleting(change, "data_source", source.id, context.clock(), seconds)
    context.ingestion.wake()
    return {
        "knowledgeBaseId": source.knowledge_base_id,
        "dataSourceId": source.id,
        "status": resources.DELETING,
    }


def _check(request: Request) -> None:
    configuration = request["dataSourceConfiguration"]
    kind = configuration["type"]
    if kind not in _TYPES:
        raise InvalidRequest(f"The local Bedrock has data sources of type {' and '.join(_TYPES)}, not {kind}")
    if kind == "S3" and "s3Configuration" not in configuration:
        raise InvalidRequest("A data source of type S3 needs an s3Configuration")
    others = set(configuration) - {"type", "s3Configuration" if kind == "S3" else "type"}
    if others:
        raise InvalidRequest(f"A data source of type {kind} cannot have {sorted(others)}")
    ingestion = request.get("vectorIngestionConfiguration", {})
    for name in _NOT_IMITATED:
        if name in ingestion:
            raise InvalidRequest(f"The local Bedrock has no {name}: leave it out")
    check_chunking(ingestion.get("chunkingConfiguration"))


def _check_not_changed(source: DataSource, request: Request) -> None:
    if request["dataSourceConfiguration"]["type"] != source.type:
        raise InvalidRequest(f"The type of a data source cannot be changed: it is {source.type}")
    before, after = (_chunking(given) for given in (source.request, request))
    if before != after:
        raise InvalidRequest(
            "The chunkingConfiguration of a data source cannot be changed: send it as GetDataSource returns it,"
            " or create another data source"
        )


def _chunking(request: Request) -> Request | None:
    found: Request | None = request.get("vectorIngestionConfiguration", {}).get("chunkingConfiguration")
    return found


def _create(context: Context, change: Change, request: Request) -> Answer:
    base = active_knowledge_base(change.connection, request["knowledgeBaseId"])
    if resources.data_source_named(change.connection, base.id, request["name"]):
        raise Conflict(f"DataSource with name {request['name']} already exists.")
    now = context.clock()
    source = DataSource(
        id=context.make_id(),
        knowledge_base_id=base.id,
        name=request["name"],
        status=resources.AVAILABLE,
        request={name: value for name, value in request.items() if name != "clientToken"},
        created_at=now,
        updated_at=now,
    )
    resources.add_data_source(change, source)
    return {"dataSource": _described(source)}


def _described(source: DataSource) -> Answer:
    return {
        "knowledgeBaseId": source.knowledge_base_id,
        "dataSourceId": source.id,
        "name": source.name,
        "status": source.status,
        "description": source.request.get("description"),
        "dataSourceConfiguration": source.request["dataSourceConfiguration"],
        "serverSideEncryptionConfiguration": source.request.get("serverSideEncryptionConfiguration"),
        "vectorIngestionConfiguration": source.request.get("vectorIngestionConfiguration"),
        "dataDeletionPolicy": source.request.get("dataDeletionPolicy", "DELETE"),
        "createdAt": source.created_at,
        "updatedAt": source.updated_at,
    }
