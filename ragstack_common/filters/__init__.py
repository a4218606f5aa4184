"""Metadata filters: parsed once into an immutable tree, then compiled to an engine or evaluated in Python.

Two notations parse into the same tree:

- Mongo style: ``{"topic": {"$eq": "genealogy"}, "year": {"$gte": 2020, "$lt": 2024}}``, with ``$and``, ``$or``,
  ``$not``; a bare value means ``$eq``.
- Bedrock's own RetrievalFilter: ``{"andAll": [{"equals": {"key": "topic", "value": "genealogy"}}, ...]}``.

:func:`evaluate` defines what a filter means; property tests compare each compilation with it. What an engine cannot
express is an :class:`~ragstack_common.core.errors.InvalidFilterError` that names the clause. Nothing is ever dropped or
loosened.
"""

from ragstack_common.filters.bedrock import check_vector_store, to_bedrock
from ragstack_common.filters.evaluation import evaluate
from ragstack_common.filters.parsing import parse, to_mongo
from ragstack_common.filters.tree import (
    And,
    Clause,
    Filter,
    Not,
    Operator,
    Or,
    Scalar,
    Value,
    all_of,
    clauses_of,
    in_data_source,
    possible_values,
    required_values,
)

__all__ = [
    "And",
    "Clause",
    "Filter",
    "Not",
    "Operator",
    "Or",
    "Scalar",
    "Value",
    "all_of",
    "check_vector_store",
    "clauses_of",
    "evaluate",
    "in_data_source",
    "parse",
    "possible_values",
    "required_values",
    "to_bedrock",
    "to_mongo",
]
