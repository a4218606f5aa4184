"""Knowledge bases and data sources."""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Final

import apsw

from local_bedrock.http.errors import Conflict, InvalidRequest, NotFound, NoVectorResource, QuotaExceeded
from local_bedrock.operations import managed, vector_buckets
from local_bedrock.operations.context import (
    Answer,
    Context,
    Request,
    active_knowledge_base,
    available_data_source,
    new_id,
    refuse_unsupported,
    requested_data_source,
    required_member,
)
from local_bedrock.operations.paging import Listing
from local_bedrock.store import documents, jobs, resources, vector_indexes
from local_bedrock.store.database import Transaction
from local_bedrock.store.resources import DataSource, StoredKnowledgeBase, once
from local_bedrock.store.vector_indexes import Index
from ragstack_common.core.uris import resource_id
from ragstack_common.settings.names import CONNECTOR_SOURCE, MANAGED

_STORES: Final = {
    "OPENSEARCH_SERVERLESS": "opensearchServerlessConfiguration",
    "S3_VECTORS": "s3VectorsConfiguration",
}


def create_knowledge_base(context: Context, request: Request) -> Answer:
    """Create a knowledge base; it becomes ACTIVE at once, or after the creation time of the pace."""
    request = _checked_knowledge_base(request)
    with context.database.write() as change:
        create = partial(_create_knowledge_base, context, change, request)
        answer = once(change, "CreateKnowledgeBase", "", request, context.clock(), create)
    context.ingestion.wake()
    return answer


def get_knowledge_base(context: Context, request: Request) -> Answer:
    """Describe a knowledge base."""
    with context.database.read() as view:
        found = resources.find_knowledge_base(view.connection, request["knowledgeBaseId"])
    return {"knowledgeBase": _described_base(found)}


def list_knowledge_bases(context: Context, request: Request) -> Answer:
    """List the knowledge bases by id."""
    with context.database.read() as view:
        fetch = partial(resources.knowledge_bases, view.connection)
        found, more = Listing("ListKnowledgeBases", request).page("", "id", fetch)
    return {"knowledgeBaseSummaries": [_summary(_described_base(base)) for base in found], "nextToken": more}


def update_knowledge_base(context: Context, request: Request) -> Answer:
    """Change name, description, role and metadata fields; an omitted description is removed."""
    knowledge_base_id = request["knowledgeBaseId"]
    with context.database.write() as change:
        base = resources.find_knowledge_base(change.connection, knowledge_base_id)
        if base.status != resources.ACTIVE:
            raise Conflict(f"The knowledge base {base.id} is in status {base.status}: wait until it is ACTIVE")
        _check_knowledge_base_unchanged(base, request)
        if resources.knowledge_base_named(change.connection, request["name"]) not in (None, base.id):
            raise Conflict(f"KnowledgeBase with name {request['name']} already exists.")
        kept = {name: value for name, value in base.request.items() if name not in ("name", "description", "roleArn")}
        changed = ("name", "description", "roleArn", "metadataConfigurations")
        given = {name: request[name] for name in changed if name in request}
        base = replace(base, name=request["name"], request={**kept, **given}, updated_at=context.clock())
        resources.update(change, base)
    return {"knowledgeBase": {**_described_base(base), "status": "UPDATING"}}


def delete_knowledge_base(context: Context, request: Request) -> Answer:
    """Delete a knowledge base with its content, in the background."""
    knowledge_base_id = request["knowledgeBaseId"]
    with context.database.write() as change:
        resources.find_knowledge_base(change.connection, knowledge_base_id)
        if jobs.running(change.connection, knowledge_base_id):
            raise Conflict(f"Knowledge base {knowledge_base_id} has an ongoing ingestion job: wait for its end")
        seconds = context.options.pace.deletion_seconds
        resources.mark_deleting(change, "knowledge_base", knowledge_base_id, context.clock(), seconds)
    context.ingestion.wake()
    return {"knowledgeBaseId": knowledge_base_id, "status": resources.DELETING}


def _check_knowledge_base_unchanged(base: StoredKnowledgeBase, request: Request) -> None:
    if base.is_managed and request["knowledgeBaseConfiguration"]["type"] == MANAGED:
        request = {**request, "knowledgeBaseConfiguration": managed.knowledge_base_configuration(request)}
    for name in ("knowledgeBaseConfiguration", "storageConfiguration"):
        if request.get(name) != base.request.get(name):
            raise InvalidRequest(
                f"The {name} of a knowledge base cannot be changed: send it as GetKnowledgeBase returns it"
            )
    if "metadataConfigurations" in request and not base.is_managed:
        raise InvalidRequest("metadataConfigurations are for MANAGED knowledge bases: omit them")
    names = [field["name"] for field in request.get("metadataConfigurations", ())]
    if twice := [name for name in names if names.count(name) > 1]:
        raise InvalidRequest(f"The metadata field {twice[0]} occurs more than once in metadataConfigurations")


