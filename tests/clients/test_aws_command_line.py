"""The AWS command line: from an empty folder to an answer, and back."""

import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from ragstack_common.ingestion.requests import text_document
from tests.clients.conftest import ANIMALS, PLANTS, Zoo
from tests.clients.support import ClientError, aws
from tests.local_bedrock.support import S3_VECTORS, Source, custom_identifier, knowledge_base_request

pytestmark = pytest.mark.xdist_group("clients")

FASTEST = "the fastest animal on land"
TEXT_MODEL = "anthropic.claude-3-haiku-20240307-v1:0"
EMBEDDING_MODEL = "amazon.titan-embed-text-v2:0"


def retrieve(zoo: Zoo, *options: str, **members: Any) -> Any:
    return aws(
        zoo.url,
        "bedrock-agent-runtime",
        "retrieve",
        *options,
        knowledge_base_id=zoo.knowledge_base_id,
        retrieval_query={"text": FASTEST},
        **members,
    )


def test_a_bucket_becomes_searchable(zoo: Zoo, s3: Any) -> None:
    s3.create_bucket(Bucket="cli")
    s3.put_object(Bucket="cli", Key="animals/ant.txt", Body=b"The ant is the strongest animal for its weight.")
    s3.put_object(
        Bucket="cli", Key="animals/ant.txt.metadata.json", Body=b'{"metadataAttributes": {"class": "insect"}}'
    )
    request = {**knowledge_base_request("cli", S3_VECTORS)}
    made = aws(
        zoo.url,
        "bedrock-agent",
        "create-knowledge-base",
        name="cli",
        role_arn=request["roleArn"],
        knowledge_base_configuration=request["knowledgeBaseConfiguration"],
        storage_configuration=request["storageConfiguration"],
    )
    knowledge_base_id = made["knowledgeBase"]["knowledgeBaseId"]
    source = aws(
        zoo.url,
        "bedrock-agent",
        "create-data-source",
        name="bucket",
        knowledge_base_id=knowledge_base_id,
        data_source_configuration={"type": "S3", "s3Configuration": {"bucketArn": "arn:aws:s3:::cli"}},
    )
    ids = {"knowledge_base_id": knowledge_base_id, "data_source_id": source["dataSource"]["dataSourceId"]}

    started = aws(zoo.url, "bedrock-agent", "start-ingestion-job", **ids)["ingestionJob"]
    Source(zoo.bedrock, *ids.values()).ended(started["ingestionJobId"])
    ended = aws(zoo.url, "bedrock-agent", "get-ingestion-job", ingestion_job_id=started["ingestionJobId"], **ids)[
        "ingestionJob"
    ]
    found = aws(
        zoo.url,
        "bedrock-agent-runtime",
        "retrieve",
        knowledge_base_id=knowledge_base_id,
        retrieval_query={"text": "the strongest animal"},
        retrieval_configuration={
            "vectorSearchConfiguration": {"filter": {"equals": {"key": "class", "value": "insect"}}}
        },
    )["retrievalResults"]

    assert started["status"] == "STARTING"
    assert ended["statistics"]["numberOfNewDocumentsIndexed"] == 1
    assert [result["location"]["s3Location"]["uri"] for result in found] == ["s3://cli/animals/ant.txt"]


def test_documents_are_ingested_listed_and_deleted(zoo: Zoo) -> None:
    source = zoo.bedrock.custom_source(zoo.bedrock.knowledge_base("documents"))
    ids = {"knowledge_base_id": source.knowledge_base_id, "data_source_id": source.id}
    documents = [text_document(name, text) for name, (text, _attributes) in ANIMALS.items()]

    aws(zoo.url, "bedrock-agent", "ingest-knowledge-base-documents", documents=documents, **ids)
    source.settled(*map(custom_identifier, ANIMALS))
    listed = aws(
        zoo.url, "bedrock-agent", "list-knowledge-base-documents", "--page-size", "2", "--max-items", "4", **ids
    )
    rest = aws(
        zoo.url,
        "bedrock-agent",
        "list-knowledge-base-documents",
        "--starting-token",
        listed["NextToken"],
        **ids,
    )
    deleted = aws(
        zoo.url,
        "bedrock-agent",
        "delete-knowledge-base-documents",
        document_identifiers=[custom_identifier("snail")],
        **ids,
    )

    together = [detail["identifier"]["custom"]["id"] for detail in listed["documentDetails"] + rest["documentDetails"]]
    assert together == list(ANIMALS)
    assert deleted["documentDetails"][0]["status"] in ("DELETING", "DELETE_IN_PROGRESS")


