"""The provider for OpenAI-compatible servers, with a small server of the tests' own."""

import asyncio
import gc
import threading
from contextlib import aclosing, suppress
from types import AsyncGeneratorType
from typing import Any

import pytest

from ragstack_common.answers.models.openai import OpenAIProvider
from ragstack_common.answers.models.protocol import (
    MAX_BYTES_PER_TOKEN,
    ModelEnd,
    ModelMessage,
    ModelRequest,
    ModelText,
)
from ragstack_common.core.deadline import in_thread, inner_deadline
from ragstack_common.core.errors import GenerationError, GenerationTimeoutError, ModelThrottledError
from tests.support.language_model import MODEL, LanguageModel
from tests.support.redirecting_server import redirecting_server
from tests.support.waiting import eventually

REQUEST = ModelRequest([ModelMessage.user("Who?")])


@pytest.fixture
def provider(model: LanguageModel) -> OpenAIProvider:
    model.says()
    return OpenAIProvider(model.url)


def test_a_conversation_is_sent_with_its_settings(model: LanguageModel) -> None:
    model.says(pieces=("Herons", " eat fish."))
    turns = [ModelMessage.user("Hello"), ModelMessage.assistant("Hi."), ModelMessage.user("What do they eat?")]
    settings: dict[str, Any] = {"max_tokens": 9, "temperature": 0.25, "top_p": 0.5, "stop_sequences": ("END",)}

    answer = OpenAIProvider(model.url, "large", "k").generate(ModelRequest(turns, "Be brief.", **settings))

    sent = model.asked[-1]
    assert answer.content == "Herons eat fish."
    assert answer.end == ModelEnd("end_turn", 11, 7, "large")
    assert [message["role"] for message in sent["messages"]] == ["system", "user", "assistant", "user"]
    assert [sent["messages"][0]["content"], sent["messages"][3]["content"]] == ["Be brief.", "What do they eat?"]
    assert (sent["model"], sent["max_tokens"], sent["temperature"], sent["top_p"]) == ("large", 9, 0.25, 0.5)
    assert (sent["stop"], model.keys[-1]) == (["END"], "Bearer k")


def test_without_a_model_the_first_one_answers(provider: OpenAIProvider, model: LanguageModel) -> None:
    before = provider.model

    end = provider.generate(REQUEST).end

    assert before == f"the first model of {model.url}"
    assert provider.description == f"{MODEL} of {model.url}"
    assert end.model == provider.model == model.asked[-1]["model"] == MODEL
    assert not {"temperature", "max_tokens", "stop"} & model.asked[-1].keys()


@pytest.mark.parametrize(
    "says",
    [{"pieces": ("Herons", " eat fish.") * 9}, {"failure_after": "out of memory"}, {"raw": b"data: {nonsense\n\n"}],
    ids=["enough", "failure", "nonsense"],
)
def test_an_answer_that_ends_early_leaves_no_open_iterator(
    provider: OpenAIProvider, model: LanguageModel, says: dict[str, Any]
) -> None:
    model.says(**says)
    gc.disable()  # it would close them, in any thread
    try:
        with suppress(GenerationError):
            provider.generate(ModelRequest(REQUEST.messages, max_tokens=1))
        iterators = [each for each in gc.get_objects() if type(each) is AsyncGeneratorType]
    finally:
        gc.enable()

    suspended = {each.ag_code.co_name for each in iterators if each.ag_frame is not None}
    assert not suspended & {"_iter_events", "aiter_bytes", "aiter_raw"}


@pytest.mark.parametrize(
    ("finish_reason", "stop_reason"),
    [("stop", "end_turn"), ("length", "max_tokens"), ("content_filter", "content_filtered")],
)
def test_the_finish_reason_is_converted(
    provider: OpenAIProvider, model: LanguageModel, finish_reason: str, stop_reason: str
) -> None:
    model.says(finish_reason=finish_reason, usage=None)

    end = provider.generate(REQUEST).end

    assert end == ModelEnd(stop_reason, 1, 4, MODEL, estimated=True)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("says", "message"),
    [
        ({"failure": (500, "no memory left")}, "answered 500: .*no memory left"),
        ({"failure": (401, "who are you")}, "rejected the API key .*RAGSTACK_LLM_API_KEY, and restart the stack$"),
        ({"failure": (404, "no such model")}, f"has no model {MODEL}.*--llm-model"),
        ({"failure_after": "out of memory"}, "out of memory"),
        ({"models": ()}, "lists no model: load a model"),
        ({"pieces": (), "finish_reason": None}, "stopped in the middle"),
        ({"raw": b"<html></html>"}, "stopped in the middle"),
        ({"raw": b"data: {nonsense\n\n"}, "not OpenAI-compatible: check that --llm-url ends in /v1"),
        ({"raw": b'data: {"choices": 5}\n\n'}, "not OpenAI-compatible"),
        ({"raw": b'data: {"choices": [{}]}\n\n'}, "not OpenAI-compatible|stopped in the middle"),
        ({"raw": b"data: " + b"x" * 3_000_000}, "a line of over 1,048,576 bytes: check that --llm-url"),
    ],
)
def test_a_failure_says_what_to_do(
    provider: OpenAIProvider, model: LanguageModel, says: dict[str, Any], message: str
) -> None:
    model.says(**says)

    with pytest.raises(GenerationError, match=message) as caught:
        provider.generate(REQUEST)

    assert model.url in str(caught.value)


