"""Retrieve's results in the order of a reranker."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from local_bedrock.faults import InvalidRequest
from local_bedrock.retrieval import reranking
from ragstack_common.embedding import Embedding
from ragstack_common.ingestion.sidecars import RESERVED_PREFIX

Configuration = Mapping[str, Any]


def check(configuration: Configuration) -> None:
    """Check what the service model cannot.

    Args:
        configuration: A ``bedrockRerankingConfiguration``.

    Raises:
        InvalidRequest: There is no such model, or the fields of a selective mode are missing.
    """
    reranking.require_model(configuration["modelConfiguration"]["modelArn"])
    if configuration["modelConfiguration"].get("additionalModelRequestFields"):
        raise InvalidRequest("The local Bedrock has no additionalModelRequestFields: leave it out")
    metadata = configuration.get("metadataConfiguration", {})
    if metadata.get("selectionMode") == "SELECTIVE" and "selectiveModeConfiguration" not in metadata:
        raise InvalidRequest("A metadataConfiguration of selectionMode SELECTIVE needs selectiveModeConfiguration")


def rerank(
    results: Sequence[dict[str, Any]], query: str, configuration: Configuration, embedding: Embedding
) -> list[dict[str, Any]]:
    """Order results by what the reranker makes of their text and of the attributes that it is to consider.

    Args:
        results: Retrieve's ``retrievalResults``.
        query: What they were found with.
        configuration: A ``bedrockRerankingConfiguration``.
        embedding: That of the knowledge base.

    Returns:
        At most ``numberOfRerankedResults``, with the reranker's scores; equal ones in the order that they had.
    """
    chosen = configuration.get("metadataConfiguration")
    scores = reranking.score(query, [_considered(result, chosen) for result in results], embedding, ranked=True)
    order = sorted(range(len(results)), key=lambda place: (-scores[place], place))
    ranked = [{**results[place], "score": scores[place]} for place in order]
    return ranked[: configuration.get("numberOfRerankedResults")]


def _considered(result: Mapping[str, Any], chosen: Configuration | None) -> str:
    if chosen is None:
        return str(result["content"]["text"])
    attributes = result["metadata"]
    lines = [f"{name}: {_shown(attributes[name])}" for name in _names(attributes, chosen)]
    return "\n".join([*lines, result["content"]["text"]])


def _names(attributes: Mapping[str, Any], chosen: Configuration) -> Iterable[str]:
    own = [name for name in attributes if not name.startswith(RESERVED_PREFIX)]
    if chosen["selectionMode"] == "ALL":
        return own
    selected = chosen["selectiveModeConfiguration"]
    if "fieldsToInclude" in selected:
        included = {field["fieldName"] for field in selected["fieldsToInclude"]}
        return [name for name in attributes if name in included]
    excluded = {field["fieldName"] for field in selected["fieldsToExclude"]}
    return [name for name in own if name not in excluded]


def _shown(value: Any) -> str:
    return ", ".join(value) if isinstance(value, list) else str(value)
