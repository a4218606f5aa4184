"""The local S3 Vectors through boto3: what is kept, found and refused, and still there after a restart."""

import json
import math
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest
from botocore.exceptions import ClientError
from hypothesis import given, settings
from hypothesis import strategies as st

from local_bedrock.http import wire
from local_bedrock.options import Options, Pace
from local_bedrock.server import running
from local_bedrock.service import Service
from local_bedrock.store import schema, vector_indexes
from local_bedrock.store.database import Transaction
from local_bedrock.store.vector_indexes import Index
from tests.local_bedrock.support import Bedrock, Clock, client, refusal, serving
from tests.support.soak import examples

BUCKET = "animals"
PLACE = {"vectorBucketName": BUCKET, "indexName": "index"}


def vector(key: str, *numbers: float, **metadata: Any) -> dict[str, Any]:
    return {"key": key, "data": {"float32": list(numbers)}, "metadata": metadata}


SMALL = {"dataType": "float32", "dimension": 2, "distanceMetric": "cosine"}


@pytest.fixture(scope="module")
def s3_vectors(bedrock: Bedrock) -> Any:
    return client("s3vectors", bedrock.url, validate=False)


@pytest.fixture
def index(s3_vectors: Any) -> Iterator[Callable[..., dict[str, str]]]:
    """Makes the index, in a bucket that ends with the test."""
    s3_vectors.create_vector_bucket(vectorBucketName=BUCKET)

    def make(dimension: int = 2, metric: str = "cosine", **more: Any) -> dict[str, str]:
        s3_vectors.create_index(**PLACE, dataType="float32", dimension=dimension, distanceMetric=metric, **more)
        return PLACE

    yield make
    for found in s3_vectors.list_indexes(vectorBucketName=BUCKET)["indexes"]:
        s3_vectors.delete_index(indexArn=found["indexArn"])
    s3_vectors.delete_vector_bucket(vectorBucketName=BUCKET)


def keys(answer: dict[str, Any]) -> list[str]:
    return [found["key"] for found in answer["vectors"]]


def near(*numbers: float, top_k: int = 10) -> dict[str, Any]:
    return {**PLACE, "topK": top_k, "queryVector": {"float32": list(numbers)}}


def test_vectors_come_back_as_float32_in_the_order_of_the_keys(s3_vectors: Any, index: Any) -> None:
    index()
    s3_vectors.put_vectors(**PLACE, vectors=[vector("a", 0.1, 2), vector("b", 1, 0, legs=4, wild=True, x=[1, "y"])])

    found = s3_vectors.get_vectors(**PLACE, keys=["b", "none", "a"], returnData=True, returnMetadata=True)["vectors"]

    assert [each["key"] for each in found] == ["b", "a"]
    assert found[0]["metadata"] == {"legs": 4, "wild": True, "x": [1, "y"]}
    assert found[1]["data"] == {"float32": [float(np.float32(0.1)), 2.0]}


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_the_search_is_exact(s3_vectors: Any, index: Any, metric: str) -> None:
    index(dimension=16, metric=metric)
    numbers = np.random.default_rng(7).normal(size=(301, 16)).astype(np.float32)
    s3_vectors.put_vectors(**PLACE, vectors=[vector(str(i), *row.tolist()) for i, row in enumerate(numbers[:300])])
    query = numbers[300].astype(np.float64)

    answer = s3_vectors.query_vectors(**near(*query.tolist(), top_k=20), returnDistance=True)

    rows = numbers[:300].astype(np.float64)
    cosines = rows @ query / np.linalg.norm(rows, axis=1) / np.linalg.norm(query)
    wanted = 1 - cosines if metric == "cosine" else np.linalg.norm(rows - query, axis=1)
    assert keys(answer) == [str(i) for i in np.argsort(wanted)[:20]]
    assert [each["distance"] for each in answer["vectors"]] == pytest.approx(np.sort(wanted)[:20].tolist(), abs=1e-6)


def test_putting_a_key_again_replaces_the_vector(s3_vectors: Any, index: Any) -> None:
    index(metadataConfiguration={"textSearchConfigurations": [{"metadataKey": "text"}]})
    s3_vectors.put_vectors(**PLACE, vectors=[vector("a", 1, 0, text="whales", legs=0), vector("b", 0.9, 0.1)])

    s3_vectors.put_vectors(**PLACE, vectors=[vector("a", 0, 1, text="snails")])

    assert keys(s3_vectors.query_vectors(**near(1, 0))) == ["b", "a"]
    assert keys(s3_vectors.query_vectors(**near(1, 0), filter={"legs": {"$exists": True}})) == []
    for word, found in (("whales", []), ("snails", ["a"])):
        texts = [{"text": word, "metadataKey": "text"}]
        assert keys(s3_vectors.query_vectors(**PLACE, topK=5, queryTexts=texts)) == found


