"""CreateDataSource, GetDataSource, ListDataSources, DeleteDataSource."""

from typing import Final

from ragstack_local.bedrock.chunking import SUPPORTED_STRATEGIES
from ragstack_local.bedrock.faults import Conflict, InvalidRequest
from ragstack_local.bedrock.operations.context import Answer, Context, Request, active_knowledge_base
from ragstack_local.bedrock.operations.paging import DEFAULT_PAGE, read_token, write_token
from ragstack_local.bedrock.store import jobs, resources
from ragstack_local.bedrock.store.database import Change
from ragstack_local.bedrock.store.resources import DataSource
from ragstack_local.bedrock.store.tokens import once

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
    position = read_token(request.get("nextToken"), after=str)
    size = request.get("maxResults", DEFAULT_PAGE)
    with context.database.read() as view:
        resources.find_knowledge_base(view.connection, request["knowledgeBaseId"])
        found = resources.data_sources(
            view.connection,
            request["knowledgeBaseId"],
            after=position["after"] if position else "",
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
    more = write_token({"after": found[size - 1].id}) if len(found) > size else None
    return {"dataSourceSummaries": summaries, "nextToken": more}


def delete(context: Context, request: Request) -> Answer:
    """Delete one, in the background, with its documents unless its dataDeletionPolicy is RETAIN."""
    with context.database.write() as change:
        source = resources.find_data_source(change.connection, request["knowledgeBaseId"], request["dataSourceId"])
        if any(job.data_source_id == source.id for job in jobs.running(change.connection, source.knowledge_base_id)):
            raise Conflict(f"Data source {source.id} has an ongoing ingestion job: wait for its end")
        resources.mark_deleting(change, "data_source", source.id, context.clock())
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
    _check_chunking(ingestion.get("chunkingConfiguration"))


def _check_chunking(chunking: Request | None) -> None:
    if chunking is None:
        return
    strategy = chunking["chunkingStrategy"]
    if strategy not in SUPPORTED_STRATEGIES:
        raise InvalidRequest(
            f"The local Bedrock has the chunking strategies {' and '.join(SUPPORTED_STRATEGIES)}, not yet {strategy}"
        )
    needed = "fixedSizeChunkingConfiguration"
    if strategy == "FIXED_SIZE" and needed not in chunking:
        raise InvalidRequest(f"The chunking strategy FIXED_SIZE needs a {needed}")
    others = set(chunking) - {"chunkingStrategy", needed if strategy == "FIXED_SIZE" else ""}
    if others:
        raise InvalidRequest(f"The chunking strategy {strategy} cannot have {sorted(others)}")


def _create(context: Context, change: Change, request: Request) -> Answer:
    base = active_knowledge_base(change.connection, request["knowledgeBaseId"])
    if resources.data_source_named(change.connection, base.id, request["name"]):
        raise Conflict(f"DataSource with name {request['name']} already exists.")
    now = context.clock()
    source = DataSource(
        id=context.make_id(),
        knowledge_base_id=base.id,
        name=request["name"],
        status="AVAILABLE",
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
