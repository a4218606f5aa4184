"""Random filters and documents that meet often enough to be worth comparing."""

from typing import Any

from hypothesis import strategies as st

from ragstack_common.filters import And, Clause, Filter, Not, Operator, Or
from ragstack_common.filters.tree import COMPARISONS

KEYS = st.sampled_from(["topic", "year", "tags", "it's"])
TEXTS = st.sampled_from(["", "a", "ab", "b", "Ab", "1", "é", "\N{GRINNING FACE}", "a\0b", "%", "_", "'"])
NUMBERS = st.sampled_from([-1, 0, 1, 1.0, 1.5, 2, 2**53 + 1, float(2**53), 2**63 - 1, -0.0, 1e300])
SCALARS = TEXTS | NUMBERS | st.booleans()

DOCUMENTS = st.dictionaries(KEYS, SCALARS | st.lists(SCALARS, max_size=3), max_size=4)

Values = st.SearchStrategy[Any]


@st.composite
def clauses(
    draw: st.DrawFn, keys: Values = KEYS, texts: Values = TEXTS, numbers: Values = NUMBERS, scalars: Values = SCALARS
) -> Clause:
    operator = draw(st.sampled_from(Operator))
    if operator in (Operator.IN, Operator.NOT_IN):
        value = tuple(draw(st.lists(scalars, min_size=1, max_size=3)))
    elif operator in (Operator.STARTS_WITH, Operator.STRING_CONTAINS):
        value = draw(texts)
    else:
        value = draw(numbers if operator in COMPARISONS else scalars)
    return Clause(operator, draw(keys), value)


def filters(clause: st.SearchStrategy[Clause], max_leaves: int = 8) -> st.SearchStrategy[Filter]:
    def larger(inner: st.SearchStrategy[Filter]) -> st.SearchStrategy[Filter]:
        groups = st.lists(inner, min_size=1, max_size=4).map(tuple)
        return groups.map(And) | groups.map(Or) | inner.map(Not)

    return st.recursive(clause, larger, max_leaves=max_leaves)


FILTERS = filters(clauses())
