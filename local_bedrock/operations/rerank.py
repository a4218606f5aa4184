"""Rerank."""

import json
from hashlib import sha256
from typing import Any, Final

from local_bedrock.faults import DependencyFailed, InvalidRequest
from local_bedrock.operations.context import Answer, Context, Request
from local_bedrock.operations.paging import read_token, refuse_token, write_token
from local_bedrock.retrieval.reranking import require_model, score
from ragstack_common.embedding import EmbeddingError

PAGE: Final = 100
"""Results in one answer. AWS publishes no figure; what Retrieve gives at most."""

_MEMBERS: Final = {"TEXT": "textDocument", "JSON": "jsonDocument"}


def rerank(context: Context, request: Request) -> Answer:
    """Order documents by how well they answer a query."""
    configuration = request["rerankingConfiguration"]["bedrockRerankingConfiguration"]
    model = configuration["modelConfiguration"]
    require_model(model["modelArn"])
    if model.get("additionalModelRequestFields"):
        raise InvalidRequest("The local Bedrock has no additionalModelRequestFields: leave it out")
    query = request["queries"][0]["textQuery"].get("text", "")
    if not query.strip():
        raise InvalidRequest("The text of the query is empty: send a query")
    documents = [_document(number, source) for number, source in enumerate(request["sources"])]
    wanted = min(configuration.get("numberOfResults", len(documents)), len(documents))
    fingerprint = _fingerprint(request)
    position = read_token(request.get("nextToken"), offset=int, request=str) or {"offset": 0, "request": fingerprint}
    if position["request"] != fingerprint or position["offset"] < 0:
        raise refuse_token()
    try:
        scores = score(query, [_text(document) for document in documents], context.embedding)
    except EmbeddingError as error:
        raise DependencyFailed(str(error)) from error
    order = sorted(range(len(documents)), key=lambda index: (-scores[index], index))[:wanted]
    end = position["offset"] + PAGE
    results = [
        {"index": index, "relevanceScore": scores[index], "document": documents[index]}
        for index in order[position["offset"] : end]
    ]
    more = {"offset": end, "request": fingerprint}
    return {"results": results, "nextToken": write_token(more) if wanted > end else None}


def _document(number: int, source: Request) -> Answer:
    document: Answer = source["inlineDocumentSource"]
    member = _MEMBERS[document["type"]]
    if member not in document:
        raise InvalidRequest(f"The source {number} is of type {document['type']} and needs {member}")
    return {"type": document["type"], member: document[member]}


def _text(document: Request) -> str:
    if document["type"] == "TEXT":
        return str(document["textDocument"].get("text", ""))
    return "\n".join(_lines(document["jsonDocument"]))


def _lines(value: Any, name: str = "") -> list[str]:
    """Write a JSON document as lines of names and values."""
    if isinstance(value, dict):
        return [line for key, member in value.items() for line in _lines(member, str(key))]
    if isinstance(value, list):
        return [line for member in value for line in _lines(member, name)]
    return [f"{name}: {value}" if name else str(value)]


def _fingerprint(request: Request) -> str:
    asked = {name: value for name, value in request.items() if name != "nextToken"}
    return sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]
