"""The responses about documents and their attributes."""

from typing import Literal

from pydantic import BaseModel, Field

from ragstack_common.core.times import Time
from ragstack_common.registry.records import AttributeValue, Status

WrittenStatus = Literal[
    "WAITING", "SUBMITTING", "INDEXING", "DELETING", "INDEXED", "PARTIALLY_INDEXED", "FAILED", "DELETED"
]
"""The statuses in the registry. UPLOADED comes from looking into the bucket, for one document at a time."""


class DocumentSummary(BaseModel):
    """A document and its status."""

    id: str
    uri: str
    key: str
    status: Status = Field(description="UPLOADED: the event of the upload has not been read yet")
    reason: str | None = Field(description="Why the document has this status; null if there is nothing to add")
    searchable: bool = Field(description="Whether searches find the document as described here")
    size: int | None = Field(description="Bytes; null if the object no longer exists")
    etag: str | None
    version_id: str | None
    corpus: str | None
    attributes: dict[str, AttributeValue]
    attempts: int = Field(description="Submissions to the knowledge base since the last change")
    last_modified: Time | None = Field(description="When the object was written to the bucket")
    received_at: Time | None = Field(description="When the event was read that led to this status")
    updated_at: Time | None = Field(description="When the registry's record was last written")
    finished_at: Time | None = Field(description="When the document reached its final status; null before")


class DocumentList(BaseModel):
    """A page of documents, by URI."""

    documents: list[DocumentSummary]
    next_token: str | None = Field(description="Requests the next page; null on the last page")


class Download(BaseModel):
    """Where a document's file can be downloaded."""

    url: str = Field(description="Sends the file to whoever has it, until it expires")
    name: str = Field(description="The name that the file gets")
    size: int = Field(description="Bytes of the file")
    expires_at: Time


class FoundDocument(BaseModel):
    """A document that has the words that were looked for."""

    id: str
    key: str
    name: str = Field(description="The last part of the key")
    folder: str = Field(description="The key before the name, with its last slash; empty without a folder")
    status: Status
    reason: str | None = Field(description="Why the document has this status; null if there is nothing to add")
    attributes: dict[str, AttributeValue] = Field(description="Those whose values have words that were looked for")
    matched: list[tuple[int, int]] = Field(
        description="Where the name has them: offsets of the first character, and after the last"
    )


class FoundDocuments(BaseModel):
    """The documents that have each of the words that were looked for, best first."""

    documents: list[FoundDocument]
    more: bool = Field(description="Whether more documents have them: look for more words")


class HistoryLine(BaseModel):
    """A transition to another status."""

    at: Time
    status: Status
    reason: str | None


class ReceiptLine(BaseModel):
    """How many of something a file has, and how many are in the index."""

    what: str = Field(description="In the plural", examples=["pages", "cells", "words"])
    number: int
    read: int = Field(description="How many of them are in the index")
    why: str | None = Field(description="Why the others are not; null if all are, or if not_read says why")


class LeftOutLine(BaseModel):
    """Something that the file has and the index has not on purpose."""

    what: str = Field(description="In the plural", examples=["comments", "hidden sheets", "pictures"])
    number: int
    why: str


class NotReadPart(BaseModel):
    """A part of a file whose text is not in the index, or not all of it."""

    part: str = Field(examples=["page 7"])
    words: int = Field(description="Words that it has; 0 for a picture, whose words are unknown")
    read: int = Field(description="How many of its words are in the index")
    why: str
    example: str | None = Field(description="The beginning of a text that is missing")


class RecognizedPart(BaseModel):
    """A part of the file whose text was recognized in a picture (OCR)."""

    part: str
    confidence: float = Field(description="Mean confidence of its words, 0 to 1")


class DocumentReceipt(BaseModel):
    """What the file has against what is in the index: it was read a second time in another way, and compared."""

    compared_at: Time
    chunks: int = Field(description="Chunks of the document that the comparison found in the index")
    words: int = Field(description="Words that the file shows")
    compared: int = Field(description="How many of them were looked for; of very long documents a sample")
    read: int = Field(description="How many of those are in the index")
    complete: bool = Field(description="Whether everything that the file shows is in the index")
    counted: list[ReceiptLine]
    left_out: list[LeftOutLine] = Field(description="What is no part of the text")
    not_read: list[NotReadPart] = Field(description="The first parts that are not in the index, or not completely")
    parts_not_read: int = Field(description="How many such parts there are")
    recognized: list[RecognizedPart] = Field(
        description="The parts whose text was recognized in pictures with least confidence, the least certain first"
    )
    unreadable: str | None = Field(description="Why the file could not be compared; null if it was")


class DocumentDetail(DocumentSummary):
    """A document with its history."""

    created_at: Time | None = Field(description="When the registry first recorded the document")
    history: list[HistoryLine] = Field(description="The last transitions, oldest first")
    receipt: DocumentReceipt | None = Field(
        description="What was read of this version; null until it was compared with the index"
    )
    knowledge_base_status: str | None = Field(description="The last status that the knowledge base reported")
    again: bool = Field(description="Whether the object changed since, so that the document will be processed again")
    waiting_for: str | None = Field(description="What happens next; null if nothing does")


class FacetValue(BaseModel):
    """A value, and how many searchable documents have it."""

    value: str | int | float | bool
    documents: int


class Facet(BaseModel):
    """An attribute, with its values on this page in their natural order."""

    key: str
    values: list[FacetValue]


class Facets(BaseModel):
    """The attributes by which searches can be filtered."""

    facets: list[Facet] = Field(description="The last one continues on the next page, if there is one")
    documents: int = Field(description="How many documents are searchable")
    next_token: str | None = Field(description="Requests the next page; null on the last page")
