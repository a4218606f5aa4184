"""Retrieve and Rerank."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import apsw

from local_bedrock.http.errors import DependencyFailed, InvalidRequest
from local_bedrock.http.wire import HeadedAnswer, header_value
from local_bedrock.operations.context import (
    Answer,
    Context,
    Request,
    active_knowledge_base,
    refuse_unsupported,
    required_member,
)
from local_bedrock.operations.paging import Listing
from local_bedrock.processes.embedding_processes import UnavailableEmbedding
from local_bedrock.search import ranking, reranking
from local_bedrock.search.ranking import Hit, Ranking, Search
from local_bedrock.store.documents import chunk_metadata
from local_bedrock.store.resources import StoredKnowledgeBase
from ragstack_common.core.errors import InvalidFilterError
from ragstack_common.core.uris import resource_id
from ragstack_common.embedding import Embedding, EmbeddingError
from ragstack_common.filters import Filter, parse
from ragstack_common.filters.bedrock import MAX_MEMBERS
from ragstack_common.filters.store_rules import STORE_RULES
from ragstack_common.filters.tree import Operator
from ragstack_common.settings.names import EMBEDDING_HEADER, SIGNALS_HEADER


@dataclass(frozen=True)
class Result:
    """One of the ``retrievalResults``, and the signals behind its score: ``vector``, and ``lexical`` with HYBRID."""

    members: dict[str, Any]
    signals: Mapping[str, float]


def retrieve(context: Context, request: Request) -> Answer:
    """Return the chunks that answer a query best."""
    text = _query_text(request)
    refuse_unsupported(request, "guardrailConfiguration", "userContext")
    configuration = vector_search_configuration(request)
    listing = Listing("Retrieve", request)
    continued = context.snapshots.continued(listing)
    if continued is None:
        first = _first_page(context, request["knowledgeBaseId"], text, configuration)
        found, ranked, following, embedding = first.results, first.ranking, first.following, first.embedding
    else:
        ranked, start = continued
        with context.database.read() as view:
            base = active_knowledge_base(view.connection, resource_id(request["knowledgeBaseId"]))
            size, embedding = read_configuration(base, configuration).number_of_results, base.embedding
            found, following = further_page(view.connection, ranked, start, size)
    more = context.snapshots.token(listing, ranked, following) if following is not None else None
    headers = {
        EMBEDDING_HEADER: header_value(embedding),
        SIGNALS_HEADER: json.dumps([result.signals for result in found], separators=(",", ":")),
    }
    return HeadedAnswer({"retrievalResults": [result.members for result in found], "nextToken": more}, headers)


def results(context: Context, knowledge_base: str, text: str, configuration: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Search for the operations that generate answers.

    Returns:
        ``retrievalResults`` as in Retrieve, best first.

    Raises:
        NotFound: The knowledge base doesn't exist.
        InvalidRequest: The configuration is not supported.
    """
    return [result.members for result in _first_page(context, knowledge_base, text, configuration).results]


@dataclass(frozen=True)
class _FirstPage:
    """The results of a search, their ranking, the position of the next page, and the name of the embedding."""

    results: list[Result]
    ranking: Ranking
    following: int | None
    embedding: str


def _first_page(context: Context, knowledge_base: str, text: str, configuration: Mapping[str, Any]) -> _FirstPage:
    knowledge_base_id = resource_id(knowledge_base)
    with context.database.read() as view:
        base = active_knowledge_base(view.connection, knowledge_base_id)
        asked = read_configuration(base, configuration)
    embedding = context.embeddings.named(base.embedding)
    by_words = asked.hybrid or isinstance(embedding, UnavailableEmbedding)
    # Outside the transaction: a model may be slow.
    search = Search(text, embedding.embed_query(text), by_words, asked.filters, context.options.scope_attribute)
    with context.database.read(knowledge_base_id) as view:
        is_current = active_knowledge_base(view.connection, knowledge_base_id).embedding == base.embedding
        if is_current:
            ranked = ranking.rank(view, knowledge_base_id, search, context.cosine_share(embedding))
            found = written_results(view.connection, ranked.hits(0, asked.number_of_results))
    if not is_current:  # the vectors were replaced meanwhile
        return _first_page(context, knowledge_base, text, configuration)
    if asked.reranking is not None:
        # Reranked results have one page.
        return _FirstPage(reranked(found, text, asked.reranking, embedding), ranked, None, base.embedding)
    following = asked.number_of_results if len(ranked) > asked.number_of_results else None
    return _FirstPage(found, ranked, following, base.embedding)


def _query_text(request: Request) -> str:
    query = request["retrievalQuery"]
    if query.get("type", "TEXT") != "TEXT" or "image" in query:
        raise InvalidRequest("The local Bedrock supports text queries only: omit the image")
    text = query.get("text", "")
    if not text.strip():
        raise InvalidRequest("The text of the retrievalQuery is empty: send a query")
    return str(text)


