"""A vectorSearchConfiguration read, and refused where the service or the chosen vector store would refuse it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from local_bedrock.faults import InvalidRequest
from local_bedrock.retrieval import search_reranking
from local_bedrock.store.resources import KnowledgeBase
from ragstack_common.errors import InvalidFilterError
from ragstack_common.filters import Filter, parse
from ragstack_common.filters.bedrock import MAX_MEMBERS

DEFAULT_RESULTS: Final = 5
"""Source: bedrock-agent-runtime, documentation of KnowledgeBaseVectorSearchConfiguration$numberOfResults."""

_WITHOUT_WORDS: Final = "S3_VECTORS"
_GROUPS: Final = ("andAll", "orAll")
_NEEDS_MODEL: Final = "implicitFilterConfiguration"


@dataclass(frozen=True)
class SearchConfiguration:
    """How to search.

    Attributes:
        number_of_results: Chunks on a page, 1 to 100.
        hybrid: Vectors and BM25, or vectors only.
        condition: Restricts the documents.
        reranking: The request's ``bedrockRerankingConfiguration``.
    """

    number_of_results: int
    hybrid: bool
    condition: Filter | None
    reranking: Mapping[str, Any] | None


def read(base: KnowledgeBase, configuration: Mapping[str, Any]) -> SearchConfiguration:
    """Read what the service model has checked.

    Raises:
        InvalidRequest: The vector store cannot do it, the filter is over the limits, or it is not imitated.
    """
    if _NEEDS_MODEL in configuration:
        raise InvalidRequest(f"The local Bedrock has no {_NEEDS_MODEL}: leave it out and write the filter yourself")
    return SearchConfiguration(
        number_of_results=configuration.get("numberOfResults", DEFAULT_RESULTS),
        hybrid=_hybrid(base, configuration.get("overrideSearchType")),
        condition=_condition(base, configuration.get("filter")),
        reranking=_reranking(configuration.get("rerankingConfiguration")),
    )


def _hybrid(base: KnowledgeBase, chosen: str | None) -> bool:
    if base.search == _WITHOUT_WORDS:
        if chosen == "HYBRID":
            raise InvalidRequest(f"HYBRID search type is not supported for search operation on index {base.search}")
        return False
    return chosen != "SEMANTIC"


def _condition(base: KnowledgeBase, given: Mapping[str, Any] | None) -> Filter | None:
    if given is None:
        return None
    _check_limits(given)
    if base.search == _WITHOUT_WORDS and any("startsWith" in part for part in _parts(given)):
        raise InvalidRequest(f"The filter operator startsWith is not supported on {base.search}")
    try:
        return parse(given)
    except InvalidFilterError as error:
        raise InvalidRequest(f"The filter is not valid: {error}") from error


def _check_limits(given: Mapping[str, Any], depth: int = 0) -> None:
    """Hold a filter to five conditions a group and one level of nesting, which is five groups at most."""
    for name in _GROUPS:
        if name not in given:
            continue
        if depth > 1:
            raise InvalidRequest(f"The filter nests {name} too deep: a group may stand in one other group")
        if len(given[name]) > MAX_MEMBERS:
            raise InvalidRequest(f"The filter has {len(given[name])} conditions in {name}, at most {MAX_MEMBERS} fit")
        for member in given[name]:
            _check_limits(member, depth + 1)


def _parts(given: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield given
    for name in _GROUPS:
        for member in given.get(name, ()):
            yield from _parts(member)


def _reranking(given: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    if given is None:
        return None
    if "bedrockRerankingConfiguration" not in given:
        raise InvalidRequest(f"A rerankingConfiguration of type {given['type']} needs bedrockRerankingConfiguration")
    found: Mapping[str, Any] = given["bedrockRerankingConfiguration"]
    search_reranking.check(found)
    return found
