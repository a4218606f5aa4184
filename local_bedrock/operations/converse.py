"""Converse and ConverseStream."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from local_bedrock.answering import numbered_passage
from local_bedrock.http.errors import InvalidRequest, ModelError, ModelStreamError
from local_bedrock.http.wire import HeadedAnswer
from local_bedrock.operations.context import Answer, Context, Request, refuse_unsupported
from local_bedrock.operations.generate import inference_settings, refuse_optimized, require_text_model
from local_bedrock.reading.chunking import FixedSize
from local_bedrock.search.reranking import score
from ragstack_common.answers.models.protocol import (
    ModelEnd,
    ModelMessage,
    ModelPiece,
    ModelRequest,
    ModelText,
    NumberedPassage,
)
from ragstack_common.reading import formats
from ragstack_common.reading.formats import UnreadableDocument


def converse(context: Context, request: Request) -> Answer:
    """Answer a conversation."""
    started = context.clock()
    text, end = "", None
    for piece in _answer(context, request):
        match piece:
            case ModelText(said):
                text += said
            case ModelEnd():
                end = piece
    assert end is not None
    answer = {
        "output": {"message": {"role": "assistant", "content": [{"text": text}]}},
        "stopReason": end.stop_reason,
        **_measured(end, context.clock() - started),
    }
    return HeadedAnswer(answer, context.answering.headers())


def converse_stream(context: Context, request: Request) -> Answer:
    """Stream the answer to a conversation."""
    return HeadedAnswer({"stream": _events(context, request)}, context.answering.headers())


def _events(context: Context, request: Request) -> Iterator[Answer]:
    started = context.clock()
    pieces = _answer(context, request)
    # Wait for the first piece before sending anything: an error until then is an ordinary error.
    piece = next(pieces)
    yield {"messageStart": {"role": "assistant"}}
    try:
        while True:
            match piece:
                case ModelText(said):
                    yield {"contentBlockDelta": {"delta": {"text": said}, "contentBlockIndex": 0}}
                case ModelEnd():
                    yield {"contentBlockStop": {"contentBlockIndex": 0}}
                    yield {"messageStop": {"stopReason": piece.stop_reason}}
                    yield {"metadata": _measured(piece, context.clock() - started)}
                    return
            piece = next(pieces)
    except ModelError as error:
        raise ModelStreamError(str(error)) from error


def _answer(context: Context, request: Request) -> Iterator[ModelPiece]:
    require_text_model(request["modelId"])
    refuse_unsupported(
        request,
        "toolConfig",
        "guardrailConfig",
        "additionalModelRequestFields",
        "additionalModelResponseFieldPaths",
        "promptVariables",
        "outputConfig",
    )
    refuse_optimized(request)
    if request.get("serviceTier", {}).get("type", "default") != "default":
        raise InvalidRequest("The local Bedrock supports the serviceTier default only")
    return context.answering.pieces(_model_request(context, request), ModelError)


def _measured(end: ModelEnd, seconds: float) -> dict[str, Any]:
    usage = {
        "inputTokens": end.input_tokens,
        "outputTokens": end.output_tokens,
        "totalTokens": end.input_tokens + end.output_tokens,
    }
    return {"usage": usage, "metrics": {"latencyMs": max(0, round(seconds * 1000))}}


MAX_DOCUMENTS: Final = 5
MAX_DOCUMENT_BYTES: Final = 4_500_000
"""Source of both: bedrock-runtime, documentation of Message and DocumentBlock."""

_DOCUMENT_NAME: Final = re.compile(r"(?!.*\s\s)[A-Za-z0-9\s()\[\]-]+")


def _model_request(context: Context, request: Request) -> ModelRequest:
    """Convert a request.

    Raises:
        InvalidRequest: The conversation is invalid, or has content that the local Bedrock doesn't support.
    """
    messages = request.get("messages", [])
    _check_order(messages)
    system = []
    for index, block in enumerate(request.get("system", [])):
        if "guardContent" in block:
            raise InvalidRequest(f"The local Bedrock does not support guardrails: omit guardContent at system.{index}")
        system.append(str(block.get("text", "")))
    read = [_message(context, number, message) for number, message in enumerate(messages)]
    settings = inference_settings(request.get("inferenceConfig", {}))
    if context.answering.provider.quotes:
        by_user = [each for each, message in zip(read, messages, strict=True) if message["role"] != "assistant"]
        documents = [document for each in by_user for document in each.documents]
        question, passages = _quotable(context, [*system, *(each.text for each in by_user)], documents)
        return ModelRequest([ModelMessage.user(question)], passages=passages, **settings)
    turns = [
        ModelMessage(message["role"], "\n\n".join([*each.documents, each.text]))
        for each, message in zip(read, messages, strict=True)
    ]
    return ModelRequest(turns, "\n\n".join(filter(None, system)), **settings)


@dataclass(frozen=True)
class _Read:
    """The text of a message, and the texts of its documents."""

    text: str
    documents: Sequence[str]


def _check_order(messages: Sequence[Request]) -> None:
    spoken = [message["role"] for message in messages if message["role"] != "system"]
    if not spoken or spoken[0] != "user":
        raise InvalidRequest("A conversation must start with a user message.")
    if any(role == following for role, following in pairwise(spoken)):
        raise InvalidRequest("A conversation must alternate between user and assistant roles.")
    if messages[-1]["role"] != "user":
        raise InvalidRequest("A conversation must end with a user message.")


def _message(context: Context, number: int, message: Request) -> _Read:
    place = f"messages.{number}.content"
    if not message["content"]:
        raise InvalidRequest(f"The content field in the Message object at messages.{number} is empty.")
    texts, documents = [], []
    for position, block in enumerate(message["content"]):
        at = f"{place}.{position}"
        if "text" in block:
            texts.append(_text(at, block["text"]))
        elif "document" in block:
            documents.append(_document(context, at, message["role"], block["document"]))
        elif "cachePoint" not in block:
            raise InvalidRequest(
                f"The local Bedrock does not support {next(iter(block))} at {at}: send text or documents"
            )
    if documents and not texts:
        raise InvalidRequest(f"A message with documents also needs a text: add a text block to {place}")
    if len(documents) > MAX_DOCUMENTS:
        raise InvalidRequest(f"{place} has {len(documents)} documents; the maximum is {MAX_DOCUMENTS}")
    return _Read("\n\n".join(texts), documents)


def _text(at: str, text: str) -> str:
    if not text.strip():
        raise InvalidRequest(f"The text field in the ContentBlock object at {at} is blank.")
    return text


def _document(context: Context, at: str, role: str, document: Request) -> str:
    if role != "user":
        raise InvalidRequest(f"Only user messages can have documents: remove the one at {at}")
    if document.get("citations", {}).get("enabled"):
        raise InvalidRequest(f"The local Bedrock does not support citations in Converse: omit citations at {at}")
    if not _DOCUMENT_NAME.fullmatch(document["name"]):
        raise InvalidRequest(
            f"The name of the document at {at} can have letters, digits, single spaces, hyphens, parentheses and square"
            " brackets only"
        )
    source = document["source"]
    if "text" in source:
        text = str(source["text"])
    elif "content" in source:
        text = "\n\n".join(_text(at, block.get("text", "")) for block in source["content"])
    else:
        text = _parsed(context, at, document)
    return "\n\n".join(filter(None, (document["name"], document.get("context"), text)))


def _parsed(context: Context, at: str, document: Request) -> str:
    source = document["source"]
    try:
        if "s3Location" in source:
            uri = source["s3Location"]["uri"]
            data = context.objects.read(uri, MAX_DOCUMENT_BYTES).data
            file_format = document.get("format") or formats.of_bedrock(uri)
        else:
            data, file_format = source["bytes"], document.get("format")
        if file_format is None:
            raise InvalidRequest(f"The document at {at} needs a format")
        if len(data) > MAX_DOCUMENT_BYTES:
            raise InvalidRequest(f"The document at {at} has {len(data):,} bytes; the maximum is {MAX_DOCUMENT_BYTES:,}")
        return context.answering.parser.parse(data, file_format).text
    except UnreadableDocument as error:
        raise InvalidRequest(f"The document at {at} cannot be read: {error}") from error


NO_MODEL: Final = (
    "The local Bedrock has no model that could answer this conversation: start it with --llm-url URL, or set"
    " RAGSTACK_LLM_URL, for an OpenAI-compatible server, such as http://localhost:11434/v1. Without a model it quotes"
    " document blocks, and passages in tags such as <document>...</document>; this conversation has none"
)
MAX_QUESTION_CHARACTERS: Final = 400
"""Maximum for the text outside of tags in the last message, which ends with the question."""

_TAG: Final = r"<(/?)((?:{}|conversation|history)(?:-\w+)?)((?:\s[^<>]*)?)>"
_TAGS: Final = [
    re.compile(_TAG.format(names), re.IGNORECASE)
    for names in (
        "passage|document|doc|excerpt|chunk|(?:search_)?result",
        "(?:passage|document|search_result|context)s?",
    )
]
"""Tags of single passages, and tags around all of them, which are read if there are none of single passages."""

_NUMBER: Final = re.compile(r"""\s(?:number|index|id)\s*=\s*["']?(\d{1,4})\b""", re.IGNORECASE)
_BODIES: Final = ("document_content", "page_content", "content", "text")
"""Names of the element with the text, in passages that have others too, such as their source."""


