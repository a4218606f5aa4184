"""Answers to the questions of a data set, as the API gives them, and what is judged of them."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from evaluation.answers import (
    ABSTAINED,
    FAILED,
    JUDGED,
    MEASURES,
    AnswerCase,
    Kind,
    Ratio,
    is_right,
    token_f1,
    token_recall,
)
from evaluation.dataset import DataSet, EvaluationError, EvaluationQuery
from evaluation.judge import Judge, chosen_model, judge_with
from evaluation.searching import FOREIGN_QUESTIONS, Engines, filter_of, require_filters
from evaluation.setups import AnswerSetup
from evaluation.table import Cell, Table
from ragstack_common.access.callers import OPERATOR
from ragstack_common.answers.answer import Answer, Source
from ragstack_common.answers.models.protocol import MIN_CONFIDENCE
from ragstack_common.core.deadline import wait_for
from ragstack_common.core.errors import GenerationError, RagStackError
from ragstack_common.search import SearchOutcome, SearchRequest
from ragstack_common.search.base import Wrapper
from ragstack_common.search.merge import best_relevance
from ragstack_common.services.ask import AskService
from ragstack_common.services.ask_models import AskRequest, AskResponse, ChatTurn
from ragstack_common.services.search import QueryService
from ragstack_common.settings.limits import MAX_ANSWER_SECONDS, MAX_RETRIEVAL_SECONDS
from ragstack_common.settings.search import QuerySettings

THRESHOLDS: Final = (0.0, 0.02, 0.05, 0.08, 0.1, 0.15, 0.2, 0.3, 0.5)
"""Values of ``ANSWERABLE_RELEVANCE`` whose effect is shown."""


@dataclass(frozen=True)
class MeasuredAnswers:
    """The answers of one setup, and their figures."""

    setup: AnswerSetup
    cases: Sequence[AnswerCase]
    judge: Judge | None = None

    @cached_property
    def figures(self) -> Mapping[str, Ratio]:
        """The measures that there is something to count for."""
        absent = {JUDGED} if self.judge is None else set()
        absent |= set() if any(each.answer is None for each in self.cases) else {FAILED}
        found = {name: Ratio.of(name, self.cases) for name in MEASURES if name not in absent}
        return {name: ratio for name, ratio in found.items() if ratio.total}

    @property
    def costs(self) -> dict[str, int]:
        """Times from the question to the end of the answer, and mean tokens, which are estimates without a model."""
        displayed = [each.displayed for each in self.cases if each.displayed is not None]
        answers: list[Answer] = displayed or [each.answer for each in self.cases if each.answer is not None]
        times = [answer.timings.total_ms for answer in answers]
        figures = {
            "median ms": np.percentile(times, 50),
            "95th percentile ms": np.percentile(times, 95),
            "tokens read": np.mean([answer.usage.input_tokens for answer in answers]),
            "tokens written": np.mean([answer.usage.output_tokens for answer in answers]),
        }
        return {name: round(float(figure)) for name, figure in figures.items()}


def measured(
    engines: Engines,
    setups: Sequence[AnswerSetup],
    foreign: Sequence[DataSet] = (),
    judge: str | None = None,
    *,
    without_documents: bool = False,
) -> Iterator[MeasuredAnswers]:
    """Ask with one setup after the other.

    Args:
        engines: The engines, with the data set.
        setups: The ways to answer.
        foreign: Other data sets, whose questions this one does not answer.
        judge: Model that compares answers with the references.
        without_documents: Whether each question is also asked without its relevant documents.

    Raises:
        EvaluationError: A question failed; the figures of earlier setups have been yielded.
    """
    data = engines.data
    questions: list[tuple[EvaluationQuery, Kind]] = [(query, "answerable") for query in data.queries]
    questions += [(query, "unanswerable") for query in data.unanswerable]
    questions += [(query, "foreign") for other in foreign for query in other.queries[:FOREIGN_QUESTIONS]]
    questions += [(query, "removed") for query in data.queries if without_documents]
    for setup in setups:
        require_filters(data, setup.filter)
        judged = judge_with(judge)
        with engines.progress.bar(setup.label, len(questions)) as advance:
            cases = _ask_all(engines, setup, questions, judged, advance)
            if judged is not None and setup is setups[0]:
                judged.check(data.queries)
        yield MeasuredAnswers(setup, cases, judged)


def _ask_all(
    engines: Engines,
    setup: AnswerSetup,
    questions: Sequence[tuple[EvaluationQuery, Kind]],
    judge: Judge | None,
    advance: Callable[[], None],
) -> list[AnswerCase]:
    data, cases = engines.data, list[AnswerCase]()
    with _service(engines, setup) as (service, without):
        for query, kind in questions:
            without.hidden = data.relevant(query) if kind == "removed" else frozenset()
            relevant = data.relevant(query) if kind == "answerable" else frozenset()
            request = AskRequest(
                question=query.text,
                metadata_filter=filter_of(data, query, setup.filter) if kind == "answerable" else None,
                filter_mode=setup.filter_mode,
                top_k=setup.top_k,
                infer_filter=setup.infer,
                chat_history=[] if query.before is None else [ChatTurn(role="user", content=query.before)],
                rewrite_question=setup.rewrite,
            )
            try:
                answer = wait_for(service.ask(request, OPERATOR))
            except GenerationError:
                if not cases:  # if the first call of the model fails, none is likely to succeed
                    raise
                cases.append(AnswerCase(query, kind, None, relevant))
            except RagStackError as error:
                raise EvaluationError(f"The question {query.id} ({kind}) failed: {error}") from error
            else:
                cases.append(_judged(data, AnswerCase(query, kind, answer, relevant), answer, judge))
            advance()
    return cases


def _judged(data: DataSet, case: AnswerCase, answer: AskResponse, judge: Judge | None) -> AnswerCase:
    """Add what the answer found and cites, and the verdict of the judge."""
    if not answer.complete:
        errors = "; ".join(f"{part.name}: {part.error}" for part in answer.slices if part.error)
        raise EvaluationError(f"The search for the question {case.query.id} was incomplete: {errors}")

    def documents(sources: Sequence[Source]) -> tuple[str, ...]:
        return tuple(data.documents_of([source.source or ""])[0] for source in sources)

    case = replace(
        case,
        found=documents(answer.sources),
        cited=documents([source for source in answer.sources if source.cited]),
        best_relevance=answer.best_relevance,
    )
    if judge is None or case.kind != "answerable" or not case.query.answers or case.displayed is None:
        return case
    return replace(case, verdict=judge.verdict(case.query.text, case.query.answers, case.text))


class Without(Wrapper):
    """A backend that searches as if some documents were not there.

    Attributes:
        hidden: Sources of the documents.
    """

    hidden: frozenset[str] = frozenset()

    async def _search(self, request: SearchRequest) -> SearchOutcome:
        if not self.hidden:
            return await self.backend.search(request)
        wider = replace(request, top_k=min(self.backend.max_top_k, request.top_k + len(self.hidden)))
        outcome = await self.backend.search(wider)
        chunks = [chunk for chunk in outcome.chunks if chunk.source not in self.hidden][: request.top_k]
        return replace(outcome, chunks=chunks, best_relevance=best_relevance(chunk.relevance for chunk in chunks))


@contextmanager
def _service(engines: Engines, setup: AnswerSetup) -> Iterator[tuple[AskService, Without]]:
    """Answer as the API does."""
    settings = QuerySettings.from_env(
        {
            "KNOWLEDGE_BASE_ID": "EVALUATION",  # the backend has its own
            "RETRIEVAL_TIMEOUT_SECONDS": str(MAX_RETRIEVAL_SECONDS),
            "ANSWERABLE_RELEVANCE": str(setup.answerable_relevance),
        }
    )
    answering = {
        "ANSWER_CONTEXT_TOKENS": str(setup.context_tokens),
        "ANSWER_TIMEOUT_SECONDS": str(MAX_ANSWER_SECONDS),
    }
    answers, provider = chosen_model(setup.answer_model, answering)
    with (
        engines.opened(setup) as backend,
        closing(QueryService(settings, without := Without(backend))) as searches,
    ):
        yield AskService(answers, searches, provider), without


def tables(data: DataSet, found: Sequence[MeasuredAnswers]) -> list[Table]:
    """Return the measures of all setups, and what other thresholds of relevance and confidence would do."""
    extra = (table for one in found for table in (thresholds(one), confidences(one)) if table is not None)
    return [_figures(data, found), *extra]


def _figures(data: DataSet, found: Sequence[MeasuredAnswers]) -> Table:
    """Return a row for each measure, and columns for each setup, which is named by what differs from the first."""
    baseline = found[0]
    parts = baseline.setup.label.split(", ")
    headings, drawn = ["measure", baseline.setup.label], [baseline.setup.label]
    for number, one in enumerate(found[1:], start=2):
        name = ", ".join(part for part in one.setup.label.split(", ") if part not in parts) or one.setup.label
        headings += [name, "Δ" if len(found) == 2 else f"Δ {number}"]  # noqa: PLR2004 - one difference needs no number
        drawn.append(name)
    rows: list[list[Cell]] = []
    for name in (name for name in MEASURES if any(name in one.figures for one in found)):
        first = baseline.figures.get(name)
        row: list[Cell] = [name, None if first is None else first.interval()]
        for one in found[1:]:
            ratio = one.figures.get(name)
            row += [
                None if ratio is None else ratio.interval(),
                None if ratio is None or first is None else ratio.difference(first),
            ]
        rows.append(row)
    costs = [one.costs for one in found]
    rows += [[name, costs[0][name], *(cell for cost in costs[1:] for cell in (cost[name], None))] for name in costs[0]]
    counts = Counter(each.kind for each in baseline.cases)
    others = "".join(f", {counts[kind]} {kind}" for kind in ABSTAINED if counts[kind])
    title = f"{data.name}: {counts['answerable']} questions{others}, {len(data.documents):,} documents"
    notes = [note for one in found if one.judge is not None for note in one.judge.notes(one.setup.label)]
    return Table(title, headings, rows, drawn, notes)


def thresholds(one: MeasuredAnswers) -> Table | None:
    """Return the shares of the questions that would have an answer or none, by threshold of the relevance.

    Thresholds below that of the setup would need other answers. There is no table without a calibration, or without
    unanswerable questions.
    """
    kinds = [kind for kind, name in ABSTAINED.items() if name in one.figures]
    if not kinds or any(each.best_relevance is None for each in one.cases if each.found):
        return None

    def share(kind: Kind, threshold: float, *, answered: bool) -> float:
        """Return the share of the questions that get an answer, or none; those that failed got neither."""
        cases = [each for each in one.cases if each.kind == kind]
        has_answer = (each.answered and (each.best_relevance or 0) >= threshold for each in cases)
        return sum(
            has == answered and each.answer is not None for has, each in zip(has_answer, cases, strict=True)
        ) / len(cases)

    own = one.setup.answerable_relevance
    rows: list[list[Cell]] = [
        [value, share("answerable", value, answered=True), *(share(kind, value, answered=False) for kind in kinds)]
        for value in sorted({*THRESHOLDS, own})
        if value >= own
    ]
    headings = ["ANSWERABLE_RELEVANCE", "answered", *(ABSTAINED[kind] for kind in kinds)]
    return Table(f"{one.setup.label}: the least relevance at which there is an answer", headings, rows, headings[1:])


def confidences(one: MeasuredAnswers) -> Table | None:
    """Return the risk and the coverage by threshold of the confidence; None with a model, or without references."""
    asked = [each for each in one.cases if each.kind == "answerable" and each.query.answers]
    if not asked or all(each.confidence is None for each in one.cases):
        return None
    others = {kind: [each for each in one.cases if each.kind == kind] for kind in ABSTAINED}
    rows: list[list[Cell]] = []
    for threshold in sorted({0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, MIN_CONFIDENCE}):
        answered = [each for each in asked if each.displayed and (each.confidence or 0) >= threshold]
        wrong = sum(not is_right(each) for each in answered) / len(answered) if answered else None
        abstained = [
            sum((each.confidence or 0) < threshold for each in found) / len(found) for found in others.values() if found
        ]
        rows.append([threshold, len(answered) / len(asked), wrong, *abstained])
    headings = ["min_confidence", "answered", "wrong", *(ABSTAINED[kind] for kind, found in others.items() if found)]
    return Table(f"{one.setup.label}: the least confidence of an answer", headings, rows, headings[1:])


def details(found: Sequence[MeasuredAnswers]) -> list[dict[str, Any]]:
    """Return the options, the judge, and every answer with its figures, as JSON."""
    return [
        {
            "label": one.setup.label,
            "options": one.setup.model_dump(),
            "judge": None if one.judge is None else one.judge.counts,
            "answers": [_line(each) for each in one.cases],
        }
        for one in found
    ]


def _line(case: AnswerCase) -> dict[str, Any]:
    answer = case.answer
    line: dict[str, Any] = {
        "_id": case.query.id,
        "kind": case.kind,
        "question": case.query.text,
        "answered": case.answered,
        "closest_passages": case.closest_passages,
        "answer": None if answer is None else answer.answer,
        "references": list(case.query.answers),
        "cited": list(case.cited),
        "found": list(case.found),
        "relevant": sorted(case.relevant),
        "best_relevance": case.best_relevance,
        "confidence": case.confidence,
        "verdict": case.verdict,
        "total_ms": None if answer is None else answer.timings.total_ms,
    }
    if case.query.answers and case.kind == "answerable":
        line["token F1"] = round(token_f1(case.text, case.query.answers), 3)
        line["token recall"] = round(token_recall(case.text, case.query.answers), 3)
    return line
