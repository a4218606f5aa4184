"""Random filters and documents that meet often enough to be worth comparing."""

from hypothesis import strategies as st

from ragstack_common.filters import And, Clause, Filter, Not, Operator, Or

KEYS = st.sampled_from(["topic", "year", "tags", "it's"])
TEXTS = st.sampled_from(["", "a", "ab", "b", "Ab", "1", "é", "\N{GRINNING FACE}", "a\0b", "%", "_", "'"])
NUMBERS = st.sampled_from([-1, 0, 1, 1.0, 1.5, 2, 2**53 + 1, float(2**53), 2**63 - 1, -0.0, 1e300])
SCALARS = TEXTS | NUMBERS | st.booleans()

DOCUMENTS = st.dictionaries(KEYS, SCALARS | st.lists(SCALARS, max_size=3), max_size=4)


@st.composite
def clauses(draw: st.DrawFn) -> Clause:
    operator = draw(st.sampled_from(Operator))
    match operator:
        case Operator.IN | Operator.NOT_IN:
            value = tuple(draw(st.lists(SCALARS, min_size=1, max_size=3)))
        case Operator.STARTS_WITH | Operator.STRING_CONTAINS:
            value = draw(TEXTS)
        case Operator.EQUALS | Operator.NOT_EQUALS | Operator.LIST_CONTAINS:
            value = draw(SCALARS)
        case _:
            value = draw(NUMBERS)
    return Clause(operator, draw(KEYS), value)


def _larger(filters: st.SearchStrategy[Filter]) -> st.SearchStrategy[Filter]:
    groups = st.lists(filters, min_size=1, max_size=4).map(tuple)
    return groups.map(And) | groups.map(Or) | filters.map(Not)


FILTERS: st.SearchStrategy[Filter] = st.recursive(clauses(), _larger, max_leaves=8)
