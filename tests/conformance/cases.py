"""For every operation requests that must succeed: what random ones alone would not prove.

An operation that the local Bedrock gains fails the suite until it has a case here.
"""

import json
from typing import Any

from ragstack_common.ingestion.requests import text_document
from tests.conformance.world import (
    EMBEDDING_MODEL,
    RERANKING_MODEL,
    TEXT_MODEL,
    TEXTS,
    USER,
    Case,
    World,
    new_name,
)
from tests.local_bedrock.support import (
    OPENSEARCH,
    S3_VECTORS,
    connector_configuration,
    custom_identifier,
    knowledge_base_request,
    managed_request,
    s3_document,
    s3_identifier,
)

_QUESTION = "Which animal is the fastest on land?"


def _updated_knowledge_base(world: World) -> dict[str, Any]:
    request = knowledge_base_request(new_name())
    return {**request, "knowledgeBaseId": world.expendable_knowledge_base(), "description": "Of animals"}


def _updated_data_source(world: World) -> dict[str, Any]:
    source = world.expendable_source()
    return {
        **source.ids,
        "name": new_name(),
        "dataSourceConfiguration": {"type": "CUSTOM"},
        "description": "Of animals",
    }


def _updated_managed_base(world: World) -> dict[str, Any]:
    fields = [{"name": "animal", "type": "STRING", "searchability": "ENABLED"}]
    base = world.bedrock.managed_base(new_name())
    return {**managed_request(new_name()), "knowledgeBaseId": base, "metadataConfigurations": fields}


def _connector(world: World) -> dict[str, Any]:
    return {
        "knowledgeBaseId": world.bedrock.managed_base(new_name()),
        "name": new_name(),
        "dataSourceConfiguration": _connector_s3(world),
        "vectorIngestionConfiguration": {"parsingConfiguration": {"parsingStrategy": "SMART_PARSING"}},
    }


def _connector_s3(world: World) -> dict[str, Any]:
    connector = {
        "syncSchedule": {"weekly": {"dayOfWeek": "SUNDAY"}},
        "deletionProtectionConfiguration": {"deletionProtectionStatus": "ENABLED", "deletionProtectionThreshold": 50},
        "mediaExtractionConfiguration": {"imageExtractionConfiguration": {"imageExtractionStatus": "DISABLED"}},
    }
    parameters = {
        "connectionConfiguration": {"bucketName": world.bucket},
        "filterConfiguration": {"inclusionPrefixes": ["animals/"], "inclusionPatterns": [".*"]},
    }
    return connector_configuration("S3", connector=connector, **parameters)


def _updated_connector(world: World) -> dict[str, Any]:
    source = world.expendable_s3_connector()
    return {**source.ids, "name": new_name(), "dataSourceConfiguration": _connector_s3(world)}


def _with_access_list(world: World) -> dict[str, Any]:
    document = text_document("owl", "Owls hunt at night.", {"animal": "owl"})
    document["metadata"]["accessControlList"] = [{"name": "ann@example.com", "type": "USER", "access": "ALLOW"}]
    return {**world.expendable_connector("CUSTOM", aclEnabled=True).ids, "documents": [document]}


def _question(world: World) -> dict[str, Any]:
    return {
        "input": {"text": _QUESTION},
        "retrieveAndGenerateConfiguration": {
            "type": "KNOWLEDGE_BASE",
            "knowledgeBaseConfiguration": {"knowledgeBaseId": world.knowledge_base_id, "modelArn": TEXT_MODEL},
        },
    }


def _conversation(_world: World) -> dict[str, Any]:
    text = f"<document>{TEXTS['cheetah']}</document><document>{TEXTS['snail']}</document>{_QUESTION}"
    return {
        "modelId": TEXT_MODEL,
        "messages": [{"role": "user", "content": [{"text": text}]}],
        "inferenceConfig": {"maxTokens": 200},
    }


def _rerank(_world: World) -> dict[str, Any]:
    documents = [{"type": "TEXT", "textDocument": {"text": text}} for text in TEXTS.values()]
    return {
        "queries": [{"type": "TEXT", "textQuery": {"text": _QUESTION}}],
        "sources": [{"type": "INLINE", "inlineDocumentSource": document} for document in documents],
        "rerankingConfiguration": {
            "type": "BEDROCK_RERANKING_MODEL",
            "bedrockRerankingConfiguration": {"modelConfiguration": {"modelArn": RERANKING_MODEL}},
        },
    }


def _filtered(world: World) -> dict[str, Any]:
    return {
        "knowledgeBaseId": world.knowledge_base_id,
        "retrievalQuery": {"text": _QUESTION},
        "retrievalConfiguration": {
            "vectorSearchConfiguration": {
                "numberOfResults": 2,
                "overrideSearchType": "HYBRID",
                "filter": {"notEquals": {"key": "animal", "value": "snail"}},
            }
        },
    }


