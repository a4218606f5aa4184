"""Models of Amazon Bedrock, behind a service that answers as the test programs it."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

import pytest

from ragstack_common.answers.models.bedrock import ATTEMPTS, BedrockProvider
from ragstack_common.answers.models.protocol import ModelEnd, ModelMessage, ModelPiece, ModelRequest, ModelText
from ragstack_common.core import errors
from ragstack_common.core.deadline import in_thread, inner_deadline
from tests.local_bedrock.support import client
from tests.support.aws_service import AwsService, Dropped, Fault, Late, Stream, aws_service
from tests.support.redirecting_server import redirecting_server
from tests.support.waiting import eventually

MODEL = "anthropic.claude-3-haiku-20240307-v1:0"
FALLBACK = "amazon.nova-lite-v1:0"
REQUEST = ModelRequest([ModelMessage.user("When?")], "Answer from these.", max_tokens=100)
THROTTLED = Fault("ThrottlingException", "Too many requests", 429)
START = {"messageStart": {"role": "assistant"}}
USAGE = {"metadata": {"usage": {"inputTokens": 11, "outputTokens": 7, "totalTokens": 18}, "metrics": {"latencyMs": 1}}}


def text(said: str) -> dict[str, Any]:
    return {"contentBlockDelta": {"delta": {"text": said}, "contentBlockIndex": 0}}


def stop(reason: str = "end_turn") -> dict[str, Any]:
    return {"messageStop": {"stopReason": reason}}


ANSWER = Stream((START, text("At "), text("noon."), stop(), USAGE))


@pytest.fixture
def models() -> Iterator[AwsService]:
    with aws_service("bedrock-runtime") as service:
        service.program("ConverseStream", ANSWER)
        yield service


@pytest.fixture
def no_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragstack_common.answers.models.bedrock.MAX_FIRST_DELAY_SECONDS", 0.0)


def provider(models: AwsService, **options: Any) -> BedrockProvider:
    return BedrockProvider(MODEL, client=models.client(), **options)


async def pieces(provider: BedrockProvider, request: ModelRequest = REQUEST) -> list[ModelPiece]:
    return [piece async for piece in provider.stream(request)]


async def test_an_answer_is_streamed_piece_by_piece(models: AwsService) -> None:
    assert await pieces(provider(models)) == [
        ModelText("At "),
        ModelText("noon."),
        ModelEnd("end_turn", 11, 7, MODEL),
    ]


def test_a_whole_answer_equals_the_streamed_one(models: AwsService) -> None:
    response = provider(models).generate(REQUEST)

    assert (response.content, response.end) == ("At noon.", ModelEnd("end_turn", 11, 7, MODEL))


def test_the_model_gets_the_conversation_and_the_settings(models: AwsService) -> None:
    messages = [ModelMessage.user("Hello"), ModelMessage.assistant("Hi."), ModelMessage.user("When?")]

    provider(models, temperature=0.0, guardrail="abc123:1").generate(
        ModelRequest(messages, "Be brief.", 50, top_p=0.5, stop_sequences=("END",))
    )

    assert models.asked("ConverseStream") == [
        {
            "modelId": MODEL,
            "messages": [
                {"role": "user", "content": [{"text": "Hello"}]},
                {"role": "assistant", "content": [{"text": "Hi."}]},
                {"role": "user", "content": [{"text": "When?"}]},
            ],
            "system": [{"text": "Be brief."}],
            "inferenceConfig": {"maxTokens": 50, "temperature": 0.0, "topP": 0.5, "stopSequences": ["END"]},
            "guardrailConfig": {
                "guardrailIdentifier": "abc123",
                "guardrailVersion": "1",
                "streamProcessingMode": "sync",
            },
        }
    ]


@pytest.mark.parametrize("status", [302, 307, 308])
def test_a_redirect_of_the_models_service_is_not_followed(models: AwsService, status: int) -> None:
    with redirecting_server(models.client().meta.endpoint_url, status) as url:
        redirected = client("bedrock-runtime", url)

        with pytest.raises(errors.GenerationError):
            BedrockProvider(MODEL, client=redirected).generate(REQUEST)

    assert models.asked("ConverseStream") == []


def test_what_is_not_set_is_left_to_the_model(models: AwsService) -> None:
    provider(models).generate(ModelRequest([ModelMessage.user("When?")]))

    (asked,) = models.asked("ConverseStream")
    assert set(asked) == {"modelId", "messages", "inferenceConfig"}
    assert asked["inferenceConfig"] == {}


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("max_tokens", "max_tokens"),
        ("model_context_window_exceeded", "max_tokens"),
        ("guardrail_intervened", "guardrail_intervened"),
        ("content_filtered", "content_filtered"),
    ],
)
def test_the_reason_why_the_model_stopped_is_known(models: AwsService, reason: str, expected: str) -> None:
    models.program("ConverseStream", Stream((START, text("At"), stop(reason), USAGE)))

    assert provider(models).generate(REQUEST).end.stop_reason == expected


def test_tokens_are_estimated_if_the_service_does_not_count_them(models: AwsService) -> None:
    models.program("ConverseStream", Stream((START, text("At noon."), stop())))

    assert provider(models).generate(REQUEST).end == ModelEnd("end_turn", 6, 2, MODEL, estimated=True)


def test_a_local_bedrock_without_a_model_says_that_it_quotes(models: AwsService) -> None:
    models.program("ConverseStream", Stream(ANSWER.events, headers={"x-ragstack-generator": "extractive"}))

    assert provider(models).generate(REQUEST).end.quotes


@pytest.mark.parametrize("code", ["ThrottlingException", "ServiceUnavailableException", "ModelNotReadyException"])
def test_another_model_answers_if_the_first_is_busy(models: AwsService, code: str) -> None:
    models.program("ConverseStream", Fault(code), when=lambda asked: asked["modelId"] == MODEL)

    response = provider(models, fallback_model=FALLBACK).generate(REQUEST)

    assert (response.content, response.end.model) == ("At noon.", FALLBACK)
    assert [asked["modelId"] for asked in models.asked("ConverseStream")] == [MODEL, FALLBACK]


def test_another_model_answers_if_the_stream_starts_with_throttling(models: AwsService) -> None:
    models.program("ConverseStream", Stream((START, THROTTLED)), ANSWER)

    assert provider(models, fallback_model=FALLBACK).generate(REQUEST).end.model == FALLBACK


@pytest.mark.usefixtures("no_delays")
def test_without_another_model_a_throttled_one_is_called_again(models: AwsService) -> None:
    models.program("ConverseStream", THROTTLED, Dropped, ANSWER)

    assert provider(models).generate(REQUEST).content == "At noon."


@pytest.mark.usefixtures("no_delays")
async def test_a_model_that_stays_busy_is_an_error(models: AwsService) -> None:
    models.program("ConverseStream", THROTTLED)

    with pytest.raises(errors.ModelThrottledError, match="ANSWER_FALLBACK_MODEL"):
        await pieces(provider(models))

    assert len(models.requests) == ATTEMPTS


async def test_a_stream_never_mixes_the_texts_of_two_attempts(models: AwsService) -> None:
    models.program("ConverseStream", Stream((START, text("At "), THROTTLED)), ANSWER)
    stream = provider(models, fallback_model=FALLBACK).stream(REQUEST)

    assert await anext(stream) == ModelText("At ")
    with pytest.raises(errors.ModelThrottledError):
        await anext(stream)


@pytest.mark.parametrize(
    ("fault", "error", "advice"),
    [
        (Fault("AccessDeniedException"), errors.ModelAccessError, "also need an agreement"),
        (
            Fault(
                "ResourceNotFoundException",
                "Model use case details have not been submitted for this account. Fill out the Anthropic use case"
                " details form before using the model.",
            ),
            errors.ModelAccessError,
            "needs Anthropic's form",
        ),
        (
            Fault("ValidationException", "Invocation of model ID x with on-demand throughput is not supported."),
            errors.GenerationError,
            f"inference profile: set its id, such as us.{MODEL}",
        ),
        (
            Fault("ValidationException", "temperature is deprecated for this model."),
            errors.GenerationError,
            "set ANSWER_TEMPERATURE to model",
        ),
        (Fault("ValidationException", "Input is too long."), errors.GenerationError, "rejected.*Input is too long"),
        (Fault("ResourceNotFoundException", "No."), errors.GenerationError, "check ANSWER_MODEL"),
        (Fault("ModelErrorException", "Oops"), errors.GenerationError, "failed: Oops$"),
        (Fault("ModelTimeoutException", "Slow"), errors.GenerationTimeoutError, "raise ANSWER_TIMEOUT_SECONDS"),
        (Stream((START, Fault("ModelStreamErrorException", "Oops"))), errors.GenerationError, "failed: Oops$"),
        (Stream((START, text("At")), cut=True), errors.GenerationError, "middle of an answer"),
        (Stream((START, text("At"))), errors.GenerationError, "middle of an answer"),
        (Stream((START, stop("malformed_model_output"))), errors.GenerationError, "malformed_model_output"),
    ],
)
async def test_a_failure_says_what_to_do(models: AwsService, fault: Any, error: type[Exception], advice: str) -> None:
    models.program("ConverseStream", fault)

    with pytest.raises(error, match=advice):
        await pieces(provider(models))


async def test_a_service_that_is_not_there_is_an_error(models: AwsService) -> None:
    models.endpoint = "http://127.0.0.1:9"

    with pytest.raises(errors.GenerationError, match="cannot be reached"):
        await pieces(provider(models))


def test_an_error_of_the_client_is_not_blamed_on_the_network(models: AwsService) -> None:
    with pytest.raises(errors.GenerationError, match=r"rejected the request: .*maxTokens"):
        provider(models).generate(ModelRequest(REQUEST.messages, max_tokens=0))


@pytest.mark.parametrize(
    "hanging", [Late(ANSWER, until=threading.Event()), Stream((START, text("At "), threading.Event(), stop()))]
)
async def test_a_model_that_hangs_is_late_at_the_deadline(models: AwsService, hanging: Any) -> None:
    models.program("ConverseStream", hanging)
    started = time.monotonic()

    with pytest.raises(errors.GenerationTimeoutError):
        await pieces(provider(models, timeout_seconds=0.2))

    assert time.monotonic() - started < 1
    await in_thread(lambda: eventually(lambda: models.abandoned))


async def test_an_earlier_deadline_around_a_stream_counts(models: AwsService) -> None:
    models.program("ConverseStream", Late(ANSWER, until=threading.Event()))

    with inner_deadline(0.1), pytest.raises(errors.GenerationTimeoutError):
        await pieces(provider(models, timeout_seconds=60))


async def test_closing_a_stream_ends_the_call_while_the_model_writes(models: AwsService) -> None:
    models.program("ConverseStream", Stream((START, text("At "), threading.Event(), text("noon"))))

    async with aclosing(provider(models).stream(REQUEST)) as stream:
        assert await anext(stream) == ModelText("At ")

    await in_thread(lambda: eventually(lambda: models.abandoned))
    await in_thread(lambda: eventually(lambda: not model_threads()))


async def test_cancelling_a_stream_ends_the_call_before_the_model_writes(models: AwsService) -> None:
    models.program("ConverseStream", Late(ANSWER, until=threading.Event()))
    reading = asyncio.ensure_future(pieces(provider(models)))
    await in_thread(lambda: eventually(lambda: models.requests))

    reading.cancel()

    await in_thread(lambda: eventually(lambda: models.abandoned))
    await in_thread(lambda: eventually(lambda: not model_threads()))


async def test_a_throttled_call_is_not_retried_for_a_caller_that_has_left(
    models: AwsService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragstack_common.answers.models.bedrock.MAX_FIRST_DELAY_SECONDS", 3600.0)
    models.program("ConverseStream", THROTTLED)
    reading = asyncio.ensure_future(pieces(provider(models)))
    await in_thread(lambda: eventually(lambda: models.requests))

    reading.cancel()

    await in_thread(lambda: eventually(lambda: not model_threads()))
    assert len(models.requests) == 1


async def test_a_connection_is_used_again_after_a_whole_answer(models: AwsService) -> None:
    shared = provider(models)

    assert await pieces(shared) == await pieces(shared)


async def test_open_streams_leave_the_threads_of_searches_alone(models: AwsService) -> None:
    released = threading.Event()
    models.program("ConverseStream", Stream((START, text("At "), released, text("noon."), stop(), USAGE)))
    streams = [provider.stream(REQUEST) for provider in [provider(models)] * 200]
    assert [await anext(stream) for stream in streams] == [ModelText("At ")] * 200

    started = time.monotonic()
    assert await in_thread(lambda: "found") == "found"
    assert time.monotonic() - started < 1

    released.set()
    rest = await asyncio.gather(*[_rest(stream) for stream in streams])
    assert rest == [[ModelText("noon."), ModelEnd("end_turn", 11, 7, MODEL)]] * 200


async def _rest(stream: Any) -> list[ModelPiece]:
    return [piece async for piece in stream]


def model_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "ragstack-model"]
