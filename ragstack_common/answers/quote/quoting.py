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
from ragstack_common.answers.quote.questions import ParsedQuestion, parse_question
from ragstack_common.answers.quote.quotable import Quote, quotes
from ragstack_common.text.languages import ENGLISH, UNINFLECTED
from ragstack_common.text.sentences import QUESTION_MARKS
from ragstack_common.text.spelling import arabic_roots, is_arabic
from ragstack_common.text.words import detect_language, terms

MAX_QUOTES: Final = 4
MIN_COVERAGE: Final = 0.2
"""Share of the question's words, weighted by rarity, that a quote and its context must contain to be shown."""

ABOVE_WEIGHT: Final = 0.6
"""Weight of a word in the title of the document and the headings above a quote."""

BEFORE_WEIGHT: Final = 0.5
"""Weight of a word in the sentence before."""

RELATED_WEIGHT: Final = 0.7
RELATED_CHARACTERS: Final = 4
"""Words with the same beginning, such as approve and approval, are related."""

MIN_PART: Final = 5
"""Minimum length of a word that is related to a longer one which contains it, as in compounds and prefixed verbs."""

RANK_WEIGHT: Final = 0.2
FIT_WEIGHT: Final = 0.15
"""Added if a quote has what the question asks for, such as a number or a date."""

KEY_WEIGHT: Final = 0.15
"""Added if the key of a value is in the question: of ``Total 10`` and ``Total points 5``, the total is the former."""

HEADING_WEIGHT: Final = 0.15
NUMBERED_WEIGHT: Final = 0.15
"""Added if a quote has the question's numbers after the same words, such as row 2."""

LACKING_COST: Final = 0.2
"""Subtracted if a number of the question is neither in the quote nor near it."""

MISFIT_COST: Final = 0.2
QUESTION_COST: Final = 0.3
"""Subtracted if a quote is itself a question."""

FAR_SHARE: Final = 0.25
"""Share of the best relevance that a passage must have to be quoted."""

BELOW_SHARE: Final = 0.5
"""Share of the best relevance below which a passage is quoted after the others, whatever its number."""

SECOND_BEST: Final = 0.8
"""Share of the best score that a further quote must reach."""

ROW_SHARE: Final = 0.8
"""Share of what the best row of a table has of the question, without its header, that a row must have."""

FURTHER_COVERAGE: Final = 0.3
"""Share of the question that a further quote must contain: several weak quotes don't help."""

SAME_SHARE: Final = 0.7
"""Share of the words of the shorter of two quotes above which they are the same."""


