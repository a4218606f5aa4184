"""How likely a quotation answers the question: a logistic regression on what the choice of quotations knows.

It was fitted on questions with and without an answer in the passages: ``samples/judged`` and its near misses, guides,
XQuAD in four languages with and without the relevant documents, and a folder of mixed files. A quotation was right if
it contains the reference answer, or .6 of its words where the references are sentences. The weights of what is missing
are larger than in the fit, whose questions have few near misses. ``benchmarks/confidence.py`` fits it again.
docs/RESULTS.md has the share of wrong answers at each threshold.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ragstack_common.settings.relevance import logistic

INTERCEPT: Final = -2.4
"""The fit has -2.97, but three of five of its questions can be answered, and some weights here are larger."""

WEIGHTS: Final[Mapping[str, float]] = {
    "coverage": 1.6,
    "nearby": 2.1,
    "misfits": -0.75,
    "lead": 1.3,
    "relevance": 1.7,
    "inflected": 0.76,
    "unnumbered": -2.4,
    "unnamed": -2.0,
    "absent": -1.8,
}

MEAN_RELEVANCE: Final = 0.2
"""Assumed for engines without a calibration."""

MEAN_LEAD: Final = 0.3
"""Assumed for a single passage."""


@dataclass(frozen=True)
class Evidence:
    """What is known about the best quotation: the features of the regression.

    Attributes:
        coverage: Share of the question, weighted by rarity, in the quotation, the title and the headings; 0 to 1.
        nearby: The same, with the sentences before and after it.
        misfits: 1 if it lacks the number, date, person or reason that the question asks for, outside its own words.
        lead: How far its score is above that of the best quotation of another passage; 0 or more.
        relevance: Relevance of its passage; None if the engine has no calibration.
        inflected: 1 for languages whose words have several forms, except English. They compound and inflect
            words, so that a right quotation contains fewer of the question's words.
        unnumbered: 1 if a number of the question is neither near nor above it, .5 if it is elsewhere in its passage.
        unnamed: The same for names, as a share of the rarest name.
        absent: Weight of the question's rarest word that the whole passage lacks, as a share of the question.
    """

    coverage: float
    nearby: float
    misfits: float
    lead: float = 0
    relevance: float | None = None
    inflected: float = 0
    unnumbered: float = 0
    unnamed: float = 0
    absent: float = 0

    @property
    def values(self) -> dict[str, float]:
        """The features by name."""
        return {**vars(self), "relevance": MEAN_RELEVANCE if self.relevance is None else self.relevance}

    @property
    def confidence(self) -> float:
        """The probability, 0 to 1."""
        return logistic(INTERCEPT + sum(WEIGHTS[name] * value for name, value in self.values.items()))
