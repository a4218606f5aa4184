"""Retrieve."""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import apsw

from ragstack_local.bedrock.faults import InvalidRequest
from ragstack_local.bedrock.operations.context import Answer, Context, Request, active_knowledge_base
from ragstack_local.bedrock.operations.paging import read_token, refuse_token, write_token
from ragstack_local.bedrock.retrieval import ranking, retrieval_results, search_configuration, search_reranking
from ragstack_local.bedrock.retrieval.ranking import Search


def retrieve(context: Context, request: Request) -> Answer:
    """Return the chunks that answer a query best."""
    text = _query_text(request)
    configuration = _configuration(request)
    position = read_token(request.get("nextToken"), offset=int, newest=int, request=str)
    fingerprint = _fingerprint(request)
    if position and (position["request"] != fingerprint or position["offset"] < 0):
        raise refuse_token()
    found, following = _page(context, request["knowledgeBaseId"], text, configuration, position)
    more = write_token({**following, "request": fingerprint}) if following else None
    return {"retrievalResults": found, "nextToken": more}


def results(
    context: Context, knowledge_base_id: str, text: str, configuration: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Search for the operations that answer from what they find.

    Args:
        context: The running local Bedrock.
        knowledge_base_id: Or its ARN.
        text: The query, not blank.
        configuration: A vectorSearchConfiguration that the service model has checked; may be empty.

    Returns:
        Retrieve's ``retrievalResults``, best first.

    Raises:
        NotFound: There is no such knowledge base.
        InvalidRequest: The configuration cannot be used with it.
    """
    found, _following = _page(context, knowledge_base_id, text, configuration, None)
    return found


def _page(
    context: Context,
    knowledge_base: str,
    text: str,
    configuration: Mapping[str, Any],
    position: Mapping[str, Any] | None,
) -> tuple[list[dict[str, Any]], dict[str, int] | None]:
    """Return a page of results, and where the next one begins."""
    knowledge_base_id = knowledge_base.rpartition("/")[2]
    with context.database.read() as view:
        base = active_knowledge_base(view.connection, knowledge_base_id)
    asked = search_configuration.read(base, configuration)
    # A model may take its time: no reader of the database is held meanwhile.
    vector = context.embedding.embed_query(text)
    with context.database.read(knowledge_base_id) as view:
        active_knowledge_base(view.connection, knowledge_base_id)
        newest = position["newest"] if position else _newest_chunk(view.connection)
        search = Search(text, vector, asked.hybrid, asked.condition, newest)
        ranked = ranking.rank(view, base.id, search, context.embedding.fusion_weight)
        offset = position["offset"] if position else 0
        end = offset + asked.number_of_results
        found = retrieval_results.write(view.connection, ranked.hits(offset, end))
    if asked.reranking is not None:
        # The best of those that were asked for, in a new order: there is no page after them.
        return search_reranking.rerank(found, text, asked.reranking, context.embedding), None
    return found, {"offset": end, "newest": newest} if len(ranked) > end else None


def _query_text(request: Request) -> str:
    query = request["retrievalQuery"]
    if query.get("type", "TEXT") != "TEXT" or "image" in query:
        raise InvalidRequest("The local Bedrock answers text queries only: leave the image out")
    text = query.get("text", "")
    if not text.strip():
        raise InvalidRequest("The text of the retrievalQuery is empty: send a query")
    return str(text)


def _configuration(request: Request) -> Mapping[str, Any]:
    for name in ("guardrailConfiguration", "userContext"):
        if name in request:
            raise InvalidRequest(f"The local Bedrock has no {name}: leave it out")
    given = request.get("retrievalConfiguration", {})
    if "managedSearchConfiguration" in given:
        raise InvalidRequest("managedSearchConfiguration is for MANAGED knowledge bases: use vectorSearchConfiguration")
    configuration: Mapping[str, Any] = given.get("vectorSearchConfiguration", {})
    return configuration


def _newest_chunk(connection: apsw.Connection) -> int:
    return int(connection.execute("SELECT coalesce(max(id), 0) FROM chunk").get)


def _fingerprint(request: Request) -> str:
    asked = {name: value for name, value in request.items() if name != "nextToken"}
    return sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]
