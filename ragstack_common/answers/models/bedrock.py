"""Answers by models of Amazon Bedrock, through ConverseStream."""

import asyncio
import random
import threading
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final

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
    ModelText,
    StopReason,
    StreamingProvider,
    estimated_tokens,
)
from ragstack_common.core.clients import model_client
from ragstack_common.core.deadline import seconds_left
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
MAX_FIRST_DELAY_SECONDS: Final = 1.0
"""Maximum delay before the first retry with the same model; it doubles."""

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


@dataclass(eq=False)
class BedrockProvider(StreamingProvider):
    """Calls a model, and another one if the first is throttled.

    Each stream has a thread of its own, because boto3 blocks; it ends with the stream. Streams thus never take the
    threads of searches. 200 open streams cost 13 MB, and no processor time while they wait.

    Attributes:
        model: A model id, or the id or ARN of an inference profile.
        fallback_model: Answers if the model is throttled or unavailable before its first piece of text.
        temperature: For requests without one. None leaves it to the model; some models reject any.
        guardrail: ``ID:VERSION`` of a guardrail.
        timeout_seconds: Deadline of an answer.
        client: A boto3 client of bedrock-runtime.
    """

    name: ClassVar = "bedrock"

    model: str
    _: KW_ONLY
    fallback_model: str | None = None
    temperature: float | None = None
    guardrail: str | None = None
    timeout_seconds: float = 60.0
    client: "BedrockRuntimeClient | None" = None

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelPiece, None]:
        """Yield an answer piece by piece. Closing the iterator closes the connection to Bedrock.

        Raises:
            GenerationTimeoutError: The deadline has passed.
            GenerationError: No answer could be generated.
        """
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + seconds_left(self.timeout_seconds)
        received: asyncio.Queue[ModelPiece | Exception] = asyncio.Queue()
        room = threading.Semaphore(MAX_WAITING)
        call = InterruptibleCall()

        def work() -> None:
            with suppress(RuntimeError):  # the event loop has ended
                try:
                    for piece in self._pieces(request, call):
                        room.acquire()  # the model waits for a slow reader
                        if call.ended.is_set():
                            return
                        loop.call_soon_threadsafe(received.put_nowait, piece)
                except Exception as error:  # noqa: BLE001 - it is raised where the stream is read
                    loop.call_soon_threadsafe(received.put_nowait, error)

        threading.Thread(target=work, name="ragstack-model", daemon=True).start()
        try:
            while True:
                try:
                    async with asyncio.timeout_at(ends_at):
                        piece = await received.get()
                    room.release()
                    is_late = loop.time() >= ends_at  # a piece that is available at once never times out
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
        client = self.client or model_client(self.timeout_seconds)
        make_interruptible(client)
        return client

    def _pieces(self, request: ModelRequest, call: InterruptibleCall) -> Iterator[ModelPiece]:
        models = [self.model, *[self.fallback_model or self.model] * (ATTEMPTS - 1)]
        for attempt, model in enumerate(models):
            begun = False
            try:
                for piece in self._answer(model, request, call):
                    begun = True
                    yield piece
            except _FAILURES as error:
                # A pooled connection may have been closed by the server.
                may_succeed_later = _code(error) in _BUSY or isinstance(error, ConnectionClosedError)
                if begun or attempt + 1 == ATTEMPTS or not may_succeed_later:
                    raise _explained(error, model) from error
                longest = MAX_FIRST_DELAY_SECONDS * 2**attempt if models[attempt + 1] == model else 0
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
            tokens = request.estimated_tokens, estimated_tokens("".join(written))
        else:
            tokens = usage["inputTokens"], usage["outputTokens"]
        yield ModelEnd(_STOP_REASONS[reason], *tokens, model, estimated=usage is None or quoting, quotes=quoting)

    def _parameters(self, model: str, request: ModelRequest) -> dict[str, Any]:
        inference = {
            "maxTokens": request.max_tokens,
            "temperature": self.temperature if request.temperature is None else request.temperature,
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
        if self.guardrail is not None:
            guardrail, _, version = self.guardrail.rpartition(":")
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


_LATE: Final = (
    GenerationTimeoutError,
    (
        "The model {model} did not finish its answer before the deadline: raise ANSWER_TIMEOUT_SECONDS, or choose a"
        " faster model"
    ),
)
_REJECTED: Final = "The model {model} rejected the request: {message}"

_MEANINGS: Final[Mapping[str, tuple[type[RagStackError], str]]] = {
    "AccessDeniedException": (
        ModelAccessError,
        (
            "No access to the model {model}: allow bedrock:InvokeModelWithResponseStream to the process's role; models"
            " of AWS Marketplace also need an agreement, which `ragstack doctor --aws` checks"
        ),
    ),
    **dict.fromkeys(
        [*_BUSY, "ServiceQuotaExceededException"],
        (
            ModelThrottledError,
            "The model {model} is busy ({code}): try again later, set ANSWER_FALLBACK_MODEL, or request a higher quota",
        ),
    ),
    # The same request often fails again.
    **dict.fromkeys(
        ["ModelErrorException", "ModelStreamErrorException"],
        (GenerationError, "The model {model} failed: {message}"),
    ),
    "ModelTimeoutException": _LATE,
    "ResourceNotFoundException": (
        GenerationError,
        "The Region has no model {model} ({message}): check ANSWER_MODEL",
    ),
}
_WITHOUT_FORM: Final = (
    ModelAccessError,
    (
        "The model {model} needs Anthropic's form about the use case, once for the account: submit it in the model"
        " catalog of the Bedrock console, and wait 15 minutes"
    ),
)
_REJECTIONS: Final[Mapping[str, str]] = {
    "on-demand throughput": "The model {model} can only be called through an inference profile: set its id, such as"
    " us.{model} or global.{model}",
    "temperature": "The model {model} rejected the temperature ({message}): set ANSWER_TEMPERATURE to model",
}
"""What parts of the message of a ValidationException mean."""


def _meaning(error: Exception, code: str, message: str) -> tuple[type[RagStackError], str]:
    if isinstance(error, ClientError):
        if code == "ValidationException":
            return GenerationError, next((_REJECTIONS[part] for part in _REJECTIONS if part in message), _REJECTED)
        if code == "ResourceNotFoundException" and "use case details" in message:
            return _WITHOUT_FORM
        return _MEANINGS.get(code, (GenerationError, "The model {model} failed ({message}): try again"))
    if isinstance(error, ParamValidationError):
        return GenerationError, _REJECTED
    if isinstance(error, ReadTimeoutError | urllib3.exceptions.ReadTimeoutError):
        return _LATE
    if isinstance(error, urllib3.exceptions.HTTPError | ParserError):
        return GenerationError, "The connection to the model {model} was lost in the middle of an answer: try again"
    if isinstance(error, HTTPClientError | ConnectionError):
        return GenerationError, "Amazon Bedrock cannot be reached ({message}): check the endpoint and the network"
    return ConfigurationError, "Amazon Bedrock cannot be called ({message}): configure AWS credentials and a Region"


def _explained(error: Exception, model: str) -> RagStackError:
    """Convert an error of boto3 to one that says what to do."""
    details = error.response.get("Error", {}) if isinstance(error, ClientError) else {}
    message = " ".join(str(details.get("Message") or error).split())
    code = _code(error)
    kind, text = _meaning(error, code, message)
    return kind(text.format(model=model, code=code, message=message))
