"""Filters inferred from a question: which values of the catalogue it names, by rules and without a model."""

import re
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self, TypeAlias

from ragstack_common.filters import Clause, Filter, Operator, Scalar, all_of
from ragstack_common.search.naming import ADDED_PREFIXES, Name, QuestionTerms, Values, as_text
from ragstack_common.settings.search import DOCUMENTS_PER_VALUE, MIN_VALUES

MAX_NAMED: Final = 3
"""A question that names more values of one attribute is about none of them in particular."""

MAX_ATTRIBUTES: Final = 3
"""Clauses of an inferred filter; with the clauses of a scope they must fit into one group of Bedrock's filters."""

_CODE: Final = re.compile(r"[\d\s.,:/-]+")


@dataclass(frozen=True)
class Inferred:
    """A filter that a question implies.

    Attributes:
        values: The named values of each attribute.
        filters: What a chunk must match: one of the values of each attribute.
        names: How many attributes the question names, each with words of its own; the filtered ones too.
        reason: What the question names, in one sentence.
    """

    values: Mapping[str, tuple[Scalar, ...]]
    filters: Filter
    names: int
    reason: str


class Vocabulary:
    """The values of a catalogue that a question can name.

    Left out are attributes with almost one value per document, and lists: their members are keywords, and a question
    that uses one is not about the documents that list it.

    Args:
        counts: How many documents have each value, by attribute.
        documents: The number of documents. An attribute with more values than that in all has lists.
        min_values: An attribute with fewer values distinguishes no documents.
    """

    def __init__(
        self, counts: Mapping[str, Mapping[Scalar, int]], documents: int, min_values: int = MIN_VALUES
    ) -> None:
        self._values = {
            key: Values(found)
            for key, found in counts.items()
            if not key.startswith(ADDED_PREFIXES)
            and len(found) >= min_values
            and DOCUMENTS_PER_VALUE * len(found) <= sum(found.values()) <= documents
        }

    @classmethod
    def from_hits(cls, hits: Iterable[tuple[str, Mapping[str, Any]]]) -> Self:
        """Collect the values of hits, given as source and attributes."""
        documents = dict(hits)
        counts: dict[str, Counter[Scalar]] = defaultdict(Counter)
        lists = set()
        for attributes in documents.values():
            for key, value in attributes.items():
                if isinstance(value, Scalar):
                    counts[key][value] += 1
                else:
                    lists.add(key)
        return cls({key: found for key, found in counts.items() if key not in lists}, len(documents), 1)

    def infer(self, question: QuestionTerms, known: Collection[str] = ()) -> Inferred | None:
        """Return the filter that a question implies, without the *known* attributes, which the caller filters.

        None if the question names nothing, or nothing clearly.
        """
        clear = {key: self._clear(key, question) for key in self._values}
        named = _independent({key: found for key, found in clear.items() if 0 < len(found) <= MAX_NAMED})
        if all(self._values[key].are_years for key in named) and not question.marked_years:
            return None
        values = {key: tuple(found) for key, found in named.items() if key not in known}
        filters = all_of(*(_clause(key, found) for key, found in values.items()))
        if filters is None:
            return None
        listed = ", ".join(f"{key} = {' or '.join(map(as_text, found))}" for key, found in values.items())
        return Inferred(values, filters, len(named), f"The question names {listed}")

    def _clear(self, key: str, question: QuestionTerms) -> dict[Scalar, Name]:
        """Return the values of an attribute that a question names beyond doubt; of several years, the newest."""
        values = self._values[key]
        found = values.named_in(question)
        if values.are_years:
            return {year: found[year] for year in sorted(found, key=float)[-1:]}
        return {value: name for value, name in found.items() if is_clear(value, name)}


VocabularySource: TypeAlias = Callable[[], Awaitable[Vocabulary | None]]
"""Returns the vocabulary of the searchable documents without delay; None if it is not known at the moment."""


def is_clear(value: Scalar, name: Name) -> bool:
    """Whether words name a value beyond doubt: not a code, nor one word that may be a common one."""
    if isinstance(value, bool) or _CODE.fullmatch(as_text(value)):
        return False
    if len(name.places) > 1:
        return True
    if name.words == name.words.lower():
        return False
    is_proper = as_text(value) != as_text(value).lower() or sum(letter.isupper() for letter in name.words) > 1
    # In lower case, the catalogue does not tell names from words: "State" may begin "State Library", or a sentence.
    return is_proper or (name.is_whole and 0 not in name.places)


def _independent(named: Mapping[str, Mapping[Scalar, Name]]) -> dict[str, Mapping[Scalar, Name]]:
    """Keep at most :data:`MAX_ATTRIBUTES` attributes that different words name; whole values come before parts."""
    chosen: dict[str, Mapping[Scalar, Name]] = {}
    taken: set[int] = set()
    for key in sorted(named, key=lambda key: (not all(name.is_whole for name in named[key].values()), key)):
        places = {place for name in named[key].values() for place in name.places}
        if taken.isdisjoint(places) and len(chosen) < MAX_ATTRIBUTES:
            chosen[key] = named[key]
            taken |= places
    return chosen


def _clause(key: str, values: tuple[Scalar, ...]) -> Filter:
    return Clause(Operator.EQUALS, key, values[0]) if len(values) == 1 else Clause(Operator.IN, key, values)