def vector_search_configuration(request: Request) -> Mapping[str, Any]:
    """Return the vectorSearchConfiguration in the retrievalConfiguration of a request.

    Raises:
        InvalidRequest: The configuration is for another type of knowledge base.
    """
    given = request.get("retrievalConfiguration", {})
    if "managedSearchConfiguration" in given:
        raise InvalidRequest("managedSearchConfiguration is for MANAGED knowledge bases: use vectorSearchConfiguration")
    configuration: Mapping[str, Any] = given.get("vectorSearchConfiguration", {})
    return configuration


DEFAULT_RESULTS: Final = 5
"""Source: bedrock-agent-runtime, documentation of KnowledgeBaseVectorSearchConfiguration$numberOfResults."""

_GROUPS: Final = ("andAll", "orAll")


@dataclass(frozen=True)
class SearchConfiguration:
    """A vectorSearchConfiguration that the vector store supports.

    Attributes:
        number_of_results: Chunks on a page, 1 to 100.
        hybrid: Vectors and BM25, or vectors only.
        filters: Restricts the documents.
        reranking: The request's ``bedrockRerankingConfiguration``.
    """

    number_of_results: int
    hybrid: bool
    filters: Filter | None
    reranking: Mapping[str, Any] | None


def read_configuration(base: StoredKnowledgeBase, configuration: Mapping[str, Any]) -> SearchConfiguration:
    """Read a validated vectorSearchConfiguration.

    Raises:
        InvalidRequest: The vector store or the local Bedrock doesn't support it, or the filter exceeds the limits.
    """
    if "implicitFilterConfiguration" in configuration:
        raise InvalidRequest("The local Bedrock does not support implicitFilterConfiguration: send a filter instead")
    return SearchConfiguration(
        number_of_results=configuration.get("numberOfResults", DEFAULT_RESULTS),
        hybrid=_hybrid(base, configuration.get("overrideSearchType")),
        filters=_filters(base, configuration.get("filter")),
        reranking=_reranking(configuration),
    )


def _hybrid(base: StoredKnowledgeBase, chosen: str | None) -> bool:
    has_hybrid = STORE_RULES[base.search].has_hybrid
    if chosen == "HYBRID" and not has_hybrid:
        raise InvalidRequest(f"HYBRID search type is not supported for search operation on index {base.search}")
    return has_hybrid and chosen != "SEMANTIC"


def _filters(base: StoredKnowledgeBase, given: Mapping[str, Any] | None) -> Filter | None:
    if given is None:
        return None
    _check_limits(given)
    ignored = STORE_RULES[base.search].ignored
    if Operator.STARTS_WITH in ignored and any("startsWith" in part for part in _parts(given)):
        raise InvalidRequest(f"The filter operator startsWith is not supported on {base.search}")
    try:
        return parse(given)
    except InvalidFilterError as error:
        raise InvalidRequest(f"The filter is not valid: {error}") from error


def _check_limits(given: Mapping[str, Any], depth: int = 0) -> None:
    """Check the limits of AWS: five members in a group, and one level of nesting."""
    for name in _GROUPS:
        if name not in given:
            continue
        if depth > 1:
            raise InvalidRequest(f"The filter nests {name} too deeply: a group can be in one other group")
        if len(given[name]) > MAX_MEMBERS:
            raise InvalidRequest(f"The filter has {len(given[name])} members in {name}; the maximum is {MAX_MEMBERS}")
        for member in given[name]:
            _check_limits(member, depth + 1)


