"""Search in S3 Vectors: by vector, by words, or both; and its filters.

Documented (user guide of Amazon S3, "Metadata filtering" and "Changing a vector index's mode"): the operators and the
types of their operands; a bare value is ``$eq``; ``$eq`` finds a value among the members of a list; ``$startsWith`` and
at most 100 constraints on an ENHANCED index; a filter on a non-filterable key is refused. Reported by users: a filter
with two attributes side by side is refused and wants ``$and``.

Assumed, because it is written nowhere: ``$ne`` and ``$nin`` are the opposites of ``$eq`` and ``$in``, so that they also
find vectors that lack the key; ``$in`` and ``$startsWith`` look among the members of a list as ``$eq`` does; strings,
numbers and booleans never equal each other; only single numbers are compared; how deep groups may be nested.
"""

import math
import operator as op
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from local_bedrock.http.errors import InvalidRequest
from local_bedrock.search.ranking import CANDIDATES
from local_bedrock.store import schema, vectors
from local_bedrock.store.database import View
from local_bedrock.store.s3_vectors import Index, TextSearch
from local_bedrock.store.vectors import Ids, Vectors
from local_bedrock.store.words import query_words
from ragstack_common.filters.tree import kind_of

MOST_CONSTRAINTS: Final = 100
DEEPEST: Final = 32

Test = Callable[[Mapping[str, Any]], bool]

_GROUPS: Final[dict[str, Callable[[Iterable[bool]], bool]]] = {"$and": all, "$or": any}
_COMPARISONS: Final[dict[str, Callable[[Any, Any], bool]]] = {"$gt": op.gt, "$gte": op.ge, "$lt": op.lt, "$lte": op.le}
_ONE: Final = ("$eq", "$ne")
_SEVERAL: Final = ("$in", "$nin")


def compiled(filter_: object, non_filterable: Collection[str]) -> Test:
    """Check a filter, and return a test for the metadata of a vector.

    Raises:
        InvalidRequest: It is malformed or uses a forbidden key; the message names the place.
    """
    constraints: list[str] = []
    test = _filter(filter_, non_filterable, constraints, 1)
    if len(constraints) > MOST_CONSTRAINTS:
        raise _invalid(f"it has {len(constraints)} constraints; the maximum is {MOST_CONSTRAINTS}")
    return test


def _filter(filter_: object, non_filterable: Collection[str], constraints: list[str], depth: int) -> Test:
    if not isinstance(filter_, dict):
        raise _invalid(f"{_shown(filter_)} is not an object")
    if len(filter_) != 1:
        raise _invalid(f"an object has {len(filter_)} keys instead of one: combine them with $and")
    if depth > DEEPEST:
        raise _invalid(f"it is nested deeper than {DEEPEST} levels")
    ((key, value),) = filter_.items()
    if key in _GROUPS:
        if not isinstance(value, list) or not value:
            raise _invalid(f"{key} takes a list of at least one filter, not {_shown(value)}")
        members = [_filter(member, non_filterable, constraints, depth + 1) for member in value]
        combine = _GROUPS[key]
        return lambda metadata: combine(member(metadata) for member in members)
    if key.startswith("$"):
        raise _invalid(f"the operator {key} is not allowed here")
    if key in non_filterable:
        raise _invalid(f"the metadata key {key} is non-filterable")
    return _attribute(key, value, constraints)


def _attribute(key: str, value: object, constraints: list[str]) -> Test:
    operators = value if isinstance(value, dict) else {"$eq": value}
    if not operators:
        raise _invalid(f"{key} has no operator")
    tests = [_constraint(key, name, operand) for name, operand in operators.items()]
    constraints += [key] * len(tests)
    return lambda metadata: all(test(metadata) for test in tests)


def _constraint(key: str, name: str, operand: Any) -> Test:
    if name in _ONE:
        _check_operand(key, name, operand, is_primitive(operand), "a string, a number or a boolean")
        return _among(key, [operand], negated=name == "$ne")
    if name in _SEVERAL:
        fits = isinstance(operand, list) and bool(operand) and all(map(is_primitive, operand))
        _check_operand(key, name, operand, fits, "a list of at least one string, number or boolean")
        return _among(key, operand, negated=name == "$nin")
    if name in _COMPARISONS:
        _check_operand(key, name, operand, is_primitive(operand) and kind_of(operand) == "number", "a number")
        compare = _COMPARISONS[name]
        return lambda metadata: kind_of(metadata.get(key)) == "number" and compare(metadata[key], operand)
    if name == "$exists":
        _check_operand(key, name, operand, isinstance(operand, bool), "a boolean")
        return lambda metadata: (key in metadata) is operand
    if name == "$startsWith":
        _check_operand(key, name, operand, isinstance(operand, str), "a string")
        return lambda metadata: any(isinstance(m, str) and m.startswith(operand) for m in _members(metadata.get(key)))
    raise _invalid(f"{key} has the unknown operator {name}")


