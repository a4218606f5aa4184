"""Questions over HTTP: what is searched, what the model receives, and what the caller does."""

# ruff: noqa: RUF001 - questions in several languages

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from openinference.semconv.trace import OpenInferenceSpanKindValues, SpanAttributes
from opentelemetry import trace
from pydantic import BaseModel

from ragstack_common.access.callers import OPERATOR
from ragstack_common.answers.answer import CitationEvent, TokenEvent
from ragstack_common.answers.answering import NOTHING_CITED, NOTHING_FOUND
from ragstack_common.answers.models.protocol import (
    ModelEnd,
    ModelMessage,
    ModelPiece,
    ModelProvider,
    ModelRequest,
    ModelResponse,
    ModelText,
    StopReason,
)
from ragstack_common.answers.phrases import CLOSEST_PASSAGES, NO_ANSWER
from ragstack_common.answers.quote.extractive import ExtractiveProvider
from ragstack_common.core.errors import GenerationTimeoutError, ModelThrottledError, RetrievalTimeoutError
from ragstack_common.search import RetrievalBackend, RetrievedChunk, SearchOutcome, SearchRequest
from ragstack_common.search.models import Note, SliceReport
from ragstack_common.search.tracing import TracingSettings, configure_tracing
from ragstack_common.services.ask import AskService
from ragstack_common.services.ask_models import AskRequest, AskResponse, ChatTurn, SourcesEvent
from ragstack_common.services.search import QueryService
from ragstack_common.settings.answers import AnswerSettings
from ragstack_common.settings.search import QuerySettings
from ragstack_common.text.positions import PAGE_KEY, SECTION_KEY
from tests.support.backends import Shelf
from tests.support.spans import Spans, attributes, recorded
from tests.support.virtual_time import in_virtual_time, run_in_virtual_time

LEAVE = RetrievedChunk(
    content="Parental leave is sixteen weeks\nat full pay.",
    score=0.8,
    relevance=0.91234,
    source="s3://documents/people/leave.pdf",
    location={"type": "S3", "s3Location": {"uri": "s3://documents/people/leave.pdf"}},
    metadata={PAGE_KEY: 3.0, SECTION_KEY: "Leave > Parental leave", "corpus": "people"},
)
TRAVEL = RetrievedChunk(content="Book trains early.", score=0.4, source="s3://documents/travel.md")


@dataclass
class Engine(RetrievalBackend):
    """Finds the same for every query.

    Attributes:
        asked: The searches.
    """

    outcome: SearchOutcome
    asked: list[SearchRequest] = field(default_factory=list)
    seconds: float = 0.0
    error: Exception | None = None

    async def retrieve(self, *_: Any, **__: Any) -> list[RetrievedChunk]:
        return self.outcome.chunks

    async def search(self, request: SearchRequest) -> SearchOutcome:
        self.asked.append(request)
        await asyncio.sleep(self.seconds)
        if self.error:
            raise self.error
        return self.outcome


@dataclass
class Model:
    """Writes the same answer to every question.

    Attributes:
        script: Its pieces; a number is a pause in seconds, an error is raised.
        asked: The requests.
        stopped: Calls that ended before their end.
    """

    script: Sequence[str | float | Exception] = ()
    stop_reason: StopReason = "end_turn"
    asked: list[ModelRequest] = field(default_factory=list)
    stopped: int = 0
    name = "bedrock"
    model = "small"
    quotes = False

    def generate(self, request: ModelRequest) -> ModelResponse:
        raise NotImplementedError

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelPiece, None]:
        self.asked.append(request)
        finished = False
        try:
            for step in self.script:
                if isinstance(step, Exception):
                    raise step
                if isinstance(step, str):
                    yield ModelText(step)
                else:
                    await asyncio.sleep(step)
            yield ModelEnd(self.stop_reason, 100, 10, "small-2")
            finished = True
        finally:
            self.stopped += not finished


def found(*chunks: RetrievedChunk, status: Any = "ok", best_relevance: float | None = 0.9) -> Engine:
    report = SliceReport(slice="unfiltered", status=status, milliseconds=1.0, hits=len(chunks))
    return Engine(SearchOutcome(list(chunks), (report,), 1.0, best_relevance=best_relevance))