def _checked_knowledge_base(request: Request) -> Request:
    """Check a request for a knowledge base, and return it with the defaults of its configuration."""
    _check_tags(request.get("tags", {}))
    configuration = request["knowledgeBaseConfiguration"]
    if configuration["type"] == MANAGED:
        return {**request, "knowledgeBaseConfiguration": managed.knowledge_base_configuration(request)}
    if configuration["type"] != "VECTOR":
        raise InvalidRequest(
            f"The local Bedrock supports knowledge bases of type VECTOR and MANAGED, not {configuration['type']}"
        )
    what = "A knowledge base of type VECTOR"
    member = "vectorKnowledgeBaseConfiguration"
    required_member(configuration, what, member, *sorted(set(configuration) - {"type", member}))
    storage = required_member(request, what, "storageConfiguration")
    if storage["type"] not in _STORES:
        raise InvalidRequest(f"The local Bedrock supports {' and '.join(_STORES)}, not {storage['type']}")
    needed = _STORES[storage["type"]]
    others = sorted(set(storage) - {"type", needed})
    required_member(storage, f"A storageConfiguration of type {storage['type']}", needed, *others)
    return request


def _create_knowledge_base(context: Context, change: Transaction, request: Request) -> Answer:
    if resources.knowledge_base_named(change.connection, request["name"]):
        raise Conflict(f"KnowledgeBase with name {request['name']} already exists.")
    now, seconds = context.clock(), context.options.pace.creation_seconds
    base = StoredKnowledgeBase(
        id=new_id(),
        name=request["name"],
        status=resources.CREATING if seconds else resources.ACTIVE,
        search=request["storageConfiguration"]["type"] if "storageConfiguration" in request else MANAGED,
        embedding=context.embedding.name,
        dimension=context.embedding.dimension,
        request={name: value for name, value in request.items() if name not in ("clientToken", "tags")},
        created_at=now,
        updated_at=now,
        due_at=now + seconds if seconds else None,
    )
    index = _index(change.connection, request)
    resources.add_knowledge_base(change, base)
    if index is not None:
        vector_indexes.hand_over(change, index, base.id)
    resources.put_tags(change, base.arn, request.get("tags", {}))
    return {"knowledgeBase": {**_described_base(base), "status": resources.CREATING}}


_DIMENSIONS: Final = {"amazon.titan-embed-text-v1": 1536, "amazon.titan-embed-text-v2:0": 1024}


def _index(connection: apsw.Connection, request: Request) -> Index | None:
    """Return the vector index of a new knowledge base; None if another account or another store has it.

    Raises:
        InvalidRequest: The index doesn't exist, does not fit the model, or is in use.
    """
    storage = request.get("storageConfiguration", {}).get("s3VectorsConfiguration")
    if storage is None:
        return None
    arn = storage.get("indexArn") or f"{storage.get('vectorBucketArn')}/index/{storage.get('indexName')}"
    if not vector_buckets.is_here(arn):
        return None
    try:
        index = vector_buckets.find_index(connection, {"indexArn": arn})
    except NoVectorResource as error:
        raise InvalidRequest(f"The storageConfiguration is not valid: {error}") from error
    model = request["knowledgeBaseConfiguration"]["vectorKnowledgeBaseConfiguration"]
    chosen = model.get("embeddingModelConfiguration", {}).get("bedrockEmbeddingModelConfiguration", {})
    dimension = chosen.get("dimensions", _DIMENSIONS.get(resource_id(model["embeddingModelArn"]), index.dimension))
    if dimension != index.dimension:
        raise InvalidRequest(
            f"The storageConfiguration is not valid: the vectors of the embedding model have {dimension} dimensions,"
            f" those of the index {index.dimension}"
        )
    if index.knowledge_base_id is not None or vector_indexes.list_vectors(connection, index, 0, 1, after=0, limit=1):
        raise InvalidRequest("The local Bedrock needs an empty vector index for each knowledge base on S3 Vectors")
    return index


def _described_base(base: StoredKnowledgeBase) -> Answer:
    return {
        **base.request,
        "knowledgeBaseId": base.id,
        "knowledgeBaseArn": base.arn,
        "status": base.status,
        "createdAt": base.created_at,
        "updatedAt": base.updated_at,
    }


def _summary(described: Answer) -> Answer:
    """Return the members of a knowledge base or data source that lists show."""
    shown = ("knowledgeBaseId", "dataSourceId", "name", "description", "status", "updatedAt")
    return {name: described[name] for name in shown if name in described}


