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

from evaluation.dataset import EvaluationQuery
from evaluation.metrics import Difference, Interval, Values, resampled
from ragstack_common.answers.answer import Answer
from ragstack_common.answers.phrases import has_closest_passages
from ragstack_common.text.words import runs
from ragstack_common.text.words import words as search_words

Kind = Literal["answerable", "unanswerable", "foreign", "removed"]
"""Foreign questions come from another data set; for removed ones, the search hides the relevant documents."""

JudgeVerdict = Literal["correct", "partial", "wrong"]


@dataclass(frozen=True)
class AnswerCase:
    """A question, its answer, and the judgments.

    Attributes:
        answer: None if the generation failed.
        found: Documents of the passages that the answerer received, in their order.
        cited: Documents of the passages that the answer cites, one for each passage.
        verdict: None without a judge or a reference, or if the verdict could not be parsed.
    """

    query: EvaluationQuery
    kind: Kind
    answer: Answer | None
    relevant: frozenset[str]
    found: tuple[str, ...] = ()
    cited: tuple[str, ...] = ()
    best_relevance: float | None = None
    verdict: JudgeVerdict | None = None

    @property
    def answered(self) -> bool:
        """Whether the response is an answer."""
        return self.answer is not None and self.answer.answered

    @property
    def closest_passages(self) -> bool:
        """Whether the response has the closest passages instead of an answer."""
        return self.answer is not None and self.answer.closest_passages

    @property
    def displayed(self) -> Answer | None:
        """The answer, or the closest passages; None if the call failed, or there is neither."""
        return self.answer if self.answered or self.closest_passages else None

    @property
    def text(self) -> str:
        """The answer or the closest passages, without citation markers; empty if there are none."""
        sentences = [] if self.displayed is None else [sentence.text for sentence in self.displayed.sentences]
        return " ".join(text for text in sentences if not has_closest_passages(text))

    @property
    def text_in_context(self) -> str:
        """The same, with the sentences before and after each quotation."""
        if self.displayed is None:
            return ""
        parts = [(source.content, part.context) for source in self.displayed.sources for part in source.quoted]
        around = [content[context.start : context.end] for content, context in parts if context is not None]
        return "\n".join([self.text, *around])

    @property
    def confidence(self) -> float | None:
        """The confidence of the answer, if there is one."""
        return None if self.answer is None else self.answer.confidence


@lru_cache(maxsize=10_000)  # each measure compares the same answers and references again
def words(text: str) -> tuple[str, ...]:
    """Return the words of a text in lower case, without punctuation and articles."""
    # ASCII first, as SQuAD has it: it counts symbols such as $ and +, too.
    spaced = "".join(
        "" if character in string.punctuation or unicodedata.category(character)[0] == "P" else character
        for character in text.lower()
    )
    return tuple(word for word in spaced.split() if word not in {"a", "an", "the"})


def token_f1(text: str, references: Sequence[str]) -> float:
    """Return the F1 of the words with the reference that fits best."""
    shares = (_precision_and_recall(text, reference) for reference in references)
    return max((2 * p * r / (p + r) if p + r else 0.0 for p, r in shares), default=0.0)


def has_reference(text: str, references: Sequence[str]) -> bool:
    """Whether the text contains a reference, word for word as searches compare words."""
    found = _spaced(text)
    return any(_spaced(reference) in found for reference in references if _spaced(reference).strip())


def _spaced(text: str) -> str:
    """Return the runs of letters and digits in spaces: 1870-1871 contains 1870, and no Thai word depends on others."""
    return " ".join(["", *runs(text), ""])


def token_recall(text: str, references: Sequence[str]) -> float:
    """Return the share of the words of a reference that the text has, for the reference that fits best."""
    return max((_precision_and_recall(text, reference)[1] for reference in references), default=0.0)


def _precision_and_recall(text: str, reference: str) -> tuple[float, float]:
    found, wanted = Counter(words(text)), Counter(words(reference))
    common = (found & wanted).total()
    return (common / found.total() if found else 0.0, common / wanted.total() if wanted else 0.0)


Part = tuple[float, float]
"""Addends of one question to the two sums whose ratio is a measure."""

NOTHING: Final[Part] = (0.0, 0.0)


def _share(condition: bool) -> Part:
    return float(condition), 1.0


def _compared(figure: Callable[[str, Sequence[str]], float]) -> Callable[[AnswerCase], Part]:
    return lambda case: (figure(case.text, case.query.answers), 1.0) if case.query.answers else NOTHING


def _correct(case: AnswerCase) -> Part:
    """A question without an answer counts as wrong; a verdict that could not be parsed does not count."""
    if not case.query.answers:
        return NOTHING
    if case.displayed is None:
        return 0.0, 1.0
    return NOTHING if case.verdict is None else ({"correct": 1.0, "partial": 0.5, "wrong": 0.0}[case.verdict], 1.0)


