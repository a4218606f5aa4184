"""Answers by a model on an OpenAI-compatible server, such as Ollama, vLLM or llama.cpp."""

import asyncio
import math
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing, contextmanager
from functools import cached_property
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2
import openai
from pydantic_core import from_json

from ragstack_common.answers.models.protocol import (
    Allowance,
    ModelEnd,
    ModelPiece,
    ModelRequest,
    ModelText,
    StopReason,
    StreamingProvider,
    estimated_tokens,
)
from ragstack_common.core.addresses import keeps_secrets
from ragstack_common.core.deadline import seconds_left
from ragstack_common.core.errors import GenerationError, GenerationTimeoutError, ModelThrottledError

READ_TIMEOUT_SECONDS: Final = 300.0
"""Time between two pieces; the first takes long if the server must load its model."""

MAX_ANSWER_TOKENS: Final = 64_000
"""Maximum for requests without one, so that an endless answer ends."""

MAX_LINE_BYTES: Final = 2**20
"""Maximum length of a line, which has a piece of the answer or all of it."""

_REASONS: Final[dict[str, StopReason]] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "content_filter": "content_filtered",
}


class OpenAIProvider(StreamingProvider):
    """Sends conversations to a server, and streams its answers. Cancelling a stream closes its connection.

    Args:
        url: Base URL of the server with its version: ``http://localhost:11434/v1``.
        model: None for the first model that the server lists.
        api_key: The API key, if the server needs one.
        temperature: Temperature of requests without one; None leaves it to the model.
        retries: Retries after a transient error before the first piece.

    Attributes:
        url: The URL without user name and password.

    Raises:
        GenerationError: The URL is not valid, or a secret would be sent to it unencrypted.
    """

    name = "openai"

    def __init__(
        self,
        url: str,
        model: str | None = None,
        api_key: str | None = None,
        *,
        temperature: float | None = None,
        retries: int = 0,
    ) -> None:
        try:
            parts = urlsplit(url)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname)
        except ValueError:
            usable = False
        if not usable:
            raise GenerationError(f"--llm-url {url} is not a URL: write, for example, http://localhost:11434/v1")
        self.url = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
        if (api_key or parts.password) and not keeps_secrets(url):
            raise GenerationError(
                f"{self.url} is not encrypted, so no API key is sent to it: use https, or unset the key"
            )
        self._whole_url, self._api_key = url, api_key
        self._model, self._temperature, self._retries = model, temperature, retries

    @property
    def model(self) -> str:
        """The server's name of the model; until it is known, the description."""
        return self._model or self.description

    @property
    def description(self) -> str:
        """The model and the server."""
        return f"{self._model or 'the first model'} of {self.url}"

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelPiece, None]:
        """Yield an answer piece by piece.

        Raises:
            GenerationTimeoutError: The deadline around it has passed.
            GenerationError: The server can't be reached, returns an error, or stops in the middle of an answer.
        """
        seconds = seconds_left(math.inf)
        ends_at = None if seconds == math.inf else asyncio.get_running_loop().time() + seconds
        async with aclosing(self._pieces(request)) as pieces:
            while True:
                try:
                    with self._explained():
                        async with asyncio.timeout_at(ends_at):
                            piece = await anext(pieces)
                except TimeoutError as error:
                    raise GenerationTimeoutError(
                        f"The server at {self.url} did not finish its answer before the deadline: raise the deadline,"
                        " or choose a faster model"
                    ) from error
                yield piece
                if isinstance(piece, ModelEnd):
                    return

    async def _pieces(self, request: ModelRequest) -> AsyncGenerator[ModelPiece, None]:
        reason: StopReason | None = None
        usage: Mapping[str, int] | None = None
        written: list[str] = []
        allowance = Allowance(request.max_tokens or MAX_ANSWER_TOKENS)
        # The package's own iterators leave those that they read from to the garbage collector, which closes them in
        # any thread, at times while the event loop closes them too.
        async with (
            self._client() as client,
            await self._answer(client, request) as stream,
            aclosing(stream.response.aiter_bytes()) as parts,
            aclosing(self._chunks(parts)) as chunks,
        ):
            async for chunk in chunks:
                usage = chunk.get("usage") or usage
                if not chunk.get("choices"):
                    continue
                choice = chunk["choices"][0]
                # Some servers send no delta together with the finish reason.
                if content := (choice.get("delta") or {}).get("content"):
                    written.append(allowance.take(content))
                    yield ModelText(written[-1])
                if allowance.is_used_up:
                    usage, reason = None, "max_tokens"
                    break
                if finish_reason := choice.get("finish_reason"):
                    reason = _REASONS.get(finish_reason, "end_turn")
        if reason is None:
            raise GenerationError(f"The server at {self.url} stopped in the middle of an answer: check its log")
        yield ModelEnd(
            reason,
            (usage and usage.get("prompt_tokens")) or request.estimated_tokens,
            (usage and usage.get("completion_tokens")) or estimated_tokens("".join(written)),
            self.model,
            estimated=usage is None,
        )

    async def _chunks(self, parts: AsyncIterator[bytes]) -> AsyncGenerator[dict[str, Any], None]:
        """Yield the objects of a stream; the package would read a line of any length, in quadratic time."""
        rest = b""
        async for part in parts:
            *lines, rest = (rest + part).split(b"\n")
            if max(map(len, [*lines, rest])) > MAX_LINE_BYTES:
                raise GenerationError(
                    f"The server at {self.url} sent a line of over {MAX_LINE_BYTES:,} bytes: check that --llm-url is"
                    " the address of a language model"
                )
            for line in lines:
                name, _, data = line.partition(b":")
                if name != b"data" or data.strip() == b"[DONE]":
                    continue
                chunk = from_json(data)
                if error := chunk.get("error"):
                    raise GenerationError(f"The server at {self.url} failed: {_message(error):.300}")
                yield chunk

    async def _answer(self, client: openai.AsyncOpenAI, request: ModelRequest) -> Any:
        system = [{"role": "system", "content": request.system_prompt}] if request.system_prompt else []
        messages: Any = [*system, *(vars(message) for message in request.messages)]
        optional: dict[str, Any] = {
            "max_tokens": request.max_tokens,
            "temperature": self._temperature if request.temperature is None else request.temperature,
            "top_p": request.top_p,
            "stop": list(request.stop_sequences) or None,
        }
        if self._model is None:
            models = (await client.models.list()).data
            if not models:
                raise GenerationError(f"The server at {self.url} lists no model: load a model, or set --llm-model")
            self._model = models[0].id
        return await client.chat.completions.create(
            model=self._model,
            messages=messages,
            stream=True,
            stream_options={"include_usage": True},
            **{name: value for name, value in optional.items() if value is not None},
        )

    def _client(self) -> openai.AsyncOpenAI:
        """Return a client of one request: a connection belongs to the event loop that opened it."""
        return openai.AsyncOpenAI(
            base_url=self._whole_url,
            # For servers without keys, which must not get the environment's OPENAI_API_KEY.
            api_key=self._api_key or "none",
            max_retries=self._retries,
            timeout=openai.Timeout(READ_TIMEOUT_SECONDS, connect=5.0),
            http_client=openai.DefaultAsyncHttpxClient(
                verify=self._certificates,
                # A redirect would send the documents to a host that nobody chose.
                follow_redirects=False,
            ),
        )

    @cached_property
    def _certificates(self) -> Any:
        return httpx2.create_ssl_context()  # takes 60 ms

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Convert the errors of the package to messages that say what to do."""
        try:
            yield
        except openai.RateLimitError as error:
            raise ModelThrottledError(f"The server at {self.url} {self._problem(error)}") from error
        except openai.OpenAIError as error:
            raise GenerationError(f"The server at {self.url} {self._problem(error)}") from error
        except (ValueError, AttributeError, TypeError) as error:
            # The package doesn't validate responses, and fails later.
            raise GenerationError(
                f"The server at {self.url} is not OpenAI-compatible: check that --llm-url ends in /v1"
            ) from error

    def _problem(self, error: Exception) -> str:
        detail = " ".join(str(error).split())[:300]
        match error:
            case openai.APITimeoutError():
                return f"did not answer within {READ_TIMEOUT_SECONDS:g} seconds: check its log"
            case openai.APIConnectionError():
                return "cannot be reached: start it, or restart the stack with another --llm-url"
            case openai.AuthenticationError() | openai.PermissionDeniedError():
                return f"rejected the API key ({error.status_code}): set RAGSTACK_LLM_API_KEY, and restart the stack"
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


def _message(error: Any) -> str:
    return " ".join(str(error.get("message", error) if isinstance(error, dict) else error).split())
