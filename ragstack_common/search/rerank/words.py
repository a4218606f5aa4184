"""The keywords and phrases of queries, which the lexical reranker looks for."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ragstack_common.text.spelling import normalized
from ragstack_common.text.words import is_stop_word, query_terms, words

MAX_PHRASES: Final = 20
"""Quoted parts of a query that count."""

_CLITIC: Final = re.compile(r"(?<=\w)['\u2019](?:s|t|d|m|ll|re|ve)\b")
_QUOTED: Final = re.compile(r"\"([^\"]+)\"|\u201c([^\u201c\u201d]+)\u201d|\u00ab([^\u00ab\u00bb]+)\u00bb")


@dataclass(frozen=True)
class QueryPhrases:
    """The terms and phrases of a query.

    Attributes:
        terms: The search terms, each once, without stop words, unless there are only stop words.
        phrases: Phrases to find word for word, joined, each with its value up to 1, best first: the quoted parts if
            there are any, else the query, and the query without the stop words at its ends.
        quoted: Whether every phrase counts, not only the best one.
    """

    terms: tuple[str, ...]
    phrases: tuple[tuple[str, float], ...]
    quoted: bool


def joined(found: Sequence[str]) -> str:
    """Join normalized words, so that a phrase is a part of a text only as whole words."""
    return " ".join(["", *found, ""])


def parse_query(query: str, language: str) -> QueryPhrases:
    """Parse a query about texts in a language."""
    text = normalized(query)
    terms = tuple(query_terms(_CLITIC.sub("", text), language))
    quoted = [found for match in _QUOTED.finditer(text) if (found := words(" ".join(filter(None, match.groups()))))]
    if quoted := quoted[:MAX_PHRASES]:
        return QueryPhrases(terms, tuple((joined(part), 1 / len(quoted)) for part in quoted), quoted=True)
    whole = words(text)
    places = [number for number, word in enumerate(whole) if not is_stop_word(word, language)]
    core = whole[places[0] : places[-1] + 1] if places else []
    phrases = [(joined(whole), 1.0)] if whole else []
    if 1 < len(core) < len(whole):
        phrases.append((joined(core), len(core) / len(whole)))
    return QueryPhrases(terms, tuple(phrases), quoted=False)
