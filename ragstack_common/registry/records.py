"""A document as the registry knows it, and its item in the table.

Attributes that keys, conditions and indexes use are attributes of the item; the others are stored as JSON texts.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, NamedTuple, Self, TypeAlias

from pydantic import TypeAdapter

from ragstack_common.core.artefacts import text_of
from ragstack_common.registry.receipts import Receipt
from ragstack_common.registry.table import (
    CORPUS,
    DOCUMENT,
    FULL_URI,
    KIND,
    MAX_KEY_BYTES,
    REVISION,
    URI,
    WRITE,
    Item,
    document_id,
    document_key,
    from_item,
    to_item,
    uri_in_indexes,
)

AttributeValue: TypeAlias = str | int | float | bool | list[str]
Attributes: TypeAlias = Mapping[str, AttributeValue]


class Status(StrEnum):
    """The state of a document. UPLOADED is never stored: it describes an object whose event was not read yet."""

    UPLOADED = "UPLOADED"
    WAITING = "WAITING"
    SUBMITTING = "SUBMITTING"
    INDEXING = "INDEXING"
    DELETING = "DELETING"
    INDEXED = "INDEXED"
    PARTIALLY_INDEXED = "PARTIALLY_INDEXED"
    FAILED = "FAILED"
    DELETED = "DELETED"


SEARCHABLE: Final = frozenset({Status.INDEXED, Status.PARTIALLY_INDEXED})
WORKED_ON: Final = (Status.SUBMITTING, Status.INDEXING, Status.DELETING)
FINAL: Final = frozenset({*SEARCHABLE, Status.FAILED, Status.DELETED})


class OperationKind(StrEnum):
    """What the knowledge base is asked to do with a document."""

    INGEST = "INGEST"
    DELETE = "DELETE"


ABANDONED: Final = (
    "The function that worked on it stopped early; its message is delivered again within minutes;"
    " `ragstack replay` checks the document now"
)
"""What a document waits for if :meth:`DocumentRecord.is_abandoned` is true."""


@dataclass(frozen=True)
class Operation:
    """An operation on a document. A document has one at a time.

    Attributes:
        lease_until: Until then only the function that claimed the document calls the knowledge base for it. Afterwards
            another function takes over, unless the operation was accepted.
        accepted_at: When the knowledge base accepted it; None before. From then on it is followed by messages.
    """

    id: str
    kind: OperationKind
    lease_until: float
    accepted_at: float | None = None


@dataclass(frozen=True)
class Conversion:
    """The converted text of a document, as its object describes it.

    Attributes:
        etag: Entity tag of the text.
        refusal: Why the document could not be converted; the text is empty then.
        has_words: Whether there is an object with recognized words.
        recognition: The setting of text recognition on which the text depends; None if it does not.
    """

    etag: str
    refusal: str | None = None
    has_words: bool = False
    recognition: str | None = None


@dataclass(frozen=True)
class Observation:
    """What the bucket held for a document and its sidecar at one moment. Without an ETag there was no such object.

    Entity tags include their quotes. Versions are None if the bucket keeps none. The size is in bytes. The label says
    who sees the document. The refusal says why the document cannot be submitted, such as an error in its sidecar. The
    conversion is that of this version; *needs_conversion* is true if the document must be submitted as converted text
    and there is none.
    """

    etag: str | None = None
    version_id: str | None = None
    size: int = 0
    last_modified: float | None = None
    sidecar_etag: str | None = None
    sidecar_version_id: str | None = None
    sidecar_last_modified: float | None = None
    attributes: Attributes = field(default_factory=dict)
    label: str | None = None
    refusal: str | None = None
    conversion: Conversion | None = None
    needs_conversion: bool = False

    @classmethod
    def from_head(cls, head: Mapping[str, Any], **others: Any) -> Self:
        """Read S3's response to HEAD; the others are about the sidecar."""
        return cls(
            etag=head["ETag"],
            version_id=head.get("VersionId"),
            size=head["ContentLength"],
            last_modified=head["LastModified"].timestamp(),
            **others,
        )

    @property
    def is_present(self) -> bool:
        """Whether there was an object."""
        return self.etag is not None

    @property
    def is_converted(self) -> bool:
        """Whether its converted text is submitted."""
        return self.conversion is not None and self.conversion.refusal is None

    def is_the_same_as(self, other: "Observation") -> bool:
        """Whether both saw the same versions of document, sidecar and converted text.

        Equal bytes are not enough: the knowledge base may have read another version in between.
        """
        return replace(self, **_NOT_COMPARED) == replace(other, **_NOT_COMPARED)


_NOT_COMPARED: Final[Mapping[str, Any]] = {
    "size": 0,
    "attributes": {},
    "label": None,
    "refusal": None,
    "needs_conversion": False,
}


class Transition(NamedTuple):
    """One line of a document's history."""

    at: float
    status: Status
    reason: str | None = None


