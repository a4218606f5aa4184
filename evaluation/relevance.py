"""How reliable relevance is, and the calibration that is fitted to judgments."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np

from evaluation import calibration
from evaluation.calibration import Passages, Quality
from evaluation.dataset import EvaluationError
from evaluation.metrics import Values
from evaluation.searching import FOREIGN_QUESTIONS, Engines, found_chunks
from evaluation.setups import Setup
from evaluation.table import Cell, Table
from ragstack_common import __version__
from ragstack_common.search import RetrievalBackend, RetrievedChunk, SearchRequest
from ragstack_common.search.engines.bedrock import BedrockBackend
from ragstack_common.settings import base as settings
from ragstack_common.settings.limits import MAX_RESULTS
from ragstack_common.settings.names import EMBEDDING_HEADER, MANAGED
from ragstack_common.settings.relevance import Calibration, Calibrations, Provenance, Signal, calibration_of
from ragstack_common.settings.search import ANSWERABLE_RELEVANCE

RELEVANCE_CALIBRATION: Final = "relevance_calibration"
"""Name of the setting."""

RESULTS: Final = 10
"""Documents of a question that a calibration is fitted to."""


@dataclass(frozen=True)
class Relevance:
    """Measurements of relevance.

    Attributes:
        questions: Number of questions of all sets.
        embedding: The name that the engine reports, if any.
        search_type: HYBRID, SEMANTIC, MANAGED, or None for the engine's default.
        qualities: One for each set, by what the calibration was fitted to.
    """

    sets: Sequence[Passages]
    questions: int
    embedding: str | None
    search_type: Any
    qualities: Mapping[str, Sequence[Quality]]

    @property
    def calibration(self) -> Calibration:
        """The calibration for all sets; its figures are measured on held-out questions."""
        model = calibration.fit(self.sets)
        held_out = self.qualities.get(calibration.OTHERS) or self.qualities[calibration.OWN]
        return Calibration(
            embedding=self.embedding,
            search_type=self.search_type,
            intercept=round(model.intercept, 4),
            weights={name: round(float(w), 4) for name, w in zip(model.names, model.weights, strict=True)},
            provenance=Provenance(
                sets=tuple(each.name for each in self.sets),
                questions=self.questions,
                passages=sum(len(each.relevant) for each in self.sets),
                made=f"{datetime.now(UTC):%Y-%m-%d}",
                expected_calibration_error=round(float(np.mean([each.error for each in held_out])), 4),
                brier_score=round(float(np.mean([each.brier for each in held_out])), 4),
                version=__version__,
            ),
        )


def measured(engines: Sequence[Engines], setup: Setup) -> Relevance:
    """Search every set, and judge calibrations.

    Raises:
        EvaluationError: A search failed, or its scores say nothing about relevance.
    """
    found = []
    embedding = search_type = None
    for each in engines:
        others = (other.data.queries[:FOREIGN_QUESTIONS] for other in engines if other is not each)
        foreign = [query.text for queries in others for query in queries]
        with each, each.opened(setup) as backend:
            # All sets are searched in the same way.
            embedding, search_type = _identified(each, setup, backend)
            found.append(_collected(each, backend, setup.label, foreign))
    qualities = dict(calibration.qualities(found, ANSWERABLE_RELEVANCE))
    in_use = calibration_of(None, embedding, search_type)
    if in_use is not None:
        model = calibration.Model.of(in_use, found[0].names)
        qualities["in use"] = [
            Quality.of(each, [(model, calibration.everything(each))], ANSWERABLE_RELEVANCE) for each in found
        ]
    questions = sum(len(each.data.queries) for each in engines)
    return Relevance(found, questions, embedding, search_type, qualities)


def _identified(engines: Engines, setup: Setup, backend: RetrievalBackend) -> tuple[str | None, str | None]:
    """Return the name of the embedding, which only a local Bedrock reports, and the kind of search."""
    if not setup.is_bedrock:
        return None, backend.search_kind if isinstance(backend, BedrockBackend) else None
    client, identifier = engines.knowledge_base(setup)
    answer = client("bedrock-agent-runtime").retrieve(knowledgeBaseId=identifier, retrievalQuery={"text": "embedding"})
    kind = MANAGED if engines.is_managed(setup) else setup.search
    return answer["ResponseMetadata"]["HTTPHeaders"].get(EMBEDDING_HEADER), kind


def _collected(engines: Engines, backend: RetrievalBackend, label: str, foreign: Sequence[str]) -> Passages:
    """Search for every question, with enough results that ten are left without the relevant ones."""
    data = engines.data
    own: list[tuple[int, RetrievedChunk, bool]] = []
    removed: list[tuple[int, RetrievedChunk]] = []
    of_others: list[tuple[int, RetrievedChunk]] = []

    def search(query: str, results: int) -> list[RetrievedChunk]:
        return found_chunks(backend, SearchRequest(query, results, deduplicate_by="document"))

    with engines.progress.bar(f"{data.name}, {label}", len(data.queries) + len(foreign)) as advance:
        for number, query in enumerate(data.queries):
            relevant = data.relevant(query)
            chunks = search(query.text, min(MAX_RESULTS, RESULTS + len(relevant)))
            judged = [(chunk, data.documents_of([chunk.source])[0] in relevant) for chunk in chunks]
            own += [(number, chunk, is_relevant) for chunk, is_relevant in judged[:RESULTS]]
            removed += [(number, chunk) for chunk in [c for c, is_relevant in judged if not is_relevant][:RESULTS]]
            advance()
        for number, text in enumerate(foreign):
            of_others += [(number, chunk) for chunk in search(text, RESULTS)]
            advance()
    if not own:
        raise EvaluationError(f"The searches for the questions of {data.name} found nothing")
    sent: tuple[Signal, ...] = ("vector", "lexical")
    names = tuple(name for name in sent if name in own[0][1].ranked_by.signals) or ("score",)

    def signals(numbered: Sequence[tuple[int, RetrievedChunk]]) -> tuple[Values, Any]:
        rows = [
            [chunk.ranked_by.base_score if name == "score" else chunk.ranked_by.signals[name] for name in names]
            for _, chunk in numbered
        ]
        matrix = np.array(rows, dtype=np.float64).reshape(len(numbered), len(names))
        return matrix, np.array([number for number, _ in numbered])

    matrix, questions = signals([(number, chunk) for number, chunk, _ in own])
    labels = np.array([is_relevant for _, _, is_relevant in own])
    return Passages(
        data.name, questions, matrix, names, labels, signals(removed), signals(of_others) if of_others else None
    )


def tables(found: Relevance) -> list[Table]:
    """Return how reliable relevance is, whether it recognizes questions without an answer, and the ten bins."""
    calibrated: list[list[Cell]] = []
    abstained: list[list[Cell]] = []
    bins: list[tuple[float, str, float]] = []
    for number, each in enumerate(found.sets):
        for fitted_to, qualities in found.qualities.items():
            quality, name = qualities[number], f"{each.name}, {fitted_to}"
            predicted = sum(part.predicted * part.passages for part in quality.bins) / len(each.relevant)
            relevant = float(each.relevant.mean())
            calibrated.append([name, len(each.relevant), relevant, predicted, quality.error, quality.brier])
            foreign = quality.foreign
            removed = [quality.removed.kept, quality.removed.rejected, quality.removed.area]
            abstained.append([name, *removed, *([None] * 2 if foreign is None else [foreign.rejected, foreign.area])])
            bins += [(part.predicted, name, part.observed) for part in quality.bins]
    title = f"{found.embedding or 'engine'}, {found.search_type or 'default'}: {found.questions} questions"
    names = [str(row[0]) for row in calibrated]
    reliability = [
        [predicted, *(observed if name == own else None for name in names)] for predicted, own, observed in sorted(bins)
    ]
    return [
        Table(
            f"Relevance, {title}",
            ["set, fitted to", "passages", "relevant", "predicted", "ECE", "Brier"],
            calibrated,
        ),
        Table(
            f"With an answerable relevance of {ANSWERABLE_RELEVANCE:g}: questions kept, questions rejected when their"
            " documents are removed, and foreign questions (of other sets) rejected",
            ["set, fitted to", "kept", "removed", "AUROC, removed", "foreign", "AUROC, foreign"],
            abstained,
        ),
        # Ten rows for each column, with nothing in the other columns: a picture, and thousands of lines without it.
        Table("Share of the passages that is relevant", ["relevance", *names], reliability, names, is_printed=False),
    ]


def write_calibration(file: Path, made: Calibration) -> None:
    """Write a calibration into a file of settings, next to those for other embeddings and kinds of search.

    Raises:
        EvaluationError: The file has something else in it.
    """
    key = made.embedding, made.search_type
    try:
        found = settings.read_settings(file).get(RELEVANCE_CALIBRATION) if file.exists() else None
        known = () if found is None else Calibrations.read(found).calibrations
        kept = [each for each in known if (each.embedding, each.search_type) != key]
        calibrations = Calibrations(calibrations=(*kept, made)).model_dump(mode="json")
        settings.write_settings(file, {RELEVANCE_CALIBRATION: calibrations}, "ragstack eval relevance")
    except ValueError as error:
        raise EvaluationError(f"{file} cannot take a calibration: {error}") from error
