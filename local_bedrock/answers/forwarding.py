"""Generate answers with a model on an OpenAI-compatible server, such as Ollama, vLLM or llama.cpp."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from functools import cached_property
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

from local_bedrock.answers.answers import End, Given, Settings, StopReason, Task, Text
from local_bedrock.http.abandonment import when_abandoned
from ragstack_common.answers.models import Allowance, estimated_tokens
from ragstack_common.core.deadline import begin
from ragstack_common.core.errors import GenerationError, ModelThrottledError

if TYPE_CHECKING:
    import httpx2
    from openai import AsyncOpenAI

CONNECT_TIMEOUT_SECONDS: Final = 5.0
READ_TIMEOUT_SECONDS: Final = 300.0
"""Between two pieces; the first takes long if the server must load its model."""

MOST_WAITING: Final = 16
"""Pieces that wait for their reader before the model is made to wait."""

WAITING_SECONDS: Final = 0.01
"""How long the model waits before the next look at the reader's queue."""

LONGEST_ANSWER_TOKENS: Final = 64_000
"""The maximum for a request without one, so that an endless answer ends."""

LONGEST_LINE: Final = 2**20
"""Bytes. A line has a piece of the answer, or all of it."""

LONGEST_DETAIL: Final = 300
"""Characters of an error message of the server that are passed on."""

_REASONS: Final[dict[str, StopReason]] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "content_filter": "content_filtered",
}


