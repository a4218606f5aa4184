"""Converse and ConverseStream."""

from collections.abc import Iterator
from typing import Any, Final

from local_bedrock.faults import InvalidRequest, ModelError, ModelStreamError
from local_bedrock.generation.models import require_text_model
from local_bedrock.generation.types import End, GenerationError, Given, Text
from local_bedrock.operations.context import Answer, Context, Request
from local_bedrock.operations.conversation import task
from local_bedrock.operations.generate import refuse_optimized, settings
from local_bedrock.wire import HeadedAnswer

_NOT_HERE: Final = (
    "toolConfig",
    "guardrailConfig",
    "additionalModelRequestFields",
    "additionalModelResponseFieldPaths",
    "promptVariables",
    "outputConfig",
)


def converse(context: Context, request: Request) -> Answer:
    """Answer a conversation."""
    started = context.clock()
    text, end = "", None
    for piece in _answer(context, request):
        match piece:
            case Text(said):
                text += said
            case End():
                end = piece
    assert end is not None
    answer = {
        "output": {"message": {"role": "assistant", "content": [{"text": text}]}},
        "stopReason": end.reason,
        **_measured(end, context.clock() - started),
    }
    return HeadedAnswer(answer, context.answering.headers())


def converse_stream(context: Context, request: Request) -> Answer:
    """Answer a conversation while the answer is written."""
    return HeadedAnswer({"stream": _events(context, request)}, context.answering.headers())


def _events(context: Context, request: Request) -> Iterator[Answer]:
    started = context.clock()
    pieces = _answer(context, request)
    # The first piece is waited for before anything is sent: what fails until then is an ordinary error.
    piece = next(pieces)
    yield {"messageStart": {"role": "assistant"}}
    try:
        while True:
            match piece:
                case Text(said):
                    yield {"contentBlockDelta": {"delta": {"text": said}, "contentBlockIndex": 0}}
                case End():
                    yield {"contentBlockStop": {"contentBlockIndex": 0}}
                    yield {"messageStop": {"stopReason": piece.reason}}
                    yield {"metadata": _measured(piece, context.clock() - started)}
                    return
            piece = next(pieces)
    except ModelError as error:
        raise ModelStreamError(str(error)) from error


def _answer(context: Context, request: Request) -> Iterator[Given]:
    require_text_model(request["modelId"])
    for name in _NOT_HERE:
        if request.get(name):
            raise InvalidRequest(f"The local Bedrock has no {name}: leave it out")
    refuse_optimized(request)
    if request.get("serviceTier", {}).get("type", "default") != "default":
        raise InvalidRequest("The local Bedrock has one serviceTier only: use default")
    asked = task(context, request)
    try:
        yield from context.answering.generator.generate(asked, settings(request.get("inferenceConfig", {})))
    except GenerationError as error:
        raise ModelError(str(error)) from error


def _measured(end: End, seconds: float) -> dict[str, Any]:
    usage = {
        "inputTokens": end.input_tokens,
        "outputTokens": end.output_tokens,
        "totalTokens": end.input_tokens + end.output_tokens,
    }
    return {"usage": usage, "metrics": {"latencyMs": max(0, round(seconds * 1000))}}