def _quotable(context: Context, texts: Sequence[str], documents: Sequence[str]) -> tuple[str, list[NumberedPassage]]:
    """Return the question, and the best excerpts of the passages, for a provider that quotes.

    Passages are found by structure only, so that instructions are never quoted.

    Args:
        context: The context.
        texts: The system prompt, and what the user wrote; the last one has the question.
        documents: The documents of the messages.

    Raises:
        InvalidRequest: There is no passage.
    """
    tagged = [passage for text in texts for passage in _tagged(text)]
    found = [(None, None, text) for text in documents] + ([each for each in tagged if each[0]] or tagged)
    if not found:
        raise InvalidRequest(NO_MODEL)
    question = _untagged(texts[-1]).strip()[-MAX_QUESTION_CHARACTERS:]
    excerpts = [
        numbered_passage(number or place, chunk.text, heading)
        for place, (number, heading, text) in enumerate(found, start=1)
        for chunk in FixedSize(overlap_percentage=0).cut(text).chunks
    ]
    scores = score(question, [excerpt.chunk.content for excerpt in excerpts], context.embedding)
    order = sorted(range(len(excerpts)), key=lambda index: (-scores[index], index))
    return question, [excerpts[index] for index in order[:20]]


def _tagged(text: str) -> list[tuple[int | None, str | None, str]]:
    """Return the passages in tags: number by which the prompt cites it, heading, and text."""
    for tags in _TAGS:
        elements = [pair for pair in _elements(text, tags) if not pair[0][2].lower().startswith(("conv", "hist"))]
        if elements:
            return [_passage(opening, text[opening.end() : closing.start()]) for opening, closing in elements]
    return []


