"""How likely a quotation answers the question: a logistic regression on what the choice of quotations knows.

It was fitted on questions that the passages answer, and on as many that they don't: those of ``samples/judged``, with
``hashed`` and with MiniLM, and of XQuAD in six languages, each also with its relevant documents hidden. A quotation was
right if it contains the reference answer, or .6 of its words where the references are sentences.
``benchmarks/confidence.py`` fits it again. docs/RESULTS.md has the share of wrong answers at each threshold.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ragstack_common.relevance import logistic

MIN_CONFIDENCE: Final = 0.6
"""A quotation with less is shown as one of the closest passages, not as an answer."""

INTERCEPT: Final = -3.65
WEIGHTS: Final[Mapping[str, float]] = {
    "coverage": 3.7,
    "nearby": 2.3,
    "misfits": -1.2,
    "relevance": 2.3,
    "consonantal": 0.3,
}

MEAN_RELEVANCE: Final = 0.2
"""For engines without a calibration."""


@dataclass(frozen=True)
class Evidence:
    """What is known about the best quotation.

    Attributes:
        coverage: Share of the question, weighted by rarity, in the quotation, the title and the headings; 0 to 1.
        nearby: The same, with the sentences before and after it.
        misfits: 1 if it lacks the number, date, person or reason that the question asks for, outside its own words.
        relevance: That of its passage; None if the engine has no calibration.
        consonantal: 1 for questions in Arabic or Hebrew letters. These languages inflect words within, so that a right
            quotation contains fewer of the question's words.
    """

    coverage: float
    nearby: float
    misfits: float
    relevance: float | None = None
    consonantal: float = 0

    @property
    def values(self) -> dict[str, float]:
        """The features of the regression by name."""
        relevance = MEAN_RELEVANCE if self.relevance is None else self.relevance
        return {
            "coverage": self.coverage,
            "nearby": self.nearby,
            "misfits": self.misfits,
            "relevance": relevance,
            "consonantal": self.consonantal,
        }

    @property
    def confidence(self) -> float:
        """The probability, 0 to 1."""
        return logistic(INTERCEPT + sum(WEIGHTS[name] * value for name, value in self.values.items()))