def _managed_search(world: World) -> dict[str, Any]:
    return {
        "knowledgeBaseId": world.managed.knowledge_base_id,
        "retrievalQuery": {"text": _QUESTION},
        "retrievalConfiguration": {
            "managedSearchConfiguration": {
                "numberOfResults": 2,
                "rerankingModelType": "MANAGED",
                "filter": {"notEquals": {"key": "animal", "value": "snail"}},
            }
        },
        "userContext": {"userId": USER},
    }


def _agentic(world: World) -> dict[str, Any]:
    overrides = {"maxNumberOfResults": 2, "filter": {"notEquals": {"key": "animal", "value": "snail"}}}
    knowledge_base = {"knowledgeBaseId": world.managed.knowledge_base_id, "retrievalOverrides": overrides}
    return {
        "messages": [{"role": "user", "content": {"text": _QUESTION}}],
        "retrievers": [{"configuration": {"knowledgeBase": knowledge_base}, "description": "Of animals"}],
        "agenticRetrieveConfiguration": {"foundationModelType": "MANAGED", "maxAgentIteration": 3},
        "userContext": {"userId": USER},
    }


def _managed_document(world: World, **more: Any) -> dict[str, Any]:
    return {**world.managed.ids, "documentId": "cheetah", **more}


def _index_without_words(world: World) -> dict[str, Any]:
    request = world.vectors.index_request(world.vectors.expendable_bucket(), "plain")
    request["metadataConfiguration"] = {"nonFilterableMetadataKeys": ["text"]}
    return {**request, "distanceMetric": "euclidean", "tags": {"team": "zoo"}}


def _by_vector(world: World) -> dict[str, Any]:
    return {**world.vectors.names, "topK": 2, "queryVector": {"float32": [1.0, 0.2, 0.0]}}


def _by_words(world: World) -> dict[str, Any]:
    return {**world.vectors.names, "topK": 2, "queryTexts": [{"text": "the fastest animals", "metadataKey": "text"}]}