def service(engine: RetrievalBackend, model: ModelProvider, **variables: str) -> AskService:
    env = {"KNOWLEDGE_BASE_ID": "KB12345678", **variables}
    searches = QueryService(QuerySettings.from_env(env), engine)
    return AskService(AnswerSettings.from_env(env), searches, model, clock=virtual_time)


def virtual_time() -> float:
    return asyncio.get_running_loop().time()


def question(text: str = "How long is parental leave?", **more: Any) -> AskRequest:
    return AskRequest(question=text, **more)


async def collected(answers: AskService, request: AskRequest) -> list[BaseModel]:
    async with aclosing(answers.stream(request, OPERATOR)) as events:
        return [event async for event in events]


@in_virtual_time
async def test_a_stream_has_the_sources_first_and_the_answer_last() -> None:
    model = Model(["It is “sixteen weeks at", " full pay” [", "1", "][7].", " Enjoy."])

    events = await collected(service(found(LEAVE, TRAVEL), model), question())

    sources, *tokens, last = events
    assert isinstance(sources, SourcesEvent)
    assert isinstance(last, AskResponse)
    assert [(source.number, source.source, source.cited) for source in sources.sources] == [
        (1, LEAVE.source, False),
        (2, TRAVEL.source, False),
    ]
    assert last.answer == "It is “sixteen weeks at full pay” [1]. Enjoy."
    assert "".join(event.text for event in tokens if isinstance(event, TokenEvent)) == last.answer
    assert [event for event in tokens if isinstance(event, CitationEvent)] == [
        CitationEvent(sentence=0, start=0, end=38, citations=[1])
    ]
    assert [(sentence.text, sentence.citations, sentence.unsupported) for sentence in last.sentences] == [
        ("It is “sixteen weeks at full pay”.", [1], False),
        ("Enjoy.", [], True),
    ]


@in_virtual_time
async def test_the_section_of_a_source_contains_its_quotation() -> None:
    content = (
        "## Sick leave\n\nTell your manager before ten. " + "More. " * 20 + "\n\n## Parental leave\n\nSixteen weeks."
    )
    chunk = LEAVE.model_copy(update={"content": content, "metadata": {SECTION_KEY: "Leave > Sick leave"}})

    answer = await service(found(chunk), Model(['"Sixteen weeks" [1]'])).ask(question(), OPERATOR)

    assert [source.section for source in answer.sources] == ["Leave > Parental leave"]


@in_virtual_time
async def test_a_source_has_its_place_and_the_quoted_characters() -> None:
    answer = await service(found(LEAVE), Model(['"sixteen weeks at full pay" [1]'])).ask(question(), OPERATOR)

    (source,) = answer.sources
    (quoted,) = source.quoted
    assert source.content[quoted.start : quoted.end] == "sixteen weeks\nat full pay"
    assert (source.page, source.section, source.relevance, source.cited) == (3, "Leave > Parental leave", 0.9123, True)
    assert source.location == LEAVE.location
    assert source.metadata == {PAGE_KEY: 3.0, "corpus": "people"}


@pytest.mark.parametrize(
    ("answered", "marks"), [('"sixteen weeks at full pay" [1]', "18-43"), ("As long as sixteen weeks [1]", "0-44")]
)
@in_virtual_time
async def test_a_cited_source_has_a_link_to_the_picture_of_its_words(answered: str, marks: str) -> None:
    answer = await service(found(LEAVE, TRAVEL), Model([answered])).ask(question(), OPERATOR)

    leave, travel = answer.sources
    link = "/api/view?uri=s3%3A%2F%2Fdocuments%2Fpeople%2Fleave.pdf&page=3&passage=Parental%20leave%20is%20sixteen"
    assert leave.picture is not None
    assert leave.picture.startswith(link)
    assert leave.picture.endswith(f"&marks={marks}")
    assert travel.picture is None


@in_virtual_time
async def test_a_source_that_is_not_cited_has_no_picture() -> None:
    answer = await service(found(LEAVE), Model(["Nobody knows."])).ask(question(), OPERATOR)

    assert [source.picture for source in answer.sources] == [None]


