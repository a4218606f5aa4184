"""Documents as a program asks for them and is answered about them, as JSON."""

import re
from pathlib import PurePosixPath
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from ragstack_common.documents import SIDECAR_SUFFIX, SUFFIXES, leaves_its_bucket
from ragstack_common.registry.records import AttributeValue, Status

MAX_KEY_CHARACTERS: Final = 1024
"""Source: Amazon S3 user guide, object keys. A document's may be much shorter; that depends on the bucket's name."""

MAX_TYPE_CHARACTERS: Final = 200

_TYPE_PATTERN: Final = r"[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]*/[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]*( ?; ?[A-Za-z0-9=_.+\"-]+)*"

_REPLACED_BY_S3: Final = "${filename}"
"""In the fields of a form S3 puts the uploaded file's own name for it."""

_FIRST_PRINTABLE: Final = " "
_DELETE: Final = "\x7f"


def _text_of_a_key(value: str) -> str:
    if any(character < _FIRST_PRINTABLE or character == _DELETE for character in value):
        raise PydanticCustomError("key", "Leave out control characters, such as line breaks")
    if _REPLACED_BY_S3 in value:
        raise PydanticCustomError("key", "Leave out ${filename}, for which S3 would put another name")
    return value


def _name_of_a_document(value: str) -> str:
    if value.endswith("/"):
        raise PydanticCustomError("key", "Write the name of a file, not of a folder")
    if value.endswith(SIDECAR_SUFFIX):
        raise PydanticCustomError("key", "A name with this end is a sidecar's: give the document's attributes instead")
    if PurePosixPath(value).suffix.lower() not in SUFFIXES:
        known = ", ".join(sorted(SUFFIXES))
        raise PydanticCustomError(
            "key", "The knowledge base does not read this type; it reads {known}", {"known": known}
        )
    return value


def _media_type(value: str) -> str:
    if not re.fullmatch(_TYPE_PATTERN, value):
        raise PydanticCustomError("media_type", "Write a media type, such as text/markdown")
    return value


def _without_folder(value: str) -> str:
    if "/" in value:
        raise PydanticCustomError("key", "Write folders as prefix, or the whole name as key")
    return value


_KeyText = Annotated[str, Field(min_length=1, max_length=MAX_KEY_CHARACTERS), AfterValidator(_text_of_a_key)]
_DocumentName = Annotated[_KeyText, AfterValidator(_name_of_a_document)]

Time = Annotated[str, Field(json_schema_extra={"format": "date-time"}, examples=["2026-02-03T04:05:06.789Z"])]
"""ISO 8601, in UTC."""

WrittenStatus = Literal[
    "WAITING", "SUBMITTING", "INDEXING", "DELETING", "INDEXED", "PARTIALLY_INDEXED", "FAILED", "DELETED"
]
"""Those that the registry holds. UPLOADED is found out by looking into the bucket, for one document at a time."""


class UploadRequest(BaseModel):
    """A document that is to be uploaded. A name that is not listed here is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    key: _DocumentName | None = Field(default=None, description="The document's whole name in the bucket")
    filename: Annotated[_DocumentName, AfterValidator(_without_folder)] | None = Field(
        default=None, description="Or the last part of it, with the folders before it as prefix"
    )
    prefix: Annotated[str, Field(max_length=MAX_KEY_CHARACTERS), AfterValidator(_text_of_a_key)] | None = Field(
        default=None, description="Folders, with or without slashes at both ends"
    )
    content_type: Annotated[str, AfterValidator(_media_type)] = Field(
        max_length=MAX_TYPE_CHARACTERS, description="The upload must have the same", examples=["application/pdf"]
    )
    size: int = Field(ge=1, strict=True, description="Bytes of the document; the upload must have as many")
    attributes: dict[str, Any] | None = Field(
        default=None,
        description="Name to text, number, boolean or list of texts. They are the document's as soon as this is "
        "answered, also of one that is already there; {} takes away those that it has, and left out they stay",
        examples=[{"corpus": "people", "version": "2"}],
    )

    @model_validator(mode="after")
    def _has_one_name(self) -> Self:
        if (self.key is None) == (self.filename is None):
            raise PydanticCustomError("name", "Give either key or filename")
        if self.prefix is not None and self.filename is None:
            raise PydanticCustomError("name", "A prefix goes with filename; key is the whole name")
        if leaves_its_bucket(self.name):
            raise PydanticCustomError("name", "Leave out the .. that leads out of the bucket: S3 takes no such key")
        return self

    @property
    def name(self) -> str:
        """The key that is asked for."""
        folder = (self.prefix or "").strip("/")
        return self.key or (f"{folder}/{self.filename}" if folder else f"{self.filename}")


class PresignedPost(BaseModel):
    """Permission to upload: a form of these fields, and after them the file as the field ``file``."""

    url: str = Field(description="Where the form (multipart/form-data) is posted")
    fields: dict[str, str]
    size: int = Field(description="Bytes that the file must have; one of another size is refused")
    expires_at: Time


class UploadAnswer(BaseModel):
    """Where the document will be, and how it gets there."""

    id: str = Field(description="For GET /api/documents/{id}, which knows it a moment after the upload")
    uri: str
    key: str
    upload: PresignedPost
    sidecar_uri: str | None = Field(description="The sidecar that was written with the attributes")


class DocumentSummary(BaseModel):
    """A document, and how far it has come."""

    id: str
    uri: str
    key: str
    status: Status = Field(description="UPLOADED: its event has not been read yet")
    reason: str | None = Field(description="Why, where there is something to say")
    searchable: bool = Field(description="Whether searches find it as it is described here")
    size: int | None = Field(description="Bytes; null where there is no such object any more")
    etag: str | None
    version_id: str | None
    corpus: str | None
    attributes: dict[str, AttributeValue]
    attempts: int = Field(description="Submissions to the knowledge base since it was last taken up")
    last_modified: Time | None = Field(description="When the bucket took the object")
    received_at: Time | None = Field(description="When the event was read that the status is due to")
    updated_at: Time | None = Field(description="When something was last noted about it")
    finished_at: Time | None = Field(description="When it got to its final status; null on the way")


class DocumentList(BaseModel):
    """A page of documents, by URI."""

    documents: list[DocumentSummary]
    next_token: str | None = Field(description="Asks for what comes after; null at the end, and only there")
    unreadable: list[str] = Field(
        default=[], description="What is wrong with records of this page that cannot be read, and what to do"
    )


class HistoryLine(BaseModel):
    """What a document became."""

    at: Time
    status: Status
    reason: str | None


class DocumentDetail(DocumentSummary):
    """A document with its history."""

    created_at: Time | None = Field(description="When the registry first heard of it")
    history: list[HistoryLine] = Field(description="The last transitions, oldest first")
    knowledge_base_status: str | None = Field(description="What the knowledge base last said of it")
    again: bool = Field(description="Whether something changed since, so that it will be looked at again")
    waiting_for: str | None = Field(description="What happens next; null where nothing does")


class FacetValue(BaseModel):
    """A value, and how many searchable documents have it."""

    value: str | int | float | bool
    documents: int


class Facet(BaseModel):
    """An attribute, with its values in their natural order."""

    key: str
    values: list[FacetValue]


class Facets(BaseModel):
    """What searchable documents can be filtered by."""

    facets: list[Facet]
    documents: int = Field(description="How many are searchable")
