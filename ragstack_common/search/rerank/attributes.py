"""The attributes of chunks that match a query."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from ragstack_common.search.naming import attributes
from ragstack_common.search.rerank.words import joined
from ragstack_common.text.languages import detect
from ragstack_common.text.spelling import normalized
from ragstack_common.text.words import is_stop_word, runs, words

MIN_CHARACTERS: Final = 2
"""A single letter or digit occurs in a query by chance; a single ideograph does not."""

MIN_DIGITS: Final = 4
"""Numbers that are shorter than a year occur in a query by chance."""

_FIRST_WORD: Final = re.compile(r"[^\W_]+")
_DATE: Final = re.compile(r"\d{4}-\d{2}(?:-\d{2}(?:[t ].*)?)?")
_DATE_IN_QUERY: Final = re.compile(r"(?<![\w-])\d{4}(?:-\d{2}){0,2}(?![\w-])")


class AttributeMatches:
    """Finds the attributes that match: the query contains one of their values word for word.

    For a date (``2024-11-30``), the year, or year and month, is enough. Booleans, numbers under four digits, single
    characters and stop words do not match: they occur in a query by chance.
    """

    def __init__(self, query: str) -> None:
        self._query = normalized(query)
        found = words(query)
        self._runs, self._joined, self._language = frozenset(runs(query)), joined(found), detect(found)
        self._dates = tuple(_DATE_IN_QUERY.findall(self._query))
        self._contains = cache(self._looked_up)  # many chunks have the same values

    def names(self, metadata: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the names of the matching attributes, in their order."""
        return tuple(name for name, values in attributes(metadata) if any(map(self._is_in_query, values)))

    def _is_in_query(self, value: str) -> bool:
        first = _FIRST_WORD.search(value)
        if value.isascii() and (first is None or first[0].lower() not in self._runs):
            return False  # most values, at little cost: addresses are long
        return self._contains(value)

    def _looked_up(self, value: str) -> bool:
        text = normalized(value).strip()
        if len(text) < MIN_CHARACTERS and text.isascii():
            return False
        if is_stop_word(text, self._language) or (text.isdigit() and len(text) < MIN_DIGITS):
            return False
        if _DATE.fullmatch(text):
            return text.startswith(self._dates)
        parts = words(text)
        return bool(parts) and joined(parts) in self._joined