@in_virtual_time
async def test_the_page_of_a_source_is_the_page_of_its_quotation() -> None:
    start = LEAVE.content.index("sixteen") - 1
    metadata = {PAGE_KEY: 3.0, "ragstack_last_page": 4, "ragstack_page_starts": str(start)}
    leave = LEAVE.model_copy(update={"metadata": metadata})

    answer = await service(found(leave), Model(['"sixteen weeks at full pay" [1]'])).ask(question(), OPERATOR)

    (source,) = answer.sources
    assert (source.page, source.last_page) == (4, None)
    assert source.metadata == {PAGE_KEY: 3.0}


@in_virtual_time
async def test_an_answer_has_its_author_its_times_and_what_is_missing() -> None:
    engine = found(LEAVE, status="failed")
    engine.seconds = 0.25
    engine.outcome = replace(
        engine.outcome, notes=(Note("reranker", "Not allowed: arn:aws:iam::123456789012:role/search"),)
    )
    model = Model([0.5, "Sixteen weeks [1][2][3]", 0.25, ", I th"], stop_reason="max_tokens")

    answer = await service(engine, model).ask(question(), OPERATOR)

    assert answer.answerer.model_dump() == {"provider": "bedrock", "model": "small-2", "quotes": False}
    assert answer.timings.model_dump() == {"retrieval_ms": 250.0, "first_token_ms": 750.0, "total_ms": 1000.0}
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (100, 10)
    assert (answer.removed_citations, answer.cut_off, answer.complete) == (2, True, False)
    assert answer.slices[0].status == "failed"
    assert len(answer.notes) == 1
    assert "123456789012" not in answer.notes[0].text


@in_virtual_time
async def test_any_provider_may_answer_under_its_own_name() -> None:
    model = Model(["Yes [1]."])
    model.name = "own"

    assert (await service(found(LEAVE), model).ask(question(), OPERATOR)).answerer.provider == "own"


@in_virtual_time
async def test_the_history_goes_to_the_model_and_not_to_the_search() -> None:
    engine, model = found(LEAVE), Model(["Yes [1]."])
    answers = service(engine, model, SEARCH_K="7")
    turns = [ChatTurn(role="user", content="Is there leave in Wales?"), ChatTurn(role="assistant", content="Yes.")]

    await answers.ask(question(), OPERATOR)
    await answers.ask(question(chat_history=turns), OPERATOR)

    assert engine.asked[0] == engine.asked[1]
    assert (engine.asked[0].query, engine.asked[0].top_k) == ("How long is parental leave?", 7)
    assert all(request.messages == [ModelMessage.user("How long is parental leave?")] for request in model.asked)
    assert "Is there leave in Wales?" not in model.asked[0].system_prompt
    assert "Is there leave in Wales?" in model.asked[1].system_prompt


@in_virtual_time
async def test_a_rewritten_question_is_searched_and_returned() -> None:
    engine, model = found(LEAVE), Model(["How long is parental leave in Wales?"])
    history = [{"role": "user", "content": "How long is parental leave?"}]

    answer = await service(engine, model).ask(
        question("And in Wales?", chat_history=history, rewrite_question=True), OPERATOR
    )

    assert [request.query for request in engine.asked] == ["How long is parental leave in Wales?"]
    assert (answer.question, answer.searched_question) == ("And in Wales?", "How long is parental leave in Wales?")
    assert model.asked[1].messages[-1].content == "And in Wales?"


@pytest.mark.parametrize(
    ("rewrite", "searched"),
    [({}, "How long is parental leave in Wales?"), ({"rewrite_question": False}, "And in Wales?")],
)
@in_virtual_time
async def test_a_follow_up_is_completed_by_default_without_a_call_of_the_model(
    rewrite: dict[str, bool], searched: str
) -> None:
    engine, model = found(LEAVE), Model(["Twenty weeks [1]."])
    history = [{"role": "user", "content": "How long is parental leave?"}]

    await service(engine, model).ask(question("And in Wales?", chat_history=history, **rewrite), OPERATOR)

    assert [request.query for request in engine.asked] == [searched]
    assert len(model.asked) == 1


