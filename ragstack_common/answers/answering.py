"""From the outcome of a search to a verified answer: select passages, call the model, verify what it writes."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from ragstack_common.answers.answer import (
    Answer,
    Answerer,
    Characters,
    CitationEvent,
    CitedText,
    Conflict,
    Source,
    SupportEvent,
    Timings,
    TokenEvent,
    Usage,
    Verdict,
)
from ragstack_common.answers.models.protocol import (
    MIN_CONFIDENCE,
    NO_ANSWER_MARK,
    Allowance,
    ModelEnd,
    ModelMessage,
    ModelPiece,
    ModelProvider,
    ModelRequest,
    ModelResponse,
    ModelText,
    NumberedPassage,
    estimated_tokens,
)
from ragstack_common.answers.phrases import no_answer
from ragstack_common.answers.prompt import last_turns, model_request, selected_passages
from ragstack_common.answers.quote.quotable import surroundings
from ragstack_common.answers.remarks import unanswerable_notes
from ragstack_common.answers.support import judged
from ragstack_common.answers.verify.citations import AnswerVerifier
from ragstack_common.core.deadline import in_thread_if_long, inner_deadline, seconds_left
from ragstack_common.core.errors import GenerationTimeoutError
from ragstack_common.core.reporting import redacted
from ragstack_common.reading.page_links import page_link
from ragstack_common.search import SearchOutcome
from ragstack_common.search.models import Note
from ragstack_common.settings.answers import AnswerSettings
from ragstack_common.text.languages import ENGLISH
from ragstack_common.text.positions import Position, is_recognized_on, pages_over, section_over
from ragstack_common.text.words import detect_language

NOTHING_FOUND: Final = "The search found nothing that is relevant enough to answer this question."
"""The answer without any passage."""

CONFIDENCE_WITHOUT_RELEVANCE: Final = 0.7
"""Confidence from which a quotation from a hardly relevant passage is an answer.

