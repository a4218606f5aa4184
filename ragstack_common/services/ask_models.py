"""Questions: requests, responses and events as JSON."""

from collections.abc import Mapping
from typing import Annotated, Final
from uuid import UUID

from pydantic import AfterValidator, BaseModel, Field

from ragstack_common.answers.answer import Answer, CitationEvent, Source, SupportEvent, TokenEvent
from ragstack_common.answers.models.protocol import MIN_CONFIDENCE, Role
from ragstack_common.services.closest import ClosestDocument
from ragstack_common.services.error_models import ErrorDetail
from ragstack_common.services.search_models import RequestOptions, SearchReport
from ragstack_common.settings.limits import MAX_QUERY_CHARACTERS, MAX_TURNS
from ragstack_common.text.languages import LANGUAGE_NAMES, language_name

_TITLE_CHARACTERS: Final = 80


class ChatTurn(BaseModel, extra="forbid", frozen=True):
    """An earlier message of the conversation."""

    role: Role
    content: str = Field(max_length=200_000)


class Question(RequestOptions):
    """A question."""

    question: str = Field(min_length=1, max_length=MAX_QUERY_CHARACTERS)
    chat_history: Annotated[list[ChatTurn], Field(max_length=MAX_TURNS)] = Field(
        default=[],
        description="The conversation before this question, oldest turn first. The model receives its end; the search"
        " uses it to complete a follow-up (`rewrite_question`)",
    )
    language: Annotated[str, Field(min_length=2, max_length=40), AfterValidator(language_name)] | None = Field(
        default=None,
        description="Language of the answer: a name in English, such as German, or a BCP 47 tag, such as de or pt-BR."
        " Default: the language of the question",
        json_schema_extra={"x-ragstack-languages": [*LANGUAGE_NAMES]},
    )
    check_support: bool = Field(
        default=False,
        description="Whether the model judges, in one more call after the answer, if the cited passages say what each"
        " sentence says",
    )
    rewrite_question: bool | None = Field(
        default=None,
        description="Whether a follow-up is made self-contained by the conversation before it is searched. True: by"
        " one more call of the model, or by rules if there is none. Null: by rules only, which complete `And in 2025?`"
        " by the question before. False: never",
    )
    min_confidence: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Without a model: quotations with less confidence are the closest passages, and no answer. Default:"
        f" {MIN_CONFIDENCE}",
    )


class AskRequest(Question):
    """A question, in a conversation or alone."""

    conversation: UUID | None = Field(
        default=None,
        description="A conversation of the caller, to which the question and its answer are added; an id that no"
        " conversation has begins one. Only those of people who signed in are kept",
    )


def title_of(question: str) -> str:
    """Return the title of a conversation that begins with a question: its beginning, in one line."""
    text = " ".join(question.split())
    return text if len(text) <= _TITLE_CHARACTERS else f"{text[:_TITLE_CHARACTERS].rstrip()}…"


class KeptConversation(BaseModel, frozen=True):
    """What became of a turn of a conversation."""

    id: str
    title: str
    saved: bool = Field(description="Whether the question and the answer were added to the conversation")
    reason: str | None = Field(default=None, description="Why they were not")
    entry: str | None = Field(default=None, description="Names the turn in its conversation")
    removed: str | None = Field(default=None, description="Which older turn or conversation gave way to it, if any")


class AskResponse(SearchReport, Answer):
    """The answer, its sources, and how the search for them went."""

    closest: list[ClosestDocument] = Field(
        default_factory=list,
        description="Without an answer: the documents that the search ranks first, at most three, each with its best"
        " passage",
    )
    conversation: KeptConversation | None = Field(
        default=None, description="Whether the answer is kept; null if the request names no conversation"
    )


class SourcesEvent(SearchReport):
    """Event ``sources``, the first: what the answerer receives."""

    question: str
    searched_question: str | None = None
    sources: list[Source]
    complete: bool = Field(description="False if a slice failed or timed out: sources may be missing")
    retrieval_ms: float


class ErrorEvent(BaseModel):
    """Event ``error``: why there will be no ``done``."""

    error: ErrorDetail


StreamEvent = SourcesEvent | TokenEvent | CitationEvent | SupportEvent | AskResponse | ErrorEvent

EVENTS: Final[Mapping[str, type[BaseModel]]] = {
    "sources": SourcesEvent,
    "token": TokenEvent,
    "citation": CitationEvent,
    "support": SupportEvent,
    "done": AskResponse,
    "error": ErrorEvent,
}
"""The events of a stream by name, with their data. ``sources`` comes first; ``done`` or ``error`` comes last."""
