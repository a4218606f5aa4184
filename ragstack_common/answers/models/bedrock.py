"""Answers by models of Amazon Bedrock, through ConverseStream."""

import asyncio
import random
import threading
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import closing, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import urllib3
from botocore.eventstream import ParserError
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionClosedError,
    ConnectionError,  # noqa: A004 - its name in botocore
    HTTPClientError,
    ParamValidationError,
    ReadTimeoutError,
)

from ragstack_common.answers.models.protocol import (
    ModelEnd,
    ModelPiece,
    ModelRequest,
    ModelResponse,
    ModelText,
    StopReason,
    collected,
    estimated_tokens,
)
from ragstack_common.core.clients import model_client
from ragstack_common.core.deadline import seconds_left, wait_for
from ragstack_common.core.errors import (
    ConfigurationError,
    GenerationError,
    GenerationTimeoutError,
    ModelAccessError,
    ModelThrottledError,
    RagStackError,
)
from ragstack_common.core.interruptible import InterruptibleCall, make_interruptible
from ragstack_common.settings.names import GENERATOR_HEADER, QUOTING_GENERATOR

if TYPE_CHECKING:
    from mypy_boto3_bedrock_runtime import BedrockRuntimeClient

ATTEMPTS: Final = 3
LONGEST_FIRST_DELAY_SECONDS: Final = 1.0
"""Delay before the first retry with the same model; it doubles."""

DEFAULT_TIMEOUT_SECONDS: Final = 60.0

MAX_WAITING: Final = 16
"""Pieces of an answer between the thread that receives them and their reader."""

_BUSY: Final = frozenset({"ThrottlingException", "ServiceUnavailableException", "ModelNotReadyException"})
"""Errors after which another attempt or another model may succeed. Source: bedrock-runtime, ConverseStream."""

_STOP_REASONS: Final[Mapping[str, StopReason]] = {
    "end_turn": "end_turn",
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "max_tokens",
    "stop_sequence": "stop_sequence",
    "guardrail_intervened": "guardrail_intervened",
    "content_filtered": "content_filtered",
}

_FAILURES: Final = (ClientError, BotoCoreError, urllib3.exceptions.HTTPError, ParserError)
"""What boto3 raises. Inside of a stream, it lets errors of urllib3 through."""


