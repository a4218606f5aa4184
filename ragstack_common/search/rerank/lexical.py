"""A reranker by phrases, words, their proximity, and attributes, which vectors miss."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress, count
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from ragstack_common.search.rerank.attributes import AttributeMatches
from ragstack_common.search.rerank.words import QueryPhrases, joined, parse_query
from ragstack_common.settings.reranking_weights import RerankingWeights
from ragstack_common.text.words import LENGTH_SHARE, SATURATION, detect_language, terms, words

HALF_WORDS: Final = 8
"""Words between two keywords that halve their proximity."""

_in_force = RerankingWeights()


def configure_reranker(**weights: float) -> RerankingWeights:
    """Set the weights of every lexical reranker of this process that was created without weights.

    Weights that are not named return to their defaults. Running searches keep the weights that they began with.

    Args:
        weights: Fields of :class:`RerankingWeights`.

    Returns:
        The new weights.

    Raises:
        ConfigurationError: A weight is unknown or out of range; nothing has changed.
    """
    global _in_force  # noqa: PLW0603 - one frozen value is swapped for another
    _in_force = RerankingWeights.of(weights)
    return _in_force


def weights_in_force() -> RerankingWeights:
    """Return the weights that :func:`configure_reranker` set last, or the defaults."""
    return _in_force


@dataclass(frozen=True)
class Passage:
    """A text to be scored.

    Attributes:
        score: The score of the search, 0 or more; infinity and NaN count as 0.
    """

    text: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    score: float = 0.0


class Signals(NamedTuple):
    """The signals of one text for a query, each from 0 to 1, among the texts that were scored with it.

    Attributes:
        phrase: 1 if the text contains the query word for word; if it contains only the part without the stop words at
            its ends, that part's share of the words; if the query has quoted parts, the share of them in the text.
        frequency: BM25 of the keywords, divided by the maximum for any text.
        proximity: Mean over the keywords of the proximity of the nearest other keyword: 1 for neighbours, .5 with
            eight words between them, 0 for a missing keyword. 0 for a query of one keyword.
        metadata: Matched attributes, as a share of all attributes that any of the texts matched.
        vector: The score of the search; if any is over 1, its share of the highest.
        total: Sum of the weighted signals; the weight of metadata counts once for each attribute matched.
        score: The total, as a share of the maximum for this query.
        matched: The attributes matched.
        contributions: What each signal, times its weight, adds to the score.
    """

    phrase: float
    frequency: float
    proximity: float
    metadata: float
    vector: float
    total: float
    score: float
    matched: tuple[str, ...] = ()
    contributions: Mapping[str, float] = MappingProxyType({})


class LexicalReranker:
    """Orders passages by their signals. Instances hold no state of a search; threads may share them.

    Args:
        weights: Weights of the signals; by default as :func:`configure_reranker` has set them at each search.
    """

    def __init__(self, weights: RerankingWeights | None = None) -> None:
        self._weights = weights

    @property
    def weights(self) -> RerankingWeights:
        """The weights of the next search."""
        return self._weights or weights_in_force()

    def score(self, query: str, documents: Sequence[Passage | str]) -> list[Signals]:
        """Score texts together: the rarity of words and the length of texts are relative to them.

        Returns:
            The signals of each, in the given order.
        """
        passages = [part if isinstance(part, Passage) else Passage(part) for part in documents]
        language = detect_language(query, *(passage.text for passage in passages))
        parsed = parse_query(query, language)
        texts = [words(passage.text) for passage in passages]
        searched, nowhere = frozenset(parsed.terms), list[int]()
        found, lengths = [], []
        for text in texts:
            places: dict[str, list[int]] = {}
            stemmed = terms(text, language)
            for place in compress(count(), map(searched.__contains__, stemmed)):
                places.setdefault(stemmed[place], []).append(place)
            found.append([places.get(term, nowhere) for term in parsed.terms])
            lengths.append(len(stemmed))
        attributes = AttributeMatches(query)
        matched = [attributes.names(passage.metadata) for passage in passages]
        matchable = len(frozenset[str]().union(*matched))
        frequencies = _frequencies(found, lengths)
        vectors = _vectors([passage.score for passage in passages])
        weights = self.weights
        highest = weights.phrase + weights.frequency + weights.metadata * matchable + weights.vector
        highest += 0.0 if len(parsed.terms) == 1 else weights.proximity
        signals = []
        for text, hits, names, frequency, vector in zip(texts, found, matched, frequencies, vectors, strict=True):
            phrase, proximity = _phrase(parsed, text, hits), _proximity(hits)
            weighted = {
                "phrase": weights.phrase * phrase,
                "frequency": weights.frequency * frequency,
                "proximity": weights.proximity * proximity,
                "metadata": weights.metadata * len(names),
                "vector": weights.vector * vector,
            }
            total = sum(weighted.values())
            share = len(names) / matchable if matchable else 0.0
            score = min(1.0, total / highest) if highest else 0.0
            parts = {name: value / highest if highest else 0.0 for name, value in weighted.items()}
            signals.append(Signals(phrase, frequency, proximity, share, vector, total, score, names, parts))
        return signals

    def order(self, query: str, documents: Sequence[Passage | str]) -> list[tuple[int, Signals]]:
        """Return the indexes of the texts, best first, with their signals.

        Equal totals are ordered by the score of the search, then as given.
        """
        signals = self.score(query, documents)
        return sorted(enumerate(signals), key=lambda entry: (-entry[1].total, -entry[1].vector, entry[0]))

    def rerank(self, query: str, results: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Order results of a search, as :class:`~ragstack_common.multislice_retriever.MultiSliceRetriever` has them.

        Returns:
            Copies of the results with new scores from 0 to 1, best first. Their ``ranking`` also has what each signal
            contributed, and the attributes matched.
        """
        passages = [
            Passage(_text(result), result.get("metadata") or {}, _number(result.get("score"))) for result in results
        ]
        return [_with(results[number], signals) for number, signals in self.order(query, passages)]


