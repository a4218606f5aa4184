"""What is measured: one way to search, as options say it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

from evaluation.errors import EvaluationError
from ragstack_common.config import DEFAULT_EMBEDDING

KEYWORD: Final = "KEYWORD"
SEARCHES: Final = ("HYBRID", "SEMANTIC", KEYWORD)
"""KEYWORD is the local Bedrock's BM25 alone, which no request to Bedrock asks for."""

RERANKERS: Final = ("none", "lexical")
FILTERS: Final = ("none", "right", "wrong")
SLICES: Final = ("multislice", "filtered")

PRIVATE: Final = "private"
STACK: Final = "stack"
BM25S: Final = "bm25s"
"""Engines that are not the file of a configuration."""

DEFAULT_BOOST: Final = 1.25
"""Source: the specification of MultiSliceRetriever, filtered_score_boost."""

_CHOICES: Final = {"search": SEARCHES, "rerank": RERANKERS, "filter": FILTERS, "slices": SLICES}


@dataclass(frozen=True)
class Setup:
    """One way to search.

    Attributes:
        search: HYBRID, SEMANTIC or KEYWORD.
        embedding: As `ragstack bedrock` takes it.
        headers: Whether chunks are indexed with contextual headers.
        rerank: none or lexical.
        filter: Whether each query has no filter, one for its right attributes, or one for wrong ones.
        slices: multislice searches with and without the filter at once; filtered only with it.
        boost: Factor on the scores of filtered hits, over 0.
        engine: private (a local Bedrock of its own), stack (the running local stack), bm25s (another program as the
            reference), or the file of a retrieval backend's configuration.

    Raises:
        EvaluationError: An option has a value that it cannot have.
    """

    search: str = "HYBRID"
    embedding: str = DEFAULT_EMBEDDING
    headers: bool = True
    rerank: str = "none"
    filter: str = "none"
    slices: str = "multislice"
    boost: float = DEFAULT_BOOST
    engine: str = PRIVATE

    def __post_init__(self) -> None:
        """Refuse what cannot be measured."""
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise EvaluationError(f"{name} must be one of {', '.join(choices)}, not {getattr(self, name)!r}")
        if not 0 < self.boost < float("inf"):
            raise EvaluationError(f"boost must be over 0 and finite, not {self.boost:g}")
        if self.search == KEYWORD and (self.rerank, self.slices, self.engine) != ("none", "multislice", PRIVATE):
            raise EvaluationError("KEYWORD is the private local Bedrock's BM25 alone: without reranker and slices")
        if self.rerank != "none" and self.engine not in (PRIVATE, STACK):
            raise EvaluationError("A backend's configuration says itself how it reranks: leave rerank out")

    def changed(self, changes: str) -> "Setup":
        """Return the setup with some options changed.

        Args:
            changes: For example ``search=SEMANTIC,rerank=lexical,headers=no``.

        Raises:
            EvaluationError: There is no such option, or it cannot have the value.
        """
        known = {field.name for field in fields(self)}
        values: dict[str, Any] = {}
        for part in filter(None, (part.strip() for part in changes.split(","))):
            name, _, value = part.partition("=")
            if name not in known or not value:
                raise EvaluationError(f"{part!r} is no change: name one of {', '.join(sorted(known))}, as in boost=1.5")
            values[name] = _value(name, value)
        return replace(self, **values)

    @property
    def label(self) -> str:
        """Name the setup by what it is."""
        shown = [self.search, _short(self.embedding)] if self.engine in (PRIVATE, STACK) else [Path(self.engine).stem]
        shown = [KEYWORD] if self.search == KEYWORD else shown
        shown += ["running stack"] if self.engine == STACK else []
        shown += [] if self.headers else ["no headers"]
        shown += [] if self.rerank == "none" else [f"{self.rerank} reranker"]
        if self.filter != "none":
            shown += [f"{self.filter} filter"]
            shown += [f"boost {self.boost:g}"] if self.slices == "multislice" else ["filtered slice alone"]
        return ", ".join(shown)

    @property
    def as_json(self) -> Mapping[str, Any]:
        """The options, by name."""
        return asdict(self)


def _value(name: str, value: str) -> Any:
    if name == "headers":
        if value not in ("yes", "no"):
            raise EvaluationError(f"headers must be yes or no, not {value!r}")
        return value == "yes"
    if name != "boost":
        return value
    try:
        return float(value)
    except ValueError:
        raise EvaluationError(f"boost must be a number, not {value!r}") from None


def _short(embedding: str) -> str:
    """Name a model by its folder's name."""
    kind, _, place = embedding.partition(":")
    return place.rstrip("/").rpartition("/")[2] if kind == "onnx" else embedding
