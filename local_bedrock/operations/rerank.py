"""Rerank."""

from typing import Any, Final

from local_bedrock.http.errors import DependencyFailed, InvalidRequest
from local_bedrock.operations.context import Answer, Context, Request, required_member
from local_bedrock.operations.paging import Listing
from local_bedrock.operations.search_configuration import check_reranking
from local_bedrock.search import reranking
from ragstack_common.embedding import EmbeddingError

PAGE: Final = 100
"""Results on a page. AWS publishes no figure; this is the maximum of Retrieve."""


def rerank(context: Context, request: Request) -> Answer:
    """Order documents by their relevance to a query."""
    configuration = request["rerankingConfiguration"]["bedrockRerankingConfiguration"]
    check_reranking(configuration)
    query = request["queries"][0]["textQuery"].get("text", "")
    if not query.strip():
        raise InvalidRequest("The text of the query is empty: send a query")
    documents = [_document(number, source) for number, source in enumerate(request["sources"])]
    wanted = min(configuration.get("numberOfResults", len(documents)), len(documents))
    listing = Listing("Rerank", request)
    start = listing.position(0)
    try:
        scores = reranking.score(query, [_text(document) for document in documents], context.embedding)
    except EmbeddingError as error:
        raise DependencyFailed(str(error)) from error
    order = sorted(range(len(documents)), key=lambda index: (-scores[index], index))[:wanted]
    results = [
        {"index": index, "relevanceScore": scores[index], "document": documents[index]}
        for index in order[start : start + PAGE]
    ]
    return {"results": results, "nextToken": listing.token(start + PAGE) if wanted > start + PAGE else None}


def _document(number: int, source: Request) -> Answer:
    document: Answer = source["inlineDocumentSource"]
    member = {"TEXT": "textDocument", "JSON": "jsonDocument"}[document["type"]]
    what = f"The source {number} of type {document['type']}"
    return {"type": document["type"], member: required_member(document, what, member)}


def _text(document: Request) -> str:
    if document["type"] == "TEXT":
        return str(document["textDocument"].get("text", ""))
    return "\n".join(_lines(document["jsonDocument"]))


def _lines(value: Any, name: str = "") -> list[str]:
    """Return the values of a JSON document as lines with their names."""
    if isinstance(value, dict):
        return [line for key, member in value.items() for line in _lines(member, str(key))]
    if isinstance(value, list):
        return [line for member in value for line in _lines(member, name)]
    return [f"{name}: {value}" if name else str(value)]
