"""Checks of S3 Vectors: indexes, limits of vectors, and searches by vector."""

import math
from collections.abc import Mapping
from typing import Any, Final

from ragstack_local.certify.check import INVALID, Json, Source, Topic
from ragstack_local.certify.fixtures import create_index, vector_bucket
from ragstack_local.certify.site import Site, error_code

ON: Final = Topic("vectors", "words (docs/SEARCH.md#words)", "local_bedrock.operations.vectors")

MANY: Final = 250
ANGLES: Final = (0.0, 0.5, 1.0)


def plain(site: Site) -> Mapping[str, str]:
    """The index of two dimensions."""
    return create_index(site, "plain", 2, metadataConfiguration={"nonFilterableMetadataKeys": ["hidden"]})


def many(site: Site) -> Mapping[str, str]:
    """The index of 250 vectors with words."""
    index = create_index(site, "many", 2, metadataConfiguration={"textSearchConfigurations": [{"metadataKey": "text"}]})
    site.client("s3vectors").put_vectors(
        **index,
        vectors=[vector(str(number), 1.0, number / MANY, text="buoy") for number in range(MANY)],
    )
    return index


def vector(key: str, *numbers: float, **metadata: Json) -> dict[str, Any]:
    """Return a vector as PutVectors takes it."""
    return {"key": key, "data": {"float32": list(numbers)}, "metadata": metadata}


def _put(site: Site, *vectors: Mapping[str, Any]) -> Json:
    index = site.shared(plain)
    client = site.client("s3vectors", validates=False)
    return error_code(lambda: client.put_vectors(**index, vectors=list(vectors)))


@ON.check(
    "default_mode",
    "Indexes of a new vector bucket are in ENHANCED mode",
    Source.DOCUMENTATION,
    "ENHANCED",
    held_in="local_bedrock.operations.vector_buckets",
)
def _default_mode(site: Site) -> Json:
    found = site.client("s3vectors").get_vector_bucket(vectorBucketName=site.shared(vector_bucket))
    return found["vectorBucket"].get("defaultIndexMode")


@ON.check(
    "index_mode",
    "GetIndex says that a new index is in ENHANCED mode",
    Source.DOCUMENTATION,
    "ENHANCED",
    held_in="local_bedrock.operations.vector_buckets",
)
def _index_mode(site: Site) -> Json:
    return site.client("s3vectors").get_index(**site.shared(plain))["index"].get("indexMode")


@ON.check(
    "classic",
    "A new vector bucket cannot have indexes in CLASSIC mode",
    Source.MODEL,
    INVALID,
    held_in="local_bedrock.operations.vector_buckets",
)
def _classic(site: Site) -> Json:
    client, name = site.client("s3vectors"), site.shared(vector_bucket)
    return error_code(
        lambda: client.put_vector_bucket_default_index_mode(vectorBucketName=name, defaultIndexMode="CLASSIC")
    )


@ON.check(
    "missing_index",
    "An index that does not exist is a NotFoundException",
    Source.MODEL,
    {"error": "NotFoundException"},
    held_in="local_bedrock.operations.vector_buckets",
)
def _missing_index(site: Site) -> Json:
    names = {**site.shared(plain), "indexName": "missing"}
    return error_code(lambda: site.client("s3vectors").get_index(**names))


@ON.check("put_is_consistent", "A vector is found as soon as PutVectors has returned", Source.DOCUMENTATION, "found")
def _put_is_consistent(site: Site) -> Json:
    index = site.shared(plain)
    _put(site, vector("new", 1, 0))
    answer = site.client("s3vectors").query_vectors(**index, topK=100, queryVector={"float32": [1.0, 0.0]})
    return "found" if "new" in [found["key"] for found in answer["vectors"]] else "not found"


@ON.check(
    "distance",
    "The distance is 1 minus the cosine similarity, not rounded, and the nearest vector comes first",
    Source.DOCUMENTATION,
    [round(1 - math.cos(angle), 3) for angle in ANGLES],
    held_in="local_bedrock.search.vector_query",
)
def _distance(site: Site) -> Json:
    index = create_index(site, site.unused("angles"), 2)
    client = site.client("s3vectors")
    vectors = [vector(str(angle), math.cos(angle), math.sin(angle)) for angle in reversed(ANGLES)]
    client.put_vectors(**index, vectors=vectors)
    answer = client.query_vectors(**index, topK=3, queryVector={"float32": [2.0, 0.0]}, returnDistance=True)
    return [round(found["distance"], 3) for found in answer["vectors"]]


@ON.check("keys_50", "A vector has at most 50 keys of metadata", Source.DOCUMENTATION, ["accepted", INVALID])
def _keys(site: Site) -> Json:
    return [_put(site, vector("keys", 1, 0, **{f"k{i}": 1 for i in range(number)})) for number in (50, 51)]


@ON.check(
    "filterable_2048",
    "A vector has at most 2 KB of filterable metadata, counted as JSON",
    Source.GUESS,
    ["accepted", INVALID],
    used_by="sizes of attributes (docs/DOCUMENTS.md#attributes)",
)
def _filterable(site: Site) -> Json:
    room = 2048 - len('{"text":""}')
    return [_put(site, vector("large", 1, 0, text="x" * size)) for size in (room, room + 100)]


@ON.check("metadata_40k", "A vector has at most 40 KB of metadata", Source.DOCUMENTATION, ["accepted", INVALID])
def _metadata(site: Site) -> Json:
    return [_put(site, vector("hidden", 1, 0, hidden="x" * size)) for size in (40_000, 41_000)]


@ON.check("put_500", "PutVectors takes at most 500 vectors", Source.DOCUMENTATION, ["accepted", INVALID])
def _put_500(site: Site) -> Json:
    return [_put(site, *(vector(f"many{i}", 1, i) for i in range(number))) for number in (500, 501)]


@ON.check("key_twice", "A vector's key may occur only once in a PutVectors request", Source.GUESS, INVALID)
def _key_twice(site: Site) -> Json:
    return _put(site, vector("twice", 1, 0), vector("twice", 0, 1))


@ON.check("zero_vector", "An index with the cosine metric refuses a zero vector", Source.DOCUMENTATION, INVALID)
def _zero_vector(site: Site) -> Json:
    return _put(site, vector("zero", 0, 0))


@ON.check("wrong_dimension", "A vector of another dimension than the index is refused", Source.DOCUMENTATION, INVALID)
def _wrong_dimension(site: Site) -> Json:
    return _put(site, vector("long", 1, 0, 0))


def pages(site: Site, **query: Json) -> Json:
    """Return the numbers of vectors on the pages of a query for all of :func:`many`."""
    client, index = site.client("s3vectors", validates=False), site.shared(many)
    token: dict[str, str] = {}
    found: list[int] = []
    while True:
        answer = client.query_vectors(**index, topK=MANY, **query, **token)
        found.append(len(answer["vectors"]))
        if not answer.get("nextToken") or len(found) > MANY:
            return found
        token = {"nextToken": answer["nextToken"]}


@ON.check("pages", "QueryVectors returns more than 100 vectors in pages of 100", Source.DOCUMENTATION, [100, 100, 50])
def _pages(site: Site) -> Json:
    return pages(site, queryVector={"float32": [1.0, 0.0]})


@ON.check("top_k_10001", "topK is at most 10,000", Source.DOCUMENTATION, INVALID)
def _top_k(site: Site) -> Json:
    query = {**site.shared(plain), "topK": 10_001, "queryVector": {"float32": [1.0, 0.0]}}
    return error_code(lambda: site.client("s3vectors", validates=False).query_vectors(**query))


CHECKS: Final = tuple(ON.checks)