@pytest.mark.parametrize(
    ("asked", "kind", "said"),
    [
        (
            "Wie viele Wochen dauert der Urlaub für die Eltern?",
            "language",
            "German, and the documents found are in English",
        ),
        ("Сколько дней длится отпуск по уходу?", "language", "Russian"),
        ("And in 2025?", "question", "names no subject"),
    ],
)
def test_without_an_answer_a_note_says_what_may_be_wrong_with_the_question(asked: str, kind: str, said: str) -> None:
    answers = service(found(LEAVE, best_relevance=0.01), Model([]))

    answer = asyncio.run(answers.ask(question(asked), OPERATOR))

    assert [(note.kind, said in note.text) for note in answer.notes] == [(kind, True)]


@pytest.mark.parametrize(
    "asked",
    [
        "من كان كونت ميلفي؟",
        "राष्ट्रगान किसने गाया?",
        "Who is Taro?",
        "Was hat Queen Elisabeth II. 1981 in Newcastle eröffnet?",
        "В каком году была выпущена песня Fog on the Tyne?",
    ],
)
def test_a_short_question_or_names_in_another_language_get_no_note(asked: str) -> None:
    texts = {
        "\u0645": "هذا نص عن الأدب الإنجليزي وعن الملوك والشعراء في القرن السابع عشر.",
        "र": "यह एक पाठ है जो भारत के राष्ट्रगान के बारे में है और इसे लिखा गया था.",
        "W": "Das ist ein Text über die Königin, und sie hat in dem Jahr die neue Brücke der Stadt eröffnet.",
        "В": "Это текст о песне, которая была выпущена в том году и стала очень известной в стране.",
    }
    own = LEAVE if asked == "Who is Taro?" else LEAVE.model_copy(update={"content": texts[asked[0]]})
    answers = service(found(own, best_relevance=0.01), Model([]))

    assert asyncio.run(answers.ask(question(asked), OPERATOR)).notes == []


def test_without_an_answer_the_closest_documents_come_with_their_best_passage() -> None:
    dated = LEAVE.model_copy(
        update={"metadata": {PAGE_KEY: 3.0, "title": "Leave", "version": "2026", "current": True, "date": "2026-01-01"}}
    )
    second = dated.model_copy(update={"content": "Another passage of the same document."})
    table = "| Leave | Weeks |\n| --- | --- |\n| Holidays | 5 |\n| Parental | 16 |\n"
    others = [TRAVEL.model_copy(update={"source": f"s3://documents/{name}.md", "content": table}) for name in "abc"]

    answer = asyncio.run(
        service(found(dated, second, *others, best_relevance=0.01), Model([])).ask(question(), OPERATOR)
    )

    assert (answer.answered, answer.sources) == (False, [])
    assert [(each.source, each.title) for each in answer.closest] == [
        (LEAVE.source, "Leave"),
        ("s3://documents/a.md", "a.md"),
        ("s3://documents/b.md", "b.md"),
    ]
    first, second_, _ = answer.closest
    assert (first.content, first.version, first.date, first.page) == (LEAVE.content, "2026", "2026-01-01", 3)
    assert first.picture is not None
    assert (second_.version, second_.date, second_.picture) == (None, None, None)
    assert second_.content == table
    assert "Leave: Parental; Weeks: 16" in second_.excerpt


def test_an_answer_needs_no_closest_documents() -> None:
    answer = asyncio.run(service(found(LEAVE), Model(["Sixteen weeks [1]."])).ask(question(), OPERATOR))

    assert (answer.answered, answer.closest) == (True, [])


async def test_verdicts_come_after_the_answer_and_are_part_of_it() -> None:
    model = Model(["1: supported [1]"])

    events = [event async for event in service(found(LEAVE), model).stream(question(check_support=True), OPERATOR)]

    assert [type(event).__name__ for event in events[-2:]] == ["SupportEvent", "AskResponse"]
    answer = events[-1]
    assert isinstance(answer, AskResponse)
    assert [sentence.support for sentence in answer.sentences] == ["supported"]
    assert len(model.asked) == 2


async def test_a_question_takes_the_options_of_a_search() -> None:
    engine, model = found(LEAVE), Model(["Ja [1]."])
    options: dict[str, Any] = {"corpus_filter": "people", "version_filter": 2, "top_k": 3, "language": "German"}

    await service(engine, model).ask(
        question(metadata_filter={"topic": "leave"}, filter_mode="strict", **options), OPERATOR
    )

    (asked,) = engine.asked
    assert (asked.top_k, asked.documents) == (500, 3)
    assert str(asked.filters).count("Clause") == 3
    assert asked.metadata_filter is None
    assert "German" in model.asked[0].system_prompt


