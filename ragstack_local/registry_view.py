"""How the documents of a stack stand, and what waits in its queues."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from ragstack_common.registry.listing import MAX_LIMIT, Listing
from ragstack_common.registry.records import FINAL, DocumentRecord, Status
from ragstack_common.registry.table import BY_STATUS, STATUS
from ragstack_local.connection import Connection

IN_MOTION: Final = tuple(status for status in Status if status not in FINAL and status is not Status.UPLOADED)
COUNTED: Final = (*(status for status in Status if status in FINAL and status is not Status.DELETED), *IN_MOTION)

MOST_READ: Final = 2000
"""Documents of one status that are read to find the first or the last of them."""

_DEPTH: Final = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)


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
        self._listing = Listing(self._client, connection.registry_table)

    def counts(self) -> dict[str, int]:
        """Count documents by status; a status that no document has is left out.

        Raises:
            ClientError: The table cannot be read.
        """
        with ThreadPoolExecutor(len(COUNTED)) as threads:
            counts = zip(COUNTED, threads.map(self._count, COUNTED), strict=True)
            return {str(status): count for status, count in counts if count}

    def in_motion(self) -> list[DocumentRecord]:
        """Find the documents that are not in a final state, the longest first; of very many, some.

        Raises:
            ClientError: The table cannot be read.
        """
        found = [record for status in IN_MOTION for record in islice(self.documents(status), MOST_READ)]
        return sorted(found, key=since)

    def failed(self) -> list[DocumentRecord]:
        """Find the documents that failed, the latest first; of very many, some.

        Raises:
            ClientError: The table cannot be read.
        """
        return sorted(islice(self.documents(Status.FAILED), MOST_READ), key=since, reverse=True)

    def documents(self, status: Status) -> Iterator[DocumentRecord]:
        """List the documents of one status by URI.

        Raises:
            ClientError: The table cannot be read.
        """
        token = None
        while True:
            page = self._listing.page(status=status, limit=MAX_LIMIT, token=token)
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


def since(record: DocumentRecord) -> float:
    """Tell since when a document has been as it is, in seconds since 1970."""
    return (record.finished_at if record.is_final else record.received_at) or record.updated_at


def seconds_since(record: DocumentRecord) -> float:
    """Tell for how long a document has been as it is."""
    return max(0.0, time.time() - since(record))


def _depth(sqs: Any, url: str) -> int:
    attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=_DEPTH)["Attributes"]
    return sum(int(value) for value in attributes.values())
