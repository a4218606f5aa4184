"""Converse and ConverseStream."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

from local_bedrock.answers import prompts
from local_bedrock.answers.answers import End, Given, Task, Text, Turn
from local_bedrock.answers.contexts import GivenPassage, given_passages
from local_bedrock.http.errors import InvalidRequest, ModelError, ModelStreamError, Throttled
from local_bedrock.http.wire import HeadedAnswer
from local_bedrock.operations.context import Answer, Context, Request, refuse_unsupported
from local_bedrock.operations.generate import refuse_optimized, require_text_model, settings
from local_bedrock.reading import formats
from local_bedrock.reading.formats import UnreadableDocument
from ragstack_common.core.errors import GenerationError, ModelThrottledError

_UNSUPPORTED: Final = (
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
    refuse_unsupported(request, *_UNSUPPORTED)
    refuse_optimized(request)
    if request.get("serviceTier", {}).get("type", "default") != "default":
        raise InvalidRequest("The local Bedrock supports the serviceTier default only")
    asked = conversation_task(context, request)
    try:
        yield from context.answering.generator.generate(asked, settings(request.get("inferenceConfig", {})))
    except ModelThrottledError as error:
        raise Throttled(str(error)) from error
    except GenerationError as error:
        raise ModelError(str(error)) from error


def _measured(end: End, seconds: float) -> dict[str, Any]:
    usage = {
        "inputTokens": end.input_tokens,
        "outputTokens": end.output_tokens,
        "totalTokens": end.input_tokens + end.output_tokens,
    }
    return {"usage": usage, "metrics": {"latencyMs": max(0, round(seconds * 1000))}}


MOST_DOCUMENTS: Final = 5
LARGEST_DOCUMENT: Final = 4_500_000
"""Bytes. Source for both: bedrock-runtime, documentation of Message and DocumentBlock."""

LONGEST_QUESTION: Final = 400
"""Characters. In a longer message, the question is expected at the end, and the rest is the passage to answer from."""

_BLOCKS: Final = re.compile(r"\n\s*\n|\n(?=(?:Question|Q|User|Human)\s*:)")
_LABEL: Final = re.compile(r"^\s*(?:Question|Q|User|Human)\s*:\s*")
_SENTENCE_END: Final = re.compile(r"[.!?]\s+(?=\S)")
_DOCUMENT_NAME: Final = re.compile(r"(?!.*\s\s)[A-Za-z0-9\s()\[\]-]+")


def conversation_task(context: Context, request: Request) -> Task:
    """Convert a request to a task for a generator.

    Raises:
        InvalidRequest: The conversation is invalid, or has content that the local Bedrock doesn't support.
    """
    messages = request.get("messages", [])
    _check_order(messages)
    system = [_system_text(index, block) for index, block in enumerate(request.get("system", []))]
    turns = [Turn("system", "\n\n".join(filter(None, system)))] if any(system) else []
    read: list[_Read] = []
    for number, message in enumerate(messages):
        read.append(_message(context, number, message))
        turns.append(Turn(message["role"], read[-1].whole()))
    question, rest = _question(read[-1].text)
    earlier = [one.text for one, message in zip(read[:-1], messages, strict=False) if message["role"] == "user"]
    passages = [
        GivenPassage(excerpt)
        for one in read
        for document in one.documents
        for excerpt in prompts.best_excerpts(document, question, context.embedding)
    ]
    passages += [
        replace(given, text=excerpt)
        for given in given_passages([rest, *system, *earlier])
        for excerpt in prompts.cut_excerpts(given.text)
    ]
    numbers = [given.number for given in passages if given.number is not None]
    return Task(
        question,
        tuple(given.text for given in passages),
        tuple(turns),
        contexts=tuple(given.heading for given in passages),
        numbers=tuple(numbers) if len(numbers) == len(passages) else (),
    )


@dataclass(frozen=True)
class _Read:
    """The text of a message, and the texts of its documents."""

    text: str
    documents: Sequence[str]

    def whole(self) -> str:
        return "\n\n".join([*self.documents, self.text])


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
    if len(documents) > MOST_DOCUMENTS:
        raise InvalidRequest(f"{place} has {len(documents)} documents; the maximum is {MOST_DOCUMENTS}")
    return _Read("\n\n".join(texts), documents)


def _text(at: str, text: str) -> str:
    if not text.strip():
        raise InvalidRequest(f"The text field in the ContentBlock object at {at} is blank.")
    return text


def _system_text(index: int, block: Request) -> str:
    if "guardContent" in block:
        raise InvalidRequest(f"The local Bedrock does not support guardrails: omit guardContent at system.{index}")
    return str(block.get("text", ""))


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
            data = context.objects.read(uri, LARGEST_DOCUMENT).data
            file_format = document.get("format") or formats.of_name(uri)
        else:
            data, file_format = source["bytes"], document.get("format")
        if file_format is None:
            raise InvalidRequest(f"The document at {at} needs a format")
        if len(data) > LARGEST_DOCUMENT:
            raise InvalidRequest(f"The document at {at} has {len(data):,} bytes; the maximum is {LARGEST_DOCUMENT:,}")
        return context.answering.parser.parse(data, file_format).text
    except UnreadableDocument as error:
        raise InvalidRequest(f"The document at {at} cannot be read: {error}") from error


def _question(text: str) -> tuple[str, str]:
    """Split a message into its question and the rest; the question is the last short block with a question mark."""
    if len(text) <= LONGEST_QUESTION and "\n\n" not in text.strip():
        return text, ""
    blocks = [block for block in _BLOCKS.split(text) if block.strip()]
    asking = [index for index, block in enumerate(blocks) if "?" in block and len(block) <= LONGEST_QUESTION]
    chosen = asking[-1] if asking else len(blocks) - 1
    question, rest = _last_sentences(_LABEL.sub("", blocks[chosen]))
    return question, "\n\n".join([*blocks[:chosen], *([rest] if rest else []), *blocks[chosen + 1 :]])


def _last_sentences(text: str) -> tuple[str, str]:
    """Split off the last sentences, as many as fit into a question, and return them and the text before."""
    start = len(text) - LONGEST_QUESTION
    if start <= 0:
        return text, ""
    end_of_sentence = _SENTENCE_END.search(text, start)
    start = end_of_sentence.end() if end_of_sentence else start
    return text[start:], text[:start]
