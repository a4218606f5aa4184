"""The function `receipts`: compares what the index has of a document with its file, and gives it its final state.

The knowledge base says that a document is indexed when its parser got through it. What of the text is in the index, it
does not say. So the file is read a second time in another way, its words are looked for in the index with Retrieve, and
the document is INDEXED, PARTIALLY_INDEXED or FAILED by what was found.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from botocore.exceptions import ClientError

from ragstack_common.access.tenants import KnowledgeBaseIds
from ragstack_common.core.artefacts import WORDS_SUFFIX
from ragstack_common.core.errors import InvalidDocumentError
from ragstack_common.core.telemetry import LOGGER
from ragstack_common.core.uris import SIDECAR_SUFFIX, split_uri
from ragstack_common.filters.bedrock import to_bedrock
from ragstack_common.ingestion.messages import Compare, DeadLetter, QueueMessage, check, read_compare
from ragstack_common.ingestion.services import CALL_ERRORS, Services
from ragstack_common.ingestion.sidecars import parse_sidecar
from ragstack_common.reading import formats
from ragstack_common.reading.census.comparison import Comparison, PartFound
from ragstack_common.reading.census.parts import Census
from ragstack_common.reading.encodings import charset_of
from ragstack_common.reading.formats import UnreadableDocument
from ragstack_common.reading.ocr.words import RecognizedPage, read_pages
from ragstack_common.registry.document_status import DocumentStatus
from ragstack_common.registry.documents import RecordChange
from ragstack_common.registry.lifecycle import CHANGED_MEANWHILE, OUTCOMES, Next, compared, put_back
from ragstack_common.registry.receipts import (
    LEAST_SHARE,
    MAX_NOT_READ,
    MAX_RECOGNIZED,
    READERS,
    Counted,
    LeftOut,
    NotRead,
    Receipt,
    Recognized,
)
from ragstack_common.registry.records import WORKED_ON, DocumentRecord, Status
from ragstack_common.search.engines.forms import form_of
from ragstack_common.settings.ingestion import OFF
from ragstack_common.settings.names import SOURCE_URI_KEY
from ragstack_common.text.positions import PAGE_KEY

if TYPE_CHECKING:
    from mypy_boto3_bedrock_agent_runtime import AgentsforBedrockRuntimeClient
    from mypy_boto3_s3 import S3Client

CHUNKS_PER_LOOKUP: Final = 100
"""Source: bedrock-agent-runtime, numberOfResults of KnowledgeBaseVectorSearchConfiguration and
ManagedSearchConfiguration."""

QUERY_CHARACTERS: Final = 1000
"""Source: Bedrock quotas, query size of Retrieve as reported; the model allows 20,000."""

SECONDS_FOR_ONE: Final = 150.0
"""Time for one document at most: a minute to count what it has, and its lookups, which wait for their turn."""

MAX_LOOKUPS: Final = 40
"""Lookups for one document; of longer ones a sample is compared."""

MAX_FRUITLESS: Final = 3
"""Lookups in a row without a new chunk, after which all chunks are known."""

SMALL_BYTES: Final = 64 * 1024
"""Bytes of documents whose chunks are looked up together."""

ANY_TEXT: Final = "text"
"""A query for all chunks of a document, whatever they have."""

EXAMPLE_CHARACTERS: Final = 80

_CHANGED: Final = frozenset({"404", "412", "NoSuchKey", "NoSuchVersion", "PreconditionFailed"})

Counts = Callable[[bytes, str, str | None, str | None, Sequence[RecognizedPage]], Census]
"""Counts what a file has, given its format, the charset of its object, the column of the text if the rows of a CSV file
are records, and the pages that were recognized; raises UnreadableDocument."""


@dataclass
class _Work:
    """A document to compare.

    Attributes:
        comparison: None before it was counted, or if it cannot be.
        unreadable: Why it cannot be counted.
        pages: Pages on which chunks begin.
        is_convertible: Whether its converted text may have more than the knowledge base's parser reads.
    """

    message: QueueMessage
    request: Compare
    record: DocumentRecord
    comparison: Comparison | None = None
    unreadable: str | None = None
    pages: set[int] = field(default_factory=set)
    is_convertible: bool = False

    @property
    def is_current(self) -> bool:
        """Whether the message is about the document's operation, and the operation has not ended.

        The knowledge base has accepted it, even if the function that submitted it could not record that.
        """
        operation = self.record.operation
        return self.record.status in WORKED_ON and operation is not None and operation.id == self.request.operation

    @property
    def is_searchable(self) -> bool:
        """Whether the knowledge base says that the index has it."""
        return OUTCOMES[str(self.request.answer)] is not Status.FAILED

    @property
    def is_small(self) -> bool:
        """Whether its chunks can be looked up together with those of others."""
        return self.is_current and not self.record.again and self.record.observed.size <= SMALL_BYTES


class ReceiptService:
    """Compares documents that the knowledge base is done with."""

    def __init__(
        self, services: Services, runtime: "AgentsforBedrockRuntimeClient", s3: "S3Client", counts: Counts
    ) -> None:
        self._services, self._runtime, self._s3, self._counts = services, runtime, s3, counts
        self._form = form_of(services.settings.vector_store, None, lambda: runtime.meta.region_name)

    def process(self, messages: Sequence[QueueMessage], seconds_left: Callable[[], float]) -> list[str]:
        """Compare the documents in messages of the receipts queue, while there is time for one more.

        Returns:
            The ids of the messages to redeliver: there was no time, a service did not answer, or the index may not be
            ready.
        """
        again: set[str] = set()

        def give_back(message: QueueMessage, after_seconds: float | None = None) -> None:
            self._services.receipts_queue.give_back(message, after_seconds)
            again.add(message.message_id)

        ended: list[tuple[_Work, RecordChange, Next]] = []
        try:
            works = self._works(messages)
            self._look_up_together([work for work in works if work.is_small], seconds_left)
            for work in works:
                if seconds_left() < SECONDS_FOR_ONE:
                    give_back(work.message, 0)
                    continue
                try:
                    outcome = self._outcome(work)
                except CALL_ERRORS as error:
                    LOGGER.warning("%s will be compared again: %s", work.request.uri, error)
                    give_back(work.message)
                    continue
                if isinstance(outcome, float):
                    give_back(work.message, outcome)
                elif outcome is not None:
                    ended.append((work, RecordChange(work.record, outcome[0]), outcome[1]))
            for work in self._record(ended):
                give_back(work.message, 0)
        except CALL_ERRORS as error:
            LOGGER.warning("%d documents will be compared again: %s", len(messages), error)
            for message in messages:
                give_back(message)
        return [*again]

    def _record(self, ended: Sequence[tuple[_Work, RecordChange, Next]]) -> list[_Work]:
        """Write what came out and send what follows; returns what others changed in the meantime."""
        lost = self._services.registry.write([change for _, change, _ in ended])
        written = [(change.written, then) for work, change, then in ended if work.record.uri not in lost]
        self._services.outcomes.announce([record for record, then in written if then is Next.DONE])
        self._check_again([record for record, then in written if then is Next.CHECK_AGAIN])
        pages = sum(record.receipt.pages_not_read for record, _ in written if record.receipt)
        self._services.metrics.add_metric("PagesNotRead", "Count", pages)
        return [work for work, _, _ in ended if work.record.uri in lost]

    def _works(self, messages: Sequence[QueueMessage]) -> list[_Work]:
        requests: dict[tuple[str, str], tuple[QueueMessage, Compare]] = {}
        for message in messages:
            try:
                request = read_compare(message.body)
                requests[request.uri, request.operation] = (message, request)  # queues may deliver a message twice
            except InvalidDocumentError as error:
                LOGGER.error("message %s goes to the dead-letter queue: %s", message.message_id, error)
                self._services.dead_letters.send([DeadLetter(message.body, str(error))])
        records = self._services.registry.read(uri for uri, _ in requests)
        return [_Work(message, request, records[request.uri]) for message, request in requests.values()]

    def _outcome(self, work: _Work) -> tuple[DocumentRecord, Next] | float | None:
        """Compare a document.

        Returns:
            What it becomes and what follows, or after how many seconds to compare it again, or None if the message is
            about an operation that has ended.
        """
        record, answer = work.record, work.request.answer
        if not work.is_current:
            if work.message.receives > 1 and record.operation and record.operation.id == work.request.operation:
                self._repeat(record)
            return None
        now = self._services.clock()
        receipt = None if record.again else self._receipt(work)
        if receipt is None:
            return put_back(record, CHANGED_MEANWHILE, now), Next.CHECK_AGAIN
        later = self._wait(receipt, answer)
        if later is not None:
            return later
        converts = work.is_convertible and (receipt.lacks_words or self._recognition != OFF)
        return compared(record, answer, receipt, now, converts=converts)

    def _repeat(self, record: DocumentRecord) -> None:
        """Send again what follows a state: the invocation that wrote it may have been killed before it did."""
        if record.is_final:
            self._services.outcomes.announce([record])
        elif record.status is Status.WAITING:
            self._check_again([record])

    def _check_again(self, records: Sequence[DocumentRecord]) -> None:
        if records:
            self._services.ingestion_queue.send([check([record.uri for record in records], forced=False)])

    def _wait(self, receipt: Receipt, answer: DocumentStatus) -> float | None:
        """Return how long to wait for text that is missing in an index that may not be up to date yet."""
        lacks_text = receipt.chunks == 0 or receipt.read < receipt.compared  # pictures never get text
        if not lacks_text or answer.updated_at is None or OUTCOMES[str(answer)] is Status.FAILED:
            return None
        left = answer.updated_at.timestamp() + self._services.settings.receipt_wait_seconds - self._services.clock()
        return left if left > 0 else None

    def _look_up_together(self, works: Sequence[_Work], seconds_left: Callable[[], float]) -> None:
        """Count small documents, and look up their chunks in one call for each knowledge base.

        Calls are few, and searches need them too. A document with more chunks is looked up again by itself.
        """
        together: dict[KnowledgeBaseIds, dict[str, _Work]] = {}
        for work in works:
            if seconds_left() >= SECONDS_FOR_ONE:
                self._count(work)
                if work.comparison is not None and work.is_searchable:
                    place = self._services.knowledge_bases.of_uri(work.record.uri)
                    together.setdefault(place, {})[work.record.indexed_uri] = work
        for place, by_uri in together.items():
            query = next(iter(by_uri.values())).comparison
            assert query is not None
            for found in self._lookup(place, [*by_uri], query.first_text[:QUERY_CHARACTERS] or ANY_TEXT):
                of_document = by_uri.get(found.uri)
                if of_document is not None and of_document.comparison is not None:
                    of_document.comparison.add([found.text])
                    of_document.pages |= found.pages

    def _count(self, work: _Work) -> None:
        """Count what the file of a document has. The comparison stays None if the object changed."""
        try:
            census = self._census(work)
        except UnreadableDocument as error:
            work.unreadable = str(error)
        else:
            work.comparison = None if census is None else Comparison(census)

    def _receipt(self, work: _Work) -> Receipt | None:
        """Compare a document with the index; None if the object changed."""
        if work.comparison is None and work.unreadable is None:
            self._count(work)
        place, now = self._services.knowledge_bases.of_uri(work.record.uri), self._services.clock()
        if work.unreadable is not None:
            found = self._lookup(place, [work.record.indexed_uri], ANY_TEXT) if work.is_searchable else []
            chunks = sum(1 for each in found if each.text.strip())
            return Receipt(now, READERS, chunks, unreadable=work.unreadable, recognition=self._recognition)
        if work.comparison is None:
            return None
        if work.is_searchable:
            self._look_up(work.comparison, place, work)
        return replace(to_receipt(work.comparison, work.pages, now), recognition=self._recognition)

    @property
    def _recognition(self) -> str:
        return self._services.settings.recognition

    def _census(self, work: _Work) -> Census | None:
        record = work.record
        bucket, key = split_uri(record.uri)
        file_format = formats.of_name(key) if not record.is_converted else None
        try:
            answer = self._s3.get_object(Bucket=bucket, Key=key, IfMatch=record.observed.etag or "")
            data = answer["Body"].read()
            column = self._column(record, file_format)
        except ClientError as error:
            if error.response["Error"]["Code"] in _CHANGED:
                return None
            raise
        content = self._content(data, key, file_format)
        # If it cannot be counted as what its name says, it may be something else.
        work.is_convertible = content != file_format
        recognized = self._recognized(record)
        census = self._counts(data, file_format or content, charset_of(answer.get("ContentType")), column, recognized)
        # Plain text is converted for its encoding alone; rows that are records are divided by the knowledge base.
        work.is_convertible = column is None and (content not in formats.READ_DIRECTLY or not data.isascii())
        return census

    def _content(self, data: bytes, key: str, file_format: str | None) -> str:
        """Return the format of a file by its content, or by its name if that is what the knowledge base was given."""
        try:
            return formats.of_content(data, key)
        except UnreadableDocument:
            if file_format is None:
                raise
            return file_format

    def _recognized(self, record: DocumentRecord) -> tuple[RecognizedPage, ...]:
        """Return the pages of a document that were recognized when it was converted."""
        conversion = record.observed.conversion
        if conversion is None or not conversion.has_words:
            return ()
        bucket, key = split_uri(record.uri)
        answer = self._s3.get_object(Bucket=bucket, Key=key + WORDS_SUFFIX)
        return read_pages(answer["Body"].read())

    def _column(self, record: DocumentRecord, file_format: str | None) -> str | None:
        """Return the column with the text if the rows of a CSV file are records."""
        if file_format != "csv" or record.observed.sidecar_etag is None:
            return None
        bucket, key = split_uri(record.uri)
        answer = self._s3.get_object(Bucket=bucket, Key=key + SIDECAR_SUFFIX, IfMatch=record.observed.sidecar_etag)
        records = parse_sidecar(answer["Body"].read()).records
        return None if records is None else records.content

    def _look_up(self, comparison: Comparison, place: KnowledgeBaseIds, work: _Work) -> None:
        """Look for the words of a file until all are found or known to be missing."""
        query = comparison.next_query(QUERY_CHARACTERS)
        if query is None and not len(comparison.index):
            query = ANY_TEXT  # a file without text, of which the index may have some
        fruitless = 0
        for _ in range(MAX_LOOKUPS):
            if query is None:
                return
            found = self._lookup(place, [work.record.indexed_uri], query)
            fruitless = 0 if comparison.add(each.text for each in found) else fruitless + 1
            work.pages.update(*(each.pages for each in found))
            query = comparison.next_query(QUERY_CHARACTERS)
            while query is not None and fruitless >= MAX_FRUITLESS:
                query = comparison.next_query(QUERY_CHARACTERS)
        if query is not None:
            comparison.leave_last()

    def _lookup(self, place: KnowledgeBaseIds, uris: Sequence[str], query: str) -> list["_Found"]:
        """Return the chunks of documents that are most like a query."""
        condition = to_bedrock(self._form.of_documents(uris))
        configuration: Any = self._form.configuration(CHUNKS_PER_LOOKUP, condition, everything=True)
        self._services.lookups.wait("retrieve")
        answer = self._runtime.retrieve(
            knowledgeBaseId=place.id, retrievalQuery={"text": query}, retrievalConfiguration=configuration
        )
        return [_Found.of(self._form.hit(each), uris) for each in answer["retrievalResults"]]


class _Found(NamedTuple):
    """A chunk, its document, and the page that it begins on if it has words, or none."""

    text: str
    uri: str
    pages: frozenset[int]

    @classmethod
    def of(cls, result: Any, uris: Sequence[str]) -> Self:
        """Read a result of Retrieve for documents with these URIs."""
        metadata, text = result.get("metadata", {}), result["content"].get("text", "")
        page = metadata.get(PAGE_KEY)
        pages = frozenset({int(page)}) if isinstance(page, int | float) and text.strip() else frozenset[int]()
        return cls(text, uris[0] if len(uris) == 1 else str(metadata.get(SOURCE_URI_KEY)), pages)


def to_receipt(comparison: Comparison, pages: set[int], now: float) -> Receipt:
    """Return the receipt of a comparison; *pages* are those on which chunks begin."""
    census, found = comparison.census, comparison.found()
    not_read = [*_not_read(census, found, pages)]
    compared_words, read = sum(each.words for each in found), sum(each.read for each in found)
    return Receipt(
        compared_at=now,
        readers=READERS,
        chunks=len(comparison.index),
        words=comparison.words,
        compared=compared_words,
        read=read,
        counted=tuple(_counted(census, found, comparison.words, not_read)),
        left_out=tuple(LeftOut(each.what, each.number, each.why) for each in census.asides),
        not_read=tuple(not_read[:MAX_NOT_READ]),
        parts_not_read=len(not_read),
        pages_not_read=len(not_read) if census.unit == "pages" else 0,
        recognized=_recognized(census),
    )


def _recognized(census: Census) -> tuple[Recognized, ...]:
    found = [Recognized(part.name, part.confidence) for part in census.parts if part.confidence is not None]
    return tuple(sorted(found, key=lambda each: each.confidence)[:MAX_RECOGNIZED])


def _not_read(census: Census, found: Sequence[PartFound], pages: set[int]) -> Iterator[NotRead]:
    for number, each in enumerate(found, 1):
        part = each.part
        # The knowledge base may have a parser that reads pictures.
        if part.unread and (each.words or number not in pages or census.unit != "pages"):
            yield NotRead(part.name, each.words, each.read, part.unread)
        elif not each.is_read(LEAST_SHARE):
            why = f"missing from the index: {each.words - each.read:,} of {each.words:,} words"
            example = None if each.example is None else " ".join(each.example.split())[:EXAMPLE_CHARACTERS]
            yield NotRead(part.name, each.words, each.read, why, example)


def _counted(census: Census, found: Sequence[PartFound], words: int, not_read: Sequence[NotRead]) -> Iterator[Counted]:
    if census.unit != "parts":
        number = len(census.parts)
        yield Counted(census.unit, number, number - len(not_read))
    compared_words, read = sum(each.words for each in found), sum(each.read for each in found)
    if census.cells:
        lost = sum(each.lost_texts for each in found) if compared_words else census.cells
        yield Counted("cells", census.cells, max(0, census.cells - lost))
    why = None
    if words and not compared_words:
        why = "the knowledge base did not index the document"
    elif compared_words < words:
        why = f"only a sample of {compared_words:,} words was looked for"
    yield Counted("words", words, read, why)
    if census.unit == "parts" and len(found) > 1:
        for each in found:
            yield Counted(f"words in {each.part.name}", each.words, each.read)
