"""What S3 Vectors shows of the chunks that a knowledge base wrote into an index."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragstack_common.ingestion.requests import text_document
from ragstack_common.settings.names import METADATA_KEY, TEXT_KEY
from tests.local_bedrock.support import Bedrock, Source, client, knowledge_base_request, refusal, serving

CHUNK_ID = "x-amz-bedrock-kb-chunk-id"
TEXTS: dict[str, tuple[str, dict[str, Any]]] = {
    "cheetah": ("The cheetah is the fastest animal on land.", {"legs": 4, "habitats": ["savanna", "zoo"]}),
    "snail": ("The snail is slow. It carries its house.", {"legs": 0, "habitats": ["garden"]}),
    "whale": ("The whale is the largest animal.", {"legs": 0}),
}


@dataclass(frozen=True)
class Animals:
    """A knowledge base with three documents on a vector index."""

    vectors: Any
    source: Source
    index: str

    def find(self, words: str, **more: Any) -> list[dict[str, Any]]:
        texts = [{"text": words, "metadataKey": TEXT_KEY}]
        return list(self.vectors.query_vectors(indexArn=self.index, topK=5, queryTexts=texts, **more)["vectors"])


@pytest.fixture(scope="module")
def vectors(bedrock: Bedrock) -> Any:
    return client("s3vectors", bedrock.url)


def create_index(vectors: Any, bucket: str, dimension: int = 1024, metric: str = "cosine") -> str:
    """Make a vector bucket with an index for a knowledge base, and return the ARN of the index."""
    vectors.create_vector_bucket(vectorBucketName=bucket)
    answer = vectors.create_index(
        vectorBucketName=bucket,
        indexName="chunks",
        dataType="float32",
        dimension=dimension,
        distanceMetric=metric,
        metadataConfiguration={
            "nonFilterableMetadataKeys": [TEXT_KEY, METADATA_KEY],
            "textSearchConfigurations": [{"metadataKey": TEXT_KEY, "language": "en"}],
        },
    )
    return str(answer["indexArn"])


def storage(index: str) -> dict[str, Any]:
    return {"type": "S3_VECTORS", "s3VectorsConfiguration": {"indexArn": index}}


@pytest.fixture(scope="module")
def animals(bedrock: Bedrock, vectors: Any) -> Animals:
    index = create_index(vectors, "written-animals")
    source = bedrock.custom_source(bedrock.knowledge_base("written", storage(index)))
    source.ingested(*(text_document(name, text, attributes) for name, (text, attributes) in TEXTS.items()))
    return Animals(vectors, source, index)


def test_words_find_the_chunks_that_retrieve_returns(bedrock: Bedrock, animals: Animals) -> None:
    found = animals.find("fast cheetahs", returnMetadata=True, returnScores=True)

    retrieved = {
        each["metadata"][CHUNK_ID]: each for each in bedrock.search(animals.source.knowledge_base_id, "animal")
    }
    first = found[0]
    result = retrieved[first["key"]]
    assert first["metadata"][TEXT_KEY] == result["content"]["text"] == TEXTS["cheetah"][0]
    assert first["scores"]["bm25Scores"][0]["score"] > 0
    assert "fused" not in first["scores"]
    assert json.loads(first["metadata"][METADATA_KEY])["source"] == "cheetah"
    rest = {name: value for name, value in first["metadata"].items() if name not in (TEXT_KEY, METADATA_KEY)}
    assert rest == result["metadata"]
    assert rest["x-amz-bedrock-kb-source-uri"] == "cheetah"


@pytest.mark.parametrize(
    ("filter_", "found"),
    [
        ({"legs": 0}, {"whale"}),
        ({"habitats": "savanna"}, {"cheetah"}),
        ({"$and": [{"legs": {"$lt": 5}}, {"habitats": {"$exists": False}}]}, {"whale"}),
        ({"x-amz-bedrock-kb-source-uri": {"$startsWith": "ch"}}, {"cheetah"}),
        ({"legs": "0"}, set()),
    ],
    ids=str,
)
def test_a_filter_restricts_the_words(animals: Animals, filter_: dict[str, Any], found: set[str]) -> None:
    hits = animals.find("largest or fastest animal", filter=filter_, returnMetadata=True)

    assert {hit["metadata"]["x-amz-bedrock-kb-source-uri"] for hit in hits} == found


def test_a_filter_changes_no_score(animals: Animals) -> None:
    everything = {hit["key"]: hit["scores"] for hit in animals.find("animal", returnScores=True)}

    filtered = {hit["key"]: hit["scores"] for hit in animals.find("animal", returnScores=True, filter={"legs": 4})}

    assert filtered.items() < everything.items()


def test_a_query_vector_finds_the_chunks_in_the_order_of_retrieve(bedrock: Bedrock, animals: Animals) -> None:
    model = client("bedrock-runtime", bedrock.url)
    body = json.dumps({"inputText": "slow animal with a house"})
    answer = model.invoke_model(modelId="amazon.titan-embed-text-v2:0", body=body)
    vector = {"float32": json.loads(answer["body"].read())["embedding"]}

    found = animals.vectors.query_vectors(indexArn=animals.index, topK=3, queryVector=vector, returnDistance=True)

    retrieved = bedrock.search(animals.source.knowledge_base_id, "slow animal with a house")
    assert [hit["key"] for hit in found["vectors"]] == [result["metadata"][CHUNK_ID] for result in retrieved]
    distances = [1 - result["score"] for result in retrieved]
    assert [hit["distance"] for hit in found["vectors"]] == pytest.approx(distances, abs=1e-4)


def test_chunks_are_listed_and_read_by_their_keys(animals: Animals) -> None:
    listed = animals.vectors.list_vectors(indexArn=animals.index, returnMetadata=True)["vectors"]
    keys = [each["key"] for each in listed]
    read = animals.vectors.get_vectors(indexArn=animals.index, keys=[*keys, "unknown"], returnData=True)["vectors"]

    assert {each["metadata"][TEXT_KEY] for each in listed} == {text for text, _ in TEXTS.values()}
    assert [each["key"] for each in read] == keys
    assert {len(each["data"]["float32"]) for each in read} == {1024}


def test_deleted_documents_are_gone_and_a_deleted_knowledge_base_frees_its_index(
    bedrock: Bedrock, vectors: Any
) -> None:
    index = create_index(vectors, "written-and-gone")
    source = bedrock.custom_source(bedrock.knowledge_base("gone", storage(index)))
    source.ingested(text_document("ant", "The ant is strong."), text_document("bee", "The bee is busy."))
    source.delete({"dataSourceType": "CUSTOM", "custom": {"id": "ant"}})
    source.settled({"dataSourceType": "CUSTOM", "custom": {"id": "ant"}})

    listed = vectors.list_vectors(indexArn=index, returnMetadata=True)["vectors"]
    assert [each["metadata"][TEXT_KEY] for each in listed] == ["The bee is busy."]
    assert "holds the chunks of the knowledge base" in refusal(vectors.delete_index, indexArn=index)
    assert "does not change vectors that it wrote" in refusal(vectors.delete_vectors, indexArn=index, keys=["x"])
    assert "needs an empty vector index" in refusal(bedrock.knowledge_base, name="second", storage=storage(index))


@pytest.mark.parametrize(
    ("filter_", "named"),
    [
        ({TEXT_KEY: "x"}, "Invalid use of non-filterable metadata in filter"),
        ({CHUNK_ID: "x"}, "does not filter the chunks of a knowledge base by"),
    ],
)
def test_some_keys_cannot_filter(animals: Animals, filter_: dict[str, Any], named: str) -> None:
    query = {"indexArn": animals.index, "topK": 1, "queryTexts": [{"text": "x", "metadataKey": TEXT_KEY}]}

    assert named in refusal(animals.vectors.query_vectors, **query, filter=filter_)


def test_an_index_that_does_not_exist_or_fit_is_refused(bedrock: Bedrock, vectors: Any) -> None:
    missing = "arn:aws:s3vectors:us-east-1:000000000000:bucket/nothing/index/here"

    assert "could not be found" in refusal(bedrock.knowledge_base, name="missing", storage=storage(missing))
    small = create_index(vectors, "written-small", dimension=256)
    assert "have 1024 dimensions, those of the index 256" in refusal(
        bedrock.knowledge_base, name="small", storage=storage(small)
    )


def test_a_restart_changes_nothing(tmp_path: Path) -> None:
    with serving(tmp_path) as bedrock:
        index = create_index(client("s3vectors", bedrock.url), "written-restart")
        bedrock.custom_source(bedrock.knowledge_base("restart", storage(index))).ingested(
            text_document("ant", "The ant is strong."), text_document("bee", "The bee is busy.")
        )
        query = {"indexArn": index, "topK": 5, "queryTexts": [{"text": "busy strong", "metadataKey": TEXT_KEY}]}
        before = client("s3vectors", bedrock.url).query_vectors(**query, returnMetadata=True, returnScores=True)

    with serving(tmp_path) as bedrock:
        after = client("s3vectors", bedrock.url).query_vectors(**query, returnMetadata=True, returnScores=True)

    assert len(before["vectors"]) == 2
    assert after["vectors"] == before["vectors"]


def test_rows_of_a_csv_file_have_their_own_metadata(bedrock: Bedrock, vectors: Any, s3: Any, bucket: str) -> None:
    structure = {
        "type": "RECORD_BASED_STRUCTURE_METADATA",
        "recordBasedStructureMetadata": {
            "contentFields": [{"fieldName": "text"}],
            "metadataFieldsSpecification": {"fieldsToInclude": [{"fieldName": "legs"}]},
        },
    }
    sidecar = {"metadataAttributes": {"zoo": "east"}, "documentStructureConfiguration": structure}
    s3.put_object(Bucket=bucket, Key="a.csv", Body=b"text,legs\nThe ant is strong,6\nThe owl is quiet,2\n")
    s3.put_object(Bucket=bucket, Key="a.csv.metadata.json", Body=json.dumps(sidecar).encode())
    index = create_index(vectors, "written-rows")
    bedrock.s3_source(bedrock.knowledge_base("rows", storage(index)), bucket).synchronised()
    query = {"indexArn": index, "topK": 5, "queryTexts": [{"text": "strong quiet", "metadataKey": TEXT_KEY}]}

    found = vectors.query_vectors(**query, returnMetadata=True, filter={"$and": [{"legs": "2"}, {"zoo": "east"}]})

    assert [hit["metadata"][TEXT_KEY] for hit in found["vectors"]] == ["The owl is quiet"]


def test_parts_of_a_parent_name_the_parent_that_retrieve_returns(bedrock: Bedrock, vectors: Any) -> None:
    levels = {"levelConfigurations": [{"maxTokens": 40}, {"maxTokens": 10}], "overlapTokens": 1}
    chunking = {"chunkingStrategy": "HIERARCHICAL", "hierarchicalChunkingConfiguration": levels}
    index = create_index(vectors, "written-parents")
    source = bedrock.custom_source(
        bedrock.knowledge_base("parents", storage(index)),
        vectorIngestionConfiguration={"chunkingConfiguration": chunking},
    )
    source.ingested(text_document("ant", "The ant is strong. It lives in a colony. It carries leaves to the nest."))

    parts = vectors.list_vectors(indexArn=index, returnMetadata=True)["vectors"]

    (parent,) = bedrock.search(source.knowledge_base_id, "ant")
    assert len({part["key"] for part in parts}) == len(parts) > 1
    assert {part["metadata"][CHUNK_ID] for part in parts} == {parent["metadata"][CHUNK_ID]}
    assert all(part["metadata"][TEXT_KEY] in parent["content"]["text"] for part in parts)


def test_words_outside_the_scope_of_a_caller_change_no_score(tmp_path: Path) -> None:
    def found(more: Mapping[str, str]) -> list[Any]:
        with serving(tmp_path / str(len(more)), scope_attribute="access") as bedrock:
            vectors = client("s3vectors", bedrock.url)
            index = create_index(vectors, "written-scope")
            source = bedrock.custom_source(bedrock.knowledge_base("scope", storage(index)))
            mine = {"ant": "The ant is strong.", "bee": "The bee is busy and strong."}
            source.ingested(*(text_document(name, text, {"access": "me"}) for name, text in mine.items()))
            if more:
                source.ingested(*(text_document(name, text, {"access": "you"}) for name, text in more.items()))
            hits = vectors.query_vectors(
                indexArn=index,
                topK=5,
                queryTexts=[{"text": "strong ant", "metadataKey": TEXT_KEY}],
                filter={"access": {"$in": ["me"]}},
                returnScores=True,
                returnMetadata=True,
            )["vectors"]
        return [(hit["metadata"][TEXT_KEY], hit["scores"]) for hit in hits]

    alone = found({})

    assert len(alone) == 2
    assert found({"cat": "The cat hunts the ant.", "dog": "The dog is strong, strong, strong."}) == alone


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("dimension", [256, 2048])
def test_distances_are_those_of_the_vectors_that_are_shown(
    bedrock: Bedrock, vectors: Any, dimension: int, metric: str
) -> None:
    """Whether the index has fewer or more dimensions than the embedding."""
    index = create_index(vectors, f"written-{metric}-{dimension}", dimension, metric)
    request = knowledge_base_request(f"{metric}-{dimension}", storage(index))
    model = request["knowledgeBaseConfiguration"]["vectorKnowledgeBaseConfiguration"]
    model["embeddingModelConfiguration"] = {"bedrockEmbeddingModelConfiguration": {"dimensions": dimension}}
    made = bedrock.agent.create_knowledge_base(**request)["knowledgeBase"]["knowledgeBaseId"]
    bedrock.custom_source(made).ingested(*(text_document(name, text) for name, (text, _) in TEXTS.items()))
    query = np.random.default_rng(3).normal(size=dimension)

    found = vectors.query_vectors(indexArn=index, topK=3, queryVector={"float32": query.tolist()}, returnDistance=True)[
        "vectors"
    ]

    keys = [hit["key"] for hit in found]
    data = vectors.get_vectors(indexArn=index, keys=keys, returnData=True)["vectors"]
    rows = np.array([each["data"]["float32"] for each in data])
    lengths = np.linalg.norm(rows, axis=1)
    cosines = rows @ query / np.linalg.norm(query) / lengths
    wanted = 1 - cosines if metric == "cosine" else np.linalg.norm(rows - query, axis=1)
    assert lengths == pytest.approx(1, abs=1e-6)
    assert len(keys) == 3
    assert [hit["distance"] for hit in found] == pytest.approx(wanted.tolist(), abs=1e-3)
    for each in data:
        itself = vectors.query_vectors(indexArn=index, topK=1, queryVector=each["data"], returnDistance=True)
        assert [hit["key"] for hit in itself["vectors"]] == [each["key"]]
        assert 0 <= itself["vectors"][0]["distance"] < 1e-3
