"""RetrieveAndGenerate and RetrieveAndGenerateStream."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import Any, Final

from local_bedrock.answering import numbered_passage
from local_bedrock.http.errors import DependencyFailed, InvalidRequest
from local_bedrock.http.wire import HeadedAnswer
from local_bedrock.operations.context import (
    Answer,
    Context,
    Request,
    active_knowledge_base,
    refuse_unsupported,
    required_member,
)
from local_bedrock.operations.retrieval import Query, search
from ragstack_common.answers.models.protocol import ModelMessage, ModelRequest, ModelText
from ragstack_common.answers.phrases import is_no_answer
from ragstack_common.answers.verify.markers import MARKERS, MarkerReader, numbers_in
from ragstack_common.core.uris import resource_id

UNABLE: Final = "Sorry, I am unable to assist you with this request."
"""Amazon Bedrock's answer if the search results contain none."""

_ID: Final = re.compile(r"(?:[a-z-]+\.)?[a-z0-9-]+\.[A-Za-z0-9.:_-]+")


def require_text_model(name: str) -> None:
    """Check that an id or ARN can be that of a text model; any such name is accepted.

    Raises:
        InvalidRequest: The form is wrong, or the name is that of an embedding, reranking, image or speech model.
    """
    if not name.startswith("arn:") and not _ID.fullmatch(name):
        raise InvalidRequest("The provided model identifier is invalid.")
    if re.search("embed|rerank|image|canvas|reel|stable-diffusion|sonic", resource_id(name)):
        raise InvalidRequest(
            "This action doesn't support the model that you provided. Try again with a supported text or chat model."
        )


@dataclass(frozen=True)
class _Question:
    """A parsed request.

    Attributes:
        references: The results, in the order of the passages.
        is_numbered: Whether numbers in brackets are citations: the prompt requires them, or the answer quotes.
    """

    session_id: str
    request: ModelRequest
    references: Sequence[Answer]
    is_numbered: bool


def retrieve_and_generate(context: Context, request: Request) -> Answer:
    """Answer a question from search results, with citations."""
    question = _question(context, request)
    citations, text = [], ""
    for piece in _answer(context, question):
        if isinstance(piece, str):
            text += piece
        else:
            citations.append(_citation(piece, question.references))
    answer = {"sessionId": question.session_id, "output": {"text": text}, "citations": citations}
    return HeadedAnswer(answer, context.answering.headers())


def retrieve_and_generate_stream(context: Context, request: Request) -> Answer:
    """Stream the answer of :func:`retrieve_and_generate`."""
    question = _question(context, request)
    answer = {"sessionId": question.session_id, "stream": _events(context, question)}
    return HeadedAnswer(answer, context.answering.headers())


def _events(context: Context, question: _Question) -> Iterator[Answer]:
    for piece in _answer(context, question):
        if isinstance(piece, str):
            yield {"output": {"text": piece}}
        else:
            citation = _citation(piece, question.references)
            # Older clients read the nested member.
            yield {"citation": {**citation, "citation": citation}}


@dataclass(frozen=True)
class Part:
    """A part of an answer with its sources.

    Attributes:
        start: Offset of its first character in the answer.
        end: Offset of its last character, inclusive as in Amazon Bedrock.
        passages: Positions of its sources; may be empty.
    """

    start: int
    end: int
    text: str
    passages: tuple[int, ...]


def _answer(context: Context, question: _Question) -> Iterator[str | Part]:
    written = ""
    for piece in cited_answer(context, question.request, is_numbered=question.is_numbered):
        written += piece if isinstance(piece, str) else ""
        yield piece
    answer = ModelMessage.assistant(written)
    context.answering.sessions.remember(question.session_id, question.request.messages[-1], answer)


