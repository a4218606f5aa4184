"""Choose the sentences of passages that answer a question."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise, zip_longest
from typing import Final, Self

from ragstack_common.answers.quote.assistants import addresses_assistant
from ragstack_common.answers.quote.confidence import MEAN_LEAD, Evidence
from ragstack_common.answers.quote.figures import Figure, figure_in
from ragstack_common.answers.quote.kinds import NUMBER
from ragstack_common.answers.quote.questions import Question
from ragstack_common.answers.quote.quotable import Quote, quotes
from ragstack_common.text.languages import ENGLISH, UNINFLECTED
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

HEADING_WEIGHT: Final = 0.15
"""For a quote below a heading whose words are in the question."""

NUMBERED_WEIGHT: Final = 0.15
"""For a quote with all of the question's words that a number follows, such as row 2, followed by that number."""

LACKING_COST: Final = 0.2
"""For a quote without a number of the question, if it is not near it either."""

MISFIT_COST: Final = 0.2
QUESTION_COST: Final = 0.3
"""For a quote that is itself a question."""

FAR_SHARE: Final = 0.25
"""Share of the best relevance that a passage must have to be quoted."""

BELOW_SHARE: Final = 0.5
"""Share of the best relevance below which a passage is quoted after the others, whatever its number."""

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
        figure: The figure that it states of the kind that the question asks for; None if there are several.
    """

    space: str
    text: str
    passages: tuple[int, ...]
    head: str = ""
    evidence: Evidence = NO_EVIDENCE
    figure: Figure | None = None

    @property
    def whole(self) -> str:
        """The text below its head."""
        return f"{self.head}\n{self.text}" if self.head else self.text


@dataclass(frozen=True)
class _Part:
    """A part of a passage, or what is above it.

    Attributes:
        words: Its terms; empty for several parts together.
        numbers: The numbers of the question that it has, each next to the word before it.
        unnamed: The names of the question that it lacks, and all words that begin like them.
    """

    words: Sequence[str]
    numbers: frozenset[tuple[str, str]]
    unnamed: frozenset[str]

    @classmethod
    def of(cls, question: Question, words: Sequence[str]) -> Self:
        numbers: frozenset[tuple[str, str]] = frozenset()
        if question.numbers:
            pairs = {pair for one, other in pairwise(words) for pair in ((one, other), (other, one))}
            numbers = question.numbers & (pairs | {("", word) for word in words})
        unnamed = question.names.difference(words)
        if unnamed:
            begun = frozenset[str]().union(*map(_beginnings, words))
            unnamed = frozenset(name for name in unnamed if begun.isdisjoint(_beginnings(name)))
        return cls(words, numbers, unnamed)

    @classmethod
    def joined(cls, question: Question, parts: Sequence["_Part"]) -> Self:
        """Return what several parts have together, and all of them lack."""
        numbers = frozenset[tuple[str, str]]().union(*(part.numbers for part in parts))
        return cls((), numbers, question.names.intersection(*(part.unnamed for part in parts)))


@dataclass(frozen=True)
class _Candidate:
    """A quote and its passage.

    Attributes:
        words: Weight of each of the question's words in it: 1 if the quote contains the word itself.
        numbered: Share of the question's numbers that the quote contains, each next to the word before it.
        unnumbered: 1 if it, its neighbours and what is above it lack a number of the question; .5 if it is elsewhere in
            the passage.
        unnamed: The names of the question that are missing there; and, for prose, in the whole passage.
        coverage: Share of the question that it contains, weighted by rarity, without the sentence before.
        misfits: Whether it lacks what the question asks for, such as a number.
    """

    quote: Quote
    passage: int
    words: Mapping[str, float]
    numbered: float = 0.0
    unnumbered: float = 0.0
    unnamed: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())
    coverage: float = 0.0
    score: float = 0.0
    misfits: float = 0.0


def best_quotations(
    question: str,
    passages: Sequence[str],
    contexts: Sequence[str] = (),
    relevances: Sequence[float | None] = (),
    documents: Sequence[str] = (),
) -> list[Quotation]:
    """Choose what answers a question, in the order of the text.

    Args:
        question: The question.
        passages: The passages, best first.
        contexts: The title and headings above each passage, if known.
        relevances: The relevance of each passage, if known.
        documents: What identifies the document of each passage, if known; otherwise each has its own.

    Returns:
        Nothing if no passage answers the question.
    """
    asked = Question.of(question, detect_language(question, *passages))
    candidates = _candidates(asked, passages, contexts, documents)
    scored, rarity = _scored(asked, candidates), _rarity(asked, candidates)
    is_relevant = _relevant(relevances, len(passages))
    chosen = _chosen(asked, [each for each in scored if is_relevant[each.passage]])
    found = []
    for before, candidate in pairwise([None, *_ordered(chosen, relevances)]):
        assert candidate is not None
        relevance = relevances[candidate.passage] if relevances else None
        evidence = Evidence(
            candidate.coverage,
            _nearby(asked, candidate, candidates),
            candidate.misfits,
            _lead(candidate, scored) if len(passages) > 1 else MEAN_LEAD,
            relevance,
            unnumbered=candidate.unnumbered,
            unnamed=_unnamed(asked, candidate, rarity),
            absent=_absent(candidate, candidates, rarity),
            inflected=float(asked.language != ENGLISH and asked.language not in UNINFLECTED),
        )
        cited = _passages_with(candidate.quote.text, passages) or (candidate.passage,)
        space, head = _space(before, candidate), _head_after(before, candidate)
        figure = None if candidate.unnumbered else figure_in(asked.expected, candidate.quote.text)
        found.append(Quotation(space, candidate.quote.text, cited, head, evidence, figure))
    return found


def _relevant(relevances: Sequence[float | None], count: int) -> list[bool]:
    """Return which passages are not far less relevant than the best."""
    best = max((relevance for relevance in relevances if relevance is not None), default=0.0)
    return [relevance is None or relevance >= FAR_SHARE * best for relevance in relevances or [None] * count]


def _candidates(
    question: Question, passages: Sequence[str], contexts: Sequence[str], documents: Sequence[str]
) -> list[_Candidate]:
    found = []
    named = _named(question, passages, documents)
    for position, (passage, context) in enumerate(zip_longest(passages, contexts, fillvalue="")):
        title = _Part.of(question, terms(context, question.language))
        quoted = [quote for quote in quotes(passage, question.text) if not addresses_assistant(quote.text)]
        parts = [_Part.of(question, terms(quote.whole, question.language)) for quote in quoted]
        whole = _Part.joined(question, [title, *parts])
        headings = {quote.context: terms(quote.context, question.language) for quote in quoted}
        for place, quote in enumerate(quoted):
            above = _Part.of(question, [*headings[quote.context], *(named[position] if quote.block else ())])
            near = _Part.joined(question, [title, above, *parts[max(0, place - 1) : place + 2]])
            wide = near if quote.block else _Part.joined(question, [whole, above])
            before = [] if quote.block or not place else parts[place - 1].words
            found.append(
                _Candidate(
                    quote,
                    position,
                    _weights(question, parts[place].words, before, [*title.words, *above.words]),
                    _share_of_numbers(question, parts[place]),
                    ((_share_of_numbers(question, near) < 1) + (_share_of_numbers(question, wide) < 1)) / 2,
                    (near.unnamed, wide.unnamed),
                )
            )
    return found


def _named(question: Question, passages: Sequence[str], documents: Sequence[str]) -> list[list[str]]:
    """Return, for each passage, the names of the question that its document has: a receipt names the shop only once."""
    documents = documents or [str(position) for position in range(len(passages))]
    found: dict[str, set[str]] = defaultdict(set)
    for passage, document in zip(passages, documents, strict=True) if question.names else ():
        found[document] |= question.names.intersection(terms(passage, question.language))
    return [sorted(found[document]) for document in documents]


def _weights(question: Question, said: Sequence[str], before: Sequence[str], above: Sequence[str]) -> dict[str, float]:
    """Weight the question's words in a quote, the sentence before it and what is above it."""
    asked, words = question.words.keys(), frozenset(said)
    begun = frozenset[str]().union(*map(_beginnings, words))
    related = {word for word in asked if not begun.isdisjoint(_beginnings(word)) or _is_part(word, words)}
    return {
        **dict.fromkeys(asked & set(before), BEFORE_WEIGHT),
        **dict.fromkeys(asked & set(above), ABOVE_WEIGHT),
        **dict.fromkeys(related, RELATED_WEIGHT),
        **dict.fromkeys(asked & words, 1.0),
    }


