"""Choose the sentences of passages that answer a question."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from ragstack_common.answering.quotable import Quote, quotes
from ragstack_common.answering.words import query_stems, stems

if TYPE_CHECKING:
    from ragstack_common.embedding import Embedding

MOST_QUOTES: Final = 4
CONSIDERED_CLOSELY: Final = 16
"""The quotes that are embedded, best by words; embedding with a model is slow."""

LEAST_COVERAGE: Final = 0.35
"""Share of the question's words, weighted by rarity, that a quote and its context must contain.

Chosen on 472 questions about short chunks: 78 % are answered, and 96 % are refused if the five best chunks come from
collections on another subject. With .45, it is 58 % and more than 99 %.
"""

ABOVE_WEIGHT: Final = 0.8
"""Weight of a word in the headings above a quote."""

BEFORE_WEIGHT: Final = 0.5
"""Weight of a word in the sentence before."""

RANK_WEIGHT: Final = 0.1
FIGURE_WEIGHT: Final = 0.15
SECOND_BEST: Final = 0.8
"""Share of the best score that a further quote must reach."""

FURTHER_COVERAGE: Final = 0.4
"""Share of the question that a further quote must contain: several weak quotes don't help."""

SAME_SHARE: Final = 0.7
"""Share of the words of the shorter of two quotes above which they count as the same."""

_ASKING: Final = re.compile(
    r"\bhow (?:many|much|long|often|far|old|fast|big|large|soon|late|early|high)\b|['’]s\b"  # noqa: RUF001
    r"|\b(?:please|tell me|show me|give me|explain|describe|according to|means?)\b",
    re.IGNORECASE,
)
"""Words of a question that say nothing about its subject."""

_ASKS_FIGURE: Final = re.compile(
    r"\b(?:how (?:many|much|long|often|far|old|fast|big|large|soon|late|early|high)|when|what time|what date|which year"
    r"|cost|costs|price|prices|percentage)\b",
    re.IGNORECASE,
)
_FIGURE: Final = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|thirty|sixty|ninety|hundred|thousand"
    r"|monday|tuesday|wednesday|thursday|friday|saturday|sunday|daily|weekly|monthly|yearly|every)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Quotation:
    """A part of a passage that answers the question, word for word.

    Attributes:
        space: White space between it and the quotation before.
        text: Sentence, list, table row or block of code.
        passages: The positions of all passages that contain it, from 0.
    """

    space: str
    text: str
    passages: tuple[int, ...]


@dataclass(frozen=True)
class _Candidate:
    """A quote and its passage.

    Attributes:
        words: Weight of each of the question's words in it: below 1 in the headings above and in the sentence before.
        coverage: Share of the question that it contains, weighted by rarity.
    """

    quote: Quote
    passage: int
    words: Mapping[str, float]
    coverage: float = 0.0
    score: float = 0.0


class Quoter:
    """Chooses the sentences of passages that answer a question.

    Args:
        embedding: Also compares meanings.
    """

    def __init__(self, embedding: "Embedding | None" = None) -> None:
        self._embedding = embedding

    def quote(self, question: str, passages: Sequence[str]) -> list[Quotation]:
        """Return the best quotes in the order of the text; none if no passage answers the question.

        Raises:
            EmbeddingError: The embedding failed.
        """
        found = []
        for before, candidate in pairwise([None, *self._chosen(question, passages)]):
            assert candidate is not None
            cited = _passages_with(candidate.quote.text, passages) or (candidate.passage,)
            found.append(Quotation(_space(before, candidate), _text_after(before, candidate), cited))
        return found

    def _chosen(self, question: str, passages: Sequence[str]) -> list[_Candidate]:
        words = query_stems(_ASKING.sub(" ", question))
        candidates = _candidates(passages, frozenset(words))
        if not candidates or not words:
            return []
        scored = self._scored(question, candidates, _rarity(words, candidates))
        close = [
            candidate
            for candidate in scored[1:]
            if candidate.score >= SECOND_BEST * scored[0].score and candidate.coverage >= FURTHER_COVERAGE
        ]
        return _ordered(_distinct([*scored[:1], *close]))

    def _scored(self, question: str, candidates: Sequence[_Candidate], rarity: Mapping[str, float]) -> list[_Candidate]:
        """Return the candidates that answer the question, best first; ties are in the order of the passages."""
        asks_figure = bool(_ASKS_FIGURE.search(question))
        found = []
        for candidate in candidates:
            coverage = sum(weight * rarity[word] for word, weight in candidate.words.items())
            has_figure = asks_figure and bool(_FIGURE.search(candidate.quote.text))
            score = coverage + RANK_WEIGHT / (1 + candidate.passage) + FIGURE_WEIGHT * has_figure
            if coverage >= LEAST_COVERAGE and max(candidate.words.values()) > BEFORE_WEIGHT:
                found.append(replace(candidate, coverage=coverage, score=score))
        closely = sorted(found, key=lambda candidate: -candidate.score)[:CONSIDERED_CLOSELY]
        if closely and self._embedding is not None:
            texts = [f"{candidate.quote.context}\n{candidate.quote.whole}" for candidate in closely]
            similar = self._embedding.embed(texts) @ self._embedding.embed_query(question)
            weight = self._embedding.fusion_weight
            closely = [
                replace(candidate, score=candidate.score + weight * max(0.0, float(cosine)))
                for candidate, cosine in zip(closely, similar, strict=True)
            ]
        return sorted(closely, key=lambda candidate: -candidate.score)