@dataclass(frozen=True)
class DocumentRecord:
    """A document and its state.

    Attributes:
        revision: Increases by one with each write; 0 for a record that is not in the table.
        observed: What the current operation, or the final state, is about.
        label: The access label in effect: that of the newest observation, also while an operation is about another.
        sequencer: That of the document's newest processed event; hexadecimal, empty for none. The sidecar has its own.
        operation: The current operation, or the last one.
        again: Whether something changed after the operation was accepted, so that the document must be checked again.
        attempts: Submissions of the observed version.
        in_knowledge_base: Whether the knowledge base may know the document, even as a failed one.
        is_converted: Whether it knows the document by the name of its converted text.
        convert: Entity tag of the version that is to be converted although the knowledge base reads its format.
        knowledge_base_status: The last status that the knowledge base reported, at *knowledge_base_updated_at*.
        receipt: What the index has of the observed version; None until it was compared.
        counted: What the catalogue counts the document under: pairs of an attribute and the JSON text of a value.
        created_at: When the registry first recorded it.
        received_at: When the event that led to the current state was read.
        expires_at: When the registry may forget it; None for never.
        history: The last transitions, oldest first.
    """

    uri: str
    revision: int = 0
    status: Status = Status.WAITING
    reason: str | None = None
    observed: Observation = field(default_factory=Observation)
    label: str | None = None
    sequencer: str = ""
    sidecar_sequencer: str = ""
    operation: Operation | None = None
    again: bool = False
    attempts: int = 0
    in_knowledge_base: bool = False
    is_converted: bool = False
    convert: str | None = None
    knowledge_base_status: str | None = None
    knowledge_base_updated_at: float | None = None
    receipt: Receipt | None = None
    counted: tuple[tuple[str, str], ...] = ()
    created_at: float = 0.0
    received_at: float = 0.0
    updated_at: float = 0.0
    finished_at: float | None = None
    expires_at: float | None = None
    history: tuple[Transition, ...] = ()

    @property
    def id(self) -> str:
        """Derived from the URI."""
        return document_id(self.uri)

    @property
    def indexed_uri(self) -> str:
        """The URI by which the knowledge base knows the document."""
        return text_of(self.uri) if self.is_converted else self.uri

    @property
    def corpus(self) -> str | None:
        """The corpus, if the attributes name one."""
        corpus = self.observed.attributes.get("corpus")
        return corpus if isinstance(corpus, str) else None

    @property
    def is_final(self) -> bool:
        """Whether the state is final."""
        return self.status in FINAL

    @property
    def is_followed(self) -> bool:
        """Whether the knowledge base accepted an operation that has not ended."""
        return self.status in WORKED_ON and self.operation is not None and self.operation.accepted_at is not None

    def is_claimed(self, now: float) -> bool:
        """Whether a function may be calling the knowledge base about the document at this moment."""
        return self._is_unaccepted and self.operation is not None and now < self.operation.lease_until

    def is_abandoned(self, now: float) -> bool:
        """Whether the function that claimed the document stopped early: its message will be delivered again."""
        return self._is_unaccepted and not self.is_claimed(now)

    @property
    def _is_unaccepted(self) -> bool:
        return self.status in WORKED_ON and self.operation is not None and self.operation.accepted_at is None


_RECORD: Final = TypeAdapter(DocumentRecord)
_JSON: Final = ("attributes", "conversion", "counted", "history", "operation", "receipt")

_FLAGS: Final = ("is_converted", "needs_conversion")
"""Stored only if they are true: few documents are converted."""


def record_to_item(record: DocumentRecord, write: str) -> Item:
    """Return the item that stores a record; *write* is the id of the write."""
    stored: dict[str, Any] = {**vars(record.observed), **vars(record)}
    del stored["observed"]
    stored["operation"] = record.operation and asdict(record.operation)
    stored["receipt"] = record.receipt and asdict(record.receipt)
    stored["conversion"] = record.observed.conversion and asdict(record.observed.conversion)
    for name in _FLAGS:
        stored[name] = stored[name] or None
    for name in _JSON:
        if stored[name] is not None:
            stored[name] = json.dumps(stored[name], ensure_ascii=False, separators=(",", ":"))
    corpus = record.corpus or ""
    stored |= {
        KIND: DOCUMENT,
        WRITE: write,
        URI: uri_in_indexes(record.uri),
        FULL_URI: record.uri,
        # A corpus that is too long for a key is left out of its index.
        CORPUS: corpus if len(corpus.encode()) <= MAX_KEY_BYTES else None,
    }
    return {**document_key(record.id), **to_item(stored)}


def record_from_item(item: Mapping[str, Any]) -> DocumentRecord:
    """Return the record that an item stores, or as much of it as an index repeats; raises ValueError."""
    stored = from_item(item)
    for name in _JSON:
        if name in stored:
            stored[name] = json.loads(stored[name])
    return _RECORD.validate_python({**stored, URI: stored.get(FULL_URI), "observed": stored})


def unknown_record(uri: str, item: Mapping[str, Any]) -> DocumentRecord:
    """Return the record of a document whose item is not valid: the bucket decides what happens next.

    The knowledge base may have the document. The revision is the item's, so that a write replaces the item.
    """
    revision = int(item.get(REVISION, {}).get("N", 0))
    return DocumentRecord(uri, revision, reason="Its record in the registry is not valid", in_knowledge_base=True)