def _absent(candidate: _Candidate, candidates: Sequence[_Candidate], rarity: Mapping[str, float]) -> float:
    """Return the share of the question that the whole passage lacks."""
    said = {word for other in candidates if other.passage == candidate.passage for word in other.words}
    return max((share for word, share in rarity.items() if word not in said), default=0.0)


def _unnamed(question: Question, candidate: _Candidate, rarity: Mapping[str, float]) -> float:
    """Return how rare the rarest missing name is, as a share of the rarest; half if it is elsewhere in the passage."""
    rarest = max((rarity[name] for name in question.names), default=0.0)
    missing = (max((rarity[name] for name in names), default=0.0) for names in candidate.unnamed)
    return sum(missing) / (2 * rarest) if rarest else 0.0


def _share_of_numbers(question: Question, part: _Part) -> float:
    """Return the share of the question's numbers in a part, each next to the word before it; 1 without numbers."""
    return len(part.numbers) / len(question.numbers) if question.numbers else 1.0


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
        and not (candidate.quote.block and _has_own(scored[0]) and not _has_own(candidate))
        and not (asks_for_key and 0 < _share_of_key(question, candidate.quote.key) < 1)
    ]
    return _distinct([*scored[:1], *close], question.language)


def _has_own(candidate: _Candidate) -> bool:
    """Whether a quote has a word of the question itself; a line of a receipt may have them only above it."""
    return max(candidate.words.values(), default=0) > ABOVE_WEIGHT