def _passage(tag: re.Match[str], text: str) -> tuple[int | None, str | None, str]:
    number, heading = _NUMBER.search(tag[3]), None
    if text.lstrip().startswith("<"):
        bodies = (text.partition(f"<{name}>")[2].partition(f"</{name}>")[0] for name in _BODIES)
        text = next(filter(None, bodies), text)
    elif "-" in tag[2]:  # the prompt of ragstack_common.answers, whose passages begin with a heading
        heading, _, text = text.strip().partition("\n\n")
    return number and int(number[1]), heading, text


def _untagged(text: str) -> str:
    for tags in reversed(_TAGS):
        elements = _elements(text, tags)
        starts, ends = [0, *(close.end() for _, close in elements)], [*(tag.start() for tag, _ in elements), len(text)]
        text = "".join(text[start:end] for start, end in zip(starts, ends, strict=True))
    return text


def _elements(text: str, tags: re.Pattern[str]) -> list[tuple[re.Match[str], re.Match[str]]]:
    """Return the tags of the outermost elements. A tag that is never closed is ignored: instructions mention tags."""
    found = list(tags.finditer(text))
    closed = {tag[2] for tag in found if tag[1]}
    elements, opening = [], None
    for tag in found:
        if not tag[1] and tag[2] in closed and (opening is None or opening[2] == tag[2]):
            opening = tag
        elif tag[1] and opening is not None and opening[2] == tag[2]:
            elements.append((opening, tag))
            opening = None
    return elements