def _candidates(passages: Sequence[str], question: frozenset[str]) -> list[_Candidate]:
    found = []
    for position, passage in enumerate(passages):
        before: frozenset[str] = frozenset()
        for quote in quotes(passage):
            inside = frozenset(stems(quote.whole)) & question
            above = frozenset(stems(quote.context)) & question
            weights = dict.fromkeys(before, BEFORE_WEIGHT) | dict.fromkeys(above, ABOVE_WEIGHT)
            found.append(_Candidate(quote, position, weights | dict.fromkeys(inside, 1.0)))
            before = inside
    return found


def _rarity(question: Sequence[str], candidates: Sequence[_Candidate]) -> dict[str, float]:
    """Weight the question's words by their rarity in the quotes; the weights sum to 1."""
    weights = {
        word: math.log(1 + (len(candidates) + 1) / (sum(one.words.get(word) == 1 for one in candidates) + 0.5))
        for word in question
    }
    total = sum(weights.values())
    return {word: weight / total for word, weight in weights.items()}


def _distinct(candidates: Sequence[_Candidate]) -> list[_Candidate]:
    chosen: list[_Candidate] = []
    for candidate in candidates:
        if not any(_same(candidate, other) for other in chosen):
            chosen.append(candidate)
    return chosen[:MOST_QUOTES]


def _same(one: _Candidate, other: _Candidate) -> bool:
    """Whether two quotes overlap, or have nearly the same words."""
    if one.passage == other.passage and one.quote.start < other.quote.end and other.quote.start < one.quote.end:
        return True
    words, others = set(stems(one.quote.text)), set(stems(other.quote.text))
    # Quotes with different figures contradict each other.
    if any(word[0].isdigit() for word in words ^ others):
        return False
    return len(words & others) >= SAME_SHARE * min(len(words), len(others))


def _ordered(chosen: Sequence[_Candidate]) -> list[_Candidate]:
    """Order quotes by passage, that of the best quote first, and by their position in it."""
    passages = list(dict.fromkeys(candidate.passage for candidate in chosen))
    return sorted(chosen, key=lambda one: (passages.index(one.passage), one.quote.start))


def _space(before: _Candidate | None, candidate: _Candidate) -> str:
    if before is None:
        return ""
    apart = before.quote.block or candidate.quote.block or before.quote.text[-1].isalnum()
    return "\n" if apart else " "


def _text_after(before: _Candidate | None, candidate: _Candidate) -> str:
    """Return the quote with its head, unless the quote before has the same head."""
    quote = candidate.quote
    same = before is not None and before.passage == candidate.passage and before.quote.head == quote.head
    return quote.text if same else quote.whole


def _passages_with(text: str, passages: Sequence[str]) -> tuple[int, ...]:
    """Return the passages that contain a text; overlapping chunks share sentences."""
    said = " ".join(text.split())
    return tuple(index for index, passage in enumerate(passages) if said in " ".join(passage.split()))
