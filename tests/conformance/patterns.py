"""The patterns of the service models, which are Java's, as Python and hypothesis read them."""

import re
from functools import cache
from re import _constants as parts  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

from hypothesis import strategies as st

from local_bedrock.http.validation import compiled

_JUNK = ("!", "\n", " ", "\u00e9", "~~~~~~~~~~", "!" * 24, "!" * 40)
_CATEGORIES = {parts.CATEGORY_DIGIT: "0", parts.CATEGORY_SPACE: " ", parts.CATEGORY_WORD: "a"}


@cache
def matching(pattern: str, least: int, most: int | None) -> st.SearchStrategy[str]:
    """Strings of a pattern and a length."""
    fits = st.from_regex(compiled(pattern), fullmatch=True)
    return fits.filter(lambda text: least <= len(text) and (most is None or len(text) <= most))


@cache
def shortest(pattern: str, least: int, most: int | None) -> str:
    """A short string of a pattern and a length, always the same one.

    Raises:
        ValueError: None was found; give one by the member's name.
    """
    parsed = parser.parse(compiled(pattern).pattern, re.ASCII)
    for more in range(max(least, 1) + 1):
        text = _written(parsed, more)
        if max(least, 1) <= len(text) and (most is None or len(text) <= most) and compiled(pattern).fullmatch(text):
            return text
    raise ValueError(f"no string was found for {pattern}")


def breaking(pattern: str, least: int, most: int | None) -> str | None:
    """A string of a length that does not match; None where every one does."""
    for junk in _JUNK:
        text = junk * max(1, -(-least // len(junk)))
        if (most is None or len(text) <= most) and not compiled(pattern).fullmatch(text):
            return text
    return None


def _written(parsed: Any, more: int) -> str:
    """One string of a parsed pattern, whose repetitions stand *more* often than they must."""
    return "".join(_part(kind, value, more) for kind, value in parsed)


def _part(kind: Any, value: Any, more: int) -> str:
    match kind:
        case parts.LITERAL:
            return chr(value)
        case parts.ANY | parts.NOT_LITERAL:
            return "a"
        case parts.IN:
            return _letter(value)
        case parts.MAX_REPEAT:
            lowest, highest, inner = value
            return _written(inner, more) * int(min(lowest + more, highest))
        case parts.SUBPATTERN:
            return _written(value[3], more)
        case parts.BRANCH:
            return str(max((_written(branch, more) for branch in value[1][:2]), key=len))
        case _:
            return ""  # anchors and assertions


def _letter(choices: Any) -> str:
    if choices[0][0] is parts.NEGATE:
        return "a"
    kind, value = choices[0]
    match kind:
        case parts.LITERAL:
            return chr(value)
        case parts.RANGE:
            return chr(value[0])
        case _:
            return str(_CATEGORIES.get(value, "a"))