def test_results_come_in_order_and_pages_are_followed(zoo: Zoo) -> None:
    page = {"vectorSearchConfiguration": {"numberOfResults": 4}}
    single = {"vectorSearchConfiguration": {"numberOfResults": 1}}

    first_page = retrieve(zoo, "--no-paginate", retrieval_configuration=page)["retrievalResults"]
    one_by_one = retrieve(zoo, retrieval_configuration=single)["retrievalResults"]

    assert first_page[0]["content"]["text"] == ANIMALS["cheetah"][0]
    assert len(one_by_one) == len(ANIMALS) + len(PLANTS)
    assert one_by_one[: len(first_page)] == first_page


def test_a_question_is_answered_with_its_source(zoo: Zoo) -> None:
    answer = aws(
        zoo.url,
        "bedrock-agent-runtime",
        "retrieve-and-generate",
        input={"text": "Which animal has three hearts?"},
        retrieve_and_generate_configuration={
            "type": "KNOWLEDGE_BASE",
            "knowledgeBaseConfiguration": {"knowledgeBaseId": zoo.knowledge_base_id, "modelArn": TEXT_MODEL},
        },
    )

    cited = [reference for citation in answer["citations"] for reference in citation["retrievedReferences"]]
    assert "three hearts" in answer["output"]["text"]
    assert cited[0]["location"]["customDocumentLocation"]["id"] == "octopus"
    assert answer["sessionId"]


def test_a_conversation_gets_an_answer(zoo: Zoo) -> None:
    passages = f"<document>{ANIMALS['octopus'][0]}</document><document>{ANIMALS['snail'][0]}</document>"
    text = f"{passages}\n\nWhich animal has three hearts?"

    answer = aws(
        zoo.url,
        "bedrock-runtime",
        "converse",
        model_id=TEXT_MODEL,
        messages=[{"role": "user", "content": [{"text": text}]}],
    )

    assert "three hearts" in answer["output"]["message"]["content"][0]["text"]
    assert answer["stopReason"] == "end_turn"


def test_a_text_is_embedded_into_a_file(zoo: Zoo, tmp_path: Path) -> None:
    body = json.dumps({"inputText": FASTEST, "dimensions": 256})

    aws(zoo.url, "bedrock-runtime", "invoke-model", str(tmp_path / "answer"), model_id=EMBEDDING_MODEL, body=body)

    assert len(json.loads((tmp_path / "answer").read_text())["embedding"]) == 256


def test_an_error_reads_as_that_of_aws(zoo: Zoo) -> None:
    with pytest.raises(ClientError) as raised:
        aws(zoo.url, "bedrock-agent", "get-knowledge-base", knowledge_base_id="UNKNOWN000")

    assert "An error occurred (ResourceNotFoundException) when calling the GetKnowledgeBase operation" in str(
        raised.value
    )


def test_a_vector_bucket_is_made_filled_and_searched(zoo: Zoo) -> None:
    """Its newest release does not know queryTexts yet, so words are left to boto3."""

    def s3_vectors(operation: str, **members: Any) -> Any:
        return aws(zoo.url, "s3vectors", operation, **members)

    s3_vectors("create-vector-bucket", vector_bucket_name="command-line")
    place = {"vector_bucket_name": "command-line", "index_name": "animals"}
    s3_vectors("create-index", **place, data_type="float32", dimension=2, distance_metric="euclidean")
    vectors = [
        {"key": "cheetah", "data": {"float32": [4, 0]}, "metadata": {"legs": 4}},
        {"key": "whale", "data": {"float32": [0, 1]}, "metadata": {"legs": 0}},
    ]
    s3_vectors("put-vectors", **place, vectors=vectors)
    query = {"top_k": 2, "query_vector": {"float32": [0, 0]}}

    found = aws(zoo.url, "s3vectors", "query-vectors", "--return-distance", **place, **query)
    filtered = s3_vectors("query-vectors", **place, **query, filter={"legs": {"$gt": 0}})

    assert [(each["key"], each["distance"]) for each in found["vectors"]] == [("whale", 1.0), ("cheetah", 4.0)]
    assert [each["key"] for each in filtered["vectors"]] == ["cheetah"]
    assert s3_vectors("get-index", **place)["index"]["dimension"] == 2
    assert {each["key"] for each in s3_vectors("list-vectors", **place)["vectors"]} == {"cheetah", "whale"}
    with pytest.raises(ClientError, match="The specified vector bucket is not empty"):
        s3_vectors("delete-vector-bucket", vector_bucket_name="command-line")
    s3_vectors("delete-index", **place)
    s3_vectors("delete-vector-bucket", vector_bucket_name="command-line")


def test_it_gets_the_content_of_a_managed_document(zoo: Zoo) -> None:
    content = aws(
        zoo.url,
        "bedrock-agent-runtime",
        "get-document-content",
        knowledge_base_id=zoo.managed.knowledge_base_id,
        data_source_id=zoo.managed.id,
        document_id="octopus",
    )

    with urllib.request.urlopen(content["presignedUrl"], timeout=30) as answer:
        assert answer.read().decode() == ANIMALS["octopus"][0]
