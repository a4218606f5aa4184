"""CreateKnowledgeBase, GetKnowledgeBase, ListKnowledgeBases, UpdateKnowledgeBase, DeleteKnowledgeBase."""

from dataclasses import replace
from typing import Final

from local_bedrock.faults import Conflict, InvalidRequest
from local_bedrock.operations.context import Answer, Context, Request
from local_bedrock.operations.paging import DEFAULT_PAGE, Listing
from local_bedrock.operations.tags import ARN, check_tags
from local_bedrock.store import jobs, resources, tags
from local_bedrock.store.database import Change
from local_bedrock.store.resources import KnowledgeBase
from local_bedrock.store.tokens import once

_STORES: Final = {
    "OPENSEARCH_SERVERLESS": "opensearchServerlessConfiguration",
    "S3_VECTORS": "s3VectorsConfiguration",
}
_NOT_CHANGED: Final = ("knowledgeBaseConfiguration", "storageConfiguration")


def create(context: Context, request: Request) -> Answer:
    """Create a knowledge base; it is ACTIVE at the next look, or when its time has come."""
    _check(request)
    with context.database.write() as change:
        answer = once(
            change, "CreateKnowledgeBase", "", request, context.clock(), lambda: _create(context, change, request)
        )
    context.ingestion.wake()
    return answer


def get(context: Context, request: Request) -> Answer:
    """Describe one."""
    with context.database.read() as view:
        found = resources.find_knowledge_base(view.connection, request["knowledgeBaseId"])
    return {"knowledgeBase": _described(found)}


def list_(context: Context, request: Request) -> Answer:
    """List them by id."""
    listing = Listing("ListKnowledgeBases", request)
    after = listing.position("")
    size = request.get("maxResults", DEFAULT_PAGE)
    with context.database.read() as view:
        found = resources.knowledge_bases(view.connection, after=after, limit=size + 1)
    summaries = [
        {
            "knowledgeBaseId": base.id,
            "name": base.name,
            "description": base.request.get("description"),
            "status": base.status,
            "updatedAt": base.updated_at,
        }
        for base in found[:size]
    ]
    more = listing.token(found[size - 1].id) if len(found) > size else None
    return {"knowledgeBaseSummaries": summaries, "nextToken": more}


def update(context: Context, request: Request) -> Answer:
    """Change name, description and role; every field is overwritten, and one that is left out is gone."""
    knowledge_base_id = request["knowledgeBaseId"]
    with context.database.write() as change:
        base = resources.find_knowledge_base(change.connection, knowledge_base_id)
        if base.status != resources.ACTIVE:
            raise Conflict(f"The knowledge base {base.id} is in status {base.status}: wait until it is ACTIVE")
        _check_not_changed(base, request)
        if resources.knowledge_base_named(change.connection, request["name"]) not in (None, base.id):
            raise Conflict(f"KnowledgeBase with name {request['name']} already exists.")
        kept = {name: value for name, value in base.request.items() if name not in ("name", "description", "roleArn")}
        given = {name: request[name] for name in ("name", "description", "roleArn") if name in request}
        base = replace(base, name=request["name"], request={**kept, **given}, updated_at=context.clock())
        resources.update_knowledge_base(change, base)
    return {"knowledgeBase": {**_described(base), "status": "UPDATING"}}


def delete(context: Context, request: Request) -> Answer:
    """Delete one with everything in it, in the background."""
    knowledge_base_id = request["knowledgeBaseId"]
    with context.database.write() as change:
        resources.find_knowledge_base(change.connection, knowledge_base_id)
        if jobs.running(change.connection, knowledge_base_id):
            raise Conflict(f"Knowledge base {knowledge_base_id} has an ongoing ingestion job: wait for its end")
        seconds = context.options.pace.deletion_seconds
        resources.mark_deleting(change, "knowledge_base", knowledge_base_id, context.clock(), seconds)
    context.ingestion.wake()
    return {"knowledgeBaseId": knowledge_base_id, "status": resources.DELETING}


def _check_not_changed(base: KnowledgeBase, request: Request) -> None:
    for name in _NOT_CHANGED:
        if request.get(name) != base.request.get(name):
            raise InvalidRequest(
                f"The {name} of a knowledge base cannot be changed: send it as GetKnowledgeBase returns it"
            )
    if "metadataConfigurations" in request:
        raise InvalidRequest("metadataConfigurations are for MANAGED knowledge bases: leave them out")


def _check(request: Request) -> None:
    check_tags(request.get("tags", {}))
    configuration = request["knowledgeBaseConfiguration"]
    if configuration["type"] != "VECTOR":
        raise InvalidRequest(f"The local Bedrock has knowledge bases of type VECTOR only, not {configuration['type']}")
    if "vectorKnowledgeBaseConfiguration" not in configuration:
        raise InvalidRequest("A knowledge base of type VECTOR needs a vectorKnowledgeBaseConfiguration")
    storage = request.get("storageConfiguration")
    if storage is None:
        raise InvalidRequest("A knowledge base of type VECTOR needs a storageConfiguration")
    if storage["type"] not in _STORES:
        raise InvalidRequest(f"The local Bedrock imitates {' and '.join(_STORES)}, not {storage['type']}")
    needed = _STORES[storage["type"]]
    if needed not in storage:
        raise InvalidRequest(f"A storageConfiguration of type {storage['type']} needs {needed}")
    others = set(storage) - {"type", needed}
    if others:
        raise InvalidRequest(f"A storageConfiguration of type {storage['type']} cannot have {sorted(others)}")


def _create(context: Context, change: Change, request: Request) -> Answer:
    if resources.knowledge_base_named(change.connection, request["name"]):
        raise Conflict(f"KnowledgeBase with name {request['name']} already exists.")
    now, seconds = context.clock(), context.options.pace.creation_seconds
    base = KnowledgeBase(
        id=context.make_id(),
        name=request["name"],
        status=resources.CREATING if seconds else resources.ACTIVE,
        search=request["storageConfiguration"]["type"],
        embedding=context.embedding.name,
        dimension=context.embedding.dimension,
        request={name: value for name, value in request.items() if name not in ("clientToken", "tags")},
        created_at=now,
        updated_at=now,
        due_at=now + seconds if seconds else None,
    )
    resources.add_knowledge_base(change, base)
    tags.put(change, base.id, request.get("tags", {}))
    return {"knowledgeBase": {**_described(base), "status": resources.CREATING}}


def _described(base: KnowledgeBase) -> Answer:
    return {
        "knowledgeBaseId": base.id,
        "name": base.name,
        "knowledgeBaseArn": ARN.format(base.id),
        "description": base.request.get("description"),
        "roleArn": base.request["roleArn"],
        "knowledgeBaseConfiguration": base.request["knowledgeBaseConfiguration"],
        "storageConfiguration": base.request["storageConfiguration"],
        "status": base.status,
        "createdAt": base.created_at,
        "updatedAt": base.updated_at,
    }
