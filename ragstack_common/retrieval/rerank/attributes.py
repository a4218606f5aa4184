"""The attributes of chunks that match a query, or the values that its caller wants."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ragstack_common.retrieval.rerank.words import normalized, phrase, words_of
from ragstack_common.stopwords import STOP_WORDS

IGNORED_PREFIXES: Final = ("x-amz-bedrock-", "ragstack_", "_")
"""Attributes that services and this product add."""

LEAST_CHARACTERS: Final = 2
"""A single letter or digit occurs in a query by chance; a single ideograph does not."""

LEAST_DIGITS: Final = 4
"""The same for numbers that are shorter than a year."""

_SEVERAL: Final = (list, tuple, set, frozenset)
_COMPARED: Final = (str, int, float)
_FIRST_WORD: Final = re.compile(r"[^\W_]+")
_DATE: Final = re.compile(r"\d{4}-\d{2}(?:-\d{2}(?:[t ].*)?)?")
_ASKED_DATE: Final = re.compile(r"(?<![\w-])\d{4}(?:-\d{2}){0,2}(?![\w-])")


class AttributeMatches:
    """Finds the attributes that match.

    By default all attributes are compared with the query: one matches if the query contains one of its values word for
    word. For a date (``2024-11-30``), the year, or year and month, is enough. Booleans, numbers under four digits,
    single characters and stop words do not match: they occur in a query by chance.

    Args:
        query: The query.
        wanted: Wanted values, one or a list for each attribute; case, Unicode form and type are ignored. These
            attributes are not compared with the query.
        named: The attributes that are compared with the query; None for all but those of services.
    """

    def __init__(self, query: str, wanted: Mapping[str, Any], named: Sequence[str] | None) -> None:
        self._query = normalized(query)
        self._words = frozenset(words_of(query))
        self._dates = tuple(_ASKED_DATE.findall(self._query))
        self._wanted = {name: {_comparable(value) for value in _values(values)} for name, values in wanted.items()}
        self._named = None if named is None else frozenset(named)
        self._known: dict[Any, bool] = {}

    @property
    def wanted(self) -> frozenset[str]:
        """The attributes with wanted values."""
        return frozenset(self._wanted)

    def of(self, metadata: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the names of the matching attributes, in their order."""
        return tuple(name for name, value in metadata.items() if self._matches(name, value))

    def _matches(self, name: str, value: Any) -> bool:
        if name in self._wanted:
            return any(_comparable(part) in self._wanted[name] for part in _values(value))
        if self._named is None:
            if name.startswith(IGNORED_PREFIXES):
                return False
        elif name not in self._named:
            return False
        if isinstance(value, _SEVERAL):
            return any(self._is_asked_for(part) for part in value)
        return self._is_asked_for(value)

    def _is_asked_for(self, value: Any) -> bool:
        if type(value) not in _COMPARED:
            return False
        known = self._known.get(value)
        if known is None:
            known = self._known[value] = self._stands_in_query(_text(value))
        return known

    def _stands_in_query(self, value: str) -> bool:
        if value.isascii() and not self._may_stand(value):
            return False
        text = normalized(value).strip()
        if len(text) < LEAST_CHARACTERS and text.isascii():
            return False
        if text in STOP_WORDS or (text.isdigit() and len(text) < LEAST_DIGITS):
            return False
        if _DATE.fullmatch(text):
            return text.startswith(self._dates)
        parts = words_of(text)
        return bool(parts) and parts[0] in self._query and phrase(parts).stands_in(self._query)

    def _may_stand(self, value: str) -> bool:
        """Check the first word: most values do not match, and addresses are long."""
        first = _FIRST_WORD.search(value)
        return first is not None and first[0].lower() in self._words


def _values(value: Any) -> Iterable[Any]:
    return value if isinstance(value, _SEVERAL) else (value,)


def _comparable(value: Any) -> str:
    return normalized(_text(value)).strip()


def _text(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
