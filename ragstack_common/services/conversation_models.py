"""Conversations: requests and responses as JSON."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, StringConstraints

from ragstack_common.core.times import Time

MAX_TITLE_CHARACTERS = 200

Withheld = Literal["rights", "deleted"]


class TitleChange(BaseModel, extra="forbid", frozen=True, defer_build=True):
    """Another title."""

    title: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_TITLE_CHARACTERS)] = (
        Field(description="In place of the beginning of the first question")
    )


class _Kept(BaseModel, defer_build=True):
    id: str
    title: str
    created_at: Time
    updated_at: Time = Field(description="When its last answer was given")
    expires_at: Time = Field(description="When it is deleted, unless another question is asked in it")
    shared: bool = Field(description="Whether there is a link to it")


class ConversationSummary(_Kept):
    """A conversation without its turns."""

    turns: int = Field(description="How many turns it has")


class ConversationList(BaseModel, defer_build=True):
    """A page of the caller's conversations, newest first."""

    conversations: list[ConversationSummary]
    next_token: str | None = Field(description="Requests the next page; null on the last page")
    enabled: bool = Field(
        description="Whether the caller's conversations are saved: the setting is on, and the caller is a person"
        " who signed in"
    )
    days: int = Field(description="How many days conversations are kept after their last turn; 0 for none")
    max_conversations: int = Field(description="Limit of one person. The next conversation replaces the oldest")
    max_turns: int = Field(description="Limit of one conversation. The next turn replaces the oldest")


class ConversationTurn(BaseModel, defer_build=True):
    """A question, and its answer if the caller may still see it."""

    entry: str = Field(description="Names the turn in its conversation")
    at: Time = Field(description="When the answer was given")
    question: str
    asked: dict[str, Any] = Field(
        description="The other members of the request, without the conversation before it: together with the question,"
        " they repeat the request"
    )
    response: dict[str, Any] | None = Field(
        description="The answer as it was given, with the sources that it cites; null if it is withheld"
    )
    withheld: Withheld | None = Field(
        description="Why there is no response. rights: the caller may not see every document from which the answer was"
        " made. deleted: one of them was deleted"
    )
    changed: list[str] = Field(description="S3 URIs of documents that have changed since the answer was made from them")


class Conversation(_Kept):
    """A conversation with its turns, and the answers that the caller may see."""

    owner: str = Field(description="Whose conversation it is, as in GET /api/me", examples=["user:alice"])
    turns: list[ConversationTurn] = Field(description="Its turns, oldest first")
    withheld_turns: int = Field(description="Number of turns without a response, on all pages")
    next_token: str | None = Field(
        description="Requests the turns before the first one; null if there are none. A response has 4 MB of them"
    )


class ConversationLink(BaseModel, defer_build=True):
    """The link to a shared conversation."""

    link: str | None = Field(description="Its id in GET /api/shared/{id}; null if the conversation is not shared")


class DeletedConversations(BaseModel, defer_build=True):
    """How many conversations were deleted."""

    deleted: int