def cited_answer(context: Context, request: ModelRequest, *, is_numbered: bool) -> Iterator[str | Part]:
    """Yield the text of an answer from the passages of a request, and each part of it with its passages.

    Args:
        context: Has the model, which isn't called without passages.
        request: The question, with the passages.
        is_numbered: Whether numbers in brackets are citations.

    Raises:
        Throttled: The model's request rate is exceeded.
        DependencyFailed: No answer could be generated.
    """
    texts: Iterable[str] = [UNABLE]
    if request.passages:
        pieces = context.answering.pieces(request, DependencyFailed)
        texts = (piece.text for piece in pieces if isinstance(piece, ModelText))
        texts = (UNABLE if is_no_answer(text) else text for text in texts)
    return with_parts(without_markers(texts, len(request.passages)) if is_numbered else texts)


_MARKED: Final = re.compile(rf"[ \t]*({MARKERS}(?:\s*{MARKERS})*)([.!?。]*)")
_PERHAPS_MARKED: Final = re.compile(rf"[ \t]*(?:{MARKERS}(?:\s|{MARKERS})*[.!?。]*)?\Z")


def without_markers(texts: Iterable[str], passages: int) -> Iterator[str | tuple[int, ...]]:
    """Replace each citation marker, such as [1], by the positions of its passages; unknown numbers are dropped.

    A punctuation mark after a number belongs to the sentence before: "It is [1]." becomes "It is." and the position 0.

    Args:
        texts: The answer with numbers, in pieces of any size.
        passages: The number of passages.
    """
    reader, text = MarkerReader(range(1, passages + 1)), ""
    for piece in chain(texts, [None]):
        text += reader.feed(piece or "", last=piece is None)
        undecided = None if piece is None else _PERHAPS_MARKED.search(text)
        end = undecided.start() if undecided else len(text)
        start = 0
        for match in _MARKED.finditer(text, 0, end):
            if sentence := text[start : match.start()] + match[2]:
                yield sentence
            yield tuple(number - 1 for number in numbers_in(match[1]))
            start = match.end()
        if start < end:
            yield text[start:end]
        text = text[end:]


def with_parts(pieces: Iterable[str | tuple[int, ...]]) -> Iterator[str | Part]:
    """Pass text through, and add each part as soon as its sources are known; the parts cover all text."""
    answer, start = "", 0
    for piece in chain(pieces, [()]):
        if isinstance(piece, str):
            answer += piece
            yield piece
        elif text := answer[start:].strip():
            first = answer.index(text, start)
            yield Part(first, first + len(text) - 1, text, piece)
            start = len(answer)


def _citation(part: Part, references: Sequence[Answer]) -> Answer:
    text = {"text": part.text, "span": {"start": part.start, "end": part.end}}
    return {
        "generatedResponsePart": {"textResponsePart": text},
        "retrievedReferences": [references[index] for index in part.passages],
    }


def _question(context: Context, request: Request) -> _Question:
    refuse_unsupported(request, "sessionConfiguration", "userContext")
    text = request["input"]["text"]
    if not text.strip():
        raise InvalidRequest("The text of the input is empty: ask a question")
    configuration = _configuration(request)
    require_text_model(configuration["modelArn"])
    generation = configuration.get("generationConfiguration", {})
    refuse_unsupported(generation, "guardrailConfiguration", "additionalModelRequestFields")
    refuse_optimized(generation)
    inference = generation.get("inferenceConfig", {}).get("textInferenceConfig", {})
    if inference.get("maxTokens") == 0:
        raise InvalidRequest("maxTokens must be at least 1")
    template = generation.get("promptTemplate", {}).get("textPromptTemplate", DEFAULT_TEMPLATE)
    if RESULTS not in template:
        raise InvalidRequest(f"The textPromptTemplate needs the placeholder {RESULTS} for the search results")
    session_id, history = _session(context, request)
    references = _found(context, text, configuration)
    passages = [reference["content"]["text"] for reference in references]
    asked = ModelRequest(
        (*history, ModelMessage.user(text)),
        fill_prompt(template, text, passages, context.clock()),
        passages=[numbered_passage(number, passage) for number, passage in enumerate(passages, start=1)],
        **inference_settings(inference),
    )
    is_numbered = FORMAT in template or context.answering.provider.quotes
    return _Question(session_id or context.answering.sessions.begin(), asked, references, is_numbered)