def _in_context(case: AnswerCase) -> Part:
    if not case.query.answers:
        return NOTHING
    return _share(has_reference(case.text_in_context, case.query.answers))


def _wrong(case: AnswerCase) -> Part:
    """Count answers without the reference. Where references are sentences, .6 of their words are enough."""
    return _share(not is_right(case)) if case.answered and case.query.answers else NOTHING


def is_right(case: AnswerCase) -> bool:
    """Whether a displayed text has the reference, or .6 of its words if the reference is a sentence."""
    references = case.query.answers
    if any(len(words(reference)) > 5 for reference in references):  # noqa: PLR2004 - a sentence
        return token_recall(case.text, references) >= 0.6  # noqa: PLR2004 - as in the fit of the confidence
    return has_reference(case.text, references)


def _words(case: AnswerCase) -> Part:
    """Count the words of a quotation, as a mean over the quotations."""
    quoted = [] if case.displayed is None else [each for one in case.displayed.sentences for each in one.quotations]
    return float(sum(len(search_words(each.text)) for each in quoted)), float(len(quoted))


def _citation_precision(case: AnswerCase) -> Part:
    if case.displayed is None or not case.cited:
        return NOTHING
    return sum(document in case.relevant for document in case.cited) / len(case.cited), 1.0


def _unsupported(case: AnswerCase) -> Part:
    if case.displayed is None:
        return NOTHING
    sentences = case.displayed.sentences
    return float(sum(sentence.unsupported for sentence in sentences)), float(len(sentences))


@dataclass(frozen=True)
class Measure:
    """A figure about answers: a ratio of two sums over the questions of a kind, or of all kinds (None).

    Attributes:
        part: What a question adds to the two sums.
    """

    kind: Kind | None
    part: Callable[[AnswerCase], Part]


JUDGED: Final = "judged correct"
FAILED: Final = "failed"
ABSTAINED: Final[Mapping[Kind, str]] = {
    "unanswerable": "abstained",
    "foreign": "abstained, foreign",
    "removed": "abstained, removed",
}
MEASURES: Final[Mapping[str, Measure]] = {
    "answered": Measure("answerable", lambda case: _share(case.answered)),
    "closest passages": Measure("answerable", lambda case: _share(case.closest_passages)),
    "token F1": Measure("answerable", _compared(token_f1)),
    "token recall": Measure("answerable", _compared(token_recall)),
    "has the reference": Measure("answerable", _compared(has_reference)),
    "... with its context": Measure("answerable", _in_context),
    "wrong answers": Measure("answerable", _wrong),
    "words": Measure("answerable", _words),
    JUDGED: Measure("answerable", _correct),
    "relevant received": Measure("answerable", lambda case: _share(not case.relevant.isdisjoint(case.found))),
    "relevant cited": Measure(
        "answerable", lambda case: _share(case.displayed is not None and not case.relevant.isdisjoint(case.cited))
    ),
    "citation precision": Measure("answerable", _citation_precision),
    "unsupported": Measure("answerable", _unsupported),
    "removed citations": Measure(
        None, lambda case: (float(case.displayed.removed_citations), 1.0) if case.displayed else NOTHING
    ),
    FAILED: Measure(None, lambda case: _share(case.answer is None)),
    **{
        name: Measure(kind, lambda case: _share(case.answer is not None and not case.answer.answered))
        for kind, name in ABSTAINED.items()
    },
}


@dataclass(frozen=True)
class Ratio:
    """A measure of all questions, in their order."""

    numerators: Values
    denominators: Values

    @classmethod
    def of(cls, name: str, cases: Sequence[AnswerCase]) -> "Ratio":
        """Compute a measure."""
        measure = MEASURES[name]
        parts = [measure.part(each) if measure.kind in (None, each.kind) else NOTHING for each in cases]
        columns = np.array(parts, dtype=np.float64).reshape(-1, 2)
        return cls(columns[:, 0], columns[:, 1])

    @property
    def total(self) -> float:
        """The denominator of the figure."""
        return float(self.denominators.sum())

    @property
    def value(self) -> float:
        """The figure; the total must not be 0."""
        return float(self.numerators.sum()) / self.total

    def interval(self) -> Interval:
        """Return the figure with its 95 % bootstrap interval."""
        ratios = _divided(*resampled(np.array([self.numerators, self.denominators])))
        return Interval.of(self.value, ratios[np.isfinite(ratios)])

    def difference(self, baseline: "Ratio") -> Difference:
        """Return how far above the baseline the figure is; both are resampled with the same questions."""
        sampled = resampled(np.array([self.numerators, self.denominators, baseline.numerators, baseline.denominators]))
        differences = _divided(sampled[0], sampled[1]) - _divided(sampled[2], sampled[3])
        return Difference.of(self.value - baseline.value, differences[np.isfinite(differences)])


def _divided(numerators: Values, denominators: Values) -> Values:
    """Divide; a sample without anything to count gives NaN."""
    return np.divide(numerators, denominators, out=np.full_like(numerators, np.nan), where=denominators > 0)
