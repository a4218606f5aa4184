"""The results of a search, in the form of Retrieve."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import apsw

from local_bedrock.operations.search_configuration import Reranking
from local_bedrock.search import reranking
from local_bedrock.search.access import Reader
from local_bedrock.search.ranking import Hit, Ranking
from local_bedrock.store.documents import chunk_metadata, document_id
from local_bedrock.store.resources import StoredKnowledgeBase
from ragstack_common.embedding import Embedding
from ragstack_common.settings.names import MANAGED_SOURCE_URI_KEY


@dataclass(frozen=True)
class Result:
    """One of the ``retrievalResults``, and the hit behind it."""

    members: dict[str, Any]
    hit: Hit

    @property
    def signals(self) -> Mapping[str, float]:
        """The signals behind the score of the search: ``vector``, and with HYBRID ``lexical`` and ``feedback``."""
        signals = {"vector": self.hit.vector, "lexical": self.hit.lexical, "feedback": self.hit.feedback}
        return {name: round(value, 4) for name, value in signals.items() if value is not None}


_CHUNKS: Final = (
    "SELECT c.id, coalesce(p.text, c.text), coalesce(p.public_id, c.public_id), iif(p.id, p.page, c.page),"
    " iif(p.id, p.position, c.position), d.id, d.type, d.name, coalesce(r.attributes, d.attributes)"
    " FROM chunk c JOIN document d ON d.id = c.document_id"
    " LEFT JOIN parent p ON p.id = c.parent_id LEFT JOIN record r ON r.id = c.record_id"
    " WHERE c.id IN (SELECT value FROM json_each(?))"
)


@dataclass(frozen=True)
class _Row:
    """A chunk, or its parent, with its document."""

    text: str
    public_id: str
    page: int | None
    position: str | None
    document: int
    kind: str
    name: str
    attributes: str


def written_results(connection: apsw.Connection, base: StoredKnowledgeBase, hits: Sequence[Hit]) -> list[Result]:
    """Return the results for some hits; a parent replaces its children, at the position of the best one.

    Source: Amazon Bedrock User Guide, hierarchical chunking: there may be fewer results than requested.
    """
    rows = connection.execute(_CHUNKS, (json.dumps([hit.chunk for hit in hits]),))
    found = {row[0]: _Row(*row[1:]) for row in rows}
    results: dict[str, Result] = {}
    for hit in hits:
        row = found[hit.chunk]
        if row.public_id not in results:
            content = {"content": {"type": "TEXT", "text": row.text}, "score": hit.score}
            results[row.public_id] = Result(content | _place(row, is_managed=base.is_managed), hit)
    return list(results.values())


def _place(row: _Row, *, is_managed: bool) -> dict[str, Any]:
    metadata = chunk_metadata(row.attributes, row.position, row.public_id, row.page, is_managed=is_managed)
    uri = metadata[MANAGED_SOURCE_URI_KEY] if is_managed else row.name
    location = {"s3Location": {"uri": uri}} if row.kind == "S3" else {"customDocumentLocation": {"id": row.name}}
    place = {"location": {"type": row.kind, **location}, "metadata": metadata}
    return {**place, "documentId": document_id(row.document, row.kind, row.name)} if is_managed else place


def further_page(
    connection: apsw.Connection,
    base: StoredKnowledgeBase,
    reader: Reader | None,
    ranking: Ranking,
    start: int,
    size: int,
) -> tuple[list[Result], int | None]:
    """Return a later page of a ranking, and the position of the next one.

    The page skips chunks that were deleted, replaced or hidden from the reader in the meantime, and parents that an
    earlier page returned.
    """
    chunks = ranking.chunks.tolist()
    readable, parameters = ("1", []) if reader is None else reader.to_sql()
    rows = connection.execute(
        "SELECT chunk.id, parent_id FROM chunk JOIN document ON document.id = document_id"  # noqa: S608 - no input in it
        f" WHERE chunk.id IN (SELECT value FROM json_each(?)) AND {readable}",
        (json.dumps(chunks), *parameters),
    )
    parents: dict[int, int | None] = dict(rows)
    returned = {parents.get(chunk) for chunk in chunks[:start]} - {None}
    left = [
        place
        for place, chunk in enumerate(chunks[start:], start)
        if chunk in parents and parents[chunk] not in returned
    ]
    hits = [hit for place in left[:size] for hit in ranking.hits(place, place + 1)]
    return written_results(connection, base, hits), left[size] if len(left) > size else None


def reranked(results: Sequence[Result], query: str, asked: Reranking, embedding: Embedding) -> list[Result]:
    """Rerank results by their text.

    Returns:
        At most ``asked.results`` with the scores of the reranker; ties keep their order.

    Raises:
        EmbeddingError: The embedding failed.
    """
    cosines = [result.hit.vector for result in results] if asked.uses_vectors else None
    texts = [result.members["content"]["text"] for result in results]
    scores = reranking.score(query, texts, embedding, ranked=True, cosines=cosines)
    order = sorted(range(len(results)), key=lambda place: (-scores[place], place))[: asked.results]
    return [_with_score(results[place], scores[place]) for place in order]


def _with_score(result: Result, score: float) -> Result:
    return Result({**result.members, "score": score}, replace(result.hit, score=score))
