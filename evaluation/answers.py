"""Measures of answers: their citations, their words, and whether they abstain.

Source: Rajpurkar et al. 2016, "SQuAD", for the normalization of words and the F1 over them.
"""

import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

import numpy as np

from evaluation.dataset import Query
from evaluation.metrics import Interval, Values, between, resampled
from ragstack_common.answers.answer import Answer
from ragstack_common.answers.models import CLOSEST_PASSAGES

Kind = Literal["answerable", "unanswerable", "foreign", "removed"]
"""Of a question: the data set marks it as unanswerable, it comes from another data set (foreign), or its relevant
documents are hidden from the search (removed)."""

Verdict = Literal["correct", "partial", "wrong"]

ARTICLES: Final = frozenset({"a", "an", "the"})
POINTS: Final[Mapping[Verdict, float]] = {"correct": 1.0, "partial": 0.5, "wrong": 0.0}


@dataclass(frozen=True)
class Asked:
    """A question, its answer, and the judgments.

    Attributes:
        answer: None if the generation failed.
        found: Documents of the passages that the answerer received, in their order.
        cited: Documents of the passages that the answer cites, one for each passage.
        relevant: Documents that are judged to be relevant.
        verdict: The judge's; None without a judge or a reference, or if the verdict could not be read.
    """

    query: Query
    kind: Kind
    answer: Answer | None
    relevant: frozenset[str]
    found: tuple[str, ...] = ()
    cited: tuple[str, ...] = ()
    best_relevance: float | None = None
    verdict: Verdict | None = None

    @property
    def answered(self) -> bool:
        """Whether there is a response, and its `answered` is true."""
        return self.answer is not None and self.answer.answered

    @property
    def given(self) -> Answer | None:
        """The answer, or the closest passages; None if the call failed, or there is neither."""
        answer = self.answer
        return answer if answer is not None and (answer.answered or answer.closest_passages) else None

    @property
    def abstained(self) -> bool:
        """Whether there is a response, and its `answered` is false."""
        return self.answer is not None and not self.answer.answered

    @property
    def text(self) -> str:
        """The answer or the closest passages, without citation markers; empty if there are none."""
        sentences = [] if self.given is None else [sentence.text for sentence in self.given.sentences]
        return " ".join(text for text in sentences if text != CLOSEST_PASSAGES)


Part = tuple[float, float]
"""What a question adds to the two sums of which a measure is the ratio."""

NOTHING: Final[Part] = (0.0, 0.0)


@lru_cache(maxsize=10_000)  # each measure compares the same answers and references again
def words(text: str) -> tuple[str, ...]:
    """Return the words of a text in lower case, without punctuation and articles."""
    spaced = "".join(_unpunctuated(character) for character in text.lower())
    return tuple(word for word in spaced.split() if word not in ARTICLES)


def _unpunctuated(character: str) -> str:
    # ASCII first, as SQuAD has it: it counts symbols such as $ and +, too.
    is_mark = character in string.punctuation or unicodedata.category(character)[0] == "P"
    return "" if is_mark else character


def precision_and_recall(text: str, reference: str) -> tuple[float, float]:
    """Return the shares of the text's words and of the reference's words that the two have in common."""
    found, wanted = Counter(words(text)), Counter(words(reference))
    common = (found & wanted).total()
    return (common / found.total() if found else 0.0, common / wanted.total() if wanted else 0.0)


def token_f1(text: str, references: Sequence[str]) -> float:
    """Return the F1 of the words with the reference that fits best."""
    return max((_harmonic(*precision_and_recall(text, reference)) for reference in references), default=0.0)


def token_recall(text: str, references: Sequence[str]) -> float:
    """Return the share of the words of a reference that the text has, for the reference that fits best."""
    return max((precision_and_recall(text, reference)[1] for reference in references), default=0.0)


