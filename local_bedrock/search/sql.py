"""Filters as SQL over a table of attributes.

The table is ``attribute(document_id, key, kind, in_list, value)``: one row for a scalar, one for each member of a
list (``in_list`` 1). ``kind`` is string, number or boolean; ``value`` has no declared type, so that SQLite compares
without conversion.
"""

from dataclasses import replace
from typing import TypeAlias

from ragstack_common.filters.tree import COMPARISONS, And, Clause, Filter, Not, Operator, Or, Scalar, kind_of

Sql: TypeAlias = tuple[str, list[Scalar]]


def to_sql(filter_: Filter, document: str = "document.id") -> Sql:
    """Compile to an SQL condition and its parameters.

    Args:
        filter_: The filter.
        document: The SQL expression that holds the document's id in the surrounding query.
    """
    match filter_:
        case And(members):
            return _joined(" AND ", members, document)
        case Or(members):
            return _joined(" OR ", members, document)
        case Not(member):
            sql, parameters = to_sql(member, document)
            return f"NOT {sql}", parameters
        case Clause():
            return _clause(filter_, document)


def _joined(word: str, members: tuple[Filter, ...], document: str) -> Sql:
    compiled = [to_sql(member, document) for member in members]
    return f"({word.join(sql for sql, _ in compiled)})", [value for _, values in compiled for value in values]


def _clause(clause: Clause, document: str) -> Sql:
    match clause.operator:
        case Operator.NOT_EQUALS:
            return to_sql(Not(replace(clause, operator=Operator.EQUALS)), document)
        case Operator.NOT_IN:
            present = _documents(clause.key, "1", [], document)
            found = to_sql(replace(clause, operator=Operator.IN), document)
            return f"({present[0]} AND NOT {found[0]})", present[1] + found[1]
        case Operator.EQUALS:
            condition, parameters = _equals_any((clause.value,))
        case Operator.IN:
            condition, parameters = _equals_any(clause.value)
        case Operator.LIST_CONTAINS:
            condition, parameters = _equals_any((clause.value,))
            condition = f"in_list AND {condition}"
        case Operator.STRING_CONTAINS:
            # As bytes, because SQLite's text functions stop at a NUL.
            condition = "kind = 'string' AND instr(CAST(value AS BLOB), CAST(? AS BLOB))"
            parameters = [_scalar(clause)]
        case Operator.STARTS_WITH:
            # coalesce, because SQLite's substr returns NULL for an empty blob.
            start = "coalesce(substr(CAST(value AS BLOB), 1, ?), CAST('' AS BLOB))"
            condition = f"kind = 'string' AND NOT in_list AND {start} = CAST(? AS BLOB)"
            text = str(_scalar(clause))
            parameters = [len(text.encode()), text]
        case comparison:
            condition = f"kind = 'number' AND NOT in_list AND value {COMPARISONS[comparison]} ?"
            parameters = [_scalar(clause)]
    return _documents(clause.key, condition, parameters, document)


def _documents(key: str, condition: str, parameters: list[Scalar], document: str) -> Sql:
    # The subquery does not depend on the outer row, so SQLite evaluates it once, with the index.
    found = f"SELECT document_id FROM attribute WHERE key = ? AND ({condition})"  # noqa: S608 - contains no input
    return f"{document} IN ({found})", [key, *parameters]


def _equals_any(values: object) -> Sql:
    assert isinstance(values, tuple)
    kinds: dict[str, list[Scalar]] = {}
    for value in values:
        kinds.setdefault(kind_of(value), []).append(value)
    alternatives = [f"(kind = '{kind}' AND value IN ({', '.join('?' * len(group))}))" for kind, group in kinds.items()]
    return f"({' OR '.join(alternatives)})", [value for group in kinds.values() for value in group]


def _scalar(clause: Clause) -> Scalar:
    assert not isinstance(clause.value, tuple)
    return clause.value
