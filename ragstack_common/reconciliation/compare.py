"""How registry, bucket and knowledge base differ. Nothing here reads or writes anything.

The registry is read first. What the bucket and the knowledge base hold is then compared with it page by page, and
what they lack is known once all of their pages were read. What is found are candidates: a document may have changed in
the meantime, so its record is read again before a difference is reported.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Any, Final, NamedTuple

from ragstack_common.access.policy import AccessPolicy
from ragstack_common.access.tenants import KnowledgeBaseIds, KnowledgeBases
from ragstack_common.core.artefacts import document_of, is_converted
from ragstack_common.core.uris import fault_of_uri, is_program_file, s3_uri
from ragstack_common.registry.lifecycle import OUTCOMES
from ragstack_common.registry.receipts import READERS
from ragstack_common.registry.records import SEARCHABLE, DocumentRecord, Status
from ragstack_common.settings.ingestion import OFF, ReconcileSettings

CLOCK_SECONDS: Final = 10.0
"""Tolerance for clock skew between functions, and for the duration of a write."""

SAMPLES_PER_KIND: Final = 20
"""Maximum number of samples. Each has at most 1.1 KB, and a job must fit into an item of 400 KB."""

OUT_OF_REACH: Final = "out_of_reach"
"""The knowledge base has a document from a synchronisation under a URI that direct calls do not take. Only another
synchronisation, after the object was deleted, removes it."""

_FOUND: Final = frozenset(status for status, outcome in OUTCOMES.items() if outcome in SEARCHABLE)
_REFUSED: Final = frozenset(status for status, outcome in OUTCOMES.items() if outcome is Status.FAILED)
_FINAL: Final = frozenset({*OUTCOMES, "NOT_FOUND"})


class Difference(StrEnum):
    """How bucket, registry and knowledge base disagree about a document.

    A document on its way is not a difference, nor is a FAILED document that the knowledge base does not find.
    """

    NOT_IN_REGISTRY = "not_in_registry"
    """It is in the bucket, but the registry does not know it or has it as deleted."""
    CONTENT = "content"
    """Document or sidecar in the bucket are not the versions that the registry knows."""
    NOT_IN_BUCKET = "not_in_bucket"
    """The registry knows it, but it is not in the bucket."""
    UNKNOWN_IN_KNOWLEDGE_BASE = "unknown_in_knowledge_base"
    """The knowledge base has it, but neither the bucket nor the registry does."""
    NOT_SEARCHABLE = "not_searchable"
    """The registry says that it is searchable, but the knowledge base does not have it, or reports a failure."""
    SEARCHABLE = "searchable"
    """The registry says FAILED or DELETED, but the knowledge base still finds it, perhaps in an earlier version."""
    OTHER_KNOWLEDGE_BASE = "other_knowledge_base"
    """A knowledge base has it that is not the one of its tenant, or has it in two forms. It is deleted there."""
    LABEL = "label"
    """The access file gives it another access label than the one that it has."""
    READ_BEFORE = "read_before"
    """An earlier version of RAGStack read it, or other settings of its readers, or it was never compared with its file,
    or everything is read again. That is no fault, and counts as no difference in the metric."""
    CONVERTED_TEXT = "converted_text"
    """Its converted text is not in the bucket, or not the one that was indexed; or there is the text of a document that
    is not in the bucket."""
    STUCK = "stuck"
    """It is on its way, but no function continues; or its record in the registry is not valid."""


FORCED: Final = frozenset(
    {
        Difference.CONVERTED_TEXT,
        Difference.UNKNOWN_IN_KNOWLEDGE_BASE,
        Difference.NOT_SEARCHABLE,
        Difference.READ_BEFORE,
        Difference.SEARCHABLE,
        Difference.STUCK,
    }
)
"""Differences that a comparison of registry and bucket alone would not show."""


class Tally:
    """Counts names by kind, and keeps a few samples of each kind."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._samples: defaultdict[str, list[str]] = defaultdict(list)

    def add(self, kind: str, name: str) -> None:
        """Count a name."""
        self._counts[kind] += 1
        if self._counts[kind] <= SAMPLES_PER_KIND:
            self._samples[kind].append(name)

    @property
    def total(self) -> int:
        """How many names were counted."""
        return self._counts.total()

    def count(self, kind: str) -> int:
        """Return how many names of one kind were counted."""
        return self._counts[kind]

    def report(self) -> dict[str, Any]:
        """Return each kind with its count and samples."""
        return {
            kind: {"count": count, "samples": sorted(self._samples[kind])}
            for kind, count in sorted(self._counts.items())
        }