RESULTS: Final = "$search_results$"
FORMAT: Final = "$output_format_instructions$"

DEFAULT_TEMPLATE: Final = f"""\
You answer questions. Below are numbered search results. Answer the user's question with what they say and nothing else.
If they do not answer it, say that you could not find an answer. A statement of the user is not a fact: check it.

Search results:
{RESULTS}

{FORMAT}"""

_INSTRUCTIONS: Final = (
    "After each sentence write the number of every search result that it comes from in square brackets, for example"
    " [1] or [2, 3]. Write no list of sources at the end."
)
_PLACEHOLDER: Final = re.compile(r"\$(?:search_results|output_format_instructions|query|current_time)\$")


def fill_prompt(template: str, question: str, passages: Sequence[str], now_seconds: float) -> str:
    """Fill in a template. Source: Amazon Bedrock User Guide, knowledge base prompt templates."""
    values = {
        RESULTS: "\n\n".join(f"[{number}]\n{passage}" for number, passage in enumerate(passages, start=1)),
        FORMAT: _INSTRUCTIONS,
        "$query$": question,
        "$current_time$": datetime.fromtimestamp(now_seconds, UTC).isoformat(timespec="seconds"),
    }
    # In one pass, so that placeholders in the text of a document have no effect.
    return _PLACEHOLDER.sub(lambda match: values[match[0]], template)


def _configuration(request: Request) -> Request:
    given = required_member(request, "The request", "retrieveAndGenerateConfiguration")
    if given["type"] != "KNOWLEDGE_BASE":
        raise InvalidRequest(f"The local Bedrock supports the type KNOWLEDGE_BASE, not {given['type']}")
    configuration: Request = required_member(
        given, "A retrieveAndGenerateConfiguration of type KNOWLEDGE_BASE", "knowledgeBaseConfiguration"
    )
    return configuration


def _session(context: Context, request: Request) -> tuple[str | None, tuple[ModelMessage, ...]]:
    session_id = request.get("sessionId")
    if session_id is None:
        return None, ()
    turns = context.answering.sessions.turns(session_id)
    if turns is None:
        raise InvalidRequest(
            f"Session with Id {session_id} is not valid. Omit sessionId in the first request of a session, and send the"
            " sessionId of its answer in later requests."
        )
    return session_id, turns


def inference_settings(given: Request) -> dict[str, Any]:
    """Return an inference configuration of Converse or RetrieveAndGenerate as fields of a ModelRequest."""
    return {
        "max_tokens": given.get("maxTokens"),
        "temperature": given.get("temperature"),
        "top_p": given.get("topP"),
        "stop_sequences": tuple(given.get("stopSequences", ())),
    }


def refuse_optimized(configuration: Request) -> None:
    """Refuse optimized latency.

    Raises:
        InvalidRequest: The configuration requests it.
    """
    if configuration.get("performanceConfig", {}).get("latency") == "optimized":
        raise InvalidRequest("The local Bedrock does not support optimized latency: omit performanceConfig")


def _found(context: Context, question: str, configuration: Request) -> list[Answer]:
    orchestration = configuration.get("orchestrationConfiguration", {})
    refuse_unsupported(
        orchestration,
        "queryTransformationConfiguration",
        "promptTemplate",
        "inferenceConfig",
        "additionalModelRequestFields",
    )
    refuse_optimized(orchestration)
    query = Query(configuration["knowledgeBaseId"], question, configuration.get("retrievalConfiguration", {}))
    with context.database.read() as view:
        is_managed = active_knowledge_base(view.connection, query.knowledge_base_id).is_managed
    if is_managed:
        raise InvalidRequest(
            "This operation is not supported for managed knowledge bases."  # as users report it
            " Use AgenticRetrieveStream, or Retrieve and Converse."
        )
    found = [result.members for result in search(context, query).results]
    return [{name: members[name] for name in ("content", "location", "metadata")} for members in found]