def _among(key: str, wanted: list[Any], *, negated: bool) -> Test:
    def test(metadata: Mapping[str, Any]) -> bool:
        found = any(
            kind_of(member) == kind_of(value) and member == value
            for member in _members(metadata.get(key))
            for value in wanted
        )
        return found is not negated

    return test


def _members(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def is_primitive(value: object) -> bool:
    """Whether a value can be metadata by itself: a string, a boolean or a finite number."""
    return isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value))


def _check_operand(key: str, name: str, operand: object, fits: bool, wanted: str) -> None:
    if not fits:
        raise _invalid(f"{name} of {key} takes {wanted}, not {_shown(operand)}")


def _shown(value: object) -> str:
    text = str(value)
    return text if len(text) <= 80 else f"{text[:80]}..."  # noqa: PLR2004


def _invalid(reason: str) -> InvalidRequest:
    return InvalidRequest(f"Invalid query filter: {reason}")


RANK_CONSTANT: Final = 60
"""Constant of reciprocal rank fusion. Source: Cormack et al. 2009; the constant of AWS is not documented."""


@dataclass(frozen=True)
class VectorQuery:
    """A search by vector, by words, or by both.

    Attributes:
        vector: As received, of shape ``(dimension,)``.
        texts: The words to search in each metadata key.
        allowed: Restricts the search to these ids; None for all.
    """

    vector: Vectors | None
    texts: Sequence[tuple[TextSearch, str]] = ()
    allowed: Ids | None = None


@dataclass
class Hit:
    """A result, by its internal id.

    Attributes:
        distance: From the vector of the query, if the search by vector found it.
        fused: The fused score of a search by vector and words.
        bm25: By metadata key; higher is better.
    """

    id: int
    distance: float | None = None
    fused: float | None = None
    bm25: dict[str, float] = field(default_factory=dict)


def search(view: View, index: Index, query: VectorQuery, limit: int) -> list[Hit]:
    """Return the best vectors, best first; ties are in the order of insertion."""
    hits: dict[int, Hit] = {}
    rankings: list[list[int]] = []
    if query.vector is not None:
        most = CANDIDATES if query.texts else limit
        ids, distances = vectors.nearest(view.vectors, index.metric, query.vector, most, query.allowed)
        rankings.append(ids.tolist())
        hits = {id_: Hit(id_, distance) for id_, distance in zip(rankings[0], distances.tolist(), strict=True)}
    for text_search, text in query.texts:
        scores = _by_words(view, text_search, text, query.allowed)
        rankings.append(list(scores))
        for id_, score in scores.items():
            hits.setdefault(id_, Hit(id_)).bm25[text_search.key] = score
    if len(rankings) == 1:
        return [hits[id_] for id_ in rankings[0][:limit]]
    fused = _fused(rankings)
    for id_, score in fused.items():
        hits[id_].fused = score
    return [hits[id_] for id_ in sorted(fused, key=lambda id_: (-fused[id_], id_))[:limit]]


def _by_words(view: View, text_search: TextSearch, text: str, allowed: Ids | None) -> Mapping[int, float]:
    # Quotes prevent the injection of FTS5's syntax.
    match = " OR ".join(f'"{word}"' for word in query_words(text))
    if not match:
        return {}
    table = schema.vector_text_index(text_search.id)
    rows = view.connection.execute(
        f"SELECT rowid, -bm25({table}) AS score FROM {table}"  # noqa: S608 - no input in it
        f" WHERE {table} MATCH ? ORDER BY score DESC, rowid",
        (match,),
    )
    found = np.fromiter(rows, dtype=[("id", np.int64), ("score", np.float64)])
    ids, scores = found["id"], found["score"]
    if allowed is not None:
        kept = np.isin(ids, allowed)
        ids, scores = ids[kept], scores[kept]
    return dict(zip(ids[:CANDIDATES].tolist(), scores[:CANDIDATES].tolist(), strict=True))


def _fused(rankings: Sequence[Sequence[int]]) -> dict[int, float]:
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, id_ in enumerate(ranking, start=1):
            scores[id_] = scores.get(id_, 0.0) + 1 / (RANK_CONSTANT + rank)
    return scores