With .6, as elsewhere, .003 more of the questions of XQuAD (docs/RESULTS.md) are answered, and .003 more without their
documents.
"""

NOTHING_CITED: Final = "The answer cites no source, so it counts as not answered"

MAX_PIECE: Final = 500
"""Characters of an answer that are verified at once, which takes up to 20 ms."""


class Stopwatch:
    """The time since a request, and its deadline."""

    def __init__(self, timeout_seconds: float, clock: Callable[[], float]) -> None:
        self._timeout_seconds = timeout_seconds
        self._clock = clock
        self._started = clock()

    @property
    def milliseconds(self) -> float:
        """Time since the start."""
        return round((self._clock() - self._started) * 1000, 2)

    @property
    def seconds_left(self) -> float:
        """Time to the deadline."""
        return self._timeout_seconds - (self._clock() - self._started)


@dataclass(frozen=True)
class AnswerInput:
    """A question, and what a search found for it.

    Attributes:
        history: The conversation before it, oldest first.
        language: Language of the answer; None means that of the question.
        answerable_relevance: If no result has at least this relevance, the model is not called; without a model, only
            quotations with high confidence are an answer.
        min_confidence: Below it, quotations are shown as the closest passages instead of an answer.
        searched: The question that was searched, if it was rewritten.
        check_support: Whether the sentences are judged at the end.
    """

    text: str
    outcome: SearchOutcome
    history: Sequence[ModelMessage] = ()
    language: str | None = None
    answerable_relevance: float = 0.0
    min_confidence: float = MIN_CONFIDENCE
    searched: str | None = None
    notes: Sequence[Note] = ()
    check_support: bool = False


class Answering:
    """One question on its way to an answer. Iterate over :meth:`events`, then read :meth:`answer`."""

    def __init__(
        self,
        question: AnswerInput,
        provider: ModelProvider,
        settings: AnswerSettings,
        watch: Stopwatch,
        judge: ModelProvider,
    ) -> None:
        self._question = question
        self._provider = provider
        self._judge = judge
        self._settings = settings
        self._watch = watch
        self.retrieval_ms = watch.milliseconds
        self._first_token_ms: float | None = None
        self._end: ModelEnd | None = None
        self._verdicts: dict[int, Verdict] = {}
        self._remarks: list[Note] = []
        self._passages = selected_passages(question.outcome.chunks, settings.answer_context_tokens)
        self._quoted: ModelResponse | None = None
        best = question.outcome.best_relevance
        if best is not None and best < question.answerable_relevance:
            self._quoted = self._quoted_with_confidence()
            if self._quoted is None:
                self._passages = []
        self._verifier = AnswerVerifier(self._passages)

    def _quoted_with_confidence(self) -> ModelResponse | None:
        """Return an answer that hardly relevant passages have word for word, such as a receipt's line.

        Models are not called: they would answer from such passages, too.
        """
        if not self._provider.quotes or not self._passages:
            return None
        response = self._provider.generate(self._request())
        least = max(self._question.min_confidence, CONFIDENCE_WITHOUT_RELEVANCE)
        return response if (response.end.confidence or 0.0) >= least else None

    @property
    def sources(self) -> list[Source]:
        """The passages that the answerer receives, with what is known so far of their citations."""
        question = self._question.searched or self._question.text
        return [_source(passage, self._verifier, question) for passage in self._passages]

    async def events(self) -> AsyncGenerator[TokenEvent | CitationEvent | SupportEvent, None]:
        """Yield the verified answer piece by piece. Closing the iterator ends the call of the model.

        Raises:
            GenerationError: The model failed, or the deadline came first.
        """
        if not self._passages:
            language = detect_language(self._question.text)
            text = NOTHING_FOUND if language == ENGLISH else no_answer(language)
            for event in [*self._verifier.feed(NO_ANSWER_MARK + text), *self._verifier.finish()]:
                yield event
            return
        async with aclosing(self._limited()) as pieces:
            async for piece in pieces:
                if isinstance(piece, ModelEnd):
                    self._end = piece
                    break
                if self._first_token_ms is None and piece.text:
                    self._first_token_ms = self._watch.milliseconds
                for event in self._verifier.feed(piece.text):
                    yield event
        for event in self._verifier.finish():
            yield event
        if self._question.check_support and not self._provider.quotes:  # quotations are verified already
            async for verdict in self._judged():
                yield verdict

    async def _judged(self) -> AsyncGenerator[SupportEvent, None]:
        self._verdicts, remark = await judged(
            self._verifier.sentences, self._passages, self._judge, self._watch.seconds_left
        )
        if remark is not None:
            self._remarks.append(Note("support", redacted(remark)))
        for sentence, verdict in self._verdicts.items():
            yield SupportEvent(sentence=sentence, support=verdict)

    async def _limited(self) -> AsyncGenerator[ModelPiece, None]:
        """Yield at most the maximum number of tokens, in short pieces between which other requests are served."""
        characters = sum(len(turn.content) for turn in self._question.history)
        request = await in_thread_if_long(self._request, characters)
        allowance, written = Allowance(self._settings.answer_max_tokens), 0
        async with aclosing(self._pieces(request)) as pieces:
            async for piece in pieces:
                if isinstance(piece, ModelEnd):
                    yield piece
                    return
                text = allowance.take(piece.text)
                for start in range(0, len(text), MAX_PIECE):
                    await asyncio.sleep(0)
                    self._check_time()
                    yield ModelText(text[start : start + MAX_PIECE])
                written += estimated_tokens(text)
                if allowance.is_used_up:
                    sent = estimated_tokens(request.system_prompt) + estimated_tokens(self._question.text)
                    yield ModelEnd("max_tokens", sent, written, self._provider.model, estimated=True)
                    return

    def _request(self) -> ModelRequest:
        history = last_turns(self._question.history, self._settings.chat_history_max_tokens)
        question = self._question
        return model_request(
            (question.searched if self._provider.quotes else None) or question.text,
            self._passages,
            history,
            language=self._question.language,
            max_tokens=self._settings.answer_max_tokens,
            min_confidence=self._question.min_confidence,
        )

    async def _pieces(self, request: ModelRequest) -> AsyncGenerator[ModelPiece, None]:
        """Yield the provider's pieces until the deadline."""
        pieces = self._provider.stream(request) if self._quoted is None else self._quoted.pieces()
        try:
            while True:
                try:
                    async with asyncio.timeout(max(0.0, seconds_left(self._watch.seconds_left))):
                        with inner_deadline(self._watch.seconds_left):
                            piece = await anext(pieces)
                except StopAsyncIteration:
                    return
                except TimeoutError as error:
                    raise self._late() from error
                self._check_time()  # a piece that is available at once never times out
                yield piece
        finally:
            close = getattr(pieces, "aclose", None)
            if close is not None:
                await close()

    def _check_time(self) -> None:
        if seconds_left(self._watch.seconds_left) <= 0:
            raise self._late()

    def _late(self) -> GenerationTimeoutError:
        return GenerationTimeoutError(
            f"The answer was not finished within {self._settings.answer_timeout_seconds:g} seconds: raise"
            " ANSWER_TIMEOUT_SECONDS, or lower ANSWER_MAX_TOKENS"
        )

    def answer(self) -> Answer:
        """Return the finished answer."""
        verifier, end, outcome = self._verifier, self._end, self._question.outcome
        stop_reason = None if end is None else end.stop_reason
        is_withheld = stop_reason in ("guardrail_intervened", "content_filtered")
        answered = not verifier.no_answer and not is_withheld
        notes = [*self._question.notes, *outcome.notes, *self._remarks]
        if answered and not verifier.cited:
            notes.append(Note("citations", NOTHING_CITED))
        if not (answered and verifier.cited):
            notes += unanswerable_notes(self._question.searched or self._question.text, outcome)
        return Answer(
            question=self._question.text,
            searched_question=self._question.searched,
            answer=verifier.answer,
            answered=answered and bool(verifier.cited),
            closest_passages=verifier.closest_passages,
            confidence=None if end is None else end.confidence,
            conflicts=[
                Conflict(figure=each.figure, citations=list(each.passages)) for each in (end.conflicts if end else ())
            ],
            sentences=[
                sentence.model_copy(update={"support": self._verdicts.get(index)})
                for index, sentence in enumerate(verifier.sentences)
            ],
            sources=self.sources,
            removed_citations=verifier.removed,
            answerer=self._answerer(),
            stop_reason=stop_reason,
            cut_off=stop_reason == "max_tokens",
            usage=Usage()
            if end is None
            else Usage(input_tokens=end.input_tokens, output_tokens=end.output_tokens, estimated=end.estimated),
            timings=Timings(
                retrieval_ms=self.retrieval_ms, first_token_ms=self._first_token_ms, total_ms=self._watch.milliseconds
            ),
            complete=outcome.complete,
            notes=notes,
        )

    def _answerer(self) -> Answerer:
        if not self._passages:
            return Answerer(provider="none")
        model = self._provider.model if self._end is None else self._end.model
        quotes = self._provider.quotes or (self._end is not None and self._end.quotes)
        return Answerer(provider=self._provider.name, model=model, quotes=quotes)


