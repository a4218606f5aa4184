"""Relevance: the probability that a passage is relevant, from the signals of its engine.

An engine's score orders the passages of one search. Its scale depends on the embedding, on the kind of search and, with
ranks, only on the other passages. A calibration turns the engine's signals into a probability: a logistic regression
on judged questions, which never decreases when a signal rises. It belongs to one embedding and one kind of search.

The probability is that of the judged sets it was fitted on: how often people judged the document of such a passage to
be relevant, among the passages that a search returned. ``docs/RESULTS.md`` says how well it carries over.
"""

import math
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, Field, ValidationError

Signal = Literal["vector", "lexical", "score"]
"""What a calibration can use: the cosine, the share of BM25, or the engine's score where it sends nothing else."""

MAX_WEIGHT: Final = 1_000_000
"""Far over what a reranker needs whose scores differ by .001."""

Weight = Annotated[float, Field(ge=0, le=MAX_WEIGHT, allow_inf_nan=False)]


class Provenance(BaseModel, extra="forbid", frozen=True, defer_build=True):
    """The judged sets on which a calibration was fitted.

    *passages* is the number of judged passages among the first results of the questions. Both errors are means over
    the questions held out, 0 to 1. The version is that of RAGStack.
    """

    sets: tuple[str, ...]
    questions: int = Field(ge=1)
    passages: int = Field(ge=1)
    made: str
    expected_calibration_error: float = Field(ge=0, le=1)
    brier_score: float = Field(ge=0, le=1)
    version: str


class Calibration(BaseModel, extra="forbid", frozen=True, defer_build=True):
    """A logistic regression from signals, 0 to 1, to a probability.

    Attributes:
        embedding: As the engine reports it; None for an engine that does not, such as Amazon Bedrock.
        search_type: MANAGED for a knowledge base of this type, whose scores are a reranker's; None for the service's
            default.
        intercept: The log-odds of a passage whose signals are all 0.
        weights: What each signal adds; a higher signal never lowers the relevance.
        provenance: What it was fitted on.
    """

    embedding: str | None
    search_type: Literal["HYBRID", "SEMANTIC", "MANAGED"] | None
    intercept: float = Field(ge=-MAX_WEIGHT, le=MAX_WEIGHT, allow_inf_nan=False)
    weights: dict[Signal, Weight] = Field(min_length=1)
    provenance: Provenance | None = None

    def relevance(self, signals: Mapping[str, float]) -> float | None:
        """Return the probability, 0 to 1; None if a signal is missing."""
        if not self.weights.keys() <= signals.keys():
            return None
        return logistic(self.intercept + math.fsum(weight * signals[name] for name, weight in self.weights.items()))


class Calibrations(BaseModel, extra="forbid", frozen=True, defer_build=True):
    """Calibrations for different embeddings and kinds of search."""

    calibrations: tuple[Calibration, ...] = Field(min_length=1)

    @classmethod
    def read(cls, source: "Calibrations | Mapping[str, Any] | str") -> "Calibrations":
        """Read calibrations from JSON.

        Raises:
            ValueError: They are not of this form; the message names the member.
        """
        if isinstance(source, Calibrations):
            return source
        try:
            return cls.model_validate_json(source) if isinstance(source, str) else cls.model_validate(source)
        except ValidationError as error:
            problems = [f"{'.'.join(map(str, each['loc'])) or 'it'}: {each['msg']}" for each in error.errors()]
            raise ValueError(f"it is not a calibration of relevance: {'; '.join(problems[:3])}") from error

    def find(self, embedding: str | None, search_type: str | None) -> Calibration | None:
        """Return the first calibration for an embedding and a kind of search."""
        wanted = embedding, search_type
        return next((each for each in self.calibrations if (each.embedding, each.search_type) == wanted), None)


@cache
def shipped() -> Calibrations:
    """Return the calibrations of this package, which are for the local Bedrock."""
    return Calibrations.read(files(__package__).joinpath("calibrations.json").read_text(encoding="utf-8"))


def calibration_of(own: Calibrations | None, embedding: str | None, search_type: str | None) -> Calibration | None:
    """Return the calibration for an embedding and a kind of search: the deployment's own, or a shipped one."""
    found = None if own is None else own.find(embedding, search_type)
    # Only the local Bedrock names its embedding.
    return found or (None if embedding is None else shipped().find(embedding, search_type))


def logistic(log_odds: float) -> float:
    """Return the probability of log-odds, without overflow."""
    if log_odds >= 0:
        return 1.0 / (1.0 + math.exp(-log_odds))
    odds = math.exp(log_odds)
    return odds / (1.0 + odds)