class BedrockProvider:
    """Calls a model, and another one if the first is throttled.

    Each stream has a thread of its own, because boto3 blocks; it ends with the stream. Streams thus never take the
    threads of searches. 200 open streams cost 13 MB, and no processor time while they wait.

    Args:
        model: A model id, or the id or ARN of an inference profile.
        fallback_model: Answers if the model is throttled or unavailable before its first piece of text.
        temperature: For requests without one. None leaves it to the model; some models accept none.
        guardrail: ``ID:VERSION`` of a guardrail.
        timeout_seconds: Deadline of an answer.
        client: A boto3 client of bedrock-runtime.
    """

    name = "bedrock"
    quotes = False

    def __init__(
        self,
        model: str,
        *,
        fallback_model: str | None = None,
        temperature: float | None = None,
        guardrail: str | None = None,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
        client: "BedrockRuntimeClient | None" = None,
    ) -> None:
        self.model = model
        self._models = [model, *[fallback_model or model] * (ATTEMPTS - 1)]
        self._temperature = temperature
        self._guardrail = guardrail
        self._timeout_seconds = timeout_seconds
        self._given_client = client

    def generate(self, request: ModelRequest) -> ModelResponse:
        """Return a whole answer.

        Raises:
            GenerationError: No answer could be generated.
        """
        return wait_for(collected(self.stream(request)))

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelPiece, None]:
        """Yield an answer piece by piece. Closing the iterator closes the connection to Bedrock.

        Raises:
            GenerationTimeoutError: The deadline has passed.
            GenerationError: No answer could be generated.
        """
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + seconds_left(self._timeout_seconds)
        given: asyncio.Queue[ModelPiece | Exception] = asyncio.Queue()
        room = threading.Semaphore(MAX_WAITING)
        call = InterruptibleCall()

        def work() -> None:
            with suppress(RuntimeError):  # the event loop has ended
                try:
                    for piece in self._pieces(request, call):
                        room.acquire()  # the model waits for a slow reader
                        if call.ended.is_set():
                            return
                        loop.call_soon_threadsafe(given.put_nowait, piece)
                except Exception as error:  # noqa: BLE001 - it is raised where the stream is read
                    loop.call_soon_threadsafe(given.put_nowait, error)

        threading.Thread(target=work, name="ragstack-model", daemon=True).start()
        try:
            while True:
                try:
                    async with asyncio.timeout_at(ends_at):
                        piece = await given.get()
                    room.release()
                    is_late = loop.time() >= ends_at  # what is there at once never times out
                except TimeoutError:
                    is_late = True
                if is_late:
                    kind, text = _LATE
                    raise kind(text.format(model=self.model))
                if isinstance(piece, Exception):
                    raise piece
                yield piece
                if isinstance(piece, ModelEnd):
                    return
        finally:
            call.end()
            room.release()

    @cached_property
    def _client(self) -> "BedrockRuntimeClient":
        client = self._given_client or model_client(self._timeout_seconds)
        make_interruptible(client)
        return client

    def _pieces(self, request: ModelRequest, call: InterruptibleCall) -> Iterator[ModelPiece]:
        for attempt, model in enumerate(self._models):
            begun = False
            try:
                for piece in self._answer(model, request, call):
                    begun = True
                    yield piece
            except _FAILURES as error:
                if begun or attempt + 1 == len(self._models) or not _may_succeed_later(error):
                    raise _explained(error, model) from error
                longest = LONGEST_FIRST_DELAY_SECONDS * 2**attempt if self._models[attempt + 1] == model else 0
                if call.ended.wait(random.uniform(longest / 2, longest)):  # noqa: S311
                    return
            else:
                return

    def _answer(self, model: str, request: ModelRequest, call: InterruptibleCall) -> Iterator[ModelPiece]:
        written, reason, usage = [], None, None
        with call:
            answer: Any = self._client.converse_stream(**self._parameters(model, request))
            quoting = answer["ResponseMetadata"]["HTTPHeaders"].get(GENERATOR_HEADER) == QUOTING_GENERATOR
            with closing(answer["stream"]) as events:
                for event in events:
                    match event:
                        case {"contentBlockDelta": {"delta": {"text": text}}} if text:
                            written.append(text)
                            yield ModelText(text)
                        case {"messageStop": {"stopReason": reason}}:
                            pass
                        case {"metadata": {"usage": usage}}:
                            pass
        if reason is None:
            raise GenerationError(f"The model {model} stopped in the middle of an answer: try again")
        if reason not in _STOP_REASONS:
            raise GenerationError(f"The model {model} stopped with {reason}: try again, or choose another model")
        if usage is None:
            sent = [request.system_prompt, *(message.content for message in request.messages)]
            tokens = sum(map(estimated_tokens, sent)), estimated_tokens("".join(written))
        else:
            tokens = usage["inputTokens"], usage["outputTokens"]
        yield ModelEnd(_STOP_REASONS[reason], *tokens, model, estimated=usage is None or quoting, quotes=quoting)

    def _parameters(self, model: str, request: ModelRequest) -> dict[str, Any]:
        inference = {
            "maxTokens": request.max_tokens,
            "temperature": self._temperature if request.temperature is None else request.temperature,
            "topP": request.top_p,
            "stopSequences": list(request.stop_sequences) or None,
        }
        parameters: dict[str, Any] = {
            "modelId": model,
            "messages": [
                {"role": message.role, "content": [{"text": message.content}]} for message in request.messages
            ],
            "inferenceConfig": {name: value for name, value in inference.items() if value is not None},
        }
        if request.system_prompt.strip():
            parameters["system"] = [{"text": request.system_prompt}]
        if self._guardrail is not None:
            guardrail, _, version = self._guardrail.rpartition(":")
            # In the mode "async", text would be sent before the guardrail has checked it.
            parameters["guardrailConfig"] = {
                "guardrailIdentifier": guardrail,
                "guardrailVersion": version,
                "streamProcessingMode": "sync",
            }
        return parameters


