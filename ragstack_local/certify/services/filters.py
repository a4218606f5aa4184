"""Checks of filters: what each operator finds on the data plane of S3 Vectors, and through Retrieve."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

from ragstack_local.certify import documents
from ragstack_local.certify.check import INVALID, Json, Source, Topic
from ragstack_local.certify.fixtures import create_index, ingested, knowledge_base
from ragstack_local.certify.site import Site

ON_VECTORS: Final = Topic("vector-filters", "words (docs/SEARCH.md#words)", "local_bedrock.search.vector_filters")
ON_RETRIEVE: Final = Topic(
    "filters", "filters of searches (docs/SEARCH.md#filters)", "local_bedrock.operations.retrieval"
)


Filters: TypeAlias = Mapping[str, tuple[str, Json, Json, Source]]
"""A belief, a filter, what it finds, and the source, by the names of checks."""


def add_checks(topic: Topic, table: Filters, search: Callable[[Json, Site], Json]) -> None:
    """Add a check for each filter of a table."""
    for name, (belief, filter_, expected, source) in table.items():
        topic.check(name, belief, source, expected)(partial(search, filter_))


_OF_ALL: Final = {"hidden": "x", "lengths": [1, 2]}


def vectors(site: Site) -> Mapping[str, str]:
    """The index with the attributes of animals."""
    index = create_index(site, "filters", 2, metadataConfiguration={"nonFilterableMetadataKeys": ["hidden"]})
    site.client("s3vectors").put_vectors(
        **index,
        vectors=[
            {"key": letter, "data": {"float32": [1.0, number / 10]}, "metadata": {**attributes, **_OF_ALL}}
            for number, (letter, attributes) in enumerate(documents.ANIMALS.items())
        ],
    )
    return index


def _find_vectors(filter_: Json, site: Site) -> Json:
    found = site.client("s3vectors", validates=False).query_vectors(
        **site.shared(vectors), topK=10, queryVector={"float32": [1.0, 0.0]}, filter=filter_
    )
    return "".join(sorted(each["key"] for each in found["vectors"]))


_VECTORS: Final[Filters] = {
    "eq_number": ("$eq finds a number", {"legs": {"$eq": 4}}, "c", Source.DOCUMENTATION),
    "eq_short": ("A filter value without an operator means $eq", {"legs": 4}, "c", Source.DOCUMENTATION),
    "eq_string": ("$eq finds a string", {"name": {"$eq": "whale"}}, "w", Source.DOCUMENTATION),
    "eq_boolean": ("$eq finds a boolean", {"wild": {"$eq": True}}, "c", Source.DOCUMENTATION),
    "eq_list": ("$eq finds a member of a list", {"habitats": {"$eq": "sea"}}, "aw", Source.GUESS),
    "eq_wrong_type": (
        "A filter whose value has another type than the attribute matches nothing",
        {"legs": {"$eq": "4"}},
        "",
        Source.THIRD_PARTY,
    ),
    "eq_boolean_is_no_number": (
        "A filter for the number 1 does not match the boolean true",
        {"wild": {"$eq": 1}},
        "",
        Source.GUESS,
    ),
    "ne": ("$ne also finds vectors without the key", {"legs": {"$ne": 4}}, "answ", Source.GUESS),
    "ne_list": (
        "$ne finds lists without the value, and vectors without the key",
        {"habitats": {"$ne": "sea"}},
        "cns",
        Source.GUESS,
    ),
    "gt": (
        "$gt compares numbers, and does not find vectors without the key",
        {"legs": {"$gt": 0}},
        "ac",
        Source.DOCUMENTATION,
    ),
    "gte": (
        "$gte compares numbers, and does not find vectors without the key",
        {"legs": {"$gte": 6}},
        "a",
        Source.DOCUMENTATION,
    ),
    "lt": (
        "$lt compares numbers, and does not find vectors without the key",
        {"legs": {"$lt": 4}},
        "w",
        Source.DOCUMENTATION,
    ),
    "lte": (
        "$lte compares numbers, and does not find vectors without the key",
        {"legs": {"$lte": 4}},
        "cw",
        Source.DOCUMENTATION,
    ),
    "range": ("Several operators on one key must all match", {"legs": {"$gt": 0, "$lt": 6}}, "c", Source.THIRD_PARTY),
    "gt_list": ("Comparisons do not match members of lists", {"lengths": {"$gt": 0}}, "", Source.GUESS),
    "gt_string": ("$gt refuses a value that is not a number", {"legs": {"$gt": "x"}}, INVALID, Source.DOCUMENTATION),
    "in": ("$in finds one of several values", {"legs": {"$in": [4, 6]}}, "ac", Source.DOCUMENTATION),
    "in_list": ("$in matches members of lists", {"habitats": {"$in": ["sea"]}}, "aw", Source.GUESS),
    "in_empty": ("$in with an empty list is refused", {"legs": {"$in": []}}, INVALID, Source.THIRD_PARTY),
    "nin": ("$nin also finds vectors without the key", {"legs": {"$nin": [4, 6]}}, "nsw", Source.GUESS),
    "nin_list": ("$nin excludes lists with such a member", {"habitats": {"$nin": ["land"]}}, "nsw", Source.GUESS),
    "exists": ("$exists finds vectors with the key", {"legs": {"$exists": True}}, "acw", Source.DOCUMENTATION),
    "exists_not": (
        "$exists false finds vectors without the key",
        {"legs": {"$exists": False}},
        "ns",
        Source.DOCUMENTATION,
    ),
    "starts_with": (
        "$startsWith finds the beginning of a string",
        {"name": {"$startsWith": "ch"}},
        "c",
        Source.DOCUMENTATION,
    ),
    "starts_with_list": (
        "$startsWith does not match members of lists",
        {"habitats": {"$startsWith": "se"}},
        "",
        Source.GUESS,
    ),
    "and": (
        "$and finds what matches all of its filters",
        {"$and": [{"legs": {"$gt": 0}}, {"wild": True}]},
        "c",
        Source.DOCUMENTATION,
    ),
    "or": (
        "$or finds what matches one of its filters",
        {"$or": [{"legs": 0}, {"wild": False}]},
        "sw",
        Source.DOCUMENTATION,
    ),
    "nested": (
        "Groups of filters can be nested",
        {"$or": [{"legs": 0}, {"$and": [{"legs": 6}, {"wild": {"$exists": False}}]}]},
        "aw",
        Source.DOCUMENTATION,
    ),
    "unknown_key": ("A filter on a key that no vector has matches nothing", {"feathers": 1}, "", Source.DOCUMENTATION),
    "empty": ("An empty filter is refused", {}, INVALID, Source.THIRD_PARTY),
    "two_keys": (
        "A filter with two keys in one object is refused",
        {"legs": 4, "wild": True},
        INVALID,
        Source.THIRD_PARTY,
    ),
    "unknown_operator": (
        "A filter with an unknown operator is refused",
        {"legs": {"$regex": "x"}},
        INVALID,
        Source.DOCUMENTATION,
    ),
    "non_filterable": ("A filter on a non-filterable key is refused", {"hidden": "x"}, INVALID, Source.THIRD_PARTY),
    "constraints_100": (
        "$in takes a hundred values",
        {"legs": {"$in": [*range(4, 104)]}},
        "ac",
        Source.DOCUMENTATION,
    ),
    "constraints_101": (
        "A filter has at most 100 constraints, and each value of $in counts as one",
        {"legs": {"$in": [*range(101)]}},
        INVALID,
        Source.DOCUMENTATION,
    ),
    "constraints_nin_101": (
        "A filter has at most 100 constraints, and each value of $nin counts as one",
        {"legs": {"$nin": [*range(101)]}},
        INVALID,
        Source.GUESS,
    ),
    "constraints_or_101": (
        "A filter has at most 100 constraints, and each clause of a group counts as one",
        {"$or": [{"legs": each} for each in range(101)]},
        INVALID,
        Source.DOCUMENTATION,
    ),
}

add_checks(ON_VECTORS, _VECTORS, _find_vectors)


def clause(operator: str, key: str, value: str | float | list[Any]) -> Json:
    """Return a filter of Retrieve with one clause."""
    return {operator: {"key": key, "value": value}}


_IS_WILD: Final = {"equals": {"key": "wild", "value": True}}
_IS_TAME: Final = {"equals": {"key": "wild", "value": False}}
_IS_NOT_WILD: Final = {"notEquals": {"key": "wild", "value": True}}

RETRIEVE: Final[Filters] = {
    "equals_number": ("equals finds a number", clause("equals", "legs", 4), "c", Source.DOCUMENTATION),
    "equals_string": ("equals finds a string", clause("equals", "name", "whale"), "w", Source.DOCUMENTATION),
    "equals_boolean": ("equals finds a boolean", _IS_WILD, "c", Source.DOCUMENTATION),
    "equals_wrong_type": (
        "A filter whose value has another type than the attribute matches nothing",
        clause("equals", "legs", "4"),
        "",
        Source.THIRD_PARTY,
    ),
    "equals_list": ("equals finds a member of a list", clause("equals", "habitats", "sea"), "aw", Source.GUESS),
    "not_equals": (
        "notEquals also finds documents without the key",
        clause("notEquals", "legs", 4),
        "answ",
        Source.DOCUMENTATION,
    ),
    "greater_than": (
        "greaterThan compares numbers, and does not find documents without the key",
        clause("greaterThan", "legs", 0),
        "ac",
        Source.DOCUMENTATION,
    ),
    "greater_than_or_equals": (
        "greaterThanOrEquals compares numbers",
        clause("greaterThanOrEquals", "legs", 6),
        "a",
        Source.DOCUMENTATION,
    ),
    "less_than": (
        "lessThan compares numbers, and needs the key",
        clause("lessThan", "legs", 4),
        "w",
        Source.DOCUMENTATION,
    ),
    "less_than_or_equals": (
        "lessThanOrEquals compares numbers",
        clause("lessThanOrEquals", "legs", 4),
        "cw",
        Source.DOCUMENTATION,
    ),
    "in": ("in finds one of several values", clause("in", "legs", [4, 6]), "ac", Source.DOCUMENTATION),
    "in_list": ("in matches members of lists", clause("in", "habitats", ["sea"]), "aw", Source.GUESS),
    "not_in": ("notIn does not find documents without the key", clause("notIn", "legs", [4, 6]), "w", Source.GUESS),
    "not_in_list": (
        "notIn excludes lists with such a member, and documents without the key",
        clause("notIn", "habitats", ["land"]),
        "w",
        Source.GUESS,
    ),
    "list_contains": (
        "listContains finds a member of a list",
        clause("listContains", "habitats", "sea"),
        "aw",
        Source.DOCUMENTATION,
    ),
    "unknown_key": (
        "A filter on a key that no document has matches nothing",
        clause("equals", "feathers", 1),
        "",
        Source.DOCUMENTATION,
    ),
    "and_all": (
        "andAll finds what matches all of its clauses",
        {"andAll": [clause("greaterThan", "legs", 0), _IS_WILD]},
        "c",
        Source.DOCUMENTATION,
    ),
    "or_all": (
        "orAll finds what matches one of its clauses",
        {"orAll": [clause("equals", "legs", 0), _IS_TAME]},
        "sw",
        Source.DOCUMENTATION,
    ),
    "nested": (
        "Groups of filters can be nested once",
        {
            "orAll": [
                clause("equals", "legs", 0),
                {"andAll": [clause("equals", "legs", 6), _IS_NOT_WILD]},
            ]
        },
        "aw",
        Source.DOCUMENTATION,
    ),
    "nested_twice": (
        "Groups of filters nested twice are refused",
        {
            "orAll": [
                clause("equals", "legs", 0),
                {
                    "andAll": [
                        clause("equals", "legs", 6),
                        {"orAll": [clause("equals", "legs", 6), clause("equals", "legs", 4)]},
                    ]
                },
            ]
        },
        INVALID,
        Source.DOCUMENTATION,
    ),
    "group_of_6": (
        "A group of filters has at most five members",
        {"orAll": [clause("equals", "legs", each) for each in range(6)]},
        INVALID,
        Source.DOCUMENTATION,
    ),
    "in_100": ("in takes a hundred values", clause("in", "legs", [*range(4, 104)]), "ac", Source.DOCUMENTATION),
}

_ON_S3_VECTORS: Final[Filters] = {
    "starts_with": (
        "Retrieve on S3 Vectors refuses startsWith",
        clause("startsWith", "name", "ch"),
        INVALID,
        Source.MODEL,
    ),
    "string_contains": (
        "Retrieve on S3 Vectors ignores stringContains, so everything matches",
        clause("stringContains", "name", "whal"),
        documents.EVERY_ANIMAL,
        Source.THIRD_PARTY,
    ),
    "in_101": (
        "A filter of Retrieve on S3 Vectors has at most 100 constraints, and each value of in counts as one",
        clause("in", "legs", [*range(101)]),
        INVALID,
        Source.GUESS,
    ),
}


def _retrieve(filter_: Json, site: Site) -> Json:
    site.shared(ingested)
    found = site.client("bedrock-agent-runtime", validates=False).retrieve(
        knowledgeBaseId=site.shared(knowledge_base).id,
        retrievalQuery={"text": documents.ANIMAL_QUERY},
        retrievalConfiguration={"vectorSearchConfiguration": {"numberOfResults": 100, "filter": filter_}},
    )
    return documents.letters(found["retrievalResults"])


add_checks(ON_RETRIEVE, {**RETRIEVE, **_ON_S3_VECTORS}, _retrieve)

CHECKS: Final = (*ON_VECTORS.checks, *ON_RETRIEVE.checks)
