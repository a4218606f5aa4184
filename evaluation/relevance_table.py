"""The tables of relevance: what is collected, measured and written, and the calibration that is made of it."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np

from evaluation import calibration, report
from evaluation.calibration import Passages, Quality
from evaluation.dataset import DataSet, EvaluationError
from evaluation.index import Indexing, serving
from evaluation.measuring import Progress
from evaluation.metrics import Values
from evaluation.searching import PRIVATE, STACK, TIMEOUT_SECONDS, Setup, backend_of, require_documents
from ragstack_common import __version__
from ragstack_common.config import ANSWERABLE_RELEVANCE, EMBEDDING_HEADER
from ragstack_common.core import settings
from ragstack_common.core.deadline import wait_for
from ragstack_common.relevance import Calibration, Calibrations, Provenance, Signal, calibration_of
from ragstack_common.search import RetrievedChunk, SearchRequest
from ragstack_common.search.base import RetrievalBackend
from ragstack_common.search.engines.bedrock import BedrockBackend
from ragstack_local.show import display
from ragstack_local.target.connection import Connection

RELEVANCE_CALIBRATION: Final = "relevance_calibration"
"""Name of the setting."""

RESULTS: Final = 10
"""Documents of a question that a calibration is fitted to."""

MOST_RESULTS: Final = 100
FOREIGN_QUERIES: Final = 40
"""Questions of each other set that are asked."""

IN_USE: Final = "in use"
CALIBRATION_HEADINGS: Final = ("set", "fitted to", "passages", "relevant", "predicted", "ECE", "Brier")
ABSTENTION_HEADINGS: Final = ("set", "fitted to", "kept", "removed", "AUROC", "foreign", "AUROC")


@dataclass(frozen=True)
class Table:
    """What was measured.

    Attributes:
        sets: One for each data set.
        questions: Number of questions of all sets.
        embedding: As the engine reports it; None if it does not.
        search_type: HYBRID, SEMANTIC, or None for the engine's default.
        qualities: By what the calibration was fitted to, one for each set.
        threshold: Of the relevance of the best passage of an answerable question.
    """

    sets: Sequence[Passages]
    questions: int
    embedding: str | None
    search_type: Any
    qualities: Mapping[str, Sequence[Quality]]
    threshold: float

    @property
    def calibration(self) -> Calibration:
        """The calibration for all sets; its figures are those of held-out questions."""
        model = calibration.fit(self.sets)
        honest = self.qualities.get("other sets") or self.qualities["own questions"]
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
                expected_calibration_error=round(float(np.mean([each.error for each in honest])), 4),
                brier_score=round(float(np.mean([each.brier for each in honest])), 4),
                version=__version__,
            ),
        )


def measured(
    sets: Sequence[DataSet],
    setup: Setup,
    cache: Path,
    progress: Progress,
    stack: Callable[[], Connection],
    threshold: float = ANSWERABLE_RELEVANCE,
) -> Table:
    """Search every set, and judge calibrations.

    Raises:
        EvaluationError: A search failed, or its scores say nothing about relevance.
    """
    found = []
    for data in sets:
        foreign = [query.text for other in sets if other is not data for query in other.queries[:FOREIGN_QUERIES]]
        with (
            _searched(data, setup, cache, progress, stack) as (backend, embedding, search_type),
            progress.bar(f"{data.name}, {setup.search}", len(data.queries) + len(foreign)) as advance,
        ):
            found.append(_collected(data, backend, foreign, advance))
    qualities = dict(calibration.qualities(found, threshold))
    # All sets are searched in the same way.
    in_use = calibration_of(None, embedding, search_type)
    if in_use is not None:
        model = calibration.model_of(in_use, found[0].names)
        qualities[IN_USE] = [Quality.of(each, [(model, calibration.everything(each))], threshold) for each in found]
    questions = sum(len(data.queries) for data in sets)
    return Table(found, questions, embedding, search_type, qualities, threshold)


@contextmanager
def _searched(
    data: DataSet, setup: Setup, cache: Path, progress: Progress, stack: Callable[[], Connection]
) -> Iterator[tuple[RetrievalBackend, str | None, str | None]]:
    """Open what is searched, with the name of its embedding and its kind of search."""
    if setup.engine == STACK:
        connection = stack()
        if not data.has_texts:
            require_documents(data, connection)
        yield _of_knowledge_base(connection.client("bedrock-agent-runtime"), connection.knowledge_base_id, setup)
        return
    if setup.engine != PRIVATE:
        backend = backend_of(Path(setup.engine), None)
        try:
            yield backend, None, getattr(backend, "search_type", None)
        finally:
            wait_for(backend.close())
        return
    with serving(data, Indexing(setup.embedding, setup.headers), cache, progress.indexing) as index:
        yield _of_knowledge_base(index.client("bedrock-agent-runtime"), index.knowledge_base_id, setup)


def _of_knowledge_base(client: Any, identifier: str, setup: Setup) -> tuple[RetrievalBackend, str | None, str | None]:
    """Search a local Bedrock, which says what its embedding is called."""
    backend = BedrockBackend(identifier, client=client, search_type=setup.search, timeout_seconds=TIMEOUT_SECONDS)
    answer = client.retrieve(knowledgeBaseId=identifier, retrievalQuery={"text": "embedding"})
    name = answer["ResponseMetadata"]["HTTPHeaders"].get(EMBEDDING_HEADER)
    return backend, None if name is None else str(name), setup.search


def _collected(
    data: DataSet, backend: RetrievalBackend, foreign: Sequence[str], advance: Callable[[], None]
) -> Passages:
    """Search for every question, with enough results that ten are left without the relevant ones."""
    own: list[tuple[int, RetrievedChunk, bool]] = []
    removed: list[tuple[int, RetrievedChunk]] = []
    for number, query in enumerate(data.queries):
        relevant = {document for document, grade in data.judgments[query.id].items() if grade > 0}
        chunks = _search(backend, query.text, min(MOST_RESULTS, RESULTS + len(relevant)))
        judged = [(chunk, data.documents_of([chunk.source])[0] in relevant) for chunk in chunks]
        own += [(number, chunk, is_relevant) for chunk, is_relevant in judged[:RESULTS]]
        removed += [(number, chunk) for chunk in [chunk for chunk, is_relevant in judged if not is_relevant][:RESULTS]]
        advance()
    of_others = []
    for number, text in enumerate(foreign):
        of_others += [(number, chunk) for chunk in _search(backend, text, RESULTS)]
        advance()
    if not own:
        raise EvaluationError(f"The searches for the questions of {data.name} found nothing")
    names = _names(own[0][1])
    return Passages(
        data.name,
        np.array([number for number, _, _ in own]),
        _signals([chunk for _, chunk, _ in own], names),
        names,
        np.array([is_relevant for _, _, is_relevant in own]),
        (_signals([chunk for _, chunk in removed], names), np.array([number for number, _ in removed])),
        (_signals([chunk for _, chunk in of_others], names), np.array([number for number, _ in of_others]))
        if of_others
        else None,
    )


def _search(backend: RetrievalBackend, query: str, results: int) -> list[RetrievedChunk]:
    outcome = wait_for(backend.search(SearchRequest(query, results, deduplicate_by="document")))
    if not outcome.complete:
        raise EvaluationError("; ".join(f"{part.name}: {part.error}" for part in outcome.parts if part.error))
    return outcome.chunks


def _names(chunk: RetrievedChunk) -> tuple[Signal, ...]:
    """Return the signals that an engine sends with its results."""
    sent: tuple[Signal, ...] = ("vector", "lexical")
    return tuple(name for name in sent if name in chunk.ranked_by.signals) or ("score",)


def _signals(chunks: Sequence[RetrievedChunk], names: Sequence[Signal]) -> Values:
    rows = [
        [chunk.ranked_by.base_score if name == "score" else chunk.ranked_by.signals[name] for name in names]
        for chunk in chunks
    ]
    return np.array(rows, dtype=np.float64).reshape(len(chunks), len(names))


def rows(table: Table) -> tuple[list[list[str]], list[list[str]]]:
    """Return the rows of both tables: calibration and abstention."""
    calibrated, abstained = [], []
    for number, each in enumerate(table.sets):
        for fitted_to, qualities in table.qualities.items():
            quality = qualities[number]
            predicted = sum(part.predicted * part.passages for part in quality.bins) / len(each.relevant)
            figures = [each.relevant.mean(), predicted, quality.error, quality.brier]
            calibrated.append([each.name, fitted_to, str(len(each.relevant)), *(f"{figure:.3f}" for figure in figures)])
            foreign = quality.foreign
            abstained.append(
                [
                    each.name,
                    fitted_to,
                    f"{quality.removed.kept:.0%}",
                    f"{quality.removed.rejected:.0%}",
                    f"{quality.removed.area:.3f}",
                    *(["", ""] if foreign is None else [f"{foreign.rejected:.0%}", f"{foreign.area:.3f}"]),
                ]
            )
    return calibrated, abstained


def show(folder: Path, table: Table) -> None:
    """Print the tables, and write relevance.md, relevance.json and relevance.svg."""
    folder.mkdir(parents=True, exist_ok=True)
    calibrated, abstained = rows(table)
    title = f"{table.embedding or 'engine'}, {table.search_type or 'default'}: {table.questions} questions"
    below = (
        f"With an answerable relevance of {table.threshold:g}: questions kept, questions rejected when their documents"
        " are removed, and foreign questions (of other sets) rejected"
    )
    display.print_table(f"Relevance, {title}", CALIBRATION_HEADINGS, calibrated)
    display.print_table(below, ABSTENTION_HEADINGS, abstained)
    lines = []
    for caption, headings, shown in (
        (title, CALIBRATION_HEADINGS, calibrated),
        (below, ABSTENTION_HEADINGS, abstained),
    ):
        lines += [f"{caption}.", "", f"| {' | '.join(headings)} |", f"|---|---|{'---:|' * (len(headings) - 2)}"]
        lines += [*(f"| {' | '.join(row)} |" for row in shown), ""]
    (folder / "relevance.md").write_text("\n".join(lines), encoding="utf-8")
    (folder / "relevance.json").write_text(json.dumps(_document(table), indent=1), encoding="utf-8")
    panels = {
        fitted_to if fitted_to == IN_USE else f"fitted to {fitted_to}": {
            each.name: [(part.predicted, part.observed) for part in quality.bins]
            for each, quality in zip(table.sets, qualities, strict=True)
        }
        for fitted_to, qualities in table.qualities.items()
    }
    report.draw_reliability(folder / "relevance.svg", f"Relevance, {title}", panels)


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
        settings.write_settings(file, {RELEVANCE_CALIBRATION: calibrations}, "ragstack eval --table relevance")
    except ValueError as error:
        raise EvaluationError(f"{file} cannot take a calibration: {error}") from error


def _document(table: Table) -> dict[str, Any]:
    return {
        "embedding": table.embedding,
        "search_type": table.search_type,
        "threshold": table.threshold,
        "made": report.circumstances(),
        "calibration": table.calibration.model_dump(),
        "sets": [
            {
                "name": each.name,
                "passages": len(each.relevant),
                "relevant": float(each.relevant.mean()),
                "fitted_to": {name: _figures(found[number]) for name, found in table.qualities.items()},
            }
            for number, each in enumerate(table.sets)
        ],
    }


def _figures(quality: Quality) -> dict[str, Any]:
    abstention = {"removed": quality.removed, "foreign": quality.foreign}
    return {
        "expected_calibration_error": quality.error,
        "brier_score": quality.brier,
        "bins": [vars(part) for part in quality.bins],
        **{name: None if found is None else vars(found) for name, found in abstention.items()},
    }
