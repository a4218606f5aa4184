"""What a retrievalConfiguration asks for: vectorSearchConfiguration, or managedSearchConfiguration on MANAGED bases."""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final

from local_bedrock.http.errors import InvalidRequest
from local_bedrock.operations.context import refuse_unsupported, required_member
from local_bedrock.search import reranking
from local_bedrock.store.resources import StoredKnowledgeBase
from ragstack_common.core.errors import InvalidFilterError
from ragstack_common.filters import Filter, Operator, parse
from ragstack_common.filters.bedrock import MAX_MEMBERS
from ragstack_common.filters.constraints import constraints
from ragstack_common.filters.store_rules import STORE_RULES
from ragstack_common.filters.tree import And, Clause, Or, all_of
from ragstack_common.settings.names import MANAGED, S3_VECTORS

DEFAULT_RESULTS: Final = 5
"""Source: bedrock-agent-runtime, documentation of KnowledgeBaseVectorSearchConfiguration$numberOfResults, and Amazon
Bedrock User Guide, managed knowledge bases, query configurations."""

MANAGED_CANDIDATES: Final = 100
"""Chunks that the managed reranker orders, and so the results on all pages: the maximum of a page. A guess, because AWS
publishes no figure.

100 abstracts take 23 ms of processor time; with their texts embedded again by MiniLM, 4.2 s. With 10, 20, 50 and 100 of
them, nDCG@10 on CACM is .493, .485, .494 and .487 (`hashed`); without the reranker .501.
"""


@dataclass(frozen=True)
class Reranking:
    """A reranking of the best chunks.

    Attributes:
        candidates: Chunks that are reranked.
        results: Chunks that are left, on all pages.
        uses_vectors: Compares the query with the vectors of the chunks; otherwise their texts are embedded again.
    """

    candidates: int
    results: int
    uses_vectors: bool = False


@dataclass(frozen=True)
class SearchConfiguration:
    """A search that the knowledge base supports.

    Attributes:
        number_of_results: Chunks on a page, 1 to 100.
        hybrid: Vectors and BM25, or vectors only.
        filters: Restricts the documents.
        reranking: None keeps the order of the search.
    """

    number_of_results: int
    hybrid: bool
    filters: Filter | None
    reranking: Reranking | None


def read_configuration(base: StoredKnowledgeBase, given: Mapping[str, Any]) -> SearchConfiguration:
    """Read a validated retrievalConfiguration.

    Raises:
        InvalidRequest: It is for another type of knowledge base, the vector store or the local Bedrock doesn't support
            it, or the filter exceeds the limits.
    """
    if base.is_managed:
        if "vectorSearchConfiguration" in given:
            # As the service says it; awslabs.bedrock-kb-retrieval-mcp-server reads the name of the right one in it.
            raise InvalidRequest(
                "vectorSearchConfiguration is not supported for managed knowledge bases."
                " Use managedSearchConfiguration instead."
            )
        return managed_configuration(base, given.get("managedSearchConfiguration", {}))
    if "managedSearchConfiguration" in given:
        raise InvalidRequest("managedSearchConfiguration is for MANAGED knowledge bases: use vectorSearchConfiguration")
    return _vector_configuration(base, given.get("vectorSearchConfiguration", {}))


def _vector_configuration(base: StoredKnowledgeBase, given: Mapping[str, Any]) -> SearchConfiguration:
    if "implicitFilterConfiguration" in given:
        raise InvalidRequest("The local Bedrock does not support implicitFilterConfiguration: send a filter instead")
    number = given.get("numberOfResults", DEFAULT_RESULTS)
    return SearchConfiguration(
        number_of_results=number,
        hybrid=_hybrid(base, given.get("overrideSearchType")),
        filters=_filters(base, given.get("filter")),
        reranking=_by_model(given["rerankingConfiguration"], number) if "rerankingConfiguration" in given else None,
    )


def managed_configuration(base: StoredKnowledgeBase, given: Mapping[str, Any]) -> SearchConfiguration:
    """Read a validated managedSearchConfiguration.

    Raises:
        InvalidRequest: It contradicts itself or the knowledge base, or the filter is not supported.
    """
    number = given.get("numberOfResults", DEFAULT_RESULTS)
    return SearchConfiguration(
        number_of_results=number,
        hybrid=True,
        filters=_filters(base, given.get("filter")),
        reranking=_managed_reranking(base, given, number),
    )


