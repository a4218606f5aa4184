"""AgenticRetrieveStream: a model plans searches, judges what they found, and answers.

Source of the steps: AWS Machine Learning Blog, "Agentic retrieval for Amazon Bedrock Managed Knowledge Base".
"""

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Annotated, Any, Final

from pydantic import BaseModel, Field, StringConstraints

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
from local_bedrock.operations.generate import DEFAULT_TEMPLATE, cited_answer, fill_prompt, require_text_model
from local_bedrock.operations.paging import Listing
from local_bedrock.operations.retrieval import Query, search
from local_bedrock.operations.search_configuration import managed_configuration
from ragstack_common.answers.models.protocol import ModelMessage, ModelRequest, ModelText
from ragstack_common.embedding import EmbeddingError

MAX_RETRIEVERS: Final = 5
"""Source: Amazon Bedrock User Guide, AgenticRetrieveStream."""

MIN_ITERATIONS: Final = 2
"""Source: API reference of Amazon Bedrock, AgenticRetrieveConfiguration. The model of botocore has 0."""

DEFAULT_ITERATIONS: Final = 3
"""AWS publishes no default; its blog recommends three for one knowledge base."""

MAX_SEARCHES: Final = 5
"""Searches of one iteration; the model is told."""

MAX_QUERY: Final = 10_000
"""Characters of a planned search. Source: quotas of managed knowledge bases, characters of a query."""

MAX_RESULTS: Final = 100
"""Results of one retriever, as of one page of Retrieve; AWS publishes no figure."""

MAX_PASSAGES: Final = 30
"""Results from which an answer is written. AWS publishes no figure; with chunks of 300 tokens, these are 9,000."""

PAGE: Final = 100
"""Results on a page. AWS publishes no figure."""


@dataclass(frozen=True)
class _Retriever:
    """A knowledge base with its managedSearchConfiguration, and what it is about."""

    knowledge_base_id: str
    configuration: Mapping[str, Any]
    description: str


@dataclass(frozen=True)
class _Search:
    """A query of some retrievers, by their positions."""

    text: str
    retrievers: tuple[int, ...]


@dataclass(frozen=True)
class _Question:
    """A parsed request.

    Attributes:
        history: The messages before the question.
        user: The ``userContext``.
        iterations: Maximum number of plans; 0 without a model.
    """

    text: str
    history: tuple[ModelMessage, ...]
    retrievers: tuple[_Retriever, ...]
    user: Mapping[str, Any] | None
    iterations: int
    answers: bool


@dataclass
class _Found:
    """The searches so far, each with its results, best first. A result has a key, and members as in the last event."""

    searches: dict[_Search, list[tuple[Any, Answer]]] = field(default_factory=dict)

    @property
    def results(self) -> list[Answer]:
        """Each result once: the best one of every search, in the order of the searches, then the second, and so on."""
        tiers = zip_longest(*self.searches.values())
        return list({each[0]: each[1] for tier in tiers for each in tier if each is not None}.values())


def agentic_retrieve_stream(context: Context, request: Request) -> Answer:
    """Stream the steps of an agentic retrieval, and its results with an answer."""
    question = _question(context, request)
    listing = Listing("AgenticRetrieveStream", request)
    continued = context.snapshots.continued(listing)
    events = _events(context, question, listing) if continued is None else iter([_page(context, listing, *continued)])
    return HeadedAnswer({"stream": events}, context.answering.headers())


def _question(context: Context, request: Request) -> _Question:
    refuse_unsupported(request, "memoryConfiguration", "policyConfiguration", "retrievalInstructionConfiguration")
    messages = [(message["role"], message["content"].get("text", "")) for message in request["messages"]]
    if messages[-1][0] != "user" or not all(text.strip() for _, text in messages):
        raise InvalidRequest("The last of the messages must be of the user, and every message needs a text")
    configuration = request["agenticRetrieveConfiguration"]
    _check_model(configuration)
    given = request["retrievers"]
    if len(given) > MAX_RETRIEVERS:
        raise InvalidRequest(f"The request has {len(given)} retrievers; the maximum is {MAX_RETRIEVERS}")
    retrievers = tuple(_retriever(context, configuration, retriever) for retriever in given)
    iterations = configuration.get("maxAgentIteration", DEFAULT_ITERATIONS)
    if iterations < MIN_ITERATIONS:
        raise InvalidRequest(f"maxAgentIteration must be at least {MIN_ITERATIONS}")
    return _Question(
        messages[-1][1],
        tuple(ModelMessage(role, text) for role, text in messages[:-1]),
        retrievers,
        request.get("userContext"),
        0 if context.answering.provider.quotes else iterations,
        request.get("generateResponse", True),
    )