def create_data_source(context: Context, request: Request) -> Answer:
    """Create a data source; a connector becomes AVAILABLE at once too, or after the creation time of the pace."""
    with context.database.write() as change:
        create = partial(_create_data_source, context, change, request)
        answer = once(change, "CreateDataSource", request["knowledgeBaseId"], request, context.clock(), create)
    context.ingestion.wake()
    return answer


def get_data_source(context: Context, request: Request) -> Answer:
    """Describe a data source."""
    with context.database.read() as view:
        found = requested_data_source(view.connection, request)
    return {"dataSource": _described_source(found)}


def list_data_sources(context: Context, request: Request) -> Answer:
    """List the data sources of a knowledge base by id."""
    with context.database.read() as view:
        base = resources.find_knowledge_base(view.connection, request["knowledgeBaseId"])
        fetch = partial(resources.data_sources, view.connection, base.id)
        found, more = Listing("ListDataSources", request).page("", "id", fetch)
    return {"dataSourceSummaries": [_summary(_described_source(source)) for source in found], "nextToken": more}


def update_data_source(context: Context, request: Request) -> Answer:
    """Change a data source; omitted fields are removed."""
    with context.database.write() as change:
        source = available_data_source(change.connection, request)
        base = resources.find_knowledge_base(change.connection, source.knowledge_base_id)
        request = _checked_data_source(base, request)
        _check_data_source_unchanged(source, request)
        if jobs.running(change.connection, source.knowledge_base_id, source.id):
            raise Conflict(f"Data source {source.id} has an ongoing ingestion job: wait for its end")
        named = resources.data_source_named(change.connection, source.knowledge_base_id, request["name"])
        if named not in (None, source.id):
            raise Conflict(f"DataSource with name {request['name']} already exists.")
        source = replace(source, name=request["name"], request=dict(request), updated_at=context.clock())
        if base.is_managed:
            if failure := managed.connector_failure(source):
                raise InvalidRequest(failure)
            documents.set_access_control(change, source.id, enabled=source.has_access_control)
        resources.update(change, source)
    return {"dataSource": _described_source(source)}


def delete_data_source(context: Context, request: Request) -> Answer:
    """Delete a data source in the background, with its documents unless its dataDeletionPolicy is RETAIN."""
    with context.database.write() as change:
        source = requested_data_source(change.connection, request)
        if jobs.running(change.connection, source.knowledge_base_id, source.id):
            raise Conflict(f"Data source {source.id} has an ongoing ingestion job: wait for its end")
        seconds = context.options.pace.deletion_seconds
        resources.mark_deleting(change, "data_source", source.id, context.clock(), seconds)
    context.ingestion.wake()
    return {"knowledgeBaseId": source.knowledge_base_id, "dataSourceId": source.id, "status": resources.DELETING}


def _checked_data_source(base: StoredKnowledgeBase, request: Request) -> Request:
    """Check a request for a data source, and return it with the defaults of its connector."""
    _check_chunking(request.get("vectorIngestionConfiguration", {}).get("chunkingConfiguration"))
    if base.is_managed:
        return managed.data_source_request(base, request)
    configuration = request["dataSourceConfiguration"]
    kind = configuration["type"]
    if kind == CONNECTOR_SOURCE:
        raise InvalidRequest(f"A data source of type {kind} needs a knowledge base of type MANAGED: use S3 or CUSTOM")
    if kind not in ("S3", "CUSTOM"):
        raise InvalidRequest(f"The local Bedrock supports data sources of type S3 and CUSTOM, not {kind}")
    needed = "s3Configuration" if kind == "S3" else "type"
    others = sorted(set(configuration) - {"type", needed})
    required_member(configuration, f"A data source of type {kind}", needed, *others)
    ingestion = request.get("vectorIngestionConfiguration", {})
    refuse_unsupported(
        ingestion, "customTransformationConfiguration", "parsingConfiguration", "contextEnrichmentConfiguration"
    )
    return request


def _check_data_source_unchanged(source: DataSource, request: Request) -> None:
    if source.connector is not None:
        managed.check_connector_unchanged(source, request)
    elif request["dataSourceConfiguration"]["type"] != source.type:
        raise InvalidRequest(f"The type of a data source cannot be changed: it is {source.type}")
    before, after = (
        given.get("vectorIngestionConfiguration", {}).get("chunkingConfiguration")
        for given in (source.request, request)
    )
    if before != after:
        raise InvalidRequest(
            "The chunkingConfiguration of a data source cannot be changed: send it as GetDataSource returns it,"
            " or create another data source"
        )


