"""Answers to the questions of a data set, as the API gives them, and what is judged of them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from evaluation.answers import FAILED, JUDGED, MEASURES, Asked, Kind, Ratio
from evaluation.dataset import DataSet, EvaluationError, Query
from evaluation.index import Index
from evaluation.judge import Judge
from evaluation.language_models import chosen_model
from evaluation.measuring import Progress, Servers
from evaluation.searching import KEYWORD, PRIVATE, Setup, always, filter_of, vocabulary_of
from ragstack_common.answers.answer import Answer, Source
from ragstack_common.api.ask import AskService
from ragstack_common.api.ask_models import AskRequest
from ragstack_common.api.search import QueryService
from ragstack_common.config import (
    ANSWERABLE_RELEVANCE,
    BEDROCK_ENGINE,
    MAX_ANSWER_SECONDS,
    MAX_RESULTS,
    MAX_RETRIEVAL_SECONDS,
    OPENSEARCH_SERVERLESS,
    SEARCH_K,
    AnswerSettings,
    QuerySettings,
)
from ragstack_common.core.deadline import wait_for
from ragstack_common.core.errors import GenerationError, RagStackError
from ragstack_common.search import RetrievalBackend, SearchOutcome, SearchRequest, create_retrieval_backend
from ragstack_common.search.base import Wrapper
from ragstack_common.search.merge import best_relevance

DEFAULT_CONTEXT_TOKENS: Final = AnswerSettings.model_fields["answer_context_tokens"].default

FOREIGN_QUESTIONS: Final = 40
"""Questions of each other set that are asked."""


class AnswerSetup(Setup):
    """One way to answer: a search, and what happens with its passages.

    Attributes:
        answer_model: As ``ANSWER_MODEL``; None quotes the passages without a model.
        top_k: Documents to answer from.
        context_tokens: As ``ANSWER_CONTEXT_TOKENS``.
        answerable_relevance: As ``ANSWERABLE_RELEVANCE``. Without a model, 0 leaves it to the answerer alone.
    """

    infer: Literal["no", "yes", "hits"] = "yes"
    answer_model: str | None = None
    top_k: int = Field(SEARCH_K, ge=1, le=MAX_RESULTS)
    context_tokens: int = Field(DEFAULT_CONTEXT_TOKENS, ge=200)
    answerable_relevance: float = Field(ANSWERABLE_RELEVANCE, ge=0, le=1)

    @model_validator(mode="after")
    def _is_asked_privately(self) -> Self:
        if self.engine != PRIVATE or self.search == KEYWORD or self.normalized or self.infer == "hits":
            raise ValueError(
                "answers are measured with the private local Bedrock, HYBRID or SEMANTIC, without normalized=yes and"
                " infer=hits"
            )
        return self

    @property
    def label(self) -> str:
        """Describe the setup in a few words."""
        search = Setup(**{name: getattr(self, name) for name in Setup.model_fields} | {"infer": "no"})
        shown = [self.answer_model or "quotes", search.label]
        shown += ["nothing inferred"] if self.infer == "no" else []
        for name in ("top_k", "context_tokens", "answerable_relevance"):
            value = getattr(self, name)
            shown += [] if value == type(self).model_fields[name].default else [f"{name}={value:g}"]
        return ", ".join(shown)


@dataclass(frozen=True)
class MeasuredAnswers:
    """The answers of one setup, and their figures."""

    setup: AnswerSetup
    asked: Sequence[Asked]
    judge: Judge | None = None

    @property
    def label(self) -> str:
        """The setup in a few words."""
        return self.setup.label

    @property
    def figures(self) -> Mapping[str, Ratio]:
        """The measures that there is something to count for."""
        absent = {JUDGED} if self.judge is None else set()
        absent |= set() if any(each.answer is None for each in self.asked) else {FAILED}
        found = {name: Ratio.of(name, self.asked) for name in MEASURES if name not in absent}
        return {name: ratio for name, ratio in found.items() if ratio.total}

    def milliseconds(self, percent: float) -> float:
        """Return a percentile of the times from the question to the end of the answer."""
        return float(np.percentile([answer.timings.total_ms for answer in self._answers], percent))

    @property
    def tokens(self) -> tuple[float, float]:
        """Tokens that an answer reads and writes, on average; estimated without a model."""
        usages = [answer.usage for answer in self._answers]
        return (
            float(np.mean([usage.input_tokens for usage in usages])),
            float(np.mean([usage.output_tokens for usage in usages])),
        )

    @property
    def _answers(self) -> Sequence[Answer]:
        given = [each.given for each in self.asked if each.given is not None]
        return given or [each.answer for each in self.asked if each.answer is not None]


@dataclass(frozen=True)
class AnswerPlan:
    """What is asked.

    Attributes:
        foreign: Other data sets, whose questions this one does not answer.
        without_documents: Whether each question is also asked without its relevant documents.
        judge: Model that compares answers with the references.
    """

    data: DataSet
    setups: Sequence[AnswerSetup]
    cache: Path
    foreign: Sequence[DataSet] = ()
    without_documents: bool = False
    judge: str | None = None

    def measured(self, progress: Progress) -> Iterator[MeasuredAnswers]:
        """Ask with one setup after the other.

        Raises:
            EvaluationError: A question failed; the figures of earlier setups have been yielded.
        """
        questions = self._questions
        with Servers(self.data, self.cache, progress) as servers:
            for setup in self.setups:
                judge = _judging(self.judge)
                with progress.bar(setup.label, len(questions)) as advance:
                    asked = self._asked(setup, servers.index(setup), questions, judge, advance)
                    if judge is not None and setup is self.setups[0]:
                        judge.check(self.data.queries)
                yield MeasuredAnswers(setup, asked, judge)

    @property
    def _questions(self) -> list[tuple[Query, Kind]]:
        asked: list[tuple[Query, Kind]] = [(query, "answerable") for query in self.data.queries]
        asked += [(query, "unanswerable") for query in self.data.unanswerable]
        asked += [(query, "foreign") for other in self.foreign for query in other.queries[:FOREIGN_QUESTIONS]]
        return asked + [(query, "removed") for query in self.data.queries if self.without_documents]

    def _asked(
        self,
        setup: AnswerSetup,
        index: Index,
        questions: Sequence[tuple[Query, Kind]],
        judge: Judge | None,
        advance: Callable[[], None],
    ) -> list[Asked]:
        asked: list[Asked] = []
        with _service(setup, index, self.data) as (service, without):
            for query, kind in questions:
                without.hidden = self._relevant(query) if kind == "removed" else frozenset()
                try:
                    asked.append(self._answered(service, setup, query, kind, judge, first=not asked))
                except RagStackError as error:
                    raise EvaluationError(f"The question {query.id} ({kind}) failed: {error}") from error
                advance()
        return asked

    def _answered(
        self, service: AskService, setup: AnswerSetup, query: Query, kind: Kind, judge: Judge | None, *, first: bool
    ) -> Asked:
        """Ask a question. A failed model call is counted, unless it is the first: then none is likely to succeed."""
        preferred = filter_of(self.data, query, setup.filter) if kind == "answerable" else None
        request = AskRequest(
            question=query.text,
            metadata_filter=preferred,
            filter_mode="prefer" if setup.slices == "multislice" else "strict",
            top_k=setup.top_k,
            infer_filter=setup.infer != "no",
        )
        relevant = self._relevant(query) if kind == "answerable" else frozenset()
        try:
            answer = wait_for(service.ask(request))
        except GenerationError:
            if first:
                raise
            return Asked(query, kind, None, relevant)
        if not answer.complete:
            errors = "; ".join(f"{part.name}: {part.error}" for part in answer.slices if part.error)
            raise EvaluationError(f"the search was incomplete: {errors}")
        asked = Asked(
            query,
            kind,
            answer,
            relevant,
            found=self._documents(answer.sources),
            cited=self._documents([source for source in answer.sources if source.cited]),
            best_relevance=answer.best_relevance,
        )
        if judge is None or kind != "answerable" or not query.answers or asked.given is None:
            return asked
        return replace(asked, verdict=judge.verdict(query.text, query.answers, asked.text))

    def _relevant(self, query: Query) -> frozenset[str]:
        return frozenset(document for document, grade in self.data.judgments[query.id].items() if grade > 0)

    def _documents(self, sources: Sequence[Source]) -> tuple[str, ...]:
        names = (self.data.documents_of([source.source or ""]) for source in sources)
        return tuple(name for (name,) in names)


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
def _service(setup: AnswerSetup, index: Index, data: DataSet) -> Iterator[tuple[AskService, Without]]:
    """Answer as the API does, from an index."""
    engine: RetrievalBackend = create_retrieval_backend(
        {
            "type": BEDROCK_ENGINE,
            "knowledge_base_id": index.knowledge_base_id,
            "client": index.client("bedrock-agent-runtime"),
            "search_type": setup.search,
            "merge": setup.merge,
            "filtered_score_boost": setup.boost,
            "timeout_seconds": float(MAX_RETRIEVAL_SECONDS),
            "vector_store": OPENSEARCH_SERVERLESS,  # the local Bedrock has every operator
            "vocabulary": always(vocabulary_of(data)) if setup.infer == "yes" else None,
        }
    )
    without = Without(engine)
    settings = QuerySettings.from_env(
        {
            "KNOWLEDGE_BASE_ID": index.knowledge_base_id,
            "RETRIEVAL_TIMEOUT_SECONDS": str(MAX_RETRIEVAL_SECONDS),
            "ANSWERABLE_RELEVANCE": str(setup.answerable_relevance),
            "RERANK": setup.rerank,
        }
    )
    answering = {
        "ANSWER_CONTEXT_TOKENS": str(setup.context_tokens),
        "ANSWER_TIMEOUT_SECONDS": str(MAX_ANSWER_SECONDS),
    }
    answers, provider = chosen_model(setup.answer_model, answering)
    with closing(QueryService(settings, without)) as searches:
        yield AskService(answers, searches, provider), without


def _judging(model: str | None) -> Judge | None:
    if model is None:
        return None
    _, provider = chosen_model(model, {"ANSWER_TIMEOUT_SECONDS": str(MAX_ANSWER_SECONDS)})
    return Judge(model, provider)