def _check_model(configuration: Request) -> None:
    chosen = configuration.get("foundationModelType", "MANAGED")
    what = f"An agenticRetrieveConfiguration with the foundationModelType {chosen}"
    name = "foundationModelConfiguration"
    if chosen == "MANAGED":
        if name in configuration:
            raise InvalidRequest(f"{what} cannot have {name}")
        return
    given = required_member(configuration, what, name)
    if given["type"] != "BEDROCK_FOUNDATION_MODEL":
        raise InvalidRequest(f"The local Bedrock supports the type BEDROCK_FOUNDATION_MODEL, not {given['type']}")
    model = required_member(
        given,
        f"A {name} of type {given['type']}",
        "bedrockFoundationModelConfiguration",
        "mantleFoundationModelConfiguration",
    )
    require_text_model(model["modelConfiguration"]["modelArn"])


def _retriever(context: Context, configuration: Request, given: Request) -> _Retriever:
    knowledge_base = given["configuration"]["knowledgeBase"]
    overrides = knowledge_base.get("retrievalOverrides", {})
    reranking = ("rerankingModelType", "rerankingConfiguration")
    managed = {name: configuration[name] for name in reranking if name in configuration}
    if "filter" in overrides:
        managed["filter"] = overrides["filter"]
    if "maxNumberOfResults" in overrides:
        managed["numberOfResults"] = overrides["maxNumberOfResults"]
        if managed["numberOfResults"] > MAX_RESULTS:
            raise InvalidRequest(f"The maxNumberOfResults of a retriever must be at most {MAX_RESULTS}")
    with context.database.read() as view:
        base = active_knowledge_base(view.connection, knowledge_base["knowledgeBaseId"])
    if not base.is_managed:
        raise InvalidRequest(f"The knowledge base {base.id} is not MANAGED: use Retrieve or RetrieveAndGenerate")
    managed_configuration(base, managed)
    return _Retriever(base.id, {"managedSearchConfiguration": managed}, given.get("description", base.name))


def _events(context: Context, question: _Question, listing: Listing) -> Iterator[Answer]:
    found = _Found()
    everywhere = _Search(question.text, tuple(range(len(question.retrievers))))
    yield _searched(
        context, question, everywhere, found, "SpeculativeRetrieval" if question.iterations else "Retrieval"
    )
    for _ in range(question.iterations):
        searches, event = _planned(context, question, found)
        yield event
        for wanted in searches:
            yield _searched(context, question, wanted, found, "Retrieval")
        if not searches:
            break
    results = found.results
    page = _page(context, listing, results, 0)
    if not question.answers:
        yield page
        return
    text, citations = "", []
    for piece in cited_answer(context, _answer_request(context, question, results), is_numbered=True):
        if isinstance(piece, str):
            text += piece
            yield {"responseEvent": {"text": piece}}
        elif piece.passages:
            references = [{"resultIndex": index} for index in piece.passages]
            citations.append({"startIndex": piece.start, "endIndex": piece.end + 1, "references": references})
    page["result"]["generatedResponse"] = {"answer": text, "citations": citations}
    yield page


def _page(context: Context, listing: Listing, results: Sequence[Answer], start: int) -> Answer:
    following = start + PAGE
    more = context.snapshots.token(listing, results, following) if following < len(results) else None
    return {"result": {"results": results[start:following], "nextToken": more}}


def _searched(context: Context, question: _Question, wanted: _Search, found: _Found, step: str) -> Answer:
    """Search, and return the event of it."""
    ranked = []
    for place in wanted.retrievers:
        retriever = question.retrievers[place]
        query = Query(retriever.knowledge_base_id, wanted.text, retriever.configuration, question.user)
        try:
            results = search(context, query).results
        except EmbeddingError as error:
            raise DependencyFailed(str(error)) from error
        ranked.append([((query.knowledge_base, each.hit.chunk), _item(query, each.members)) for each in results])
    # The scores of two knowledge bases are not comparable.
    found.searches[wanted] = [each for tier in zip_longest(*ranked) for each in tier if each is not None]
    sources = _sources(question, wanted)
    return _trace(
        context,
        step,
        f"Found {len(found.searches[wanted])} results",
        actions=[_action(question, wanted)],
        retrievalMetadata=[{**source, "retrievalType": "BedrockKnowledgeBase"} for source in sources],
        retrievalResponse=[item for _, item in found.searches[wanted]],
    )


