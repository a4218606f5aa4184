"""Choose the sentences of passages that answer a question."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise, zip_longest
from typing import Final

from ragstack_common.answers.assistants import addresses_assistant
from ragstack_common.answers.confidence import MEAN_LEAD, Evidence
from ragstack_common.answers.kinds import NUMBER
from ragstack_common.answers.questions import Question
from ragstack_common.answers.quotable import Quote, quotes
from ragstack_common.text.languages import ENGLISH, UNSPACED
from ragstack_common.text.sentences import QUESTION_MARKS
from ragstack_common.text.spelling import arabic_roots, is_arabic
from ragstack_common.text.words import detect_language, terms

MAX_QUOTES: Final = 4
LEAST_COVERAGE: Final = 0.2
"""Share of the question's words, weighted by rarity, that a quote and its context must contain to be shown."""

ABOVE_WEIGHT: Final = 0.6
"""Weight of a word in the title of the document and the headings above a quote."""

BEFORE_WEIGHT: Final = 0.5
"""Weight of a word in the sentence before."""

RELATED_WEIGHT: Final = 0.7
RELATED_CHARACTERS: Final = 4
"""Words that begin alike, such as approve and approval, count as related."""

LEAST_PART: Final = 5
"""Letters of a word that counts as related to a longer one that contains it, as compounds and prefixed verbs do."""

RANK_WEIGHT: Final = 0.2
FIT_WEIGHT: Final = 0.15
"""For a quote with what the question asks for, such as a number or a date."""

KEY_WEIGHT: Final = 0.15
"""For a value whose key is in the question: of ``Total 10`` and ``Total points 5``, the total is the former."""

NUMBERED_WEIGHT: Final = 0.15
"""For a quote with all of the question's words that a number follows, such as row 2, followed by that number."""

MISFIT_COST: Final = 0.2
QUESTION_COST: Final = 0.3
"""For a quote that is itself a question."""

SECOND_BEST: Final = 0.8
"""Share of the best score that a further quote must reach."""

FURTHER_COVERAGE: Final = 0.3
"""Share of the question that a further quote must contain: several weak quotes don't help."""

SAME_SHARE: Final = 0.7
"""Share of the words of the shorter of two quotes above which they count as the same."""


NO_EVIDENCE: Final = Evidence(0, 0, 0)


@dataclass(frozen=True)
class Quotation:
    """A part of a passage that answers the question, word for word.

    Attributes:
        space: White space between it and the quotation before.
        text: Sentence, list, table row or block of code.
        passages: The positions of all passages that contain it, from 0.
        head: The header of its table, unless the quotation before has the same.
        evidence: What is known about whether it answers the question.
    """

    space: str
    text: str
    passages: tuple[int, ...]
    head: str = ""
    evidence: Evidence = NO_EVIDENCE

    @property
    def whole(self) -> str:
        """The text below its head."""
        return f"{self.head}\n{self.text}" if self.head else self.text


@dataclass(frozen=True)
class _Candidate:
    """A quote and its passage.

    Attributes:
        words: Weight of each of the question's words in it: 1 if the quote contains the word itself.
        numbered: Share of the question's pairs of a word and the number after it that the quote contains.
        coverage: Share of the question that it contains, weighted by rarity, without the sentence before.
        misfits: Whether it lacks what the question asks for, such as a number.
    """

    quote: Quote
    passage: int
    words: Mapping[str, float]
    numbered: float = 0.0
    coverage: float = 0.0
    score: float = 0.0
    misfits: bool = False