def _text(result: Mapping[str, Any]) -> str:
    """Return the text of a result: its contextual header, if any, and its content."""
    parts = (result.get("context"), result.get("content"))
    return "\n".join(str(part) for part in parts if part)


def _with(result: Mapping[str, Any], signals: Signals) -> dict[str, Any]:
    ranking = {
        **(result.get("ranking") or {}),
        "contributions": dict(signals.contributions),
        "matched": list(signals.matched),
    }
    ranking.setdefault("base_score", _number(result.get("score")))
    return {**result, "score": signals.score, "ranking": ranking}


def _phrase(parsed: QueryPhrases, text: Sequence[str], places: list[list[int]]) -> float:
    if not parsed.quoted and not all(places):
        return 0.0
    whole = joined(text)
    worths = (worth for phrase, worth in parsed.phrases if phrase in whole)
    return min(1.0, sum(worths)) if parsed.quoted else next(worths, 0.0)


def _frequencies(found: list[list[list[int]]], lengths: list[int]) -> list[float]:
    if not found or not found[0]:
        return [0.0] * len(found)
    texts = len(found)
    holding = [sum(1 for places in found if places[term]) for term in range(len(found[0]))]
    rarities = [math.log(1 + (texts - count + 0.5) / (count + 0.5)) for count in holding]
    highest = sum(rarities)
    mean_length = sum(lengths) / texts or 1.0
    frequencies = []
    for places, length in zip(found, lengths, strict=True):
        norm = SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * length / mean_length)
        got = sum(
            rarity * len(term) / (len(term) + norm) for rarity, term in zip(rarities, places, strict=True) if term
        )
        frequencies.append(got / highest)
    return frequencies


def _proximity(places: list[list[int]]) -> float:
    if sum(1 for found in places if found) < 2:  # noqa: PLR2004 - nothing is near itself
        return 0.0
    order = sorted((place, number) for number, found in enumerate(places) for place in found)
    nearest = [math.inf] * len(places)
    place, number = order[0]
    for next_place, next_number in order[1:]:
        if next_number != number:
            gap = next_place - place - 1
            nearest[number] = min(nearest[number], gap)
            nearest[next_number] = min(nearest[next_number], gap)
        place, number = next_place, next_number
    return sum(HALF_WORDS / (HALF_WORDS + gap) for gap in nearest if gap != math.inf) / len(places)


def _vectors(scores: list[float]) -> list[float]:
    usable = [_number(score) for score in scores]
    highest = max([1.0, *usable])
    return [score / highest for score in usable]


def _number(score: Any) -> float:
    if isinstance(score, bool) or not isinstance(score, int | float) or not 0 < score < math.inf:
        return 0.0
    return float(score)
