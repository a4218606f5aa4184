"""CreateKnowledgeBase, GetKnowledgeBase, ListKnowledgeBases, DeleteKnowledgeBase."""

from typing import Final

from ragstack_local.bedrock.faults import Conflict, InvalidRequest
from ragstack_local.bedrock.operations.context import Answer, Context, Request
from ragstack_local.bedrock.operations.paging import DEFAULT_PAGE, read_token, write_token
from ragstack_local.bedrock.store import jobs, resources
from ragstack_local.bedrock.store.database import Change
from ragstack_local.bedrock.store.resources import KnowledgeBase
from ragstack_local.bedrock.store.tokens import once

_STORES: Final = {
    "OPENSEARCH_SERVERLESS": "opensearchServerlessConfiguration",
    "S3_VECTORS": "s3VectorsConfiguration",
}
_ARN: Final = "arn:aws:bedrock:us-east-1:000000000000:knowledge-base/{}"


def create(context: Context, request: Request) -> Answer:
    """Create a knowledge base; it is ACTIVE at the next look."""
    _check(request)
    with context.database.write() as change:
        return once(
            change, "CreateKnowledgeBase", "", request, context.clock(), lambda: _create(context, change, request)
        )


def get(context: Context, request: Request) -> Answer:
    """Describe one."""
    with context.database.read() as view:
        found = resources.find_knowledge_base(view.connection, request["knowledgeBaseId"])
    return {"knowledgeBase": _described(found)}


def list_(context: Context, request: Request) -> Answer:
    """List them by id."""
    position = read_token(request.get("nextToken"), after=str)
    size = request.get("maxResults", DEFAULT_PAGE)
    with context.database.read() as view:
        found = resources.knowledge_bases(view.connection, after=position["after"] if position else "", limit=size + 1)
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
    more = write_token({"after": found[size - 1].id}) if len(found) > size else None
    return {"knowledgeBaseSummaries": summaries, "nextToken": more}


def delete(context: Context, request: Request) -> Answer:
    """Delete one with everything in it, in the background."""
    knowledge_base_id = request["knowledgeBaseId"]
    with context.database.write() as change:
        resources.find_knowledge_base(change.connection, knowledge_base_id)
        if jobs.running(change.connection, knowledge_base_id):
            raise Conflict(f"Knowledge base {knowledge_base_id} has an ongoing ingestion job: wait for its end")
        resources.mark_deleting(change, "knowledge_base", knowledge_base_id, context.clock())
    context.ingestion.wake()
    return {"knowledgeBaseId": knowledge_base_id, "status": resources.DELETING}


def _check(request: Request) -> None:
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
    now = context.clock()
    base = KnowledgeBase(
        id=context.make_id(),
        name=request["name"],
        status="ACTIVE",
        search=request["storageConfiguration"]["type"],
        embedding=context.embedding.name,
        dimension=context.embedding.dimension,
        request={name: value for name, value in request.items() if name != "clientToken"},
        created_at=now,
        updated_at=now,
    )
    resources.add_knowledge_base(change, base)
    return {"knowledgeBase": {**_described(base), "status": "CREATING"}}


def _described(base: KnowledgeBase) -> Answer:
    return {
        "knowledgeBaseId": base.id,
        "name": base.name,
        "knowledgeBaseArn": _ARN.format(base.id),
        "description": base.request.get("description"),
        "roleArn": base.request["roleArn"],
        "knowledgeBaseConfiguration": base.request["knowledgeBaseConfiguration"],
        "storageConfiguration": base.request["storageConfiguration"],
        "status": base.status,
        "createdAt": base.created_at,
        "updatedAt": base.updated_at,
    }
