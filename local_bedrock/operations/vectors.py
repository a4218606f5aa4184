"""S3 Vectors: PutVectors, GetVectors, ListVectors, DeleteVectors, QueryVectors."""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, Final

import apsw
import numpy as np

from local_bedrock.http.errors import InvalidRequest
from local_bedrock.operations.context import Answer, Context, Request
from local_bedrock.operations.paging import Listing
from local_bedrock.operations.vector_buckets import CLASSIC, DEFAULT_PAGE, ENHANCED, find_index
from local_bedrock.search import vector_filters, vector_query
from local_bedrock.search.vector_filters import is_primitive
from local_bedrock.search.vector_query import VectorHit, VectorQuery
from local_bedrock.store import vector_indexes
from local_bedrock.store.codes import Vectors
from local_bedrock.store.vector_indexes import Index, StoredVector, TextSearch
from local_bedrock.store.vectors import COSINE
from ragstack_common.filters import Filter
from ragstack_common.filters.tree import clauses_of
from ragstack_common.settings.names import METADATA_KEY, RESERVED_PREFIX, TEXT_KEY
from ragstack_common.text.positions import LAST_PAGE_KEY, PAGE_KEY

MAX_METADATA_BYTES: Final = 40 * 1024
MAX_FILTERABLE_BYTES: Final = 2048
MAX_KEYS: Final = 50
MAX_RESULTS: Final = 10_000
RESULTS_ON_A_PAGE: Final = 100
"""Source of all five: user guide of Amazon S3, limitations and restrictions of S3 Vectors.

AWS does not say how bytes are counted; this counts the UTF-8 bytes of the JSON without spaces.
"""

MAX_LISTED_BYTES: Final = 1024**2
"""Vectors and metadata after which a page ends. Source: s3vectors, ListVectorsInput$maxResults."""


def put_vectors(context: Context, request: Request) -> Answer:
    """Add or replace vectors, all or none."""
    given = request["vectors"]
    with context.database.write() as change:
        index = _own_index(change.connection, request)
        keys = [vector["key"] for vector in given]
        if len(set(keys)) < len(keys):
            raise InvalidRequest("The request has a key twice")
        metadata = [vector.get("metadata", {}) for vector in given]
        for key, each in zip(keys, metadata, strict=True):
            _check_metadata(key, each, index)
        vectors = np.stack([_numbers(f"record for key '{vector['key']}'", vector["data"], index) for vector in given])
        vector_indexes.put_vectors(change, index, keys, vectors, metadata)
    return {}


def get_vectors(context: Context, request: Request) -> Answer:
    """Return vectors by their keys; unknown keys are skipped."""
    with context.database.read() as view:
        index = find_index(view.connection, request)
        found = vector_indexes.get_vectors(view.connection, index, request["keys"])
    return {"vectors": [_described(vector, request) for vector in found]}


def list_vectors(context: Context, request: Request) -> Answer:
    """List the vectors of an index, or of one of several segments, in the order of their first put."""
    segment, segments = request.get("segmentIndex", 0), request.get("segmentCount", 1)
    if ("segmentIndex" in request) != ("segmentCount" in request) or segment >= segments:
        raise InvalidRequest("segmentCount needs a segmentIndex that is less, and segmentIndex a segmentCount")
    with context.database.read() as view:
        index = find_index(view.connection, request)
        fetch = partial(vector_indexes.list_vectors, view.connection, index, segment, segments)
        listing = Listing("ListVectors", request)
        found, more = listing.page(0, "id", fetch, DEFAULT_PAGE)
    sizes = [each.values.nbytes + _size(each.metadata) for each in found]
    fitting = sum(size <= MAX_LISTED_BYTES for size in accumulate(sizes))
    if fitting < len(found):
        found = found[: max(1, fitting)]
        more = listing.token(found[-1].id)
    return {"vectors": [_described(vector, request) for vector in found], "nextToken": more}


def delete_vectors(context: Context, request: Request) -> Answer:
    """Delete vectors; unknown keys are ignored."""
    with context.database.write() as change:
        vector_indexes.remove_vectors(change, _own_index(change.connection, request), request["keys"])
    context.ingestion.wake()  # gives back the space
    return {}


def query_vectors(context: Context, request: Request) -> Answer:
    """Search by vector, by words, or by both."""
    listing = Listing("QueryVectors", request)
    start = listing.position(0)
    with context.database.read() as view:
        index = find_index(view.connection, request)
        query = VectorQuery(
            vector=_numbers("query vector", request["queryVector"], index) if "queryVector" in request else None,
            texts=_texts(view.connection, request, index, context.clock()),
            filters=_filters(request, index),
            scope_attribute=context.options.scope_attribute,
            limit=_limit(request),
        )
        hits = vector_query.search(view, index, query)
        end = start + RESULTS_ON_A_PAGE
        page = hits[start:end]
        vectors = vector_indexes.vectors_by_id(view.connection, index, [hit.id for hit in page])
    return {
        "vectors": [_found(hit, vector, request) for hit, vector in zip(page, vectors, strict=True)],
        "distanceMetric": index.metric,
        "nextToken": listing.token(end) if end < len(hits) else None,
    }


