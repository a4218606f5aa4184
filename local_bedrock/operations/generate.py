"""RetrieveAndGenerate and RetrieveAndGenerateStream."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from local_bedrock.answers import prompts
from local_bedrock.answers.answers import End, Given, Part, Settings, Task, Text, Turn, with_parts, without_numbers
from local_bedrock.answers.extractive import NO_ANSWER
from local_bedrock.http.errors import DependencyFailed, InvalidRequest, Throttled
from local_bedrock.http.wire import HeadedAnswer
from local_bedrock.operations.context import Answer, Context, Request, refuse_unsupported, required_member
from local_bedrock.operations.retrieval import results
from ragstack_common.core.errors import GenerationError, ModelThrottledError

_ID: Final = re.compile(r"(?:[a-z-]+\.)?[a-z0-9-]+\.[A-Za-z0-9.:_-]+")
_NO_TEXT: Final = re.compile(r"embed|rerank|image|canvas|reel|stable-diffusion|sonic")


def require_text_model(name: str) -> None:
    """Check that an id or ARN can be that of a text model; any such name is accepted.

    Raises:
        InvalidRequest: The form is wrong, or the name is that of an embedding, reranking, image or speech model.
    """
    if not name.startswith("arn:") and not _ID.fullmatch(name):
        raise InvalidRequest("The provided model identifier is invalid.")
    if _NO_TEXT.search(name.rpartition("/")[2]):
        raise InvalidRequest(
            "This action doesn't support the model that you provided. Try again with a supported text or chat model."
        )


@dataclass(frozen=True)
class _Asked:
    """A parsed request.

    Attributes:
        references: The results, in the order of the task's passages.
    """

    session_id: str
    task: Task
    settings: Settings
    references: Sequence[Answer]


def retrieve_and_generate(context: Context, request: Request) -> Answer:
    """Answer a question from search results, with citations."""
    asked = _asked(context, request)
    citations, text = [], ""
    for piece in _answer(context, asked):
        match piece:
            case Text(said):
                text += said
            case Part():
                citations.append(_citation(piece, asked.references))
    answer = {"sessionId": asked.session_id, "output": {"text": text}, "citations": citations}
    return HeadedAnswer(answer, context.answering.headers())


def retrieve_and_generate_stream(context: Context, request: Request) -> Answer:
    """Stream the answer of :func:`retrieve_and_generate`."""
    asked = _asked(context, request)
    answer = {"sessionId": asked.session_id, "stream": _events(context, asked)}
    return HeadedAnswer(answer, context.answering.headers())


def _events(context: Context, asked: _Asked) -> Iterator[Answer]:
    for piece in _answer(context, asked):
        match piece:
            case Text(said):
                yield {"output": {"text": said}}
            case Part():
                citation = _citation(piece, asked.references)
                # Older clients read the nested member.
                yield {"citation": {**citation, "citation": citation}}


def _answer(context: Context, asked: _Asked) -> Iterator[Text | Part | End]:
    given: Iterator[Given]
    if asked.references:
        given = context.answering.generator.generate(asked.task, asked.settings)
        if asked.task.numbered:
            given = without_numbers(given, len(asked.references))
    else:
        given = iter((Text(NO_ANSWER), End("end_turn", 0, 0)))
    written = ""
    try:
        for piece in with_parts(given):
            written += piece.text if isinstance(piece, Text) else ""
            yield piece
    except ModelThrottledError as error:
        raise Throttled(str(error)) from error
    except GenerationError as error:
        raise DependencyFailed(str(error)) from error
    question, answer = Turn("user", asked.task.question), Turn("assistant", written)
    context.answering.sessions.remember(asked.session_id, question, answer)


def _citation(part: Part, references: Sequence[Answer]) -> Answer:
    text = {"text": part.text, "span": {"start": part.start, "end": part.end}}
    return {
        "generatedResponsePart": {"textResponsePart": text},
        "retrievedReferences": [references[index] for index in part.passages],
    }


def _asked(context: Context, request: Request) -> _Asked:
    refuse_unsupported(request, "sessionConfiguration", "userContext")
    question = request["input"]["text"]
    if not question.strip():
        raise InvalidRequest("The text of the input is empty: ask a question")
    configuration = _configuration(request)
    require_text_model(configuration["modelArn"])
    generation = configuration.get("generationConfiguration", {})
    settings, template = _settings(generation), _template(generation)
    session_id, history = _session(context, request)
    references = _found(context, question, configuration)
    passages = [reference["content"]["text"] for reference in references]
    task = prompts.prompted_task(template, question, passages, history, context.clock())
    return _Asked(session_id or context.answering.sessions.begin(), task, settings, references)


def _configuration(request: Request) -> Request:
    given = required_member(request, "The request", "retrieveAndGenerateConfiguration")
    if given["type"] != "KNOWLEDGE_BASE":
        raise InvalidRequest(f"The local Bedrock supports the type KNOWLEDGE_BASE, not {given['type']}")
    configuration: Request = required_member(
        given, "A retrieveAndGenerateConfiguration of type KNOWLEDGE_BASE", "knowledgeBaseConfiguration"
    )
    return configuration


def _session(context: Context, request: Request) -> tuple[str | None, tuple[Turn, ...]]:
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


def _settings(generation: Request) -> Settings:
    refuse_unsupported(generation, "guardrailConfiguration", "additionalModelRequestFields")
    refuse_optimized(generation)
    given = generation.get("inferenceConfig", {}).get("textInferenceConfig", {})
    if given.get("maxTokens") == 0:
        raise InvalidRequest("maxTokens must be at least 1")
    return settings(given)


def settings(given: Request) -> Settings:
    """Read an inference configuration of Converse or RetrieveAndGenerate."""
    stop_sequences = tuple(given.get("stopSequences", ()))
    return Settings(given.get("maxTokens"), given.get("temperature"), given.get("topP"), stop_sequences)


def refuse_optimized(configuration: Request) -> None:
    """Refuse optimized latency.

    Raises:
        InvalidRequest: The configuration requests it.
    """
    if configuration.get("performanceConfig", {}).get("latency") == "optimized":
        raise InvalidRequest("The local Bedrock does not support optimized latency: omit performanceConfig")


def _template(generation: Request) -> str | None:
    template: str | None = generation.get("promptTemplate", {}).get("textPromptTemplate")
    if template is not None and prompts.RESULTS not in template:
        raise InvalidRequest(f"The textPromptTemplate needs the placeholder {prompts.RESULTS} for the search results")
    return template


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
    retrieval: Mapping[str, Any] = configuration.get("retrievalConfiguration", {})
    if "managedSearchConfiguration" in retrieval:
        raise InvalidRequest("managedSearchConfiguration is for MANAGED knowledge bases: use vectorSearchConfiguration")
    search = retrieval.get("vectorSearchConfiguration", {})
    found = results(context, configuration["knowledgeBaseId"], question, search)
    return [{name: result[name] for name in ("content", "location", "metadata")} for result in found]
