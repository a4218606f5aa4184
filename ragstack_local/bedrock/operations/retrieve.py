"""Retrieve."""

import json
from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Final

import apsw

from ragstack_common.errors import InvalidFilterError
from ragstack_common.filters import Filter, parse
from ragstack_local.bedrock import retrieval
from ragstack_local.bedrock.faults import InvalidRequest
from ragstack_local.bedrock.metadata import RESERVED_PREFIX
from ragstack_local.bedrock.operations.context import Answer, Context, Request, active_knowledge_base
from ragstack_local.bedrock.operations.paging import read_token, refuse_token, write_token
from ragstack_local.bedrock.retrieval import Hit, Search
from ragstack_local.bedrock.store.resources import KnowledgeBase

DEFAULT_RESULTS: Final = 5
"""Source: bedrock-agent-runtime, documentation of KnowledgeBaseVectorSearchConfiguration$numberOfResults."""

CHUNK_ID: Final = RESERVED_PREFIX + "chunk-id"
PAGE_NUMBER: Final = RESERVED_PREFIX + "document-page-number"

_NOT_IMITATED: Final = ("implicitFilterConfiguration", "rerankingConfiguration")


def retrieve(context: Context, request: Request) -> Answer:
    """Return the chunks that answer a query best."""
    text = _query_text(request)
    configuration = _configuration(request)
    knowledge_base_id = request["knowledgeBaseId"].rpartition("/")[2]
    position = read_token(request.get("nextToken"), offset=int, newest=int, request=str)
    fingerprint = _fingerprint(request)
    if position and (position["request"] != fingerprint or position["offset"] < 0):
        raise refuse_token()
    with context.database.read(knowledge_base_id) as view:
        base = active_knowledge_base(view.connection, knowledge_base_id)
        newest = position["newest"] if position else _newest_chunk(view.connection)
        search = Search(text, _hybrid(base, configuration), _condition(base, configuration), newest)
        hits = retrieval.rank(view, base.id, search, context.embedding)
        offset = position["offset"] if position else 0
        end = offset + configuration.get("numberOfResults", DEFAULT_RESULTS)
        results = _results(view.connection, hits[offset:end])
    more = {"offset": end, "newest": newest, "request": fingerprint}
    return {"retrievalResults": results, "nextToken": write_token(more) if len(hits) > end else None}


def _query_text(request: Request) -> str:
    query = request["retrievalQuery"]
    if query.get("type", "TEXT") != "TEXT" or "image" in query:
        raise InvalidRequest("The local Bedrock answers text queries only: leave the image out")
    text = query.get("text", "")
    if not text.strip():
        raise InvalidRequest("The text of the retrievalQuery is empty: send a query")
    return str(text)


def _configuration(request: Request) -> Request:
    for name in ("guardrailConfiguration", "userContext"):
        if name in request:
            raise InvalidRequest(f"The local Bedrock has no {name}: leave it out")
    given = request.get("retrievalConfiguration", {})
    if "managedSearchConfiguration" in given:
        raise InvalidRequest("managedSearchConfiguration is for MANAGED knowledge bases: use vectorSearchConfiguration")
    configuration: Request = given.get("vectorSearchConfiguration", {})
    for name in _NOT_IMITATED:
        if name in configuration:
            raise InvalidRequest(f"The local Bedrock has no {name} yet: leave it out")
    return configuration


def _hybrid(base: KnowledgeBase, configuration: Request) -> bool:
    chosen = configuration.get("overrideSearchType")
    if base.search == "S3_VECTORS":
        if chosen == "HYBRID":
            raise InvalidRequest("HYBRID search type is not supported for search operation on index S3_VECTORS")
        return False
    return bool(chosen != "SEMANTIC")


def _condition(base: KnowledgeBase, configuration: Request) -> Filter | None:
    given = configuration.get("filter")
    if given is None:
        return None
    if base.search == "S3_VECTORS" and _uses(given, "startsWith"):
        raise InvalidRequest("The filter operator startsWith is not supported on S3_VECTORS")
    try:
        return parse(given)
    except InvalidFilterError as error:
        raise InvalidRequest(f"The filter is not valid: {error}") from error


def _uses(condition: Request, operator: str) -> bool:
    members = [*condition.get("andAll", ()), *condition.get("orAll", ())]
    return operator in condition or any(_uses(member, operator) for member in members)


def _newest_chunk(connection: apsw.Connection) -> int:
    return int(connection.execute("SELECT coalesce(max(id), 0) FROM chunk").get)


def _fingerprint(request: Request) -> str:
    asked = {name: value for name, value in request.items() if name != "nextToken"}
    return sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]


def _results(connection: apsw.Connection, hits: Sequence[Hit]) -> list[Answer]:
    rows = connection.execute(
        "SELECT c.id, c.text, c.public_id, c.page, d.type, d.name, d.attributes FROM chunk c"
        " JOIN document d ON d.id = c.document_id WHERE c.id IN (SELECT value FROM json_each(?))",
        (json.dumps([hit.chunk for hit in hits]),),
    )
    found = {row[0]: row[1:] for row in rows}
    return [_result(hit.score, *found[hit.chunk]) for hit in hits]


def _result(score: float, text: str, public_id: str, page: int | None, kind: str, name: str, attributes: str) -> Answer:
    metadata: dict[str, Any] = {**json.loads(attributes), CHUNK_ID: public_id}
    if page is not None:
        metadata[PAGE_NUMBER] = page
    location = {"s3Location": {"uri": name}} if kind == "S3" else {"customDocumentLocation": {"id": name}}
    return {
        "content": {"type": "TEXT", "text": text},
        "location": {"type": kind, **location},
        "score": score,
        "metadata": metadata,
    }