@dataclass(frozen=True)
class ChosenQuote:
    """A part of a passage that answers the question, word for word.

    Attributes:
        text: Sentence, list, table row or block of code.
        passages: The positions of all passages that contain it, from 0.
        head: The header of its table and the row that names its group, unless an earlier quote of the table shows them.
        evidence: What is known about whether it answers the question.
        figure: The figure that it states of the kind that the question asks for; None if there are several.
    """

    text: str
    passages: tuple[int, ...]
    head: str
    evidence: Evidence
    figure: Figure | None = None


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
    def of(cls, question: ParsedQuestion, words: Sequence[str]) -> Self:
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
    def joined(cls, question: ParsedQuestion, parts: Sequence["_Part"]) -> Self:
        """Return what several parts have together, and what all of them lack."""
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
        named: The question's words that a row of a table has itself, not its header.
        coverage: Share of the question that it contains, weighted by rarity, without the sentence before.
        misfits: Whether it lacks what the question asks for, such as a number.
        in_row: The share that is in the row itself.
    """

    quote: Quote
    passage: int
    words: Mapping[str, float]
    numbered: float = 0.0
    unnumbered: float = 0.0
    unnamed: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())
    named: Sequence[str] = ()
    in_row: float = 0.0
    coverage: float = 0.0
    score: float = 0.0
    misfits: float = 0.0


def best_quotations(
    question: str,
    passages: Sequence[str],
    contexts: Sequence[str] = (),
    relevances: Sequence[float | None] = (),
    documents: Sequence[str] = (),
) -> list[ChosenQuote]:
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
    asked = parse_question(question, detect_language(question, *passages))
    candidates = _candidates(asked, passages, contexts, documents)
    rarity = _rarity(asked, candidates)
    scored = _scored(asked, candidates, rarity)
    relevances = relevances or [None] * len(passages)
    highest = max((relevance for relevance in relevances if relevance is not None), default=0.0)
    is_relevant = [relevance is None or relevance >= FAR_SHARE * highest for relevance in relevances]
    chosen = _chosen(asked, [each for each in scored if is_relevant[each.passage]])
    found, shown = [], set[tuple[int, str]]()
    for candidate in _ordered(chosen, relevances):
        quote = candidate.quote
        above = [line for line in (quote.head, quote.group) if line and (candidate.passage, line) not in shown]
        shown |= {(candidate.passage, line) for line in (*above, quote.text)}
        evidence = Evidence(
            candidate.coverage,
            _nearby(candidate, candidates, rarity),
            candidate.misfits,
            _lead(candidate, scored) if len(passages) > 1 else MEAN_LEAD,
            relevances[candidate.passage],
            unnumbered=candidate.unnumbered,
            unnamed=_unnamed(asked, candidate, rarity),
            absent=_absent(candidate, candidates, rarity),
            inflected=float(asked.language != ENGLISH and asked.language not in UNINFLECTED),
        )
        cited = _passages_with(quote.text, passages) or (candidate.passage,)
        figure = None if candidate.unnumbered else figure_in(asked.expected, quote.text)
        found.append(ChosenQuote(quote.text, cited, "\n".join(above), evidence, figure))
    return found


def _candidates(
    question: ParsedQuestion, passages: Sequence[str], contexts: Sequence[str], documents: Sequence[str]
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
                    _in_row(question, quote),
                )
            )
    return found


def _in_row(question: ParsedQuestion, quote: Quote) -> Sequence[str]:
    """Return the words of the question that a row of a table has itself, or its group."""
    if not quote.head:
        return ()
    weights = _weights(question, terms(quote.named, question.language), (), ())
    return [word for word, weight in weights.items() if weight == 1]


def _named(question: ParsedQuestion, passages: Sequence[str], documents: Sequence[str]) -> list[list[str]]:
    """Return, for each passage, the names of the question that its document has: a receipt names the shop only once."""
    documents = documents or [str(position) for position in range(len(passages))]
    found: dict[str, set[str]] = defaultdict(set)
    for passage, document in zip(passages, documents, strict=True) if question.names else ():
        found[document] |= question.names.intersection(terms(passage, question.language))
    return [sorted(found[document]) for document in documents]


def _weights(
    question: ParsedQuestion, quoted: Sequence[str], before: Sequence[str], above: Sequence[str]
) -> dict[str, float]:
    """Weight the question's words in a quote, the sentence before it and what is above it."""
    asked, words = question.words.keys(), frozenset(quoted)
    begun = frozenset[str]().union(*map(_beginnings, words))
    related = {word for word in asked if not begun.isdisjoint(_beginnings(word)) or _is_part(word, words)}
    weights = {
        **dict.fromkeys(asked & set(before), BEFORE_WEIGHT),
        **dict.fromkeys(asked & set(above), ABOVE_WEIGHT),
        **dict.fromkeys(related, RELATED_WEIGHT),
        **dict.fromkeys(asked & words, 1.0),
    }
    # Sets have another order in each process, and sums of floats depend on the order.
    return {word: weights[word] for word in asked if word in weights}


def _absent(candidate: _Candidate, candidates: Sequence[_Candidate], rarity: Mapping[str, float]) -> float:
    """Return the weight of the rarest word that the whole passage lacks; 0 if it lacks none."""
    present = {word for other in candidates if other.passage == candidate.passage for word in other.words}
    return max((share for word, share in rarity.items() if word not in present), default=0.0)


def _unnamed(question: ParsedQuestion, candidate: _Candidate, rarity: Mapping[str, float]) -> float:
    """Return how rare the rarest missing name is, as a share of the rarest; half if it is elsewhere in the passage."""
    rarest = max((rarity[name] for name in question.names), default=0.0)
    missing = (max((rarity[name] for name in names), default=0.0) for names in candidate.unnamed)
    return sum(missing) / (2 * rarest) if rarest else 0.0


def _share_of_numbers(question: ParsedQuestion, part: _Part) -> float:
    """Return the share of the question's numbers in a part, each next to the word before it; 1 without numbers."""
    return len(part.numbers) / len(question.numbers) if question.numbers else 1.0


