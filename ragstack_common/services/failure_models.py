"""Requests and responses of the operator routes about failures."""

from typing import Annotated, Final

from pydantic import BaseModel, Field

from ragstack_common.core.times import Time

MAX_NAMES: Final = 1000
"""Maximum number of documents or messages in a request."""


class FailedDocument(BaseModel):
    """A document that failed, or that a dead letter is about."""

    id: str
    uri: str
    status: str = Field(description="The document's status now; UNKNOWN if the registry does not know it")
    reasons: list[str] = Field(description="Why it failed: the registry's reason, then the causes of the dead letters")
    attempts: int = Field(description="Submissions to the knowledge base since the last change")
    since: Time
    message_ids: list[str] = Field(description="The dead letters about it")
    advice: str = Field(description="What to do next")
    can_replay: bool = Field(description="Whether the advice is to replay it")


class Message(BaseModel):
    """A dead letter."""

    message_id: str
    sent_at: Time = Field(description="When it was put into the dead-letter queue")
    cause: str | None = Field(description="Why it is in the dead-letter queue")
    body: str
    notes: list[str] = Field(default=[], description="What stays wrong if the message is discarded")


class FailureList(BaseModel):
    """A page of failures. The first page has the dead letters; every page has failed documents by URI.

    A document with a dead letter is on the first page, and again on the page of its URI if its status is FAILED.
    """

    documents: list[FailedDocument]
    unreadable: list[Message] = Field(description="Messages that name no document")
    complete: bool = Field(description="False if the dead-letter queue has more messages than one request reads")
    next_token: str | None = Field(description="Requests the next page; null on the last page")


class ReplayRequest(BaseModel, extra="forbid", frozen=True):
    """What to replay. Without documents: every dead letter. Unknown names are rejected."""

    documents: list[Annotated[str, Field(pattern="^s3://.+/.", max_length=2048)]] = Field(
        default=[], max_length=MAX_NAMES, description="Only these documents, by URI"
    )
    failed: bool = Field(default=False, description="Also every FAILED document without a dead letter")
    next_token: str | None = Field(default=None, max_length=4096, description="Continues an earlier replay")


class ReplayedDocument(BaseModel):
    """A document that was sent to the ingestion queue."""

    id: str
    uri: str
    updated_at: Time | None = Field(
        description="When its record was last written before the replay; null if the registry did not know it. A later"
        " value in GET /api/documents/{id} means that a function has read the message"
    )


class ReplayAnswer(BaseModel):
    """What was sent again, and which dead letters remain."""

    documents: list[ReplayedDocument]
    deleted: int = Field(description="Dead letters that were deleted because their content was sent")
    unreadable: int = Field(description="Dead letters that remain because they are unreadable")
    shared: int = Field(description="Dead letters that remain because they also name documents that were not chosen")
    next_token: str | None = Field(description="Continues the replay with the same request; null at the end")


class DiscardRequest(BaseModel, extra="forbid", frozen=True):
    """Dead letters to delete. Unknown names are rejected."""

    message_ids: list[str] = Field(default=[], max_length=MAX_NAMES)
    unreadable: bool = Field(default=False, description="Also every message that names no document")
    dry_run: bool = Field(default=False, description="Only return the messages; delete nothing")


class DiscardAnswer(BaseModel):
    """The messages that were deleted, or with dry_run would be."""

    messages: list[Message]