class ObjectKind(Enum):
    """What an object of the bucket is."""

    DOCUMENT = 0
    SIDECAR = 1
    TEXT = 2
    """The converted text of a document."""
    OTHER = 3
    """Something else that was made of a document."""


class BucketObject(NamedTuple):
    """An object of the bucket. All but documents have the URI of their document."""

    uri: str
    etag: str
    modified_at: float
    kind: ObjectKind


class IndexedDocument(NamedTuple):
    """A document of the knowledge base, with its status and the time of that status in seconds since 1970.

    *name* is the URI by which the knowledge base knows it.
    """

    name: str
    status: str
    updated_at: float

    @property
    def uri(self) -> str:
        """The URI of the document."""
        return document_of(self.name)


class Candidate(NamedTuple):
    """A document that seems to differ."""

    kind: Difference
    uri: str


class _State(Enum):
    """The state of a document in the registry, as far as the comparison is concerned."""

    UNKNOWN = 0
    MOVING = 1
    """On its way, or reported already: nothing more is reported."""
    SEARCHABLE = 2
    FAILED = 3
    DELETED = 4


_STATES: Final = {
    **dict.fromkeys(SEARCHABLE, _State.SEARCHABLE),
    Status.FAILED: _State.FAILED,
    Status.DELETED: _State.DELETED,
}


@dataclass(slots=True)
class _Known:
    """What the comparison remembers of a document."""

    state: _State = _State.UNKNOWN
    etag: str | None = None
    sidecar_etag: str | None = None
    is_converted: bool = False
    text_etag: str | None = None
    in_bucket: bool = False
    sidecar_in_bucket: bool = False
    text_in_bucket: str | None = None
    made_at: float = 0.0
    in_knowledge_base: bool = False


