"""Retrieve."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from local_bedrock.faults import InvalidRequest
from local_bedrock.operations.context import Answer, Context, Request, active_knowledge_base
from local_bedrock.operations.paging import Listing
from local_bedrock.retrieval import ranking, retrieval_results, search_configuration, search_reranking
from local_bedrock.retrieval.ranking import Ranking, Search


def retrieve(context: Context, request: Request) -> Answer:
    """Return the chunks that answer a query best."""
    text = _query_text(request)
    configuration = _configuration(request)
    listing = Listing("Retrieve", request)
    page = _page(context, request["knowledgeBaseId"], text, configuration, context.snapshots.continued(listing))
    more = None
    if page.following is not None:
        more = context.snapshots.token(listing, page.ranking, page.ranking.size_bytes, page.following)
    return {"retrievalResults": page.results, "nextToken": more}


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
    return _page(context, knowledge_base_id, text, configuration, None).results


@dataclass(frozen=True)
class _Page:
    """Results, the ranking that they are a part of, and the position at which the next page begins."""

    results: list[dict[str, Any]]
    ranking: Ranking
    following: int | None


def _page(
    context: Context,
    knowledge_base: str,
    text: str,
    configuration: Mapping[str, Any],
    continued: tuple[Ranking, int] | None,
) -> _Page:
    knowledge_base_id = knowledge_base.rpartition("/")[2]
    with context.database.read() as view:
        base = active_knowledge_base(view.connection, knowledge_base_id)
    asked = search_configuration.read(base, configuration)
    if continued is not None:
        with context.database.read() as view:
            ranked, start = continued
            found, following = retrieval_results.further(view.connection, ranked, start, asked.number_of_results)
        return _Page(found, ranked, following)
    # A model may take its time: no reader of the database is held meanwhile.
    vector = context.embedding.embed_query(text)
    with context.database.read(knowledge_base_id) as view:
        active_knowledge_base(view.connection, knowledge_base_id)
        search = Search(text, vector, asked.hybrid, asked.condition)
        ranked = ranking.rank(view, base.id, search, context.embedding.fusion_weight)
        found = retrieval_results.write(view.connection, ranked.hits(0, asked.number_of_results))
    if asked.reranking is not None:
        # The best of those that were asked for, in a new order: there is no page after them.
        found = search_reranking.rerank(found, text, asked.reranking, context.embedding)
        return _Page(found, ranked, None)
    return _Page(found, ranked, asked.number_of_results if len(ranked) > asked.number_of_results else None)


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
