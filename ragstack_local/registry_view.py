"""How the documents of a stack stand, and what waits in its queues."""

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
"""Documents that are kept in mind of all that are read, so that no number of them is too many."""

_TELL_AFTER: Final = 1000
"""Documents; more often, nobody could read it."""

_DEPTH: Final = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)


def _nobody(_: int) -> None:
    """Be told, and do nothing."""


@dataclass(frozen=True)
class Queues:
    """Messages in each queue, those in flight and those that are delayed included; SQS says approximately.

    Attributes:
        events: What has not been looked at.
        followed: What is to be asked about.
        jobs: Reconciliations that are to begin or go on.
        dead_letters: What nobody could handle.
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
        """Count documents by status; a status that no document has is left out.

        Raises:
            ClientError: The table cannot be read.
        """
        with ThreadPoolExecutor(len(COUNTED)) as threads:
            counts = zip(COUNTED, threads.map(self._count, COUNTED), strict=True)
            return {str(status): count for status, count in counts if count}

    def in_motion(self, most: int = MOST_NAMED, read: Callable[[int], None] = _nobody) -> list[DocumentRecord]:
        """Find the documents that have been on their way the longest, in that order: of all, at most so many.

        The index is sorted by URI, so that all of them are read, as they are to be counted.

        Args:
            most: Documents.
            read: Told from time to time how many were read.

        Raises:
            ClientError: The table cannot be read.
        """
        found = (record for status in IN_MOTION for record in self.documents(status))
        return heapq.nsmallest(most, _telling(found, read), key=since)

    def failed(self, most: int, read: Callable[[int], None] = _nobody) -> list[DocumentRecord]:
        """Find the documents that failed, the latest first: of all, at most so many.

        Args:
            most: Documents.
            read: Told from time to time how many were read.

        Raises:
            ClientError: The table cannot be read.
        """
        return heapq.nlargest(most, _telling(self.documents(Status.FAILED), read), key=since)

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
            ClientError: A queue does not answer.
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
    """Say what to do about a FAILED document."""
    advice, can_replay = advice_for(record.reason)
    return f"{advice}. Run: ragstack replay '{record.uri}'" if can_replay else advice


def since(record: DocumentRecord) -> float:
    """Tell since when a document has been as it is, in seconds since 1970."""
    return (record.finished_at if record.is_final else record.received_at) or record.updated_at


def seconds_since(record: DocumentRecord) -> float:
    """Tell for how long a document has been as it is."""
    return max(0.0, time.time() - since(record))


def _telling(records: Iterator[DocumentRecord], read: Callable[[int], None]) -> Iterator[DocumentRecord]:
    for number, record in enumerate(records, start=1):
        if number % _TELL_AFTER == 0:
            read(number)
        yield record


def _depth(sqs: Any, url: str) -> int:
    attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=_DEPTH)["Attributes"]
    return sum(int(value) for value in attributes.values())
