"""Questions: the service that searches, and answers from what it finds."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from functools import partial
from time import monotonic, time
from typing import TYPE_CHECKING, Final

from ragstack_common.access.budget import DailyBudget
from ragstack_common.access.callers import Caller
from ragstack_common.access.guard import Guard
from ragstack_common.answers.answering import Answering, AnswerInput, Stopwatch
from ragstack_common.answers.followup import self_contained
from ragstack_common.answers.models.protocol import MIN_CONFIDENCE, ModelMessage, ModelProvider
from ragstack_common.answers.span import AnswerSpan, answer_span
from ragstack_common.core.deadline import in_thread, in_thread_if_long, inner_deadline
from ragstack_common.core.errors import GenerationError, RagStackError
from ragstack_common.core.reporting import redacted
from ragstack_common.core.telemetry import LOGGER, NO_METRICS, MetricSink
from ragstack_common.search.models import Note, SearchOutcome
from ragstack_common.services.ask_models import (
    AskRequest,
    AskResponse,
    KeptConversation,
    SourcesEvent,
    StreamEvent,
    title_of,
)
from ragstack_common.services.closest import closest_documents
from ragstack_common.services.search import QueryService
from ragstack_common.services.search_models import RequestOptions, RetrieveRequest, report_members
from ragstack_common.settings.answers import AnswerSettings
from ragstack_common.settings.gaps import GapSettings

if TYPE_CHECKING:
    from ragstack_common.services.conversations import Conversations
    from ragstack_common.services.gaps import Gaps

ACCESS_CHECK_SECONDS: Final = 1.0
"""Maximum age of the check of the caller's access when an event is sent."""

NOTE_SECONDS: Final = 2.0
"""A response without an answer waits this long until its question is kept, which usually takes milliseconds."""

NOT_SETTINGS: Final = {"question", "chat_history", "conversation"}
"""Members of a request that say nothing of how a question is answered."""

KEEP_SECONDS: Final = 5.0
"""An answer that is ready waits this long until its turn is kept; without a failure, it takes milliseconds."""