def _harmonic(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _share(condition: bool) -> Part:
    return float(condition), 1.0


def _answered(asked: Asked) -> Part:
    return _share(asked.answered) if asked.kind == "answerable" else NOTHING


def _closest_passages(asked: Asked) -> Part:
    return _share(asked.answer is not None and asked.answer.closest_passages) if asked.kind == "answerable" else NOTHING


def _abstained(kind: Kind) -> Callable[[Asked], Part]:
    def abstained(asked: Asked) -> Part:
        return _share(asked.abstained) if asked.kind == kind else NOTHING

    return abstained


def _of_reference(figure: Callable[[str, Sequence[str]], float]) -> Callable[[Asked], Part]:
    def compared(asked: Asked) -> Part:
        has_reference = asked.kind == "answerable" and asked.query.answers
        return (figure(asked.text, asked.query.answers), 1.0) if has_reference else NOTHING

    return compared


def _correct(asked: Asked) -> Part:
    """A question that is not answered counts as wrong; a verdict that could not be read does not count."""
    if asked.kind != "answerable" or not asked.query.answers:
        return NOTHING
    if asked.given is None:
        return 0.0, 1.0
    return NOTHING if asked.verdict is None else (POINTS[asked.verdict], 1.0)


def _citation_precision(asked: Asked) -> Part:
    if asked.kind != "answerable" or asked.given is None or not asked.cited:
        return NOTHING
    return sum(document in asked.relevant for document in asked.cited) / len(asked.cited), 1.0


def _cites_relevant(asked: Asked) -> Part:
    if asked.kind != "answerable":
        return NOTHING
    return _share(asked.given is not None and not asked.relevant.isdisjoint(asked.cited))


def _received_relevant(asked: Asked) -> Part:
    return _share(not asked.relevant.isdisjoint(asked.found)) if asked.kind == "answerable" else NOTHING


def _unsupported(asked: Asked) -> Part:
    if asked.kind != "answerable" or asked.given is None:
        return NOTHING
    return float(sum(sentence.unsupported for sentence in asked.given.sentences)), float(len(asked.given.sentences))


def _removed_citations(asked: Asked) -> Part:
    return NOTHING if asked.given is None else (float(asked.given.removed_citations), 1.0)


def _failed(asked: Asked) -> Part:
    return _share(asked.answer is None)


@dataclass(frozen=True)
class Measure:
    """A figure about answers: a ratio of two sums over the questions.

    Attributes:
        of: What is counted or averaged, in a few words.
        part: What a question adds to the two sums.
    """

    of: str
    part: Callable[[Asked], Part]


JUDGED: Final = "judged correct"
FAILED: Final = "failed"
MEASURES: Final[Mapping[str, Measure]] = {
    "answered": Measure("answerable questions", _answered),
    "closest passages": Measure("answerable questions; shown as such, not as an answer", _closest_passages),
    "token F1": Measure("questions with a reference; of what is shown, 0 if nothing is", _of_reference(token_f1)),
    "token recall": Measure("the same", _of_reference(token_recall)),
    JUDGED: Measure("the same, by the judge; partly correct is .5", _correct),
    "relevant received": Measure("answerable questions with a relevant passage", _received_relevant),
    "relevant cited": Measure("answerable questions with a relevant citation", _cites_relevant),
    "citation precision": Measure("cited passages, by answer", _citation_precision),
    "unsupported": Measure("sentences of the answers", _unsupported),
    "removed citations": Measure("answers; markers that named no passage", _removed_citations),
    FAILED: Measure("all questions", _failed),
    "abstained": Measure("unanswerable questions", _abstained("unanswerable")),
    "abstained, foreign": Measure("questions of other sets", _abstained("foreign")),
    "abstained, removed": Measure("questions without their documents", _abstained("removed")),
}


@dataclass(frozen=True)
class Ratio:
    """A measure of all questions, in their order."""

    numerators: Values
    denominators: Values

    @classmethod
    def of(cls, measure: str, asked: Sequence[Asked]) -> "Ratio":
        """Compute a measure."""
        parts = np.array([MEASURES[measure].part(each) for each in asked], dtype=np.float64).reshape(-1, 2)
        return cls(parts[:, 0], parts[:, 1])

    @property
    def total(self) -> float:
        """What the figure is a share or a mean of."""
        return float(self.denominators.sum())

    @property
    def value(self) -> float:
        """The figure; there must be something to count."""
        return float(self.numerators.sum()) / self.total

    def interval(self) -> Interval:
        """Return the figure with its 95 % bootstrap interval."""
        ratios = _divided(*resampled(np.array([self.numerators, self.denominators])))
        return Interval(self.value, *between(ratios[np.isfinite(ratios)]))

    def difference(self, baseline: "Ratio") -> Interval:
        """Return how far above the baseline the figure is; both are resampled with the same questions."""
        sampled = resampled(np.array([self.numerators, self.denominators, baseline.numerators, baseline.denominators]))
        differences = _divided(sampled[0], sampled[1]) - _divided(sampled[2], sampled[3])
        return Interval(self.value - baseline.value, *between(differences[np.isfinite(differences)]))


def _divided(numerators: Values, denominators: Values) -> Values:
    """Divide; a sample without anything to count gives NaN."""
    return np.divide(numerators, denominators, out=np.full_like(numerators, np.nan), where=denominators > 0)