def _own_index(connection: apsw.Connection, request: Request) -> Index:
    """Return an index whose vectors may be changed."""
    index = find_index(connection, request)
    if index.knowledge_base_id is not None:
        raise InvalidRequest(
            "The local Bedrock does not change vectors that it wrote: the index holds the chunks of the knowledge base"
            f" {index.knowledge_base_id}"
        )
    return index


def _numbers(what: str, data: Mapping[str, Any], index: Index) -> Vectors:
    numbers = data["float32"]
    if len(numbers) != index.dimension:
        raise InvalidRequest(
            f"Invalid {what}: vector must have length {index.dimension}, but has length {len(numbers)}"
        )
    try:
        with np.errstate(over="ignore"):
            vector = np.array(numbers, dtype=np.float64).astype(np.float32)
        is_finite = bool(np.isfinite(vector).all())
    except OverflowError:
        is_finite = False
    if not is_finite:
        raise InvalidRequest(f"Invalid {what}: vector must hold finite float32 values only")
    if index.metric == COSINE and not vector.any():
        raise InvalidRequest(f"Invalid {what}: a zero vector is not allowed with the cosine distance metric")
    return vector


def _check_metadata(key: str, metadata: object, index: Index) -> None:
    def refuse(reason: str) -> InvalidRequest:
        return InvalidRequest(f"Invalid record for key '{key}': {reason}")

    if not isinstance(metadata, dict):
        raise refuse("Metadata must be an object")
    if len(metadata) > MAX_KEYS:
        raise refuse(f"Metadata object must have at most {MAX_KEYS} keys")
    for name, value in metadata.items():
        if not name or not all(map(is_primitive, value if isinstance(value, list) else [value])):
            raise refuse(f"Metadata value of '{name}' must be a string, a number, a boolean or a list of them")
    if _size(metadata) > MAX_METADATA_BYTES:
        raise refuse(f"Metadata must have at most {MAX_METADATA_BYTES} bytes")
    filterable = {name: value for name, value in metadata.items() if name not in index.non_filterable}
    if _size(filterable) > MAX_FILTERABLE_BYTES:
        raise refuse(f"Filterable metadata must have at most {MAX_FILTERABLE_BYTES} bytes")


def _size(metadata: Mapping[str, Any]) -> int:
    return len(json.dumps(metadata, ensure_ascii=False, separators=(",", ":")).encode())


def _limit(request: Request) -> int:
    if "queryVector" not in request and "queryTexts" not in request:
        raise InvalidRequest("A request must include queryVector, queryTexts, or both")
    limit: int = request["topK"]
    if limit > MAX_RESULTS:
        raise InvalidRequest(f"topK must be at most {MAX_RESULTS}, and is {limit}")
    return limit


def _texts(connection: apsw.Connection, request: Request, index: Index, now: float) -> Sequence[tuple[TextSearch, str]]:
    if request.get("queryMode") == CLASSIC and index.mode == ENHANCED:
        raise InvalidRequest("CLASSIC can't be specified for an ENHANCED index")
    given = request.get("queryTexts", [])
    if given and index.mode != ENHANCED:
        raise InvalidRequest("queryTexts need an index in ENHANCED mode")
    known = {each.key: each for each in vector_indexes.text_searches(connection, index)}
    keys = [each["metadataKey"] for each in given]
    for key in keys:
        if key not in known:
            raise InvalidRequest(f"The metadata key {key} is not full-text searchable")
        if known[key].active_at > now:
            raise InvalidRequest(f"The text search configuration of {key} is in status BUILDING")
        if keys.count(key) > 1:
            raise InvalidRequest(f"The metadata key {key} occurs twice in queryTexts")
        if index.knowledge_base_id is not None and key != TEXT_KEY:
            raise InvalidRequest(
                f"The local Bedrock searches the words of a knowledge base in {TEXT_KEY} only, not in {key}"
            )
    return [(known[each["metadataKey"]], each["text"]) for each in given]


_OF_CHUNKS: Final = (TEXT_KEY, METADATA_KEY, f"{RESERVED_PREFIX}chunk-id", PAGE_KEY, LAST_PAGE_KEY)


def _filters(request: Request, index: Index) -> Filter | None:
    if "filter" not in request:
        return None
    found = vector_filters.parse(request["filter"], index.non_filterable)
    if index.knowledge_base_id is not None:
        for clause in clauses_of(found):
            if clause.key in _OF_CHUNKS:
                raise InvalidRequest(
                    f"The local Bedrock does not filter the chunks of a knowledge base by {clause.key}, only by the"
                    " metadata of their documents"
                )
    return found


def _described(vector: StoredVector, request: Request) -> Answer:
    return {
        "key": vector.key,
        "data": {"float32": vector.values.tolist()} if request.get("returnData") else None,
        "metadata": vector.metadata if request.get("returnMetadata") else None,
    }


def _found(hit: VectorHit, vector: StoredVector, request: Request) -> Answer:
    scores = None
    if request.get("returnScores") and "queryTexts" in request:
        scores = {
            "fused": hit.fused,
            "bm25Scores": [{"metadataKey": key, "score": score} for key, score in hit.bm25.items()],
            "vectorDistance": hit.distance,
        }
    return {
        "key": vector.key,
        "distance": hit.distance if request.get("returnDistance") else None,
        "scores": scores,
        "metadata": vector.metadata if request.get("returnMetadata") else None,
    }
