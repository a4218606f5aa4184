"""How likely a quotation answers the question: a logistic regression on what the choice of quotations knows.

It was fitted on questions that the passages answer, and on others that they don't: those of ``samples/judged`` and near
misses of them, of guides, of XQuAD in four languages with the relevant documents and without them, and of a folder of
mixed files. A quotation was right if it contains the reference answer, or .6 of its words where the references are
sentences. The weights of what is missing are larger than those of the fit, whose questions have few near misses.
``benchmarks/confidence.py`` fits it again. docs/RESULTS.md has the share of wrong answers at each threshold.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ragstack_common.settings.relevance import logistic

INTERCEPT: Final = -2.4
"""Above that of the fit, -2.97: three of five questions can be answered, and weights below are larger."""

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
"""For engines without a calibration."""

MEAN_LEAD: Final = 0.3
"""For a single passage, which has nothing to be compared with."""


@dataclass(frozen=True)
class Evidence:
    """What is known about the best quotation.

    Attributes:
        coverage: Share of the question, weighted by rarity, in the quotation, the title and the headings; 0 to 1.
        nearby: The same, with the sentences before and after it.
        misfits: 1 if it lacks the number, date, person or reason that the question asks for, outside its own words.
        lead: How far its score is above that of the best quotation of another passage; 0 or more.
        relevance: That of its passage; None if the engine has no calibration.
        inflected: 1 for languages whose words have several forms, but not for English. They compound and inflect
            words, so that a right quotation contains fewer of the question's words.
        unnumbered: 1 if a number of the question is neither near nor above it, .5 if it is elsewhere in its passage.
        unnamed: The same for names, as a share of the rarest name.
        absent: Share of the question that its rarest word has which the whole passage lacks; 0 if it lacks none.
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
        """The features of the regression by name."""
        relevance = MEAN_RELEVANCE if self.relevance is None else self.relevance
        return {
            "coverage": self.coverage,
            "nearby": self.nearby,
            "misfits": self.misfits,
            "lead": self.lead,
            "relevance": relevance,
            "inflected": self.inflected,
            "unnumbered": self.unnumbered,
            "unnamed": self.unnamed,
            "absent": self.absent,
        }

    @property
    def confidence(self) -> float:
        """The probability, 0 to 1."""
        return logistic(INTERCEPT + sum(WEIGHTS[name] * value for name, value in self.values.items()))
