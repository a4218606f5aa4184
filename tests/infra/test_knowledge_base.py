"""The knowledge base on S3 Vectors, and the one that exists."""

from typing import Any

OWNED = (
    "AWS::Bedrock::KnowledgeBase",
    "AWS::Bedrock::DataSource",
    "AWS::S3Vectors::VectorBucket",
    "AWS::S3Vectors::Index",
)


def test_bedrocks_own_keys_are_not_filterable(aws: Any) -> None:
    index = aws.only("AWS::S3Vectors::Index")

    keys = index["MetadataConfiguration"]["NonFilterableMetadataKeys"]

    assert sorted(keys) == ["AMAZON_BEDROCK_METADATA", "AMAZON_BEDROCK_TEXT"]


def test_the_index_takes_what_the_embedding_model_gives(aws: Any) -> None:
    index = aws.only("AWS::S3Vectors::Index")
    configuration = aws.only("AWS::Bedrock::KnowledgeBase")["KnowledgeBaseConfiguration"]

    vectors = configuration["VectorKnowledgeBaseConfiguration"]
    model = vectors["EmbeddingModelConfiguration"]["BedrockEmbeddingModelConfiguration"]

    assert "amazon.titan-embed-text-v2:0" in str(vectors["EmbeddingModelArn"])
    assert (index["Dimension"], index["DataType"], index["DistanceMetric"]) == (1024, "float32", "cosine")
    assert (model["Dimensions"], model["EmbeddingDataType"].lower()) == (index["Dimension"], index["DataType"])


def test_the_knowledge_base_keeps_its_vectors_in_the_index(aws: Any) -> None:
    storage = aws.only("AWS::Bedrock::KnowledgeBase")["StorageConfiguration"]
    (index,) = aws.resources("AWS::S3Vectors::Index")

    assert storage["Type"] == "S3_VECTORS"
    assert storage["S3VectorsConfiguration"]["IndexArn"] == {"Fn::GetAtt": [index, "IndexArn"]}


def test_the_vectors_are_encrypted_and_kept(aws: Any) -> None:
    bucket = aws.only("AWS::S3Vectors::VectorBucket")
    stateful = [
        *aws.resources("AWS::S3Vectors::VectorBucket").values(),
        *aws.resources("AWS::S3Vectors::Index").values(),
    ]

    assert bucket["EncryptionConfiguration"] == {"SseType": "AES256"}
    assert {resource["DeletionPolicy"] for resource in stateful} == {"Retain"}
    assert {resource["UpdateReplacePolicy"] for resource in stateful} == {"Retain"}


def test_only_this_accounts_knowledge_bases_may_take_the_service_role(aws: Any) -> None:
    (conditions,) = [
        statement["Condition"]
        for _, statement in aws.statements()
        if statement["Effect"] == "Allow" and statement.get("Principal") == {"Service": "bedrock.amazonaws.com"}
    ]

    assert conditions["StringEquals"] == {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}
    assert "knowledge-base/*" in str(conditions["ArnLike"]["aws:SourceArn"])


def test_the_service_role_reads_documents_and_writes_vectors_and_no_more(synthesize: Any) -> None:
    without_headers = synthesize(contextual_headers="off")

    actions = {
        action
        for name, statement in without_headers.statements()
        if name.startswith("VectorsServiceRole") and "Principal" not in statement
        for action in ([statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"])
    }

    assert {action for action in actions if not action.startswith("s3vectors:")} == {
        "bedrock:InvokeModel",
        "s3:GetObject",
        "s3:ListBucket",
    }
    assert "s3vectors:DeleteIndex" not in actions


def test_an_existing_knowledge_base_is_not_created_again(existing: Any) -> None:
    for kind in OWNED:
        assert existing.resources(kind) == {}, kind


def test_the_functions_use_the_existing_knowledge_base(existing: Any) -> None:
    assert existing.environment("query")["KNOWLEDGE_BASE_ID"] == "ABCDEFGHIJ"
    assert existing.environment("ingestion")["KNOWLEDGE_BASE_ID"] == "ABCDEFGHIJ"
    assert existing.environment("ingestion")["DATA_SOURCE_ID"] == "KLMNOPQRST"


def test_rights_reach_the_existing_knowledge_base_and_no_other(existing: Any) -> None:
    resources = [
        str(statement["Resource"]) for _, statement in existing.statements() if "bedrock:" in str(statement["Action"])
    ]

    assert len(resources) == 4
    assert all("knowledge-base/ABCDEFGHIJ" in resource for resource in resources)