def test_a_key_is_found_without_a_look_at_every_vector() -> None:
    connection = apsw.Connection(":memory:")
    connection.execute(schema.TABLES)
    seen: list[str] = []
    connection.set_exec_trace(lambda _cursor, sql, _values: seen.append(sql) or True)  # type: ignore[func-returns-value]
    index = Index(1, BUCKET, "index", 2, "cosine", "ENHANCED", [], {}, 0.0)

    vector_indexes.get_vectors(connection, index, ["a"])
    vector_indexes.remove_vectors(Transaction(connection), index, ["a"])

    connection.set_exec_trace(None)
    assert len(seen) == 2
    for sql in seen:
        steps = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", ("a", "b"))]
        assert steps[0] == "SEARCH c USING INDEX chunk_by_public_id (public_id=?)"


def test_deleted_vectors_are_not_found(s3_vectors: Any, index: Any) -> None:
    index(metadataConfiguration={"textSearchConfigurations": [{"metadataKey": "text"}]})
    s3_vectors.put_vectors(**PLACE, vectors=[vector("a", 1, 0, text="whale"), vector("b", 0, 1, text="whale")])

    s3_vectors.delete_vectors(**PLACE, keys=["a", "never there"])

    assert keys(s3_vectors.query_vectors(**near(1, 0))) == ["b"]
    assert keys(s3_vectors.query_vectors(**PLACE, topK=5, queryTexts=[{"text": "whale", "metadataKey": "text"}])) == [
        "b"
    ]
    assert keys(s3_vectors.list_vectors(**PLACE)) == ["b"]


def test_a_put_is_atomic(s3_vectors: Any, index: Any) -> None:
    index()

    message = refusal(s3_vectors.put_vectors, **PLACE, vectors=[vector("good", 1, 0), vector("bad", 1, 0, 0)])

    assert message == "Invalid record for key 'bad': vector must have length 2, but has length 3"
    assert keys(s3_vectors.list_vectors(**PLACE)) == []


