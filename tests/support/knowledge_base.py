"""A knowledge base for tests: identifiers that the API accepts, hits as it returns them."""

import json
from typing import Any

KNOWLEDGE_BASE = "KBKBKBKBK1"
DATA_SOURCE = "DSDSDSDSD1"
TOPIC = {"topic": {"$eq": "genealogy"}}


def hit(uri: str | None = "s3://bucket/a.txt", score: float | None = 0.5, text: str = "A passage.", **more: Any) -> Any:
    """Write one hit; without a URI it has no location, without a score no score."""
    found: dict[str, Any] = {"content": {"type": "TEXT", "text": text}, **more}
    if uri is not None:
        found["location"] = {"type": "S3", "s3Location": {"uri": uri}}
    if score is not None:
        found["score"] = score
    return found


def chunk(uri: str | None, score: float | None, chunk_id: str, text: str = "A passage.") -> Any:
    return hit(uri, score, text, metadata={"x-amz-bedrock-kb-chunk-id": chunk_id})


def described_knowledge_base(**more: Any) -> dict[str, Any]:
    """Write the answer of GetKnowledgeBase."""
    base = {
        "knowledgeBaseId": KNOWLEDGE_BASE,
        "name": "handbook",
        "knowledgeBaseArn": f"arn:aws:bedrock:eu-west-1:123456789012:knowledge-base/{KNOWLEDGE_BASE}",
        "roleArn": "arn:aws:iam::123456789012:role/knowledge-base",
        "knowledgeBaseConfiguration": {"type": "VECTOR"},
        "status": "ACTIVE",
        "createdAt": 0,
        "updatedAt": 0,
    }
    return {"knowledgeBase": {**base, **more}}


def hits(*found: Any) -> dict[str, Any]:
    return {"retrievalResults": list(found)}


def search_of(parameters: dict[str, Any]) -> dict[str, Any]:
    """Read the vector search, or the managed search, of a Retrieve request."""
    (search,) = parameters["retrievalConfiguration"].values()
    return dict(search)


def is_filtered(parameters: dict[str, Any]) -> bool:
    """Whether this is the slice with the metadata filter, which names a topic."""
    return '"topic"' in json.dumps(search_of(parameters).get("filter", {}))


def is_unfiltered(parameters: dict[str, Any]) -> bool:
    return not is_filtered(parameters)


def uris(results: list[dict[str, Any]]) -> list[str]:
    return [result["location"]["s3Location"]["uri"] for result in results]