@pytest.mark.parametrize("engine", [found(), found(LEAVE, best_relevance=0.01)], ids=["no result", "irrelevant"])
def test_without_a_relevant_passage_no_model_is_called(engine: Engine) -> None:
    model = Model(["Something."])

    answer = asyncio.run(service(engine, model).ask(question(), OPERATOR))

    assert model.asked == []
    assert (answer.answer, answer.answered, answer.answerer.provider) == (NOTHING_FOUND, False, "none")
    assert [sentence.unsupported for sentence in answer.sentences] == [False]
    assert (answer.sources, answer.stop_reason, answer.timings.first_token_ms) == ([], None, None)


def test_a_quotation_with_enough_confidence_needs_no_relevant_passage() -> None:
    engine = found(LEAVE.model_copy(update={"relevance": 0.01}), best_relevance=0.01)
    answers = service(engine, ExtractiveProvider())

    answered = asyncio.run(answers.ask(question("How long is parental leave?"), OPERATOR))
    other = asyncio.run(answers.ask(question("How long is the warranty of a pump?"), OPERATOR))

    assert (answered.answered, [source.cited for source in answered.sources]) == (True, [True])
    assert (other.answer, other.answered, other.sources, other.closest_passages) == (NOTHING_FOUND, False, [], False)


@pytest.mark.parametrize(
    ("script", "text"),
    [
        (["[no ", "answer]", " The passages don't say."], "The passages don't say."),
        (["[No answer]\n"], NO_ANSWER),
        ([NO_ANSWER], NO_ANSWER),
    ],
)
def test_a_model_that_finds_no_answer_has_not_answered(script: list[str], text: str) -> None:
    answer = asyncio.run(service(found(LEAVE), Model(script)).ask(question(), OPERATOR))

    assert (answer.answer, answer.answered) == (text, False)
    assert [sentence.unsupported for sentence in answer.sentences] == [False]


@pytest.mark.parametrize(
    ("script", "reason"), [([], "end_turn"), ([" \n"], "end_turn"), (["Blocked."], "guardrail_intervened")]
)
def test_an_empty_or_blocked_answer_is_not_answered(script: list[str], reason: StopReason) -> None:
    answer = asyncio.run(service(found(LEAVE), Model(script, stop_reason=reason)).ask(question(), OPERATOR))

    assert not answer.answered


def test_closest_passages_are_cited_but_do_not_count_as_an_answer() -> None:
    quoting = Model([f"{CLOSEST_PASSAGES}\n", f'"{LEAVE.content}" [1]'])

    answer = asyncio.run(service(found(LEAVE), quoting).ask(question(), OPERATOR))

    assert (answer.answered, answer.closest_passages) == (False, True)
    assert [source.cited for source in answer.sources] == [True]
    assert not any(sentence.unsupported for sentence in answer.sentences)
    assert answer.notes == []


def test_an_answer_that_cites_nothing_is_not_answered_and_says_so() -> None:
    answer = asyncio.run(service(found(LEAVE), Model(["I believe that it is ten weeks."])).ask(question(), OPERATOR))

    assert (answer.answered, answer.notes) == (False, [Note("citations", NOTHING_CITED)])
    assert [sentence.unsupported for sentence in answer.sentences] == [True]


@in_virtual_time
async def test_a_hanging_model_ends_with_an_error_at_the_deadline() -> None:
    model = Model(["It is", 3600.0, " long."])
    answers = service(found(LEAVE), model, ANSWER_TIMEOUT_SECONDS="20")
    started = asyncio.get_running_loop().time()

    with pytest.raises(GenerationTimeoutError, match="within 20 seconds: raise ANSWER_TIMEOUT_SECONDS"):
        await answers.ask(question(), OPERATOR)

    assert asyncio.get_running_loop().time() - started == pytest.approx(20.0)
    assert model.stopped == 1


@in_virtual_time
async def test_closing_a_stream_ends_the_call_of_the_model() -> None:
    model = Model(["It is", 3600.0, " long."])

    async with aclosing(service(found(LEAVE), model).stream(question(), OPERATOR)) as events:
        async for event in events:
            if isinstance(event, TokenEvent):
                break

    assert model.stopped == 1