@lru_cache(maxsize=100_000)
def _beginnings(word: str) -> frozenset[str]:
    """Return what related words share; nothing if the word is too short."""
    if is_arabic(word):
        return arabic_roots(word)
    return frozenset([word[:RELATED_CHARACTERS]] if len(word) >= RELATED_CHARACTERS else ())


def _is_part(word: str, words: Iterable[str]) -> bool:
    """Whether a word is part of one of the words, or contains it, as in compounds and words with a prefix."""
    if len(word) < MIN_PART:
        return False
    return any(word in other or (len(other) >= MIN_PART and other in word) for other in words)


def _nearby(candidate: _Candidate, candidates: Sequence[_Candidate], rarity: Mapping[str, float]) -> float:
    """Return the share of the question that a candidate contains together with its neighbours."""
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


def _chosen(question: ParsedQuestion, scored: Sequence[_Candidate]) -> list[_Candidate]:
    """Choose the best candidate, and others that are nearly as good and say something else."""
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
    chosen: list[_Candidate] = []
    for candidate in [*scored[:1], *close]:
        is_new = not any(_same(candidate, other, question.language) for other in chosen)
        if is_new and len(chosen) < MAX_QUOTES:
            chosen.append(candidate)
    return chosen


def _has_own(candidate: _Candidate) -> bool:
    """Whether a quote has a word of the question itself; a line of a receipt may have them only above it."""
    return max(candidate.words.values(), default=0) > ABOVE_WEIGHT


def _scored(
    question: ParsedQuestion, candidates: Sequence[_Candidate], rarity: Mapping[str, float]
) -> list[_Candidate]:
    """Return the candidates that answer the question, best first; ties are in the order of the passages."""
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
        if shown >= MIN_COVERAGE and max(candidate.words.values(), default=0) > BEFORE_WEIGHT:
            in_row = sum(rarity[word] for word in candidate.named)
            found.append(replace(candidate, coverage=own, score=score, misfits=misfits, in_row=in_row))
    # Of a table, the row that the question names; what all rows have in their header decides nothing.
    least = ROW_SHARE * max((candidate.in_row for candidate in found), default=0.0)
    found = [candidate for candidate in found if not candidate.quote.head or candidate.in_row >= least]
    return sorted(found, key=lambda candidate: -candidate.score)


def _misfit(question: ParsedQuestion, quote: Quote) -> float:
    """Return how far a quote lacks what the question asks for, from 0 to 1; 0 if that is not known.

    A key loses its capital letters unless the question is about its value: "Rewards applied: 25" names no person, but
    "Sarah Mitchell: head of sales" does.
    """
    if question.expected is None:
        return 0.0
    text = quote.text
    if quote.key and text.startswith(quote.key):
        value = text.removeprefix(quote.key)
        if question.words.keys().isdisjoint(terms(value, question.language)):
            text = quote.key.lower() + value
    return question.expected.misfit(text, f"{quote.key} {quote.head}")


def _share_of_key(question: ParsedQuestion, key: str) -> float:
    """Return the share of a key's words that are in the question; 0 without a key."""
    found = set(terms(key, question.language))
    return len(found.intersection(question.words)) / len(found) if found else 0.0


def _rarity(question: ParsedQuestion, candidates: Sequence[_Candidate]) -> dict[str, float]:
    """Weight the question's words by their rarity in the quotes; the weights sum to 1.

    A word that occurs nowhere counts like one that occurs once: it may have a synonym.
    """
    weights = {}
    for word, weight in question.words.items():
        occurrences = max(1, sum(candidate.words.get(word) == 1 for candidate in candidates))
        weights[word] = weight * math.log(1 + (len(candidates) + 1) / (occurrences + 0.5))
    total = sum(weights.values())
    return {word: weight / total for word, weight in weights.items()}


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
    best = max((relevances[each.passage] or 0.0 for each in chosen), default=0.0)

    def place(candidate: _Candidate) -> tuple[bool, int, int]:
        is_below = (relevances[candidate.passage] or 0.0) < BELOW_SHARE * best
        return is_below, candidate.passage, candidate.quote.start

    return sorted(chosen, key=place)


def _passages_with(text: str, passages: Sequence[str]) -> tuple[int, ...]:
    """Return the positions of the passages that contain a text; overlapping chunks share sentences."""
    text = " ".join(text.split())
    return tuple(index for index, passage in enumerate(passages) if text in " ".join(passage.split()))
