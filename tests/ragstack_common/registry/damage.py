"""What people who edit the table by hand, and programs gone wrong, make of a document's item."""

from collections.abc import Iterable
from typing import Any

from hypothesis import strategies as st

from ragstack_common.registry.items import ATTRIBUTES, Item

NAMES = sorted(ATTRIBUTES)

GONE = None
"""Written for an attribute that is taken away."""

VALUES: Any = st.sampled_from(
    [
        *({"S": text} for text in ("", "x", "null", "{}", "[]", "[1]", '"x"', "[[1,2]]", '{"id":1}', "[" * 3000)),
        *({"N": number} for number in ("-1", "0.5", "1e60", "99999999999999999999999999999999999999")),
        *({"BOOL": True}, {"NULL": True}, {"B": b"\x00"}, {"SS": ["x"]}),
        *({"L": [{"S": "x"}]}, {"M": {"x": {"N": "1"}}}),
    ]
)
WRONG = st.just(GONE) | VALUES
EXTRA = st.dictionaries(st.sampled_from(["noted", "colour", "Größe"]), VALUES, max_size=2)


@st.composite
def damages(draw: st.DrawFn) -> dict[str, Any]:
    """Of some attributes another value, none of which is what it should be; and attributes that nobody knows."""
    names = draw(st.sets(st.sampled_from([*NAMES, "revision", "status", "full_uri", "counted"]), max_size=3))
    return {name: draw(WRONG) for name in sorted(names)} | draw(EXTRA)


def damaged(item: Item, changes: dict[str, Any]) -> Item:
    """Change an item."""
    return {name: value for name, value in {**item, **changes}.items() if value is not GONE}


def tableable(item: Item, keys: Iterable[str]) -> Item:
    """Leave out what DynamoDB would refuse: keys of an index that are no text, an empty one, or too long."""
    return {name: value for name, value in item.items() if name not in keys or 0 < len(value.get("S", "")) < 1000}
