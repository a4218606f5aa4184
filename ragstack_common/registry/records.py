"""A document as the registry knows it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, TypeAlias

from ragstack_common.registry.table import document_id

AttributeValue: TypeAlias = str | int | float | bool | list[str]
Attributes: TypeAlias = Mapping[str, AttributeValue]


class Status(StrEnum):
    """Where a document stands. The last five are final: nothing goes on by itself.

    ``UPLOADED`` is never written: it is what is said of an object whose event has not been read yet.
    """

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
FINAL: Final = frozenset({*SEARCHABLE, Status.FAILED, Status.DELETED})


class OperationKind(StrEnum):
    """What the knowledge base is asked to do with a document."""

    INGEST = "INGEST"
    DELETE = "DELETE"


ABANDONED: Final = (
    "The message of a function that did not get to its end, to be delivered again, minutes later;"
    " `ragstack replay` has the document looked at now"
)
"""What a document waits for of which :meth:`DocumentRecord.is_abandoned` is true."""


@dataclass(frozen=True)
class Operation:
    """What is being done about a document; there is one at a time.

    Attributes:
        id: Names it, in the registry and in the queue of those that are followed.
        kind: To ingest, or to delete.
        lease_until: Seconds since 1970. Before it, nobody but the function that claimed the document calls the
            knowledge base for it; after it, whoever comes next takes over, unless the operation was accepted.
        accepted_at: When the knowledge base had accepted it; None before. From then on it is followed by messages.
    """

    id: str
    kind: OperationKind
    lease_until: float
    accepted_at: float | None = None


@dataclass(frozen=True)
class Observation:
    """What lay in the bucket for a document at one moment. Without an ETag there was no such object.

    Attributes:
        etag: The object's entity tag, quotes included.
        version_id: The object's version, where the bucket keeps versions.
        size: Bytes.
        last_modified: Seconds since 1970.
        sidecar_etag: Entity tag of the document's sidecar; None where there is none.
        sidecar_version_id: The sidecar's version, where the bucket keeps versions.
        sidecar_last_modified: Seconds since 1970.
        attributes: What the sidecar says.
        refusal: Why the document cannot be submitted as it is, such as what is wrong with its sidecar.
    """

    etag: str | None = None
    version_id: str | None = None
    size: int = 0
    last_modified: float | None = None
    sidecar_etag: str | None = None
    sidecar_version_id: str | None = None
    sidecar_last_modified: float | None = None
    attributes: Attributes = field(default_factory=dict)
    refusal: str | None = None

    @property
    def is_present(self) -> bool:
        """Whether there was an object."""
        return self.etag is not None

    def is_the_same_as(self, other: "Observation") -> bool:
        """Whether both saw the same versions of document and sidecar.

        Equal bytes are not enough: another version may have lain there in between, and been read by the knowledge base.
        """
        return self.versions == other.versions

    @property
    def versions(self) -> tuple[str | float | None, ...]:
        """What tells versions of document and sidecar apart."""
        document = (self.etag, self.version_id, self.last_modified)
        return (*document, self.sidecar_etag, self.sidecar_version_id, self.sidecar_last_modified)


@dataclass(frozen=True)
class Transition:
    """One line of a document's history.

    Attributes:
        at: Seconds since 1970.
        status: What the document became.
        reason: Why, where there is something to say.
    """

    at: float
    status: Status
    reason: str | None = None


@dataclass(frozen=True)
class DocumentRecord:
    """A document's life so far.

    Attributes:
        uri: ``s3://bucket/key``.
        revision: Goes up by one with each write; 0 for a record that was never written.
        status: Where it stands.
        reason: Why, where there is something to say.
        observed: What the current operation, or the final state, is about.
        sequencer: Of the newest event of the document that was taken into account; hexadecimal, empty for none.
        sidecar_sequencer: The same for its sidecar.
        operation: What is being done, or was done last.
        again: Whether something happened since the operation was accepted, so that it must be looked at again.
        attempts: Submissions of what was observed.
        in_knowledge_base: Whether the knowledge base may know the document, be it as one that failed.
        knowledge_base_status: What it last said.
        knowledge_base_updated_at: As of when, in seconds since 1970.
        counted: What the catalogue counts the document under: pairs of an attribute and the JSON text of a value.
        created_at: When the registry first heard of it, in seconds since 1970.
        received_at: When the event was read that the current state is due to.
        updated_at: When the record was last written.
        finished_at: When it got to its final state; None on the way.
        expires_at: After which the registry may forget it; None never.
        history: The last transitions, oldest first.
    """

    uri: str
    revision: int = 0
    status: Status = Status.WAITING
    reason: str | None = None
    observed: Observation = field(default_factory=Observation)
    sequencer: str = ""
    sidecar_sequencer: str = ""
    operation: Operation | None = None
    again: bool = False
    attempts: int = 0
    in_knowledge_base: bool = False
    knowledge_base_status: str | None = None
    knowledge_base_updated_at: float | None = None
    counted: tuple[tuple[str, str], ...] = ()
    created_at: float = 0.0
    received_at: float = 0.0
    updated_at: float = 0.0
    finished_at: float | None = None
    expires_at: float | None = None
    history: tuple[Transition, ...] = ()

    @property
    def id(self) -> str:
        """The document's id."""
        return document_id(self.uri)

    @property
    def corpus(self) -> str | None:
        """The corpus it belongs to, where its attributes name one."""
        return _text(self.observed.attributes.get("corpus"))

    @property
    def is_final(self) -> bool:
        """Whether nothing goes on by itself."""
        return self.status in FINAL

    @property
    def is_followed(self) -> bool:
        """Whether the knowledge base accepted an operation whose end is awaited."""
        return self._is_worked_on and self.operation is not None and self.operation.accepted_at is not None

    def is_claimed(self, now: float) -> bool:
        """Whether a function is at this moment calling the knowledge base about the document, as far as it is known."""
        claimed = self._is_worked_on and not self.is_followed
        return claimed and self.operation is not None and now < self.operation.lease_until

    def is_abandoned(self, now: float) -> bool:
        """Whether a function claimed the document and did not get to the end: its message will be delivered again."""
        claimed = self._is_worked_on and not self.is_followed
        return claimed and self.operation is not None and now >= self.operation.lease_until

    @property
    def _is_worked_on(self) -> bool:
        return self.status in (Status.SUBMITTING, Status.INDEXING, Status.DELETING)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