def _sources(question: _Question, wanted: _Search) -> list[Answer]:
    return [{"identifier": question.retrievers[place].knowledge_base_id} for place in wanted.retrievers]


def _action(question: _Question, wanted: _Search) -> Answer:
    return {"retrieve": {"inputQuery": {"text": wanted.text}, "sourceRetrievers": _sources(question, wanted)}}


def _item(query: Query, members: Answer) -> Answer:
    return {
        "content": {"mimeType": "text/plain", "text": members["content"]["text"]},
        "metadata": members["metadata"],
        "sourceRetriever": {"identifier": query.knowledge_base},
    }


def _trace(context: Context, step: str, message: str, status: str = "SUCCEEDED", **attributes: Any) -> Answer:
    attributes = {"step": step, "status": status, "message": message, **attributes}
    return {"traceEvent": {"id": str(uuid.uuid4()), "timestamp": int(context.clock() * 1000), "attributes": attributes}}


_PLANNING: Final = """\
You plan searches that find what is needed to answer the user's last question. You do not answer it.

Knowledge bases:
{bases}

Earlier searches:
{searches}

What they found:
{passages}

Which further searches are needed? Split a question with several parts, and search for each part by itself. A search is
a short question or phrase that can be understood alone. Do not repeat an earlier search. If what was found is enough,
or further searches are unlikely to help, there are none. Reply with JSON only, with at most {maximum} searches:
{{"searches": [{{"knowledge_base": 1, "query": "..."}}]}}"""

_SHOWN_CHARACTERS: Final = 500
"""Maximum number of characters of a passage in the prompt of a plan."""


def _planned(context: Context, question: _Question, found: _Found) -> tuple[list[_Search], Answer]:
    """Ask the model for further searches; the event says if its reply cannot be used."""
    bases = [f"{number}. {each.description}" for number, each in enumerate(question.retrievers, start=1)]
    passages = [each["content"]["text"][:_SHOWN_CHARACTERS] for each in found.results[:MAX_PASSAGES]]
    prompt = _PLANNING.format(
        bases="\n".join(bases),
        searches="\n".join(f"- {each.text}" for each in found.searches),
        passages="\n\n".join(passages) or "Nothing.",
        maximum=MAX_SEARCHES,
    )
    request = ModelRequest((*question.history, ModelMessage.user(question.text)), prompt)
    pieces = context.answering.pieces(request, DependencyFailed)
    reply = "".join(piece.text for piece in pieces if isinstance(piece, ModelText))
    try:
        planned = _parse_plan(reply, len(question.retrievers))
    except (ValueError, RecursionError):  # of JSON that is nested too deeply
        message = "The model's plan is not in the form that it was asked for"
        return [], _trace(context, "Planning", message, "FAILED", failures=[{"message": message}])
    searches = [each for each in dict.fromkeys(planned) if each not in found.searches][:MAX_SEARCHES]
    message = f"Planned {len(searches)} searches" if searches else "No further searches are needed"
    return searches, _trace(context, "Planning", message, actions=[_action(question, each) for each in searches])


class _PlannedSearch(BaseModel):
    query: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_QUERY)]
    knowledge_base: Annotated[int, Field(ge=1)] | None = None


class _Plan(BaseModel):
    searches: list[_PlannedSearch]


def _parse_plan(reply: str, retrievers: int) -> list[_Search]:
    """Read the searches in a model's reply, with or without text around the JSON; one without a number is everywhere.

    Raises:
        ValueError: It has no plan, or one for other knowledge bases.
    """
    document, _ = json.JSONDecoder().raw_decode(reply, max(reply.find("{"), 0))
    planned = _Plan.model_validate(document).searches
    if any((each.knowledge_base or 1) > retrievers for each in planned):
        raise ValueError(f"there are only {retrievers} knowledge bases")
    everywhere = tuple(range(retrievers))
    return [
        _Search(each.query, everywhere if each.knowledge_base is None else (each.knowledge_base - 1,))
        for each in planned
    ]


def _answer_request(context: Context, question: _Question, results: Sequence[Answer]) -> ModelRequest:
    passages = [each["content"]["text"] for each in results[:MAX_PASSAGES]]
    return ModelRequest(
        (*question.history, ModelMessage.user(question.text)),
        fill_prompt(DEFAULT_TEMPLATE, question.text, passages, context.clock()),
        passages=[numbered_passage(number, passage) for number, passage in enumerate(passages, start=1)],
    )
