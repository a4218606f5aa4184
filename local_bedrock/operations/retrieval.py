"""Retrieve."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import apsw

from local_bedrock.http.errors import InvalidRequest
from local_bedrock.http.wire import HeadedAnswer, header_value
from local_bedrock.operations.context import Answer, Context, Request, active_knowledge_base, refuse_unsupported
from local_bedrock.operations.paging import Listing, expired
from local_bedrock.operations.results import Result, further_page, reranked, written_results
from local_bedrock.operations.search_configuration import read_configuration
from local_bedrock.processes.embedding_processes import UnavailableEmbedding
from local_bedrock.search import ranking
from local_bedrock.search.access import Reader, has_access_lists
from local_bedrock.search.ranking import Ranking, Search, Started
from local_bedrock.store.resources import StoredKnowledgeBase
from ragstack_common.core.uris import resource_id
from ragstack_common.settings.names import EMBEDDING_HEADER, SIGNALS_HEADER


def retrieve(context: Context, request: Request) -> Answer:
    """Return the chunks that answer a query best."""
    query = Query(
        request["knowledgeBaseId"],
        _query_text(request),
        request.get("retrievalConfiguration", {}),
        request.get("userContext"),
    )
    refuse_unsupported(request, "guardrailConfiguration")
    listing = Listing("Retrieve", request)
    continued = context.snapshots.continued(listing)
    if continued is None:
        first = search(context, query)
        found, ranked, following, embedding = first.results, first.ranking, first.following, first.embedding
    else:
        (kept, embedding), start = continued
        with context.database.read(query.knowledge_base_id) as view:
            base = active_knowledge_base(view.connection, query.knowledge_base_id)
            if base.embedding != embedding:  # the vectors were replaced meanwhile
                raise expired()
            size = read_configuration(base, query.configuration).number_of_results
            reader = _reader(view.connection, base, query.user)
            ranked = kept.whole(view.read_vectors) if isinstance(kept, Started) else kept
            found, following = further_page(view.connection, base, reader, ranked, start, size)
    more = context.snapshots.token(listing, (ranked, embedding), following) if following is not None else None
    headers = {
        EMBEDDING_HEADER: header_value(embedding),
        SIGNALS_HEADER: json.dumps([result.signals for result in found], separators=(",", ":")),
    }
    return HeadedAnswer({"retrievalResults": [result.members for result in found], "nextToken": more}, headers)


def _query_text(request: Request) -> str:
    query = request["retrievalQuery"]
    if query.get("type", "TEXT") != "TEXT" or "image" in query:
        raise InvalidRequest("The local Bedrock supports text queries only: omit the image")
    text = query.get("text", "")
    if not text.strip():
        raise InvalidRequest("The text of the retrievalQuery is empty: send a query")
    return str(text)


@dataclass(frozen=True)
class Query:
    """A query of one knowledge base.

    Attributes:
        knowledge_base: Its id or ARN.
        configuration: A ``retrievalConfiguration``.
        user: A ``userContext``.
    """

    knowledge_base: str
    text: str
    configuration: Mapping[str, Any]
    user: Mapping[str, Any] | None = None

    @property
    def knowledge_base_id(self) -> str:
        """The id, without the rest of an ARN."""
        return resource_id(self.knowledge_base)


@dataclass(frozen=True)
class FirstPage:
    """The results of a search, their ranking, the position of the next page, and the name of the embedding."""

    results: list[Result]
    ranking: Started | Ranking
    following: int | None
    embedding: str


def search(context: Context, query: Query) -> FirstPage:
    """Search a knowledge base.

    Raises:
        NotFound: The knowledge base doesn't exist.
        InvalidRequest: The query is not supported.
    """
    knowledge_base_id = query.knowledge_base_id
    with context.database.read() as view:
        base = active_knowledge_base(view.connection, knowledge_base_id)
        asked = read_configuration(base, query.configuration)
        reader = _reader(view.connection, base, query.user)
    embedding = context.embeddings.named(base.embedding)
    by_words = asked.hybrid or isinstance(embedding, UnavailableEmbedding)
    # Outside the transaction: a model may be slow.
    vector = embedding.embed_query(query.text)
    wanted = Search(
        query.text,
        vector,
        by_words,
        asked.filters,
        context.options.scope_attribute,
        reader,
        with_feedback=context.options.feedback,
    )
    number = asked.number_of_results if asked.reranking is None else asked.reranking.candidates
    with context.database.read(knowledge_base_id) as view:
        is_current = active_knowledge_base(view.connection, knowledge_base_id).embedding == base.embedding
        if is_current:
            candidates = ranking.find(view, knowledge_base_id, wanted, context.cosine_share(embedding))
            first = candidates.ranking(view.read_vectors, number)
            found = written_results(view.connection, base, first.hits())
            count = len(candidates)
            ranked = candidates.started(view.read_vectors, first) if count > number else first
    if not is_current:  # the vectors were replaced meanwhile
        return search(context, query)
    if asked.reranking is not None:
        found = reranked(found, query.text, asked.reranking, embedding)
        ranked, count = Ranking.of([result.hit for result in found]), len(found)
    following = asked.number_of_results if count > asked.number_of_results else None
    return FirstPage(found[: asked.number_of_results], ranked, following, base.embedding)


def _reader(connection: apsw.Connection, base: StoredKnowledgeBase, user: Mapping[str, Any] | None) -> Reader | None:
    """Return who searches; None if no document of the knowledge base has an access control list."""
    if user is not None and not base.is_managed:
        raise InvalidRequest("userContext is for MANAGED knowledge bases: omit it")
    if not has_access_lists(connection, base.id):
        return None
    return Reader(None if user is None else user["userId"])
