"""Hits written as Retrieve's results: text, place, score and metadata."""

import json
from collections.abc import Sequence
from typing import Any, Final

import apsw

from local_bedrock.retrieval.ranking import Hit, Ranking
from ragstack_common.ingestion.sidecars import RESERVED_PREFIX

CHUNK_ID: Final = RESERVED_PREFIX + "chunk-id"
PAGE_NUMBER: Final = RESERVED_PREFIX + "document-page-number"

_CHUNKS: Final = (
    "SELECT c.id, coalesce(p.text, c.text), coalesce(p.public_id, c.public_id), coalesce(p.page, c.page),"
    " d.type, d.name, coalesce(r.attributes, d.attributes) FROM chunk c JOIN document d ON d.id = c.document_id"
    " LEFT JOIN parent p ON p.id = c.parent_id LEFT JOIN record r ON r.id = c.record_id"
    " WHERE c.id IN (SELECT value FROM json_each(?))"
)


def further(connection: apsw.Connection, ranking: Ranking, start: int, size: int) -> tuple[list[Any], int | None]:
    """Return a page after the first of a ranking that was made earlier, and where the page after it begins.

    Chunks that were deleted or replaced meanwhile are left out, and others take their place on the page. A parent is
    returned on one page only.

    Args:
        connection: Where the chunks are now.
        ranking: Of the first page.
        start: Position in the ranking at which the page begins.
        size: Chunks on the page at most.
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
    hits = [Hit(chunks[place], float(ranking.scores[place])) for place in left[:size]]
    return write(connection, hits), left[size] if len(left) > size else None


def write(connection: apsw.Connection, hits: Sequence[Hit]) -> list[dict[str, Any]]:
    """Return one result for each hit; children of one parent are replaced by it, at the place of the best.

    Source: Amazon Bedrock User Guide, hierarchical chunking: fewer results than asked for may come back.
    """
    rows = connection.execute(_CHUNKS, (json.dumps([hit.chunk for hit in hits]),))
    found = {row[0]: row[1:] for row in rows}
    results: dict[str, dict[str, Any]] = {}
    for hit in hits:
        text, public_id, *rest = found[hit.chunk]
        results.setdefault(public_id, _result(hit.score, text, public_id, *rest))
    return list(results.values())


def _result(score: float, text: str, public_id: str, page: int | None, kind: str, name: str, attributes: str) -> Any:
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