def _create_data_source(context: Context, change: Transaction, request: Request) -> Answer:
    base = active_knowledge_base(change.connection, request["knowledgeBaseId"])
    request = _checked_data_source(base, request)
    if resources.data_source_named(change.connection, base.id, request["name"]):
        raise Conflict(f"DataSource with name {request['name']} already exists.")
    now, seconds = context.clock(), context.options.pace.creation_seconds
    source = DataSource(
        id=new_id(),
        knowledge_base_id=base.id,
        name=request["name"],
        status=resources.AVAILABLE,
        request={name: value for name, value in request.items() if name != "clientToken"},
        created_at=now,
        updated_at=now,
    )
    if base.is_managed:
        failure = managed.connector_failure(source)
        status = resources.CREATING if seconds else resources.FAILED if failure else resources.AVAILABLE
        source = replace(source, status=status, failure=failure, due_at=now + seconds if seconds else None)
    resources.add_data_source(change, source)
    return {"dataSource": {**_described_source(source), **({"status": resources.CREATING} if base.is_managed else {})}}


def _described_source(source: DataSource) -> Answer:
    return {
        "dataDeletionPolicy": "DELETE",
        **source.request,
        "dataSourceConfiguration": managed.described_configuration(source),
        "knowledgeBaseId": source.knowledge_base_id,
        "dataSourceId": source.id,
        "status": source.status,
        "failureReasons": [source.failure] if source.status == resources.FAILED else None,
        "createdAt": source.created_at,
        "updatedAt": source.updated_at,
    }


def _check_chunking(chunking: Request | None) -> None:
    """Check a ``chunkingConfiguration`` beyond the service model."""
    if chunking is None:
        return
    strategy = chunking["chunkingStrategy"]
    needed = {
        "FIXED_SIZE": "fixedSizeChunkingConfiguration",
        "HIERARCHICAL": "hierarchicalChunkingConfiguration",
        "SEMANTIC": "semanticChunkingConfiguration",
        "NONE": "chunkingStrategy",
    }[strategy]
    others = sorted(set(chunking) - {"chunkingStrategy", needed})
    required_member(chunking, f"The chunking strategy {strategy}", needed, *others)
    if strategy != "HIERARCHICAL":
        return
    layers = chunking["hierarchicalChunkingConfiguration"]
    parent, child = (level["maxTokens"] for level in layers["levelConfigurations"])
    if child >= parent:
        raise InvalidRequest(
            f"The first of the levelConfigurations (the parents) must have more maxTokens than the second (the"
            f" children): they have {parent} and {child}"
        )
    if layers["overlapTokens"] >= child:
        raise InvalidRequest(
            f"The overlapTokens ({layers['overlapTokens']}) must be fewer than the maxTokens of a child chunk ({child})"
        )


MAX_TAGS: Final = 50
"""Tags of one resource. Source: AWS General Reference, tag naming limits."""

_ARN: Final = re.compile(r"arn:aws[a-z-]*:bedrock:[a-z0-9-]*:\d{12}:knowledge-base/([0-9a-zA-Z]{10})")


def tag_resource(context: Context, request: Request) -> Answer:
    """Add tags to a resource, or replace their values."""
    added = request["tags"]
    _check_tags(added)
    with context.database.write() as change:
        arn = _tagged_arn(change.connection, request)
        count = len({**resources.find_tags(change.connection, arn), **added})
        if count > MAX_TAGS:
            raise QuotaExceeded(f"The resource would have {count} tags; the maximum is {MAX_TAGS}")
        resources.put_tags(change, arn, added)
    return {}


def untag_resource(context: Context, request: Request) -> Answer:
    """Remove tags from a resource; unknown keys are ignored."""
    with context.database.write() as change:
        resources.remove_tags(change, _tagged_arn(change.connection, request), request["tagKeys"])
    return {}


def list_tags(context: Context, request: Request) -> Answer:
    """Return the tags of a resource."""
    with context.database.read() as view:
        return {"tags": resources.find_tags(view.connection, _tagged_arn(view.connection, request))}


def _check_tags(given: Mapping[str, str]) -> None:
    if len(given) > MAX_TAGS:
        raise InvalidRequest(f"The request has {len(given)} tags; the maximum is {MAX_TAGS}")
    reserved = [key for key in given if key.casefold().startswith("aws:")]
    if reserved:
        raise InvalidRequest(f"The tag key {reserved[0]!r} begins with aws:, which is reserved for AWS")


def _tagged_arn(connection: apsw.Connection, request: Request) -> str:
    """Return the ARN of the knowledge base, vector bucket or vector index of a request."""
    arn: str = request["resourceArn"]
    if ":s3vectors:" in arn:
        is_index = "/index/" in arn
        find = vector_buckets.find_index if is_index else vector_buckets.find_bucket
        return find(connection, {"indexArn" if is_index else "vectorBucketArn": arn}).arn
    match = _ARN.fullmatch(arn)
    if match is None:
        raise NotFound(
            f"The resource {arn} does not exist: the local Bedrock supports tags of knowledge bases, vector buckets and"
            " vector indexes only"
        )
    return resources.find_knowledge_base(connection, match[1]).arn