@pytest.mark.parametrize(
    ("record", "named"),
    [
        (vector("a", 0, 0), "a zero vector"),
        (vector("a", 1e39, 0), "finite float32"),
        (vector("a", 1, 0, **{f"key{i}": 1 for i in range(51)}), "Metadata object must have at most 50 keys"),
        (vector("a", 1, 0, text="x" * 2050), "Filterable metadata must have at most 2048 bytes"),
        (vector("a", 1, 0, hidden="ä" * 20_480), "Metadata must have at most 40960 bytes"),
        (vector("a", 1, 0, legs=None), "'legs'"),
        (vector("a", 1, 0, legs={"left": 2}), "'legs'"),
        (vector("a", 1, 0, legs=[1, [2]]), "'legs'"),
        ({**vector("a", 1, 0), "metadata": [1]}, "Metadata must be an object"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_record_over_a_limit_is_refused_by_its_key(
    s3_vectors: Any, index: Any, record: dict[str, Any], named: str
) -> None:
    index(metadataConfiguration={"nonFilterableMetadataKeys": ["hidden"]})

    message = refusal(s3_vectors.put_vectors, **PLACE, vectors=[record])

    assert message.startswith("Invalid record for key 'a': ")
    assert named in message


def test_records_at_the_limits_are_accepted(s3_vectors: Any, index: Any) -> None:
    index(metadataConfiguration={"nonFilterableMetadataKeys": ["hidden"]})
    filterable = {"text": "x" * (2048 - len('{"text":""}'))}
    hidden = "x" * (40_960 - 2048 - len(',"hidden":""'))

    s3_vectors.put_vectors(**PLACE, vectors=[vector("a" * 1024, 1, 0, **filterable, hidden=hidden)])

    assert len(keys(s3_vectors.list_vectors(**PLACE))) == 1


def test_a_request_of_over_20_mib_is_refused(s3_vectors: Any, index: Any) -> None:
    index()
    texts = [vector(str(i), 1, 0, text="x" * 50_000) for i in range(420)]

    assert "20 MiB" in refusal(s3_vectors.put_vectors, **PLACE, vectors=texts)


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"topK": 10_001}, "topK must be at most 10000"),
        ({"queryVector": {"float32": [1.0]}}, "vector must have length 2, but has length 1"),
        ({"queryVector": {"float32": [0, 0]}}, "zero vector"),
        ({"queryMode": "CLASSIC"}, "CLASSIC can't be specified for an ENHANCED index"),
        ({"queryTexts": [{"text": "x", "metadataKey": "legs"}]}, "legs is not full-text searchable"),
        ({"queryTexts": [{"text": "x", "metadataKey": "text"}] * 2}, "text occurs twice in queryTexts"),
        ({"filter": {"text": "x"}}, "Invalid use of non-filterable metadata in filter: text"),
        ({"filter": {}}, "Invalid filter: an object has 0 keys"),
        ({"filter": {"a": 1, "b": 2}}, "Invalid filter: an object has 2 keys"),
        ({"filter": {"$and": [{"a": 1}, {}]}}, "Invalid filter: an object has 0 keys"),
        ({"filter": "legs"}, "Invalid filter"),
        ({"filter": {"$not": {"a": 1}}}, "operator $not is not allowed here"),
        ({"filter": {"a": {}}}, "a has no operator"),
        ({"filter": {"a": {"$regex": "x"}}}, "unknown operator $regex"),
        ({"filter": {"a": {"$gt": "x"}}}, "$gt of a takes a number"),
        ({"filter": {"a": {"$in": []}}}, "$in of a takes a list"),
        ({"filter": {"a": {"$in": [[1]]}}}, "$in of a takes a list"),
        ({"filter": {"a": [1]}}, "$eq of a takes"),
        ({"filter": {"a": {"$exists": 1}}}, "$exists of a takes a boolean"),
        ({"filter": {"$and": []}}, "$and takes a list"),
        ({"filter": {"a": {"$in": list(range(101))}}}, "101 constraints"),
        ({"filter": {"$and": [{"a": {"$in": list(range(60))}}, {"b": {"$nin": list(range(41))}}]}}, "101 constraints"),
        ({"filter": {"$or": [{"a": 1}] * 101}}, "101 constraints"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_an_invalid_query_is_refused(s3_vectors: Any, index: Any, more: dict[str, Any], named: str) -> None:
    index(
        metadataConfiguration={
            "nonFilterableMetadataKeys": ["text"],
            "textSearchConfigurations": [{"metadataKey": "text"}],
        }
    )

    assert named in refusal(s3_vectors.query_vectors, **{**near(1, 0), **more})


@pytest.mark.parametrize(
    ("filter_", "found"),
    [
        ({"legs": 4}, "c"),
        ({"legs": {"$ne": 4}}, "aswn"),
        ({"legs": {"$gt": 0, "$lte": 6}}, "ca"),
        ({"habitats": "sea"}, "wa"),
        ({"habitats": {"$ne": "sea"}}, "csn"),
        ({"habitats": {"$in": ["land", "air"]}}, "ca"),
        ({"habitats": {"$nin": ["land", "air"]}}, "swn"),
        ({"legs": {"$exists": False}}, "sn"),
        ({"wild": True}, "c"),
        ({"wild": 1}, ""),
        ({"legs": "4"}, ""),
        ({"legs": 4.0}, "c"),
        ({"$or": [{"legs": 0}, {"$and": [{"legs": 6}, {"wild": {"$exists": False}}]}]}, "aw"),
        ({"name": {"$startsWith": "ch"}}, "c"),
    ],
    ids=str,
)
def test_a_filter_lets_through_what_it_means(s3_vectors: Any, index: Any, filter_: Any, found: str) -> None:
    index()
    s3_vectors.put_vectors(
        **PLACE,
        vectors=[
            vector("c", 1, 0, legs=4, habitats=["land"], wild=True, name="cheetah"),
            vector("a", 1, 0.1, legs=6, habitats=["land", "sea"]),
            vector("s", 1, 0.2, wild=False),
            vector("w", 1, 0.3, legs=0, habitats="sea", name="whale"),
            vector("n", 1, 0.4),
        ],
    )

    assert set(keys(s3_vectors.query_vectors(**near(1, 0), filter=filter_))) == set(found)


def test_a_filter_is_applied_before_the_best_are_taken(s3_vectors: Any, index: Any) -> None:
    index()
    s3_vectors.put_vectors(**PLACE, vectors=[vector(str(i), 1, i / 100, last=i == 99) for i in range(100)])

    assert keys(s3_vectors.query_vectors(**near(1, 0, top_k=1), filter={"last": True})) == ["99"]


@pytest.fixture
def texts(s3_vectors: Any, index: Any) -> Any:
    index(
        metadataConfiguration={
            "nonFilterableMetadataKeys": ["text"],
            "textSearchConfigurations": [{"metadataKey": "text", "language": "en"}, {"metadataKey": "title"}],
        }
    )
    s3_vectors.put_vectors(
        **PLACE,
        vectors=[
            vector("pump", 1, 0, text="Grease the bearings of the water pump.", title="Pumps"),
            vector("lease", 0.9, 0.1, text="A lease is registered.", title="Leases"),
            vector("leave", 0, 1, text="Days of leave; the pump stands still.", title="休暇の日数"),
        ],
    )
    return s3_vectors


def test_texts_are_found_by_their_words(texts: Any) -> None:
    answer = texts.query_vectors(
        **PLACE, topK=5, queryTexts=[{"text": "greasing a pump", "metadataKey": "text"}], returnScores=True
    )

    assert keys(answer) == ["pump", "leave"]
    scores = [each["scores"] for each in answer["vectors"]]
    assert all(score.keys() == {"bm25Scores"} and score["bm25Scores"][0]["metadataKey"] == "text" for score in scores)
    assert scores[0]["bm25Scores"][0]["score"] > scores[1]["bm25Scores"][0]["score"] > 0


def test_only_english_is_stemmed(texts: Any) -> None:
    found = {
        word: keys(texts.query_vectors(**PLACE, topK=5, queryTexts=[{"text": word, "metadataKey": "title"}]))
        for word in ("Pumps", "pump", "日数")
    }

    assert found == {"Pumps": ["pump"], "pump": [], "日数": ["leave"]}


def test_vector_and_words_are_fused_by_reciprocal_rank(texts: Any) -> None:
    answer = texts.query_vectors(
        **near(1, 0.02), queryTexts=[{"text": "leave", "metadataKey": "text"}], returnScores=True, returnDistance=True
    )

    assert keys(answer) == ["leave", "pump", "lease"]
    by_key = {each["key"]: each for each in answer["vectors"]}
    assert by_key["leave"]["scores"]["fused"] == pytest.approx(1 / 63 + 1 / 61)
    assert by_key["pump"]["scores"]["fused"] == pytest.approx(1 / 61)
    assert by_key["pump"]["scores"]["bm25Scores"] == []
    assert by_key["leave"]["scores"]["vectorDistance"] == by_key["leave"]["distance"]


def test_a_filter_holds_for_words_too(texts: Any) -> None:
    answer = texts.query_vectors(
        **near(1, 0), queryTexts=[{"text": "pump", "metadataKey": "text"}], filter={"title": {"$ne": "Pumps"}}
    )

    assert set(keys(answer)) == {"lease", "leave"}


@pytest.mark.parametrize("text", ['" OR 1=1; --', "NEAR(", "*", "a\0b", "^ : ( )"])
def test_no_text_of_a_query_is_syntax(texts: Any, text: str) -> None:
    assert isinstance(
        keys(texts.query_vectors(**PLACE, topK=5, queryTexts=[{"text": text, "metadataKey": "text"}])), list
    )


def test_more_than_100_results_come_in_pages(s3_vectors: Any, index: Any) -> None:
    index()
    s3_vectors.put_vectors(**PLACE, vectors=[vector(f"{i:03}", 1, i / 100) for i in range(260)])
    query = near(1, 0, top_k=250)

    first = s3_vectors.query_vectors(**query)
    second = s3_vectors.query_vectors(**query, nextToken=first["nextToken"])
    third = s3_vectors.query_vectors(**query, nextToken=second["nextToken"])

    assert [len(page["vectors"]) for page in (first, second, third)] == [100, 100, 50]
    assert keys(first) + keys(second) + keys(third) == [f"{i:03}" for i in range(250)]
    assert "nextToken" not in third
    assert "nextToken" in refusal(s3_vectors.query_vectors, **{**query, "topK": 249, "nextToken": first["nextToken"]})


def test_a_page_of_a_list_ends_after_1_mb(s3_vectors: Any, index: Any) -> None:
    index(metadataConfiguration={"nonFilterableMetadataKeys": ["text"]})
    s3_vectors.put_vectors(**PLACE, vectors=[vector(f"{i:02}", 1, 0, text="x" * 40_000) for i in range(60)])

    first = s3_vectors.list_vectors(**PLACE)
    pages = list(s3_vectors.get_paginator("list_vectors").paginate(**PLACE))

    assert len(first["vectors"]) == 26
    assert [key for page in pages for key in keys(page)] == [f"{i:02}" for i in range(60)]


def test_segments_list_every_vector_once(s3_vectors: Any, index: Any) -> None:
    index()
    s3_vectors.put_vectors(**PLACE, vectors=[vector(str(i), 1, i) for i in range(30)])

    parts = [keys(s3_vectors.list_vectors(**PLACE, segmentCount=4, segmentIndex=i)) for i in range(4)]

    assert sorted(key for part in parts for key in part) == sorted(map(str, range(30)))
    assert all(parts)


def test_buckets_and_indexes_are_as_they_were_made(s3_vectors: Any, index: Any) -> None:
    hidden = {"nonFilterableMetadataKeys": ["text"], "textSearchConfigurations": [{"metadataKey": "text"}]}
    index(dimension=4096, metric="euclidean", metadataConfiguration=hidden)

    bucket = s3_vectors.get_vector_bucket(vectorBucketName=BUCKET)["vectorBucket"]
    found = s3_vectors.get_index(**PLACE)["index"]

    assert bucket["vectorBucketArn"] == f"arn:aws:s3vectors:us-east-1:000000000000:bucket/{BUCKET}"
    assert (bucket["defaultIndexMode"], bucket["encryptionConfiguration"]) == ("ENHANCED", {"sseType": "AES256"})
    assert (found["dimension"], found["distanceMetric"], found["indexMode"]) == (4096, "euclidean", "ENHANCED")
    assert found["metadataConfiguration"]["nonFilterableMetadataKeys"] == ["text"]
    assert found["metadataConfiguration"]["textSearchConfigurations"] == [{"metadataKey": "text", "status": "ACTIVE"}]


@pytest.mark.parametrize(
    ("call", "request_", "status", "message"),
    [
        ("create_vector_bucket", {"vectorBucketName": BUCKET}, 409, "A vector bucket with the specified name already"),
        ("create_vector_bucket", {"vectorBucketName": "under_score"}, 400, "Invalid vector bucket name"),
        ("delete_vector_bucket", {"vectorBucketName": BUCKET}, 409, "The specified vector bucket is not empty"),
        ("delete_vector_bucket", {"vectorBucketName": "not-there"}, 404, "The specified vector bucket could not be"),
        ("get_index", {"vectorBucketName": BUCKET, "indexName": "not-there"}, 404, "The specified index could not"),
        ("get_index", {"indexName": "index"}, 400, "Must specify either indexArn"),
        ("create_index", {**PLACE, **SMALL}, 409, "An index with the specified name already exists"),
        ("create_index", {**PLACE, **SMALL, "indexName": "under_score"}, 400, "Invalid index name"),
        ("list_vectors", {**PLACE, "segmentCount": 2}, 400, "segmentIndex"),
        ("list_vectors", {**PLACE, "segmentCount": 2, "segmentIndex": 2}, 400, "segmentIndex"),
        ("put_vectors", {**PLACE, "vectors": [vector("a", 1, 0)] * 2}, 400, "has a key twice"),
        ("query_vectors", {**PLACE, "topK": 1}, 400, "must include queryVector, queryTexts, or both"),
        (
            "get_vector_bucket",
            {"vectorBucketArn": f"arn:aws:s3vectors:eu-west-1:000000000000:bucket/{BUCKET}"},
            404,
            "could not be found",
        ),
    ],
    ids=lambda value: str(value)[:50],
)
def test_a_refusal_has_the_status_and_message_of_the_service(
    s3_vectors: Any, index: Any, call: str, request_: dict[str, Any], status: int, message: str
) -> None:
    index()

    with pytest.raises(ClientError, match=message) as caught:
        getattr(s3_vectors, call)(**request_)

    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == status


@pytest.mark.usefixtures("_credentials")
def test_a_restart_changes_no_answer(tmp_path: Path) -> None:
    request = {"topK": 5, "queryVector": {"float32": [1.0, 0.3]}, "returnDistance": True, "returnMetadata": True}
    words = {"queryTexts": [{"text": "animal", "metadataKey": "text"}], "returnScores": True}
    answers = []
    with running(tmp_path) as url:
        first = client("s3vectors", url)
        first.create_vector_bucket(vectorBucketName=BUCKET)
        for name, metric in (("index", "cosine"), ("other", "euclidean")):
            first.create_index(
                vectorBucketName=BUCKET,
                indexName=name,
                dataType="float32",
                dimension=2,
                distanceMetric=metric,
                metadataConfiguration={"textSearchConfigurations": [{"metadataKey": "text"}]},
            )
            records = [vector(str(i), 1, i / 7, text=f"animal {i}") for i in range(9)]
            first.put_vectors(vectorBucketName=BUCKET, indexName=name, vectors=records)
            first.delete_vectors(vectorBucketName=BUCKET, indexName=name, keys=["3"])
            first.put_vectors(vectorBucketName=BUCKET, indexName=name, vectors=[vector("4", 0, 1, text="animal")])
            answers.append(first.query_vectors(vectorBucketName=BUCKET, indexName=name, **request, **words)["vectors"])

    with running(tmp_path) as url:
        second = client("s3vectors", url)
        again = [
            second.query_vectors(vectorBucketName=BUCKET, indexName=name, **request, **words)["vectors"]
            for name in ("index", "other")
        ]

    assert again == answers


@settings(max_examples=examples(40), deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["put", "delete"]), st.sampled_from("abcd"), st.integers(1, 9)),
        min_size=1,
        max_size=8,
    )
)
def test_after_any_puts_and_deletes_a_search_finds_what_a_list_shows(changes: list[tuple[str, str, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder, _service(Path(folder)) as call:
        call("CreateVectorBucket", vectorBucketName=BUCKET)
        call("CreateIndex", **PLACE, dataType="float32", dimension=2, distanceMetric="euclidean")
        kept: dict[str, int] = {}
        for change, key, number in changes:
            if change == "put":
                call("PutVectors", **PLACE, vectors=[vector(key, number, 0)])
                kept[key] = number
            else:
                call("DeleteVectors", **PLACE, keys=[key])
                kept.pop(key, None)

        found = call("QueryVectors", **near(0, 0), returnDistance=True)["vectors"]

        assert {each["key"]: each["distance"] for each in found} == kept
        assert set(keys(call("ListVectors", **PLACE))) == set(kept)


class _service:  # noqa: N801 - reads as a function
    """The service without HTTP, at a moment; calls return the JSON of the answer."""

    def __init__(self, folder: Path, clock: float = 1.8e9) -> None:
        self._service = Service(Options(folder), clock=lambda: clock)

    def __enter__(self) -> Callable[..., Any]:
        return self._call

    def __exit__(self, *_error: object) -> None:
        self._service.close()

    def _call(self, operation: str, **request: Any) -> Any:
        asked = wire.Request("POST", f"/{operation}", body=json.dumps(request).encode())
        return json.loads(self._service.answer(self._service.route(asked)).body)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_must_be_finite(s3_vectors: Any, index: Any, number: float) -> None:
    index()

    with pytest.raises(ClientError, match="ValidationException"):
        s3_vectors.put_vectors(**PLACE, vectors=[vector("a", number, 0)])
    with pytest.raises(ClientError, match="'legs'"):
        s3_vectors.put_vectors(**PLACE, vectors=[vector("a", 1, 0, legs=number)])


def text_search(*names: str) -> dict[str, Any]:
    return {"textSearchConfigurations": [{"metadataKey": name} for name in names]}


def test_a_text_search_that_is_added_finds_the_vectors_that_are_there(s3_vectors: Any, index: Any) -> None:
    index()
    s3_vectors.put_vectors(**PLACE, vectors=[vector("a", 1, 0, text="whales"), vector("b", 0, 1, text=["a", "snail"])])
    query = {**PLACE, "topK": 5, "queryTexts": [{"text": "whales snail", "metadataKey": "text"}]}

    s3_vectors.update_metadata_configuration(**PLACE, add=text_search("text"))
    added = keys(s3_vectors.query_vectors(**query))
    s3_vectors.update_metadata_configuration(**PLACE, delete=text_search("text"))

    assert added == ["a", "b"]
    assert "not full-text searchable" in refusal(s3_vectors.query_vectors, **query)


@pytest.mark.parametrize(
    ("update", "named"),
    [
        ({}, "either add or delete"),
        ({"add": text_search("a"), "delete": text_search("text")}, "either add or delete"),
        ({"add": text_search("text")}, "a metadata key twice"),
        ({"add": text_search("a", "a")}, "a metadata key twice"),
        ({"add": text_search(*"abcdefghij")}, "would have 11 text search configurations"),
        ({"delete": text_search("a")}, "no text search configuration of a"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_an_invalid_update_of_the_text_searches_is_refused(
    s3_vectors: Any, index: Any, update: dict[str, Any], named: str
) -> None:
    index(metadataConfiguration=text_search("text"))

    assert named in refusal(s3_vectors.update_metadata_configuration, **PLACE, **update)


def test_a_text_search_is_built_before_it_is_active(tmp_path: Path) -> None:
    clock = Clock(1.8e9)
    with serving(tmp_path, clock=clock, pace=Pace(indexing_seconds=60)) as bedrock:
        s3_vectors = client("s3vectors", bedrock.url)
        s3_vectors.create_vector_bucket(vectorBucketName=BUCKET)
        s3_vectors.create_index(**PLACE, **SMALL, metadataConfiguration=text_search("text"))
        s3_vectors.put_vectors(**PLACE, vectors=[vector("a", 1, 0, text="whales")])
        query = {**PLACE, "topK": 5, "queryTexts": [{"text": "whales", "metadataKey": "text"}]}

        assert status(s3_vectors) == "BUILDING"
        assert "is in status BUILDING" in refusal(s3_vectors.query_vectors, **query)
        with pytest.raises(s3_vectors.exceptions.ConflictException):
            s3_vectors.update_metadata_configuration(**PLACE, add=text_search("title"))
        clock.now += 60
        assert status(s3_vectors) == "ACTIVE"
        assert keys(s3_vectors.query_vectors(**query)) == ["a"]


def test_buckets_and_indexes_have_tags_until_they_are_deleted(s3_vectors: Any, index: Any) -> None:
    index(tags={"team": "zoo"})
    arn = s3_vectors.get_index(**PLACE)["index"]["indexArn"]
    bucket = arn.partition("/index/")[0]

    s3_vectors.tag_resource(resourceArn=bucket, tags={"a": "1", "b": "2"})
    s3_vectors.untag_resource(resourceArn=bucket, tagKeys=["a"])

    assert s3_vectors.list_tags_for_resource(resourceArn=bucket)["tags"] == {"b": "2"}
    assert s3_vectors.list_tags_for_resource(resourceArn=arn)["tags"] == {"team": "zoo"}
    s3_vectors.delete_index(**PLACE)
    with pytest.raises(s3_vectors.exceptions.NotFoundException):
        s3_vectors.list_tags_for_resource(resourceArn=arn)
    index()
    assert s3_vectors.list_tags_for_resource(resourceArn=arn)["tags"] == {}


def status(s3_vectors: Any) -> str:
    found = s3_vectors.get_index(**PLACE)["index"]["metadataConfiguration"]["textSearchConfigurations"]
    return str(found[0]["status"])


def test_a_new_bucket_is_enhanced_for_good(s3_vectors: Any, index: Any) -> None:
    index()

    for call, mode in (("put_vector_bucket_default_index_mode", "default_"), ("update_index_mode", "")):
        place = PLACE if not mode else {"vectorBucketName": BUCKET}
        member = "defaultIndexMode" if mode else "indexMode"
        getattr(s3_vectors, call)(**place, **{member: "ENHANCED"})
        assert "before September 30, 2026" in refusal(getattr(s3_vectors, call), **place, **{member: "CLASSIC"})


def test_an_earlier_bucket_makes_classic_indexes_without_words(tmp_path: Path) -> None:
    with serving(tmp_path, clock=Clock(1.78e9)) as bedrock:  # June 2026
        s3_vectors = client("s3vectors", bedrock.url)
        s3_vectors.create_vector_bucket(vectorBucketName=BUCKET)
        assert "need an index in ENHANCED mode" in refusal(
            s3_vectors.create_index, **PLACE, **SMALL, metadataConfiguration=text_search("text")
        )
        s3_vectors.create_index(**PLACE, **SMALL)
        s3_vectors.put_vectors(**PLACE, vectors=[vector("a", 1, 0, text="whales")])
        words = {**PLACE, "topK": 5, "queryTexts": [{"text": "whales", "metadataKey": "text"}]}

        assert s3_vectors.get_vector_bucket(vectorBucketName=BUCKET)["vectorBucket"]["defaultIndexMode"] == "CLASSIC"
        assert s3_vectors.get_index(**PLACE)["index"]["indexMode"] == "CLASSIC"
        assert keys(s3_vectors.query_vectors(**near(1, 0), queryMode="ENHANCED", filter={"text": "whales"})) == ["a"]
        assert "need an index in ENHANCED mode" in refusal(s3_vectors.query_vectors, **words)
        s3_vectors.update_index_mode(**PLACE, indexMode="ENHANCED")
        s3_vectors.update_metadata_configuration(**PLACE, add=text_search("text"))
        assert keys(s3_vectors.query_vectors(**words)) == ["a"]
        s3_vectors.put_vector_bucket_default_index_mode(vectorBucketName=BUCKET, defaultIndexMode="ENHANCED")
        s3_vectors.create_index(**{**PLACE, "indexName": "new"}, **SMALL, metadataConfiguration=text_search("text"))


NAMES = st.sampled_from("ab")
SCALARS = st.sampled_from([0, 1, 1.0, 1.5, -2, True, False, "", "1", "x", "xy", "é"])
VALUES = SCALARS | st.lists(SCALARS, min_size=1, max_size=3)
METADATA = st.dictionaries(NAMES, VALUES)
OPERATORS = st.one_of(
    st.tuples(st.sampled_from(["$eq", "$ne"]), SCALARS),
    st.tuples(st.sampled_from(["$in", "$nin"]), st.lists(SCALARS, min_size=1, max_size=3)),
    st.tuples(st.sampled_from(["$gt", "$gte", "$lt", "$lte"]), st.sampled_from([0, 1, 1.5, -2])),
    st.tuples(st.just("$exists"), st.booleans()),
    st.tuples(st.just("$startsWith"), st.sampled_from(["", "x", "é"])),
)
CLAUSES = st.builds(
    lambda key, operators: {key: operators},
    NAMES,
    SCALARS | st.lists(OPERATORS, min_size=1, max_size=2, unique_by=lambda pair: pair[0]).map(dict),
)
FILTERS = st.recursive(
    CLAUSES,
    lambda inner: st.builds(
        lambda group, members: {group: members},
        st.sampled_from(["$and", "$or"]),
        st.lists(inner, min_size=1, max_size=3),
    ),
    max_leaves=6,
)


def passes(filter_: dict[str, Any], metadata: dict[str, Any]) -> bool:
    """The meaning of a filter, written down a second time."""
    ((key, value),) = filter_.items()
    if key in ("$and", "$or"):
        return (all if key == "$and" else any)(passes(member, metadata) for member in value)
    has, found = key in metadata, metadata.get(key)
    members = found if isinstance(found, list) else [found] if has else []

    def equals(wanted: Any) -> bool:
        return any(member == wanted and isinstance(member, bool) == isinstance(wanted, bool) for member in members)

    def holds(operator: str, operand: Any) -> bool:
        is_number = isinstance(found, int | float) and not isinstance(found, bool)
        tests: dict[str, Callable[[], bool]] = {
            "$eq": lambda: equals(operand),
            "$ne": lambda: not equals(operand),
            "$in": lambda: any(map(equals, operand)),
            "$nin": lambda: not any(map(equals, operand)),
            "$exists": lambda: has is operand,
            "$gt": lambda: is_number and found > operand,
            "$gte": lambda: is_number and found >= operand,
            "$lt": lambda: is_number and found < operand,
            "$lte": lambda: is_number and found <= operand,
            "$startsWith": lambda: isinstance(found, str) and found.startswith(operand),
        }
        return tests[operator]()

    return all(holds(*pair) for pair in (value if isinstance(value, dict) else {"$eq": value}).items())


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(METADATA, min_size=1, max_size=8), st.lists(FILTERS, min_size=1, max_size=10))
def test_a_filter_selects_what_its_meaning_selects(
    documents: list[dict[str, Any]], filters: list[dict[str, Any]]
) -> None:
    with tempfile.TemporaryDirectory() as folder, _service(Path(folder)) as call:
        call("CreateVectorBucket", vectorBucketName=BUCKET)
        call("CreateIndex", **PLACE, **SMALL)
        call("PutVectors", **PLACE, vectors=[vector(str(i), 1, i, **found) for i, found in enumerate(documents)])

        for filter_ in filters:
            found = call("QueryVectors", **near(1, 0), filter=filter_)

            assert set(keys(found)) == {str(i) for i, each in enumerate(documents) if passes(filter_, each)}, filter_
