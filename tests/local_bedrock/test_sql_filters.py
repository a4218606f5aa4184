from collections.abc import Mapping
from typing import Any

import apsw
from hypothesis import example, given, settings
from hypothesis import strategies as st

from local_bedrock.search.sql import to_sql
from ragstack_common.filters import Clause, Filter, Operator, evaluate
from ragstack_common.filters.tree import kind_of
from tests.ragstack_common.filters.strategies import DOCUMENTS, FILTERS
from tests.support.soak import examples


@example(Clause(Operator.STARTS_WITH, "topic", ""), [{"topic": ""}])
@example(Clause(Operator.STRING_CONTAINS, "topic", ""), [{"topic": ""}, {"topic": [""]}, {"topic": []}])
@settings(max_examples=examples(300))
@given(FILTERS, st.lists(DOCUMENTS, min_size=1, max_size=6))
def test_the_sql_selects_what_the_evaluation_selects(filter_: Filter, documents: list[dict[str, Any]]) -> None:
    connection = store(documents)

    sql, parameters = to_sql(filter_)

    selected = {row[0] for row in connection.execute(f"SELECT id FROM document WHERE {sql}", parameters)}
    assert selected == {number for number, document in enumerate(documents) if evaluate(filter_, document)}


def store(documents: list[dict[str, Any]]) -> apsw.Connection:
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE TABLE document (id INTEGER PRIMARY KEY)")
    connection.execute("CREATE TABLE attribute (document_id, key TEXT, kind TEXT, in_list INTEGER, value)")
    for number, document in enumerate(documents):
        connection.execute("INSERT INTO document VALUES (?)", [number])
        connection.executemany("INSERT INTO attribute VALUES (?, ?, ?, ?, ?)", rows(number, document))
    return connection


def rows(number: int, document: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    return [
        (number, key, kind_of(member), int(isinstance(value, list)), member)
        for key, value in document.items()
        for member in (value if isinstance(value, list) else [value])
    ]