@in_virtual_time
async def test_cancelling_a_question_ends_the_call_of_the_model() -> None:
    model = Model(["It is", 3600.0, " long."])
    asking = asyncio.create_task(service(found(LEAVE), model).ask(question(), OPERATOR))
    await asyncio.sleep(1)

    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)

    assert model.stopped == 1


@pytest.mark.parametrize(
    ("engine_error", "model_error", "expected"),
    [
        (RetrievalTimeoutError("late"), None, RetrievalTimeoutError),
        (None, ModelThrottledError("slow down"), ModelThrottledError),
    ],
)
def test_errors_of_the_search_and_of_the_model_reach_the_caller(
    engine_error: Exception | None, model_error: Exception | None, expected: type[Exception]
) -> None:
    engine = found(LEAVE)
    engine.error = engine_error
    model = Model(["It", *([model_error] if model_error else [])])

    with pytest.raises(expected):
        asyncio.run(service(engine, model).ask(question(), OPERATOR))


@pytest.fixture
def heard() -> Iterator[Spans]:
    with recorded() as heard:
        yield heard


def test_the_span_of_an_answer_describes_the_model_and_the_citations(heard: Spans) -> None:
    model = Model(["Sixteen weeks [1][7].", " Enjoy."])

    run_in_virtual_time(service(Shelf(LEAVE, TRAVEL), model).ask(question(), OPERATOR))

    (answer,), (search,) = heard.by_name()["answer"], heard.by_name()["retrieve shelf"]
    assert search.parent is not None
    assert search.parent.span_id == answer.context.span_id
    assert {
        SpanAttributes.OPENINFERENCE_SPAN_KIND: OpenInferenceSpanKindValues.LLM.value,
        SpanAttributes.LLM_MODEL_NAME: "small-2",
        SpanAttributes.LLM_TOKEN_COUNT_PROMPT: 100,
        SpanAttributes.LLM_TOKEN_COUNT_COMPLETION: 10,
        SpanAttributes.INPUT_VALUE: "__REDACTED__",
        SpanAttributes.OUTPUT_VALUE: "__REDACTED__",
        "gen_ai.provider.name": "aws.bedrock",
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.response.finish_reasons": ("end_turn",),
        "sources": 2,
        "cited": 1,
        "removed_citations": 1,
        "unsupported": 1,
        "complete": True,
        "answered": True,
    }.items() <= attributes(answer).items()


def test_the_span_shows_question_and_answer_if_the_settings_allow_it(heard: Spans) -> None:
    configure_tracing(TracingSettings.from_env({"RAGSTACK_TRACE_CONTENT": "true"}))

    run_in_virtual_time(service(found(LEAVE), Model(["Sixteen weeks [1]."])).ask(question(), OPERATOR))

    shown = attributes(heard.by_name()["answer"][0])
    assert shown[SpanAttributes.INPUT_VALUE] == "How long is parental leave?"
    assert shown[SpanAttributes.OUTPUT_VALUE] == "Sixteen weeks [1]."


def test_the_span_of_an_answer_that_failed_has_the_error(heard: Spans) -> None:
    @in_virtual_time
    async def asked() -> None:
        with pytest.raises(ModelThrottledError):
            await service(found(LEAVE), Model(["Six", ModelThrottledError("too many")])).ask(question(), OPERATOR)

    asked()

    (span,) = heard.by_name()["answer"]
    assert "ModelThrottledError: too many" in str(span.status.description)


def test_the_span_of_a_closed_stream_is_cancelled(
    heard: Spans,
) -> None:
    @in_virtual_time
    async def read_a_little() -> None:
        async with aclosing(service(found(LEAVE), Model(["Six", 60.0])).stream(question(), OPERATOR)) as events:
            async for event in events:
                with trace.get_tracer("consumer").start_as_current_span("consumer"):
                    pass
                if isinstance(event, TokenEvent):
                    return

    read_a_little()

    (span,), consumers = heard.by_name()["answer"], heard.by_name()["consumer"]
    assert attributes(span)["cancelled"] is True
    assert span.status.is_unset
    assert {each.parent for each in consumers} == {None}