def _parts(given: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield given
    for name in _GROUPS:
        for member in given.get(name, ()):
            yield from _parts(member)


def _reranking(configuration: Mapping[str, Any]) -> Mapping[str, Any] | None:
    given = configuration.get("rerankingConfiguration")
    if given is None:
        return None
    what = f"A rerankingConfiguration of type {given['type']}"
    found: Mapping[str, Any] = required_member(given, what, "bedrockRerankingConfiguration")
    check_reranking(found)
    return found


_CHUNKS: Final = (
    "SELECT c.id, coalesce(p.text, c.text), coalesce(p.public_id, c.public_id), iif(p.id, p.page, c.page),"
    " iif(p.id, p.position, c.position), d.type, d.name, coalesce(r.attributes, d.attributes)"
    " FROM chunk c JOIN document d ON d.id = c.document_id"
    " LEFT JOIN parent p ON p.id = c.parent_id LEFT JOIN record r ON r.id = c.record_id"
    " WHERE c.id IN (SELECT value FROM json_each(?))"
)


def further_page(
    connection: apsw.Connection, ranking: Ranking, start: int, size: int
) -> tuple[list[Result], int | None]:
    """Return a later page of a ranking, and the position of the next one.

    The page skips chunks that were deleted or replaced in the meantime, and parents that an earlier page returned.
    """
    chunks = ranking.chunks.tolist()
    rows = connection.execute(
        "SELECT id, parent_id FROM chunk WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(chunks),)
    )
    parents: dict[int, int | None] = dict(rows)
    returned = {parents.get(chunk) for chunk in chunks[:start]} - {None}
    left = [
        place
        for place, chunk in enumerate(chunks[start:], start)
        if chunk in parents and parents[chunk] not in returned
    ]
    hits = [hit for place in left[:size] for hit in ranking.hits(place, place + 1)]
    return written_results(connection, hits), left[size] if len(left) > size else None


def written_results(connection: apsw.Connection, hits: Sequence[Hit]) -> list[Result]:
    """Return the results for some hits; a parent replaces its children, at the position of the best one.

    Source: Amazon Bedrock User Guide, hierarchical chunking: there may be fewer results than requested.
    """
    rows = connection.execute(_CHUNKS, (json.dumps([hit.chunk for hit in hits]),))
    found = {row[0]: row[1:] for row in rows}
    results: dict[str, Result] = {}
    for hit in hits:
        text, public_id, *rest = found[hit.chunk]
        if public_id not in results:
            signals = {"vector": hit.vector, "lexical": hit.lexical}
            rounded = {name: round(value, 4) for name, value in signals.items() if value is not None}
            results[public_id] = Result(_members(hit.score, text, public_id, *rest), rounded)
    return list(results.values())


def _members(
    score: float,
    text: str,
    public_id: str,
    page: int | None,
    position: str | None,
    kind: str,
    name: str,
    attributes: str,
) -> Any:
    location = {"s3Location": {"uri": name}} if kind == "S3" else {"customDocumentLocation": {"id": name}}
    return {
        "content": {"type": "TEXT", "text": text},
        "location": {"type": kind, **location},
        "score": score,
        "metadata": chunk_metadata(attributes, position, public_id, page),
    }


def check_reranking(configuration: Mapping[str, Any]) -> None:
    """Check a ``bedrockRerankingConfiguration`` beyond the service model.

    Raises:
        InvalidRequest: The model is unknown, or a setting is not supported.
    """
    reranking.require_model(configuration["modelConfiguration"]["modelArn"])
    refuse_unsupported(configuration["modelConfiguration"], "additionalModelRequestFields")
    refuse_unsupported(configuration, "metadataConfiguration")


def reranked(
    results: Sequence[Result], query: str, configuration: Mapping[str, Any], embedding: Embedding
) -> list[Result]:
    """Rerank results by their text.

    Returns:
        At most ``numberOfRerankedResults`` with the scores of the reranker; ties keep their order.
    """
    scores = reranking.score(query, [result.members["content"]["text"] for result in results], embedding, ranked=True)
    order = sorted(range(len(results)), key=lambda place: (-scores[place], place))
    ranked = [replace(found := results[place], members={**found.members, "score": scores[place]}) for place in order]
    return ranked[: configuration.get("numberOfRerankedResults")]


PAGE: Final = 100
"""Results on a page. AWS publishes no figure; this is the maximum of Retrieve."""


def rerank(context: Context, request: Request) -> Answer:
    """Order documents by their relevance to a query."""
    configuration = request["rerankingConfiguration"]["bedrockRerankingConfiguration"]
    check_reranking(configuration)
    query = request["queries"][0]["textQuery"].get("text", "")
    if not query.strip():
        raise InvalidRequest("The text of the query is empty: send a query")
    documents = [_document(number, source) for number, source in enumerate(request["sources"])]
    wanted = min(configuration.get("numberOfResults", len(documents)), len(documents))
    listing = Listing("Rerank", request)
    start = listing.position(0)
    try:
        scores = reranking.score(query, [_text(document) for document in documents], context.embedding)
    except EmbeddingError as error:
        raise DependencyFailed(str(error)) from error
    order = sorted(range(len(documents)), key=lambda index: (-scores[index], index))[:wanted]
    results = [
        {"index": index, "relevanceScore": scores[index], "document": documents[index]}
        for index in order[start : start + PAGE]
    ]
    return {"results": results, "nextToken": listing.token(start + PAGE) if wanted > start + PAGE else None}


def _document(number: int, source: Request) -> Answer:
    document: Answer = source["inlineDocumentSource"]
    member = {"TEXT": "textDocument", "JSON": "jsonDocument"}[document["type"]]
    what = f"The source {number} of type {document['type']}"
    return {"type": document["type"], member: required_member(document, what, member)}


def _text(document: Request) -> str:
    if document["type"] == "TEXT":
        return str(document["textDocument"].get("text", ""))
    return "\n".join(_lines(document["jsonDocument"]))


def _lines(value: Any, name: str = "") -> list[str]:
    """Return the values of a JSON document as lines with their names."""
    if isinstance(value, dict):
        return [line for key, member in value.items() for line in _lines(member, str(key))]
    if isinstance(value, list):
        return [line for member in value for line in _lines(member, name)]
    return [f"{name}: {value}" if name else str(value)]
