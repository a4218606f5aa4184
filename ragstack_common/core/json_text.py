"""JSON from outside."""

import json
from typing import Any, Final

MAX_DEPTH: Final = 200
"""Maximum nesting. Source: pydantic-core, from_json, which reads the bodies of requests."""


def parse_json(text: str | bytes, **options: Any) -> Any:
    """Read JSON of limited depth; *options* are those of :func:`json.loads`.

    Python raises RecursionError at a depth that depends on the caller's own, also when the value is walked through or
    written.

    Raises:
        ValueError: It is not JSON, or is nested too deeply.
    """
    try:
        value = json.loads(text, **options)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [
            member
            for each in level
            if isinstance(each, dict | list)
            for member in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return value
    raise ValueError(_TOO_DEEP)


_TOO_DEEP: Final = f"the JSON is nested more than {MAX_DEPTH} levels deep"
