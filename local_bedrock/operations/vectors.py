"""S3 Vectors: PutVectors, GetVectors, ListVectors, DeleteVectors, QueryVectors."""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from local_bedrock.http.errors import InvalidRequest
from local_bedrock.operations.context import Answer, Context, Request
from local_bedrock.operations.paging import Listing
from local_bedrock.operations.vector_buckets import index_of, reading
from local_bedrock.search import vector_search
from local_bedrock.search.vector_search import Hit, VectorQuery, is_primitive, search
from local_bedrock.store import s3_vectors, vectors
from local_bedrock.store.database import View
from local_bedrock.store.s3_vectors import Index, StoredVector, TextSearch
from local_bedrock.store.vectors import Ids, Vectors

LARGEST_REQUEST_BYTES: Final = 20 * 1024**2
LARGEST_METADATA_BYTES: Final = 40 * 1024
LARGEST_FILTERABLE_BYTES: Final = 2048
MOST_KEYS: Final = 50
MOST_HITS: Final = 100
"""Source of all five: user guide of Amazon S3, limitations and restrictions of S3 Vectors.

How the bytes are counted is not documented; this counts the UTF-8 bytes of the JSON without spaces.
"""

LARGEST_PAGE_BYTES: Final = 1024**2
"""Of QueryVectors. Assumed from s3vectors, ListVectorsInput$maxResults."""

DEFAULT_PAGE: Final = 500


def put_vectors(context: Context, request: Request) -> Answer:
    """Add or replace vectors, all or none."""
    given = request["vectors"]
    with context.database.write() as change:
        index = index_of(change.connection, request)
        keys = [vector["key"] for vector in given]
        for number, vector in enumerate(given):
            if vector["key"] in keys[:number]:
                raise _invalid(vector["key"], "the key occurs twice in the request")
            _check_metadata(vector["key"], vector.get("metadata", {}), index)
        vectors = np.stack([_record(vector, index) for vector in given])
        s3_vectors.put_vectors(change, index, keys, vectors, [vector.get("metadata", {}) for vector in given])
    return {}


def get_vectors(context: Context, request: Request) -> Answer:
    """Return vectors by their keys; unknown keys are skipped."""
    with context.database.read() as view:
        index = index_of(view.connection, request)
        found = s3_vectors.get_vectors(view.connection, index, request["keys"])
    return {"vectors": [_described(vector, request) for vector in found]}


def list_vectors(context: Context, request: Request) -> Answer:
    """List the vectors of an index in the order of their first put."""
    if "segmentCount" in request or "segmentIndex" in request:
        raise InvalidRequest("The local Bedrock does not support segments: omit segmentCount and segmentIndex")
    with context.database.read() as view:
        fetch = partial(s3_vectors.list_vectors, view.connection, index_of(view.connection, request))
        found, more = Listing("ListVectors", request).page(0, "id", fetch, DEFAULT_PAGE)
    return {"vectors": [_described(vector, request) for vector in found], "nextToken": more}


def delete_vectors(context: Context, request: Request) -> Answer:
    """Delete vectors; unknown keys are ignored."""
    with context.database.write() as change:
        s3_vectors.remove_vectors(change, index_of(change.connection, request), request["keys"])
    context.ingestion.wake()  # gives back the space
    return {}


def query_vectors(context: Context, request: Request) -> Answer:
    """Search by vector, by words, or by both."""
    listing = Listing("QueryVectors", request)
    start = end = listing.position(0)
    with reading(context, request) as (view, index):
        _check_query(request)
        found = _nearest(view, index, request)
    room = LARGEST_PAGE_BYTES
    while end < len(found) and room > 0:
        room -= _size(found[end]["metadata"] or {})
        end += 1
    more = listing.token(end) if end < len(found) else None
    return {"vectors": found[start:end], "distanceMetric": index.metric, "nextToken": more}


def _nearest(view: View, index: Index, request: Request) -> list[Answer]:
    sought = VectorQuery(
        vector=_query_vector(request["queryVector"], index) if "queryVector" in request else None,
        texts=_query_texts(request.get("queryTexts", []), index),
        allowed=_allowed(request, index, view.connection),
    )
    hits = search(view, index, sought, request["topK"])
    vectors = s3_vectors.vectors_by_id(view.connection, [hit.id for hit in hits])
    return [_found(hit, vector, request) for hit, vector in zip(hits, vectors, strict=True)]