CASES: dict[str, tuple[Case, ...]] = {
    "CreateKnowledgeBase": (
        lambda _world: {**knowledge_base_request(new_name(), OPENSEARCH), "description": "Of animals"},
        lambda _world: knowledge_base_request(new_name(), S3_VECTORS),
        lambda _world: {**knowledge_base_request(new_name()), "tags": {"team": "zoo"}},
        lambda _world: {**managed_request(new_name()), "tags": {"team": "zoo"}},
    ),
    "GetKnowledgeBase": (lambda world: {"knowledgeBaseId": world.knowledge_base_id},),
    "ListKnowledgeBases": (lambda _world: {}, lambda _world: {"maxResults": 1}),
    "UpdateKnowledgeBase": (_updated_knowledge_base, _updated_managed_base),
    "DeleteKnowledgeBase": (lambda world: {"knowledgeBaseId": world.expendable_knowledge_base()},),
    "CreateDataSource": (
        lambda world: {
            "knowledgeBaseId": world.knowledge_base_id,
            "name": new_name(),
            "dataSourceConfiguration": {"type": "CUSTOM"},
        },
        lambda world: {
            "knowledgeBaseId": world.knowledge_base_id,
            "name": new_name(),
            "description": "Of animals",
            "dataDeletionPolicy": "RETAIN",
            "dataSourceConfiguration": {
                "type": "S3",
                "s3Configuration": {"bucketArn": f"arn:aws:s3:::{world.bucket}", "inclusionPrefixes": ["animals/"]},
            },
            "vectorIngestionConfiguration": {"chunkingConfiguration": {"chunkingStrategy": "NONE"}},
        },
        _connector,
    ),
    "GetDataSource": (
        lambda world: world.custom.ids,
        lambda world: world.s3.ids,
        lambda world: world.expendable_s3_connector().ids,
    ),
    "ListDataSources": (lambda world: {"knowledgeBaseId": world.knowledge_base_id, "maxResults": 1},),
    "UpdateDataSource": (_updated_data_source, _updated_connector),
    "DeleteDataSource": (lambda world: world.expendable_source().ids,),
    "IngestKnowledgeBaseDocuments": (
        lambda world: {**world.expendable_source().ids, "documents": [text_document("owl", "Owls hunt at night.")]},
        lambda world: {**world.s3.ids, "documents": [s3_document(world.bucket, "animals/ant.txt")]},
        _with_access_list,
    ),
    "GetKnowledgeBaseDocuments": (
        lambda world: {**world.custom.ids, "documentIdentifiers": [custom_identifier("snail")]},
        lambda world: {**world.s3.ids, "documentIdentifiers": [s3_identifier(world.bucket, "not/there.txt")]},
    ),
    "ListKnowledgeBaseDocuments": (lambda world: world.custom.ids, lambda world: {**world.custom.ids, "maxResults": 1}),
    "DeleteKnowledgeBaseDocuments": (
        lambda world: {**world.expendable_source().ids, "documentIdentifiers": [custom_identifier("dodo")]},
    ),
    "StartIngestionJob": (
        lambda world: world.expendable_s3_source().ids,
        lambda world: world.expendable_s3_connector().ids,
    ),
    "GetIngestionJob": (lambda world: {**world.s3.ids, "ingestionJobId": world.job_id},),
    "ListIngestionJobs": (
        lambda world: world.s3.ids,
        lambda world: {
            **world.s3.ids,
            "filters": [{"attribute": "STATUS", "operator": "EQ", "values": ["COMPLETE"]}],
            "sortBy": {"attribute": "STATUS", "order": "ASCENDING"},
        },
    ),
    "StopIngestionJob": (lambda world: world.expendable_job(),),
    "TagResource": (lambda world: {"resourceArn": world.knowledge_base_arn, "tags": {"team": "zoo"}},),
    "UntagResource": (lambda world: {"resourceArn": world.knowledge_base_arn, "tagKeys": ["team", "owner"]},),
    "ListTagsForResource": (lambda world: {"resourceArn": world.knowledge_base_arn},),
    "Retrieve": (
        lambda world: {"knowledgeBaseId": world.knowledge_base_id, "retrievalQuery": {"text": _QUESTION}},
        _filtered,
        _managed_search,
    ),
    "AgenticRetrieveStream": (_agentic, lambda world: {**_agentic(world), "generateResponse": False}),
    "GetDocumentContent": (
        lambda world: _managed_document(world, userContext={"userId": USER}),
        lambda world: _managed_document(world, userContext={"userId": USER}, outputFormat="EXTRACTED"),
    ),
    "CheckIngestedDocumentAcl": (lambda world: _managed_document(world, userContext={"userId": USER}),),
    "GetIngestedDocumentAcl": (_managed_document,),
    "RetrieveAndGenerate": (_question,),
    "RetrieveAndGenerateStream": (_question,),
    "Rerank": (_rerank,),
    "Converse": (_conversation,),
    "ConverseStream": (_conversation,),
    "InvokeModel": (
        lambda _world: {"modelId": EMBEDDING_MODEL, "body": json.dumps({"inputText": _QUESTION, "dimensions": 256})},
    ),
    "CreateVectorBucket": (
        lambda _world: {"vectorBucketName": new_name()},
        lambda _world: {
            "vectorBucketName": new_name(),
            "tags": {"team": "zoo"},
            "encryptionConfiguration": {"sseType": "aws:kms", "kmsKeyArn": "arn:aws:kms:us-east-1:111122223333:key/x"},
        },
    ),
    "GetVectorBucket": (
        lambda world: {"vectorBucketName": world.vectors.bucket},
        lambda world: {"vectorBucketArn": world.vectors.bucket_arn},
    ),
    "ListVectorBuckets": (lambda _world: {}, lambda _world: {"maxResults": 1, "prefix": "vectors-"}),
    "DeleteVectorBucket": (lambda world: {"vectorBucketName": world.vectors.expendable_bucket()},),
    "PutVectorBucketDefaultIndexMode": (
        lambda world: {"vectorBucketName": world.vectors.bucket, "defaultIndexMode": "ENHANCED"},
    ),
    "UpdateIndexMode": (lambda world: {**world.vectors.names, "indexMode": "ENHANCED"},),
    "UpdateMetadataConfiguration": (
        lambda world: {
            **world.vectors.expendable_index(),
            "add": {"textSearchConfigurations": [{"metadataKey": "animal", "language": "fr"}]},
        },
        lambda world: {
            **world.vectors.expendable_index(),
            "delete": {"textSearchConfigurations": [{"metadataKey": "text"}]},
        },
    ),
    "CreateIndex": (
        lambda world: world.vectors.index_request(world.vectors.expendable_bucket(), "searchable"),
        _index_without_words,
    ),
    "GetIndex": (lambda world: world.vectors.names, lambda world: {"indexArn": world.vectors.index_arn}),
    "ListIndexes": (lambda world: {"vectorBucketName": world.vectors.bucket, "maxResults": 1},),
    "DeleteIndex": (lambda world: world.vectors.expendable_index(),),
    "PutVectors": (lambda world: {**world.vectors.expendable_index(), "vectors": world.vectors.records},),
    "GetVectors": (
        lambda world: {**world.vectors.names, "keys": ["snail", "dodo"], "returnData": True, "returnMetadata": True},
    ),
    "ListVectors": (
        lambda world: world.vectors.names,
        lambda world: {**world.vectors.names, "maxResults": 1, "returnData": True, "returnMetadata": True},
    ),
    "DeleteVectors": (lambda world: {**world.vectors.expendable_index(), "keys": ["snail", "dodo"]},),
    "QueryVectors": (
        _by_vector,
        lambda world: {**_by_vector(world), "returnDistance": True, "returnMetadata": True},
        lambda world: {**_by_vector(world), "filter": {"legs": {"$gte": 6, "$lt": 9}}},
        lambda world: {**_by_words(world), "returnScores": True},
        lambda world: {**_by_vector(world), **_by_words(world), "returnScores": True, "returnDistance": True},
    ),
}