class ForwardingGenerator:
    """Forwards conversations, and streams the answers.

    Args:
        url: Base URL of the server with its version: ``http://localhost:11434/v1``.
        model: None for the first model that the server lists.
        api_key: The API key, if the server needs one.

    Raises:
        GenerationError: The URL is not valid.
    """

    def __init__(self, url: str, model: str | None = None, api_key: str | None = None) -> None:
        _check(url)
        self._url = url
        self._model = model
        self._api_key = api_key
        # Without user name and password.
        self._host = urlsplit(url).netloc.rpartition("@")[2]
        self._shown = urlsplit(url)._replace(netloc=self._host).geturl()

    @property
    def name(self) -> str:
        """The host, and the model once it is known."""
        return f"{self._model} at {self._host}" if self._model else self._host

    @property
    def description(self) -> str:
        """The model and the server."""
        return f"answers by {self._model or 'the first model'} of {self._shown}"

    def generate(self, task: Task, settings: Settings) -> Iterator[Given]:
        """Stream the model's answer.

        Raises:
            GenerationError: The server can't be reached, returns an error, or stops in the middle of an answer.
        """
        given: SimpleQueue[Given | Exception] = SimpleQueue()
        work = begin(self._answer(task, settings, given))
        when_abandoned(work.cancel)
        try:
            while not isinstance(piece := given.get(), End):
                if isinstance(piece, Exception):
                    raise piece
                yield piece
            yield piece
        finally:
            work.cancel()  # closes the connection, so that the server stops

    async def _answer(self, task: Task, settings: Settings, given: SimpleQueue[Given | Exception]) -> None:
        """Give the pieces of an answer, the last of which is its end or an error."""
        try:
            with self._explained():
                async for piece in self._pieces(task, settings):
                    given.put(piece)
                    while given.qsize() > MOST_WAITING:  # noqa: ASYNC110 - its reader is a thread
                        await asyncio.sleep(WAITING_SECONDS)
        except asyncio.CancelledError:
            given.put(GenerationError("The client has disconnected"))
            raise
        except Exception as error:  # noqa: BLE001 - it is raised where the answer is read
            given.put(error)

    async def _pieces(self, task: Task, settings: Settings) -> AsyncIterator[Given]:
        reason: StopReason | None = None
        usage, written = None, []
        allowance = Allowance(settings.max_tokens or LONGEST_ANSWER_TOKENS)
        async with await self._stream(task, settings) as chunks:
            async for chunk in chunks:
                usage = chunk.usage or usage
                if not chunk.choices:
                    continue
                choice = chunk.choices[0]
                # Some servers send no delta together with the finish reason.
                if choice.delta is not None and choice.delta.content:
                    written.append(allowance.take(choice.delta.content))
                    yield Text(written[-1])
                if allowance.is_used_up:
                    usage, reason = None, "max_tokens"
                    break
                reason = _REASONS.get(choice.finish_reason, "end_turn") if choice.finish_reason else reason
        if reason is None:
            raise GenerationError(f"The server at {self._shown} stopped in the middle of an answer: check its log")
        sent = "".join(turn.text for turn in task.turns)
        tokens = (usage.prompt_tokens, usage.completion_tokens) if usage is not None else (None, None)
        estimates = estimated_tokens(sent), estimated_tokens("".join(written))
        yield End(reason, *(counted or estimate for counted, estimate in zip(tokens, estimates, strict=True)))

    async def _stream(self, task: Task, settings: Settings) -> Any:
        optional: dict[str, Any] = {
            "max_tokens": settings.max_tokens,
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            "stop": list(settings.stop_sequences) or None,
        }
        messages: Any = [{"role": turn.role, "content": turn.text} for turn in task.turns]
        return await self._client.chat.completions.create(
            model=await self._chosen_model(),
            messages=messages,
            stream=True,
            stream_options={"include_usage": True},
            **{name: value for name, value in optional.items() if value is not None},
        )

    async def _chosen_model(self) -> str:
        if self._model is None:
            listed = [model.id async for model in self._client.models.list()]
            if not listed:
                raise GenerationError(f"The server at {self._shown} lists no model: load a model, or set --llm-model")
            self._model = listed[0]
        return self._model

    @cached_property
    def _client(self) -> "AsyncOpenAI":
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient, Timeout  # noqa: PLC0415 - slow, and needed by few

        return AsyncOpenAI(
            base_url=self._url,
            # For servers without keys, which must not get the environment's OPENAI_API_KEY.
            api_key=self._api_key or "none",
            max_retries=0,  # the caller's client retries
            timeout=Timeout(READ_TIMEOUT_SECONDS, connect=CONNECT_TIMEOUT_SECONDS),
            # A redirect would send the documents to a host that nobody chose.
            http_client=DefaultAsyncHttpxClient(follow_redirects=False, event_hooks={"response": [self._limit_lines]}),
        )

    async def _limit_lines(self, response: "httpx2.Response") -> None:
        """Read no line of any length: the package takes quadratic time for it, and as much memory."""
        import httpx2  # noqa: PLC0415

        received, shown = cast("httpx2.AsyncByteStream", response.stream), self._shown

        # A stream of its own: a response that refers to itself would be left to the garbage collector, which closes
        # its generators in any thread.
        class LimitedLines(httpx2.AsyncByteStream):
            async def __aiter__(self) -> AsyncIterator[bytes]:
                length = 0
                async for part in received:
                    length = (length if b"\n" not in part else 0) + len(part) - part.rfind(b"\n") - 1
                    if length > LONGEST_LINE:
                        raise GenerationError(
                            f"The server at {shown} sent a line of over {LONGEST_LINE:,} bytes: check that --llm-url"
                            " is the address of a language model"
                        )
                    yield part

            async def aclose(self) -> None:
                await received.aclose()

        response.stream = LimitedLines()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Convert the errors of the package to messages that say what to do."""
        import openai  # noqa: PLC0415

        try:
            yield
        except openai.RateLimitError as error:
            raise ModelThrottledError(f"The server at {self._shown} {self._problem(error)}") from error
        except openai.OpenAIError as error:
            raise GenerationError(f"The server at {self._shown} {self._problem(error)}") from error
        except (ValueError, AttributeError, TypeError) as error:
            # The package doesn't validate responses, and fails later.
            raise GenerationError(
                f"The server at {self._shown} is not OpenAI-compatible: check that --llm-url ends in /v1"
            ) from error

    def _problem(self, error: Exception) -> str:
        import openai  # noqa: PLC0415

        detail = " ".join(str(error).split())[:LONGEST_DETAIL]
        match error:
            case openai.APITimeoutError():
                return f"did not answer within {READ_TIMEOUT_SECONDS:g} seconds: check its log"
            case openai.APIConnectionError():
                return "cannot be reached: start it, or restart the stack with another --llm-url"
            case openai.AuthenticationError() | openai.PermissionDeniedError():
                return f"rejected the API key ({error.status_code}): set RAGSTACK_LLM_API_KEY"
            case openai.NotFoundError():
                return (
                    f"has no model {self._model} or no such path ({detail}): check --llm-model, and that --llm-url"
                    " ends in /v1"
                )
            case openai.APIStatusError() if error.response.is_redirect:
                return "redirects to another address, which is not followed: set --llm-url to the address that answers"
            case openai.APIStatusError():
                return f"answered {error.status_code}: {detail}"
        return f"failed: {detail}"


def _check(url: str) -> None:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        usable = False
    if not usable:
        raise GenerationError(f"--llm-url {url} is not a URL: write, for example, http://localhost:11434/v1")