def _record(vector: Mapping[str, Any], index: Index) -> Vectors:
    numbers = vector["data"]["float32"]
    if len(numbers) != index.dimension:
        raise _invalid(vector["key"], f"vector must have length {index.dimension}, but has length {len(numbers)}")
    return _checked(numbers, index, vector["key"])


def _query_vector(data: Mapping[str, Any], index: Index) -> Vectors:
    numbers = data["float32"]
    if len(numbers) != index.dimension:
        raise InvalidRequest(
            f"Invalid query vector: vector must have length {index.dimension}, but has length {len(numbers)}"
        )
    return _checked(numbers, index, None)


def _checked(numbers: Sequence[float], index: Index, key: str | None) -> Vectors:
    try:
        with np.errstate(over="ignore"):
            vector = np.array(numbers, dtype=np.float64).astype(np.float32)
        fits = bool(np.isfinite(vector).all())
    except OverflowError:
        fits = False
    if not fits:
        raise _invalid(key, "vector must hold finite float32 values only")
    if index.metric == vectors.COSINE and not vector.any():
        raise _invalid(key, "a zero vector is not allowed with the cosine distance metric")
    return vector


def _check_metadata(key: str, metadata: object, index: Index) -> None:
    if not isinstance(metadata, dict):
        raise _invalid(key, "Metadata must be an object")
    if len(metadata) > MOST_KEYS:
        raise _invalid(key, f"Metadata object must have at most {MOST_KEYS} keys")
    for name, value in metadata.items():
        members = value if isinstance(value, list) else [value]
        if not name or not all(map(is_primitive, members)):
            raise _invalid(key, f"Metadata value of '{name}' must be a string, a number, a boolean or a list of them")
    if _size(metadata) > LARGEST_METADATA_BYTES:
        raise _invalid(key, f"Metadata must have at most {LARGEST_METADATA_BYTES} bytes")
    hidden = set(index.non_filterable)
    if _size({name: value for name, value in metadata.items() if name not in hidden}) > LARGEST_FILTERABLE_BYTES:
        raise _invalid(key, f"Filterable metadata must have at most {LARGEST_FILTERABLE_BYTES} bytes")


def _size(metadata: Mapping[str, Any]) -> int:
    return len(json.dumps(metadata, ensure_ascii=False, separators=(",", ":")).encode())


def _check_query(request: Request) -> None:
    if "queryVector" not in request and "queryTexts" not in request:
        raise InvalidRequest("A request must include queryVector, queryTexts, or both")
    if request["topK"] > MOST_HITS:
        raise InvalidRequest(f"topK must be at most {MOST_HITS}, and is {request['topK']}")
    if request.get("queryMode") == "CLASSIC":
        raise InvalidRequest("CLASSIC can't be specified for an ENHANCED index")


def _query_texts(given: Sequence[Mapping[str, str]], index: Index) -> list[tuple[TextSearch, str]]:
    known = {each.key: each for each in index.text_searches}
    keys = [each["metadataKey"] for each in given]
    for key in keys:
        if key not in known:
            raise InvalidRequest(f"The metadata key {key} is not full-text searchable")
        if keys.count(key) > 1:
            raise InvalidRequest(f"The metadata key {key} occurs twice in queryTexts")
    return [(known[each["metadataKey"]], each["text"]) for each in given]


def _allowed(request: Request, index: Index, connection: Any) -> Ids | None:
    if "filter" not in request:
        return None
    passes = vector_search.compiled(request["filter"], index.non_filterable)
    found = s3_vectors.filterable_metadata(connection, index)
    return np.fromiter((id_ for id_, metadata in found if passes(metadata)), dtype=np.int64)


def _described(vector: StoredVector, request: Request) -> Answer:
    return {
        "key": vector.key,
        "data": {"float32": vector.float32} if request.get("returnData") else None,
        "metadata": vector.metadata if request.get("returnMetadata") else None,
    }


def _found(hit: Hit, vector: StoredVector, request: Request) -> Answer:
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


def _invalid(key: str | None, reason: str) -> InvalidRequest:
    return InvalidRequest(
        f"Invalid query vector: {reason}" if key is None else f"Invalid record for key '{key}': {reason}"
    )
