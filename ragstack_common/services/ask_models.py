"""Questions: requests, responses and events as JSON."""

from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, Field

from ragstack_common.answers.answer import Answer, CitationEvent, Source, SupportEvent, TokenEvent
from ragstack_common.answers.models.protocol import MIN_CONFIDENCE, Role
from ragstack_common.services.closest import ClosestDocument
from ragstack_common.services.error_models import ErrorDetail
from ragstack_common.services.search_models import RequestOptions, SearchReport
from ragstack_common.settings.limits import MAX_QUERY_CHARACTERS, MAX_TURNS
from ragstack_common.text.languages import LANGUAGE_NAMES, language_name


class ChatTurn(BaseModel, extra="forbid", frozen=True):
    """An earlier message of the conversation."""

    role: Role
    content: str = Field(max_length=200_000)


class AskRequest(RequestOptions):
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


class AskResponse(SearchReport, Answer):
    """The answer, its sources, and how the search for them went."""

    closest: list[ClosestDocument] = Field(
        default_factory=list,
        description="Without an answer: the documents that the search ranks first, at most three, each with its best"
        " passage",
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
