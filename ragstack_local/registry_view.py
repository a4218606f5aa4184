"""Documents of a stack by status, and the lengths of its queues."""

import heapq
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from ragstack_common.ingestion.advice import advice_for
from ragstack_common.registry.documents import MAX_LIMIT, DocumentRegistry
from ragstack_common.registry.records import FINAL, DocumentRecord, Status
from ragstack_common.registry.table import BY_STATUS, STATUS
from ragstack_local.connection import Connection

IN_MOTION: Final = tuple(status for status in Status if status not in FINAL and status is not Status.UPLOADED)
COUNTED: Final = (*(status for status in Status if status in FINAL and status is not Status.DELETED), *IN_MOTION)

MOST_NAMED: Final = 2000
"""Documents kept in memory, however many there are."""

_REPORT_AFTER: Final = 1000
"""Documents between two reports of progress."""

_DEPTH: Final = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)


def _ignore(_: int) -> None:
    """Report no progress."""


@dataclass(frozen=True)
class Queues:
    """Messages in each queue, including delayed ones and those in flight; SQS counts approximately.

    Attributes:
        events: Events of the bucket that no function has read yet.
        followed: Documents whose status in the knowledge base is polled.
        jobs: Jobs that wait for their next step.
        dead_letters: Messages that no function could handle.
    """

    events: int
    followed: int
    jobs: int
    dead_letters: int


class RegistryView:
    """Reads the registry and counts messages."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._client = connection.client("dynamodb")
        self._registry = DocumentRegistry(connection.registry_table, self._client)

    def counts(self) -> dict[str, int]:
        """Count documents by status, without statuses that no document has.

        Raises:
            ClientError: The table cannot be read.
        """
        with ThreadPoolExecutor(len(COUNTED)) as threads:
            counts = zip(COUNTED, threads.map(self._count, COUNTED), strict=True)
            return {str(status): count for status, count in counts if count}

    def in_motion(self, most: int = MOST_NAMED, read: Callable[[int], None] = _ignore) -> list[DocumentRecord]:
        """Find the documents in progress for the longest time, oldest first.

        The index is sorted by URI, so all of them are read.

        Args:
            most: The largest number of documents.
            read: Called from time to time with the number of documents read.

        Raises:
            ClientError: The table cannot be read.
        """
        found = (record for status in IN_MOTION for record in self.documents(status))
        return heapq.nsmallest(most, _reporting(found, read), key=since)

    def failed(self, most: int, read: Callable[[int], None] = _ignore) -> list[DocumentRecord]:
        """Find the documents that failed, latest first.

        Args:
            most: The largest number of documents.
            read: Called from time to time with the number of documents read.

        Raises:
            ClientError: The table cannot be read.
        """
        return heapq.nlargest(most, _reporting(self.documents(Status.FAILED), read), key=since)

    def documents(self, status: Status) -> Iterator[DocumentRecord]:
        """List the documents of one status by URI.

        Raises:
            ClientError: The table cannot be read.
        """
        token = None
        while True:
            page = self._registry.page(status=status, limit=MAX_LIMIT, token=token)
            yield from page.documents
            token = page.next_token
            if token is None:
                return

    def queues(self) -> Queues:
        """Count the messages of each queue.

        Raises:
            ClientError: A queue cannot be read.
        """
        stack = self._connection
        sqs = stack.client("sqs")
        urls = (stack.queue_url, stack.status_queue_url, stack.jobs_queue_url, stack.dead_letter_queue_url)
        return Queues(*(_depth(sqs, url) for url in urls))

    def _count(self, status: Status) -> int:
        pages = self._client.get_paginator("query").paginate(
            TableName=self._connection.registry_table,
            IndexName=BY_STATUS,
            KeyConditionExpression="#status = :status",
            ExpressionAttributeNames={"#status": STATUS},
            ExpressionAttributeValues={":status": {"S": str(status)}},
            Select="COUNT",
        )
        return sum(page["Count"] for page in pages)


def advice(record: DocumentRecord) -> str:
    """Return what to do about a FAILED document, with the command."""
    advice, can_replay = advice_for(record.reason)
    return f"{advice}. Run: ragstack replay '{record.uri}'" if can_replay else advice


def since(record: DocumentRecord) -> float:
    """Return when a document reached its status, in seconds since 1970."""
    return (record.finished_at if record.is_final else record.received_at) or record.updated_at


def seconds_since(record: DocumentRecord) -> float:
    """Return for how long a document has had its status."""
    return max(0.0, time.time() - since(record))


def _reporting(records: Iterator[DocumentRecord], read: Callable[[int], None]) -> Iterator[DocumentRecord]:
    for number, record in enumerate(records, start=1):
        if number % _REPORT_AFTER == 0:
            read(number)
        yield record


def _depth(sqs: Any, url: str) -> int:
    attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=_DEPTH)["Attributes"]
    return sum(int(value) for value in attributes.values())