def test_too_many_requests_are_throttling(provider: OpenAIProvider, model: LanguageModel) -> None:
    model.says(failure=(429, "slow down"))

    with pytest.raises(ModelThrottledError, match="slow down"):
        provider.generate(REQUEST)


def test_a_transient_error_is_retried_if_requested(model: LanguageModel) -> None:
    model.says(failure=(503, "loading"))
    before = len(model.asked)

    with pytest.raises(GenerationError, match="loading"):
        OpenAIProvider(model.url, MODEL, retries=1).generate(REQUEST)

    assert len(model.asked) - before == 2


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("name", [MODEL, None])
def test_a_redirect_is_not_followed(model: LanguageModel, status: int, name: str | None) -> None:
    model.says()
    before = len(model.asked)

    with redirecting_server(model.url.removesuffix("/v1"), status) as url:
        provider = OpenAIProvider(f"{url}/v1", name)
        with pytest.raises(GenerationError, match="redirects to another address, which is not followed: set --llm-url"):
            provider.generate(REQUEST)

    assert len(model.asked) == before


@pytest.mark.parametrize("url", ["localhost:11434", "not a url", "ftp://x/v1", "http://", "http://[::1"])
def test_an_invalid_url_is_rejected(url: str) -> None:
    with pytest.raises(GenerationError, match="is not a URL: write, for example, http://"):
        OpenAIProvider(url)


@pytest.mark.parametrize(("url", "key"), [("http://gpu.example/v1", "sk-1"), ("http://me:secret@gpu.example/v1", None)])
def test_a_key_is_not_sent_unencrypted_to_another_machine(url: str, key: str | None) -> None:
    with pytest.raises(GenerationError, match=r"^http://gpu.example/v1 is not encrypted, so no API key is sent to it"):
        OpenAIProvider(url, "llama", key)

    OpenAIProvider("http://gpu.example/v1", "llama")


def test_a_password_in_the_url_is_never_shown() -> None:
    provider = OpenAIProvider("http://me:secret@127.0.0.1:1/v1")

    with pytest.raises(GenerationError, match="cannot be reached: start it") as caught:
        provider.generate(REQUEST)

    for shown in (str(caught.value), provider.model, provider.url):
        assert "127.0.0.1:1" in shown
        assert "secret" not in shown


def test_an_endless_answer_is_stopped(provider: OpenAIProvider, model: LanguageModel) -> None:
    model.abandoned.clear()
    model.says(pieces=("Word. ",) * 100_000, usage=None)

    answer = provider.generate(ModelRequest(REQUEST.messages, max_tokens=50))

    assert (answer.end.stop_reason, len(answer.content)) == ("max_tokens", 50 * MAX_BYTES_PER_TOKEN + 1)
    eventually(model.abandoned.is_set)


async def test_closing_a_stream_ends_the_call(provider: OpenAIProvider, model: LanguageModel) -> None:
    model.abandoned.clear()
    model.says(pieces=("Word.", " More."), held=threading.Event())

    async with aclosing(provider.stream(REQUEST)) as stream:
        assert await anext(stream) == ModelText("Word.")

    await in_thread(lambda: eventually(model.abandoned.is_set))


async def test_cancelling_a_stream_ends_the_call(provider: OpenAIProvider, model: LanguageModel) -> None:
    model.abandoned.clear()
    model.asked.clear()
    model.says(thinking=threading.Event())
    first = asyncio.ensure_future(anext(provider.stream(REQUEST)))
    await in_thread(lambda: eventually(lambda: model.asked))

    first.cancel()

    await in_thread(lambda: eventually(model.abandoned.is_set))


async def test_the_deadline_ends_the_call(provider: OpenAIProvider, model: LanguageModel) -> None:
    model.abandoned.clear()
    model.says(thinking=threading.Event())

    with inner_deadline(0.5), pytest.raises(GenerationTimeoutError):
        await anext(provider.stream(REQUEST))

    await in_thread(lambda: eventually(model.abandoned.is_set))