class AskService:
    """Answers questions with one engine and one model; *searches* is the service of its searches."""

    def __init__(
        self,
        settings: AnswerSettings,
        searches: QueryService,
        provider: ModelProvider,
        *,
        judge: ModelProvider | None = None,
        budget: DailyBudget | None = None,
        gaps: "Gaps | None" = None,
        conversations: "Conversations | None" = None,
        clock: Callable[[], float] = monotonic,
        now: Callable[[], float] = time,
    ) -> None:
        """Bind a provider of answers to a service that searches.

        Without a judge, the provider judges its own sentences; questions without an answer are added to *gaps*; *now*
        returns seconds since 1970.
        """
        self.searches = searches
        self._settings = settings
        self._provider = provider
        self._judge = judge or provider
        self._budget = budget
        self._gaps = gaps
        self._conversations = conversations
        self._clock = clock
        self._now = now

    @classmethod
    def from_env(cls, env: Mapping[str, str], metrics: MetricSink = NO_METRICS) -> "AskService":
        """Build the service that the environment describes; raises ConfigurationError."""
        from ragstack_common.answers.factory import judge_from, provider_from  # noqa: PLC0415 - not for services with their own

        settings = AnswerSettings.from_env(env)
        searches, provider = QueryService.from_env(env, metrics), provider_from(settings)
        conversations, table = None, searches.settings.registry_table
        if table is not None:
            from ragstack_common.core.clients import dynamodb_client  # noqa: PLC0415 - the same
            from ragstack_common.services.conversations import Conversations  # noqa: PLC0415 - the same

            conversations = Conversations.from_env(env, searches.guard, table, dynamodb_client())
        return cls(
            settings,
            searches,
            provider,
            judge=judge_from(settings, provider),
            budget=DailyBudget.from_env(env),
            gaps=unanswered_from_env(env, table),
            conversations=conversations,
        )

    async def ask(self, request: AskRequest, caller: Caller) -> AskResponse:
        """Answer a question from what the caller sees.

        Raises:
            InvalidRequestError: The question, a filter or the corpus is invalid.
            RetrievalError: Every search failed.
            GenerationError: No answer could be generated before the deadline.
            LimitReachedError: The caller has asked the maximum number of questions today.
            NotAllowedError: The caller lost access to a document during the answer.
        """
        async with aclosing(self.stream(request, caller)) as events:
            async for event in events:
                if isinstance(event, AskResponse):
                    return event
        raise GenerationError("The answer ended early: ask again")

    async def stream(self, request: AskRequest, caller: Caller) -> AsyncGenerator[StreamEvent, None]:
        """Yield a SourcesEvent, the answer in pieces, and the whole AskResponse. Raises the errors of :meth:`ask`.

        Closing the iterator (``aclose``) or cancelling its task ends the search or the call of the model.
        """
        with answer_span(request.question) as span:
            async with aclosing(self._events(request, caller, span)) as events:
                async for event in events:
                    yield event

    async def _events(self, request: AskRequest, caller: Caller, span: AnswerSpan) -> AsyncGenerator[StreamEvent, None]:
        seconds = self._settings.answer_timeout_seconds
        if caller.expires_at is not None:  # an answer ends with the proof of who receives it
            seconds = min(seconds, caller.expires_at - self._now())
        watch = Stopwatch(seconds, self._clock)
        settings = self.searches.settings
        if self._budget is not None:
            await in_thread(partial(self._budget.spend, caller))
        options = request.model_dump(include={*RequestOptions.model_fields})
        options["top_k"] = request.top_k or settings.search_k
        history = [ModelMessage(turn.role, turn.content) for turn in request.chat_history]
        searched = remark = None
        with span.parent(), inner_deadline(watch.seconds_left):
            if request.rewrite_question is not False:
                searched, remark = await self_contained(
                    request.question,
                    history,
                    self._provider,
                    watch.seconds_left,
                    by_model=request.rewrite_question is True,
                )
            # Unless it is rewritten, the same search whatever the history is.
            search_request = RetrieveRequest(query=searched or request.question, **options)
            outcome = await self.searches.search(search_request, caller)
        seen_at = self._clock()
        report = report_members(outcome)
        question = AnswerInput(
            request.question,
            outcome,
            history,
            request.language,
            settings.answerable_relevance,
            MIN_CONFIDENCE if request.min_confidence is None else request.min_confidence,
            searched,
            () if remark is None else (Note("rewriting", redacted(remark)),),
            request.check_support,
        )
        texts = (len(each.content) for chunk in outcome.chunks for each in chunk.passages or (chunk,))
        answering = await in_thread_if_long(
            lambda: Answering(question, self._provider, self._settings, watch, self._judge), sum(texts)
        )
        yield SourcesEvent(
            question=request.question,
            searched_question=searched,
            sources=answering.sources,
            complete=outcome.complete,
            retrieval_ms=answering.retrieval_ms,
            **report,
        )
        async with aclosing(answering.events()) as events:
            async for event in events:
                seen_at = await self._seen(outcome, caller, seen_at)
                yield event
        answer = answering.answer()
        closest = [] if answer.answered else closest_documents(searched or request.question, outcome)
        response = AskResponse(**dict(answer), **report, closest=closest)
        await self._seen(outcome, caller, seen_at)
        span.ended(response)
        if self._gaps is not None and not answer.answered and outcome.complete:
            await self._noted(self._gaps, caller, searched or request.question, request)
        if request.conversation is not None:
            response = response.model_copy(update={"conversation": await self._kept(request, response, caller)})
        yield response

    async def _seen(self, outcome: SearchOutcome, caller: Caller, seen_at: float) -> float:
        """Check the caller's access if the last check is old; return when it was checked."""
        if self._clock() - seen_at < ACCESS_CHECK_SECONDS:
            return seen_at
        now = self._clock()
        await in_thread(partial(self.searches.require_sight, outcome, caller))
        return now

    async def _noted(self, gaps: "Gaps", caller: Caller, question: str, request: AskRequest) -> None:
        """Keep a question without an answer. A failure to do so changes nothing for the caller."""
        settings = request.model_dump(mode="json", exclude_defaults=True, exclude=NOT_SETTINGS)
        add = partial(gaps.add, caller, question, "no_answer", settings=settings)
        try:
            async with asyncio.timeout(NOTE_SECONDS):
                await in_thread(add)
        except (RagStackError, TimeoutError) as error:
            LOGGER.warning("a question without an answer was not kept: %s", error)

    async def _kept(self, request: AskRequest, answer: AskResponse, caller: Caller) -> KeptConversation:
        """Add the answer to its conversation; a failure to do so is in the result, and the answer is given."""
        refused = KeptConversation(id=str(request.conversation), title=title_of(request.question), saved=False)
        if self._conversations is None:
            return refused.model_copy(update={"reason": "This deployment keeps no conversations"})
        keep = partial(self._conversations.keep, caller, request, answer, is_registered=self.searches.is_registered)
        try:
            async with asyncio.timeout(KEEP_SECONDS):
                return await in_thread(keep)
        except TimeoutError:
            return refused.model_copy(update={"reason": "The registry did not answer in time: the turn may be missing"})

    def close(self) -> None:
        """Close the engine. A Lambda function does not need to: everything ends with its container."""
        self.searches.close()


def unanswered_from_env(env: Mapping[str, str], table: str | None) -> "Gaps | None":
    """Return where questions without an answer are kept; None if they are not."""
    if table is None or not GapSettings.from_env(env).questions:
        return None
    from ragstack_common.core.clients import dynamodb_client  # noqa: PLC0415 - only for this
    from ragstack_common.services.gaps import Gaps  # noqa: PLC0415

    return Gaps(dynamodb_client(), table, Guard.from_env(env), stores_questions=True)