def _code(error: Exception) -> str:
    code = str(error.response.get("Error", {}).get("Code", "")) if isinstance(error, ClientError) else ""
    return code[:1].upper() + code[1:]  # events of a stream begin with a lower-case letter


def _may_succeed_later(error: Exception) -> bool:
    # A pooled connection may have been closed by the server.
    return _code(error) in _BUSY or isinstance(error, ConnectionClosedError)


_LATE: Final = (
    GenerationTimeoutError,
    (
        "The model {model} did not finish its answer before the deadline: raise ANSWER_TIMEOUT_SECONDS, or choose a"
        " faster model"
    ),
)
_BUSY_NOW: Final = (
    ModelThrottledError,
    (
        "The model {model} takes no more requests now ({code}): try again later, set ANSWER_FALLBACK_MODEL, or ask for"
        " a higher quota"
    ),
)
_LOST: Final = GenerationError, "The connection to the model {model} was lost in the middle of an answer: try again"
_REJECTED: Final = GenerationError, "The model {model} rejected the request: {message}"
_FAILED: Final = GenerationError, "The model {model} failed ({message}): try again"
_MODEL_ERROR: Final = GenerationError, "The model {model} failed: {message}"
"""The message says what happened to the model; the same request often fails again."""
_UNREACHABLE: Final = (
    GenerationError,
    "Amazon Bedrock cannot be reached ({message}): check the endpoint and the network",
)
_NOT_CALLED: Final = (
    ConfigurationError,
    "Amazon Bedrock cannot be called ({message}): configure AWS credentials and a Region",
)

_MEANINGS: Final[Mapping[str, tuple[type[RagStackError], str]]] = {
    "AccessDeniedException": (
        ModelAccessError,
        (
            "No access to the model {model}: enable access to it in the Bedrock console, and allow"
            " bedrock:InvokeModelWithResponseStream to the process's role"
        ),
    ),
    **dict.fromkeys(_BUSY, _BUSY_NOW),
    "ServiceQuotaExceededException": _BUSY_NOW,
    "ModelErrorException": _MODEL_ERROR,
    "ModelStreamErrorException": _MODEL_ERROR,
    "ModelTimeoutException": _LATE,
    "ResourceNotFoundException": (
        GenerationError,
        "The Region has no model {model} ({message}): check ANSWER_MODEL",
    ),
}
_REJECTIONS: Final[Mapping[str, str]] = {
    "on-demand throughput": "The model {model} can only be called through an inference profile: set its id, such as"
    " us.{model} or global.{model}",
    "temperature": "The model {model} rejected the temperature ({message}): set ANSWER_TEMPERATURE to model",
}
"""What parts of the message of a ValidationException mean."""


def _meaning(error: Exception, code: str, message: str) -> tuple[type[RagStackError], str]:
    if isinstance(error, ClientError):
        if code == "ValidationException":
            return GenerationError, next((_REJECTIONS[part] for part in _REJECTIONS if part in message), _REJECTED[1])
        return _MEANINGS.get(code, _FAILED)
    if isinstance(error, ParamValidationError):
        return _REJECTED
    if isinstance(error, ReadTimeoutError | urllib3.exceptions.ReadTimeoutError):
        return _LATE
    if isinstance(error, urllib3.exceptions.HTTPError | ParserError):
        return _LOST
    return _UNREACHABLE if isinstance(error, HTTPClientError | ConnectionError) else _NOT_CALLED


def _explained(error: Exception, model: str) -> RagStackError:
    """Convert an error of boto3 to one that says what to do."""
    details = error.response.get("Error", {}) if isinstance(error, ClientError) else {}
    message = " ".join(str(details.get("Message") or error).split())
    code = _code(error)
    kind, text = _meaning(error, code, message)
    return kind(text.format(model=model, code=code, message=message))