def best_quotations(
    question: str, passages: Sequence[str], contexts: Sequence[str] = (), relevances: Sequence[float | None] = ()
) -> list[Quotation]:
    """Choose what answers a question, in the order of the text.

    Args:
        question: The question.
        passages: The passages, best first.
        contexts: The title and headings above each passage, if known.
        relevances: The relevance of each passage, if known.

    Returns:
        Nothing if no passage answers the question.
    """
    asked = Question.of(question, detect_language(question, *passages))
    candidates = _candidates(asked, passages, contexts)
    scored = _scored(asked, candidates)
    found = []
    for before, candidate in pairwise([None, *_chosen(asked, scored)]):
        assert candidate is not None
        relevance = relevances[candidate.passage] if relevances else None
        evidence = Evidence(
            candidate.coverage,
            _nearby(asked, candidate, candidates),
            float(candidate.misfits),
            _lead(candidate, scored) if len(passages) > 1 else MEAN_LEAD,
            relevance,
            inflected=float(asked.language != ENGLISH and asked.language not in UNSPACED),
        )
        cited = _passages_with(candidate.quote.text, passages) or (candidate.passage,)
        space, head = _space(before, candidate), _head_after(before, candidate)
        found.append(Quotation(space, candidate.quote.text, cited, head, evidence))
    return found


def _candidates(question: Question, passages: Sequence[str], contexts: Sequence[str]) -> list[_Candidate]:
    asked = frozenset(question.words)
    found = []
    for position, (passage, context) in enumerate(zip_longest(passages, contexts, fillvalue="")):
        title = frozenset(terms(context, question.language)) & asked
        before: frozenset[str] = frozenset()
        for quote in quotes(passage):
            if addresses_assistant(quote.text):
                continue
            said = terms(quote.whole, question.language)
            words = frozenset(said)
            numbered = len(question.numbered.intersection(pairwise(said))) / max(1, len(question.numbered))
            begun = frozenset[str]().union(*map(_beginnings, words))
            inside = words & asked
            above = title | (frozenset(terms(quote.context, question.language)) & asked)
            related = {word for word in asked if not begun.isdisjoint(_beginnings(word)) or _is_part(word, words)}
            weights = {
                **dict.fromkeys(() if quote.block else before, BEFORE_WEIGHT),
                **dict.fromkeys(above, ABOVE_WEIGHT),
                **dict.fromkeys(related, RELATED_WEIGHT),
                **dict.fromkeys(inside, 1.0),
            }
            found.append(_Candidate(quote, position, weights, numbered))
            before = inside
    return found


@lru_cache(maxsize=100_000)
def _beginnings(word: str) -> frozenset[str]:
    """Return what related words share; nothing if the word is too short."""
    if is_arabic(word):
        return arabic_roots(word)
    return frozenset([word[:RELATED_CHARACTERS]] if len(word) >= RELATED_CHARACTERS else ())


def _is_part(word: str, words: Iterable[str]) -> bool:
    """Whether a word is in a compound or has a prefix there, or the other way round."""
    if len(word) < LEAST_PART:
        return False
    return any(word in other or (len(other) >= LEAST_PART and other in word) for other in words)


def _nearby(question: Question, candidate: _Candidate, candidates: Sequence[_Candidate]) -> float:
    """Return the share of the question that a candidate contains together with its neighbours."""
    rarity = _rarity(question, candidates)
    place = next(number for number, other in enumerate(candidates) if other.quote is candidate.quote)
    weights = dict(candidate.words)
    for other in candidates[max(0, place - 1) : place + 2]:
        if other.passage == candidate.passage:
            weights |= {word: 1.0 for word, weight in other.words.items() if weight == 1}
    return sum(rarity[word] * weight for word, weight in weights.items())


def _lead(candidate: _Candidate, scored: Sequence[_Candidate]) -> float:
    """Return how far a candidate's score is above that of the best one of another passage; 0 if it is below."""
    others = (
        other.score
        for other in scored
        if other.passage != candidate.passage and other.quote.text != candidate.quote.text
    )
    return max(0.0, candidate.score - next(others, 0.0))


def _chosen(question: Question, scored: Sequence[_Candidate]) -> list[_Candidate]:
    asks_for_key = scored and _share_of_key(question, scored[0].quote.key) == 1
    close = [
        candidate
        for candidate in scored[1:]
        if candidate.score >= SECOND_BEST * scored[0].score
        and candidate.coverage >= FURTHER_COVERAGE
        and candidate.misfits <= scored[0].misfits
        and not (asks_for_key and 0 < _share_of_key(question, candidate.quote.key) < 1)
    ]
    return _ordered(_distinct([*scored[:1], *close], question.language))