def _scored(question: Question, candidates: Sequence[_Candidate]) -> list[_Candidate]:
    """Return the candidates that answer the question, best first; ties are in the order of the passages."""
    rarity = _rarity(question, candidates)
    found = []
    for candidate in candidates:
        text = candidate.quote.text
        shares = [(weight, weight * rarity[word]) for word, weight in candidate.words.items()]
        own = sum(share for weight, share in shares if weight > BEFORE_WEIGHT)
        misfits = _misfit(question, candidate.quote)
        shown = sum(share for _, share in shares) - MISFIT_COST * misfits
        score = shown + RANK_WEIGHT / (1 + candidate.passage)
        score += KEY_WEIGHT * _share_of_key(question, candidate.quote.key)
        score += HEADING_WEIGHT * _share_of_key(question, candidate.quote.context.rpartition(" / ")[2])
        score += NUMBERED_WEIGHT * candidate.numbered * bool(question.numbers) - LACKING_COST * candidate.unnumbered
        score += FIT_WEIGHT * (question.expected is not None) * (1 - misfits) - QUESTION_COST * text.endswith(
            QUESTION_MARKS
        )
        if shown >= LEAST_COVERAGE and max(candidate.words.values(), default=0) > BEFORE_WEIGHT:
            found.append(replace(candidate, coverage=own, score=score, misfits=misfits))
    return sorted(found, key=lambda candidate: -candidate.score)


def _misfit(question: Question, quote: Quote) -> float:
    """Return how far a quote lacks what the question asks for, from 0 to 1; 0 if that is not known."""
    if question.expected is None:
        return 0.0
    return question.expected.misfit(_said(question, quote), f"{quote.key} {quote.head}")


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
        if len(chosen) == MAX_QUOTES:
            break
        if not any(_same(candidate, other, language) for other in chosen):
            chosen.append(candidate)
    return chosen


def _same(one: _Candidate, other: _Candidate, language: str) -> bool:
    """Whether two quotes overlap, or have nearly the same words."""
    if one.passage == other.passage and one.quote.start < other.quote.end and other.quote.start < one.quote.end:
        return True
    words, others = (set(terms(each.quote.text, language)) for each in (one, other))
    # Quotes with different numbers contradict each other.
    if any(NUMBER.match(word) for word in words ^ others):
        return False
    return len(words & others) >= SAME_SHARE * min(len(words), len(others))


def _ordered(chosen: Sequence[_Candidate], relevances: Sequence[float | None]) -> list[_Candidate]:
    """Order quotes by passage, and by their position in it; passages far below the best quoted one come last."""
    known = [relevances[each.passage] or 0.0 for each in chosen] if relevances else [1.0] * len(chosen)
    best = max(known, default=0.0)
    places = [
        (relevance < BELOW_SHARE * best, each.passage, each.quote.start)
        for relevance, each in zip(known, chosen, strict=True)
    ]
    return [each for _, each in sorted(zip(places, chosen, strict=True), key=lambda pair: pair[0])]


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