def _source(passage: NumberedPassage, verifier: AnswerVerifier, question: str) -> Source:
    chunk, quoted = passage.chunk, verifier.quoted.get(passage.number, [])
    position = Position.of(chunk.metadata)
    is_cited = passage.number in verifier.cited
    spans = [(part.start, part.end) for part in quoted]
    page, last_page = pages_over(chunk.metadata, spans)
    section = section_over(chunk.content, [part.start for part in quoted], position.section)
    quoted = [_with_context(chunk.content, part) for part in quoted]
    return Source(
        number=passage.number,
        content=chunk.content,
        source=chunk.public_source,
        location=chunk.location or {},
        context=chunk.context,
        metadata=chunk.public_metadata,
        **dict(
            position.model_copy(
                update={
                    "page": page,
                    "last_page": last_page,
                    "section": section,
                    "is_recognized": is_recognized_on(chunk.metadata, page, last_page),
                }
            )
        ),
        score=chunk.ranked_by.score,
        relevance=None if chunk.relevance is None else round(chunk.relevance, 4),
        cited=is_cited,
        quoted=quoted,
        picture=page_link(chunk.public_source, chunk.content, page, question, spans) if is_cited else None,
    )


def _with_context(content: str, quoted: CitedText) -> CitedText:
    found = surroundings(content, quoted.start, quoted.end)
    return quoted.model_copy(update={"context": found and Characters(start=found[0], end=found[1])})