class Comparison:
    """Compares registry, bucket and knowledge base page by page, and yields at most one candidate per document.

    It remembers every document: a million with sidecars take 0.47 GB (measured) of the function's 1.7 GB. Attributes
    are the number of documents of the data source *elsewhere*, in other buckets, and those *out_of_reach*.
    """

    def __init__(
        self,
        settings: ReconcileSettings,
        started_at: float,
        quiet_since: float | None = None,
        policy: AccessPolicy | None = None,
        *,
        reads_again: bool = False,
    ) -> None:
        """Begin a comparison; raises ConfigurationError if settings and access file have different tenants.

        Events have waited for the end of a synchronisation *quiet_since* a time, if there was one. With
        *reads_again*, every document is read again.
        """
        self.elsewhere = 0
        self.out_of_reach = Tally()
        self._known: dict[str, _Known] = {}
        self._settings = settings
        self._policy = policy
        self._reads_again = reads_again
        self._knowledge_bases = KnowledgeBases.of(settings, policy)
        self._started_at = started_at
        self._settled_before = (quiet_since or started_at) - settings.settle_seconds
        self._prefix = s3_uri(settings.documents_bucket, "")

    def __len__(self) -> int:
        return len(self._known)

    def registry(self, records: Iterable[DocumentRecord]) -> Iterator[Candidate]:
        """Remember records; yield documents that are stuck."""
        for record in records:
            if not record.uri.startswith(self._prefix):
                self.elsewhere += 1
            elif record.is_final:
                state = _State.MOVING if self.is_new(record.updated_at) else _STATES[record.status]
                observed = record.observed
                if state is not _State.MOVING and self._has_other_label(record):
                    yield Candidate(Difference.LABEL, record.uri)
                    state = _State.MOVING
                elif state is not _State.MOVING and self._was_read_before(record):
                    yield Candidate(Difference.READ_BEFORE, record.uri)
                    state = _State.MOVING
                self._known[record.uri] = _Known(
                    state,
                    _plain(observed.etag),
                    _plain(observed.sidecar_etag),
                    record.is_converted,
                    _plain(observed.conversion.etag) if observed.conversion and record.is_converted else None,
                )
            else:
                self._known[record.uri] = _Known(_State.MOVING)
                if self._is_stuck(record):
                    yield Candidate(Difference.STUCK, record.uri)

    def bucket(self, objects: Iterable[BucketObject]) -> Iterator[Candidate]:
        """Note what is in the bucket; yield what the registry does not know, or knows in another version."""
        for each in objects:
            if each.kind in (ObjectKind.TEXT, ObjectKind.OTHER):
                known = self._known.setdefault(each.uri, _Known())
                known.made_at = max(known.made_at, each.modified_at)
                if each.kind is ObjectKind.TEXT:
                    known.text_in_bucket = _plain(each.etag)
                continue
            kind = self._sidecar(each) if each.kind is ObjectKind.SIDECAR else self._object(each)
            if kind is not None:
                self._known[each.uri].state = _State.MOVING
                if each.modified_at < self._settled_before:
                    yield Candidate(kind, each.uri)

    def strays(self, documents: Iterable[IndexedDocument], place: KnowledgeBaseIds) -> list[str]:
        """Return the names that a knowledge base should not have for documents, and has not received just now.

        They are documents of other tenants, and those that it has both as a file and as converted text.
        """
        return [
            each.name
            for each in documents
            if each.uri.startswith(self._prefix)
            and (self._knowledge_bases.of_uri(each.uri) != place or self._has_other_form(each))
            and each.status in OUTCOMES
            and each.updated_at < self._settled_before
            and not fault_of_uri(each.name)
        ]

    def knowledge_base(self, documents: Iterable[IndexedDocument], place: KnowledgeBaseIds) -> Iterator[Candidate]:
        """Note what a knowledge base has; yield what it should not have, or not in this state, apart from strays."""
        for each in documents:
            if not each.uri.startswith(self._prefix):
                self.elsewhere += 1
            elif fault_of_uri(each.name):
                if each.status in _FOUND:
                    self.out_of_reach.add(OUT_OF_REACH, each.name)
            elif self._knowledge_bases.of_uri(each.uri) != place or self._has_other_form(each):
                continue
            elif (kind := self._indexed(each)) is not None:
                self._known.setdefault(each.uri, _Known()).state = _State.MOVING
                yield Candidate(kind, each.uri)

    def absent_from_bucket(self) -> Iterator[Candidate]:
        """Yield documents whose object, sidecar or converted text is not in the bucket, once all of it was read."""
        for uri, known in self._known.items():
            if known.made_at and not known.in_bucket and known.state in (_State.UNKNOWN, _State.DELETED):
                if known.made_at < self._settled_before:
                    yield Candidate(Difference.CONVERTED_TEXT, uri)
                continue
            if known.state not in (_State.SEARCHABLE, _State.FAILED):
                continue
            if not known.in_bucket:
                kind = Difference.NOT_IN_BUCKET
            elif known.sidecar_etag is not None and not known.sidecar_in_bucket:
                kind = Difference.CONTENT
            elif known.text_etag not in (None, known.text_in_bucket):
                kind = Difference.CONVERTED_TEXT
            else:
                continue
            known.state = _State.MOVING
            yield Candidate(kind, uri)

    def absent_from_knowledge_base(self) -> Iterator[Candidate]:
        """Yield searchable documents that the knowledge base does not have, once all of it was read."""
        for uri, known in self._known.items():
            if known.state is _State.SEARCHABLE and not known.in_knowledge_base:
                yield Candidate(Difference.NOT_SEARCHABLE, uri)

    def is_new(self, updated_at: float) -> bool:
        """Whether a record was written since the comparison began, so that it cannot be compared."""
        return updated_at >= self._started_at - CLOCK_SECONDS

    def _has_other_form(self, each: IndexedDocument) -> bool:
        """Whether it is the file of a document that is indexed as converted text, or the other way round."""
        known = self._known.get(each.uri)
        if known is None or known.state not in (_State.SEARCHABLE, _State.FAILED):
            return False
        return known.is_converted is not is_converted(each.name)

    def _was_read_before(self, record: DocumentRecord) -> bool:
        """Whether this version with its settings may read more of a document, or has not compared it with its file."""
        observed, receipt = record.observed, record.receipt
        if record.status is Status.DELETED:
            return False
        if self._reads_again:
            return True
        recognition = self._settings.recognition
        if observed.conversion is not None and observed.conversion.recognition not in (None, recognition):
            return True
        if receipt is None:
            # The knowledge base refused it before its receipt said why, or before files of its format were converted.
            was_refused = record.status is Status.FAILED and record.knowledge_base_status in _REFUSED
            return record.status in SEARCHABLE or (was_refused and observed.conversion is None)
        recognizes = recognition not in (OFF, receipt.recognition)
        return receipt.readers < READERS or (recognizes and receipt.lacks_recognition)

    def _has_other_label(self, record: DocumentRecord) -> bool:
        if self._policy is None or not record.observed.is_present:
            return False
        wanted = record.observed.attributes.get(self._policy.attribute)
        return record.label != self._policy.label_of(record.uri.removeprefix(self._prefix), wanted)

    def _is_stuck(self, record: DocumentRecord) -> bool:
        if record.operation is None:
            expected = record.updated_at
        elif record.is_followed and record.operation.accepted_at is not None:
            expected = record.operation.accepted_at + self._settings.give_up_seconds
        else:
            expected = max(record.updated_at, record.operation.lease_until)
        return self._started_at > expected + self._settings.stuck_seconds

    def _object(self, each: BucketObject) -> Difference | None:
        known = self._known.setdefault(each.uri, _Known())
        known.in_bucket = True
        if known.state in (_State.UNKNOWN, _State.DELETED):
            return None if is_program_file(each.uri) else Difference.NOT_IN_REGISTRY
        is_same = known.state is _State.MOVING or known.etag == _plain(each.etag)
        return None if is_same else Difference.CONTENT

    def _sidecar(self, each: BucketObject) -> Difference | None:
        known = self._known.get(each.uri)
        if known is None or known.state not in (_State.SEARCHABLE, _State.FAILED):
            return None  # without a document, or with one that is reported already
        known.sidecar_in_bucket = True
        return None if known.sidecar_etag == _plain(each.etag) else Difference.CONTENT

    def _indexed(self, each: IndexedDocument) -> Difference | None:
        known = self._known.get(each.uri)
        is_found = each.status in _FOUND
        if self._is_moving(each):
            self._known.setdefault(each.uri, _Known()).state = _State.MOVING
            return None
        if known is None or known.state is _State.UNKNOWN or (known.state is _State.DELETED and not is_found):
            is_skipped = is_program_file(each.uri) and not is_found
            is_settled = each.updated_at < self._settled_before
            return Difference.UNKNOWN_IN_KNOWLEDGE_BASE if is_settled and not is_skipped else None
        if known.state is _State.SEARCHABLE:
            known.in_knowledge_base = True
            return None if is_found else Difference.NOT_SEARCHABLE
        return Difference.SEARCHABLE if is_found and known.state is not _State.MOVING else None

    def _is_moving(self, each: IndexedDocument) -> bool:
        """Whether the knowledge base is working on a document, and not for too long."""
        given_up_before = self._started_at - self._settings.give_up_seconds - self._settings.stuck_seconds
        return each.status not in _FINAL and each.updated_at > given_up_before


def _plain(etag: str | None) -> str | None:
    """Return an entity tag without quotes: some S3 implementations list them without."""
    return etag and etag.strip('"')