def _managed_reranking(base: StoredKnowledgeBase, given: Mapping[str, Any], number: int) -> Reranking | None:
    has_own_embedding = bool(base.embedding_model)
    by_default = "NONE" if has_own_embedding else "MANAGED"
    # A rerankingConfiguration alone is that of a model: awslabs.bedrock-kb-retrieval-mcp-server names no type.
    chosen = given.get("rerankingModelType", "CUSTOM" if "rerankingConfiguration" in given else by_default)
    what = f"A managedSearchConfiguration with the rerankingModelType {chosen}"
    if chosen == "CUSTOM":
        return _by_model(required_member(given, what, "rerankingConfiguration"), number)
    if "rerankingConfiguration" in given:
        raise InvalidRequest(f"{what} cannot have rerankingConfiguration")
    if chosen == "NONE":
        return None
    if has_own_embedding:
        raise InvalidRequest(
            "The managed reranker is not available for knowledge bases with a CUSTOM embedding model: set"
            " rerankingModelType to CUSTOM or NONE"
        )
    return Reranking(MANAGED_CANDIDATES, MANAGED_CANDIDATES, uses_vectors=True)


def _hybrid(base: StoredKnowledgeBase, chosen: str | None) -> bool:
    has_hybrid = STORE_RULES[base.search].has_hybrid
    if chosen == "HYBRID" and not has_hybrid:
        raise InvalidRequest(f"HYBRID search type is not supported for search operation on index {base.search}")
    return has_hybrid and chosen != "SEMANTIC"


_REFUSED: Final[Mapping[str, frozenset[Operator]]] = {
    S3_VECTORS: frozenset({Operator.STARTS_WITH}),
    # Source: Amazon Bedrock User Guide, managed knowledge bases, query configurations.
    MANAGED: frozenset({Operator.STARTS_WITH, Operator.STRING_CONTAINS}),
}
"""Operators that a request must not have, by vector store."""


def _filters(base: StoredKnowledgeBase, given: Mapping[str, Any] | None) -> Filter | None:
    if given is None:
        return None
    _check_limits(given)
    for operator in sorted(_REFUSED.get(base.search, ())):
        if any(operator in part for part in _parts(given)):
            raise InvalidRequest(f"The filter operator {operator} is not supported on {base.search}")
    try:
        filter_ = parse(given)
    except InvalidFilterError as error:
        raise InvalidRequest(f"The filter is not valid: {error}") from error
    rules = STORE_RULES[base.search]
    if rules.max_constraints is not None and constraints(filter_) > rules.max_constraints:
        raise InvalidRequest(f"The filter has more than {rules.max_constraints} constraints")
    return _without_ignored(filter_, rules.ignored)


def _without_ignored(filter_: Filter, ignored: AbstractSet[Operator]) -> Filter | None:
    """Leave out what the vector store ignores, which every document matches; None is no filter."""
    match filter_:
        case And(members):
            return all_of(*(_without_ignored(member, ignored) for member in members))
        case Or(members):
            left = [part for member in members if (part := _without_ignored(member, ignored))]
            return Or(tuple(left)) if len(left) == len(members) else None
        case Clause(operator) if operator in ignored:
            return None
    return filter_


_GROUPS: Final = ("andAll", "orAll")


def _check_limits(given: Mapping[str, Any], depth: int = 0) -> None:
    """Check the limits of AWS: five members in a group, and one level of nesting."""
    for name in _GROUPS:
        if name not in given:
            continue
        if depth > 1:
            raise InvalidRequest(f"The filter nests {name} too deeply: a group can be in one other group")
        if len(given[name]) > MAX_MEMBERS:
            raise InvalidRequest(f"The filter has {len(given[name])} members in {name}; the maximum is {MAX_MEMBERS}")
        for member in given[name]:
            _check_limits(member, depth + 1)


def _parts(given: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield given
    for name in _GROUPS:
        for member in given.get(name, ()):
            yield from _parts(member)


def _by_model(given: Mapping[str, Any], number: int) -> Reranking:
    """Read a rerankingConfiguration: the chunks of one page are reranked."""
    found = required_member(given, f"A rerankingConfiguration of type {given['type']}", "bedrockRerankingConfiguration")
    check_reranking(found)
    return Reranking(number, found.get("numberOfRerankedResults", number))


def check_reranking(configuration: Mapping[str, Any]) -> None:
    """Check a ``bedrockRerankingConfiguration`` beyond the service model.

    Raises:
        InvalidRequest: The model is unknown, or a setting is not supported.
    """
    reranking.require_model(configuration["modelConfiguration"]["modelArn"])
    refuse_unsupported(configuration["modelConfiguration"], "additionalModelRequestFields")
    refuse_unsupported(configuration, "metadataConfiguration")