def _scored(question: Question, candidates: Sequence[_Candidate]) -> list[_Candidate]:
    """Return the candidates that answer the question, best first; ties are in the order of the passages."""
    rarity = _rarity(question, candidates)
    found = []
    for candidate in candidates:
        text = candidate.quote.text
        shares = [(weight, weight * rarity[word]) for word, weight in candidate.words.items()]
        own = sum(share for weight, share in shares if weight > BEFORE_WEIGHT)
        fits = question.expected and question.expected.found_in(_said(question, candidate.quote))
        misfits = fits is False
        shown = sum(share for _, share in shares) - MISFIT_COST * misfits
        score = shown + RANK_WEIGHT / (1 + candidate.passage)
        score += KEY_WEIGHT * _share_of_key(question, candidate.quote.key)
        score += NUMBERED_WEIGHT * candidate.numbered
        score += FIT_WEIGHT * (fits is True) - QUESTION_COST * text.endswith(QUESTION_MARKS)
        if shown >= LEAST_COVERAGE and max(candidate.words.values(), default=0) > BEFORE_WEIGHT:
            found.append(replace(candidate, coverage=own, score=score, misfits=misfits))
    return sorted(found, key=lambda candidate: -candidate.score)


def _said(question: Question, quote: Quote) -> str:
    """Return what may answer: a key is no name if the question is not about its value, and loses its capital letters.

    Nobody is called Rewards in "Rewards applied: 25", but somebody may be in "Sarah Mitchell: head of sales".
    """
    if not quote.key or not quote.text.startswith(quote.key):
        return quote.text
    value = quote.text.removeprefix(quote.key)
    is_about_value = not question.words.keys().isdisjoint(terms(value, question.language))
    return quote.text if is_about_value else quote.key.lower() + value


def _share_of_key(question: Question, key: str) -> float:
    """Return the share of a key's words that are in the question; 0 without a key."""
    found = set(terms(key, question.language))
    return len(found.intersection(question.words)) / len(found) if found else 0.0


def _rarity(question: Question, candidates: Sequence[_Candidate]) -> dict[str, float]:
    """Weight the question's words by their rarity in the quotes; the weights sum to 1.

    A word that occurs nowhere counts like one that occurs once: it may have a synonym.
    """
    weights = {}
    for word, weight in question.words.items():
        occurrences = max(1, sum(candidate.words.get(word) == 1 for candidate in candidates))
        weights[word] = weight * math.log(1 + (len(candidates) + 1) / (occurrences + 0.5))
    total = sum(weights.values())
    return {word: weight / total for word, weight in weights.items()}


def _distinct(candidates: Sequence[_Candidate], language: str) -> list[_Candidate]:
    chosen: list[_Candidate] = []
    for candidate in candidates:
        if not any(_same(candidate, other, language) for other in chosen):
            chosen.append(candidate)
    return chosen[:MAX_QUOTES]


def _same(one: _Candidate, other: _Candidate, language: str) -> bool:
    """Whether two quotes overlap, or have nearly the same words."""
    if one.passage == other.passage and one.quote.start < other.quote.end and other.quote.start < one.quote.end:
        return True
    words, others = (set(terms(each.quote.text, language)) for each in (one, other))
    # Quotes with different numbers contradict each other.
    if any(NUMBER.match(word) for word in words ^ others):
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


def _head_after(before: _Candidate | None, candidate: _Candidate) -> str:
    head = candidate.quote.head
    same = before is not None and before.passage == candidate.passage and before.quote.head == head
    return "" if same else head


def _passages_with(text: str, passages: Sequence[str]) -> tuple[int, ...]:
    """Return the passages that contain a text; overlapping chunks share sentences."""
    said = " ".join(text.split())
    return tuple(index for index, passage in enumerate(passages) if said in " ".join(passage.split()))
