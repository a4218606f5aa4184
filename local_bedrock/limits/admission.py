"""Check requests against the quotas."""

import math
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import apsw
from botocore.model import OperationModel

from local_bedrock.http.errors import InvalidRequest, QuotaExceeded, ServiceError, Throttled, TooManyRequests
from local_bedrock.limits.quotas import Quotas
from local_bedrock.store import jobs, resources, submissions
from local_bedrock.store.database import Database
from ragstack_common.core.uris import resource_id
from ragstack_common.settings.names import MANAGED

THROTTLED: Final = {
    "bedrock-agent": "Rate exceeded",
    "bedrock-agent-runtime": "Your request rate is too high. Reduce the frequency of requests.",
    "bedrock-runtime": "Too many requests, please wait before trying again.",
    "s3vectors": "Rate exceeded",
}
"""By service, as users of InvokeAgent and InvokeModel report them; the others are AWS's general wording."""


def throttled(operation: OperationModel, wait_seconds: float = 1.0) -> Throttled:
    """Return the throttling error of the operation's service."""
    service = operation.service_model.service_name
    error = TooManyRequests if service == "s3vectors" else Throttled
    return error(THROTTLED[service], max(1, math.ceil(wait_seconds)))


class TokenBucket:
    """A token bucket that holds the calls of one second, and at least one.

    Args:
        per_second: Rate at which it fills.
        clock: Monotonic seconds.
    """

    def __init__(self, per_second: float, clock: Callable[[], float]) -> None:
        self._per_second = per_second
        self._size = max(1.0, per_second)
        self._clock = clock
        self._level = self._size
        self._filled_at = clock()
        self._lock = threading.Lock()

    def take(self) -> float:
        """Return 0 and consume a token, or return the seconds until one is available."""
        with self._lock:
            now = self._clock()
            self._level = min(self._size, self._level + (now - self._filled_at) * self._per_second)
            self._filled_at = now
            if self._level < 1:
                return (1 - self._level) / self._per_second
            self._level -= 1
            return 0.0


@dataclass(frozen=True)
class _Limit:
    """A quota of existing or unfinished work.

    Attributes:
        counted: Returns the name of the quota and the present number, given the members of the request.
        message: With the placeholder ``limit``.
    """

    counted: Callable[[apsw.Connection, Mapping[str, Any]], tuple[str, int]]
    message: str
    error: type[ServiceError] = QuotaExceeded


def _document_requests(connection: apsw.Connection, _members: Mapping[str, Any]) -> tuple[str, int]:
    return "concurrent_document_requests", submissions.requests_under_way(connection)


def _ingestion_jobs(connection: apsw.Connection, members: Mapping[str, Any]) -> tuple[str, int]:
    base = resources.find_knowledge_base(connection, members["knowledgeBaseId"])
    if base.is_managed:
        return "concurrent_ingestion_jobs_per_managed", len(jobs.running(connection, base.id))
    managed = {each.id for each in resources.knowledge_bases(connection) if each.is_managed}
    running = [job for job in jobs.running(connection) if job.knowledge_base_id not in managed]
    return "concurrent_ingestion_jobs", len(running)


def _knowledge_bases(connection: apsw.Connection, members: Mapping[str, Any]) -> tuple[str, int]:
    is_managed = members["knowledgeBaseConfiguration"]["type"] == MANAGED
    count = sum(base.is_managed == is_managed for base in resources.knowledge_bases(connection))
    return "managed_knowledge_bases" if is_managed else "knowledge_bases", count


def _data_sources(connection: apsw.Connection, members: Mapping[str, Any]) -> tuple[str, int]:
    base = resources.find_knowledge_base(connection, members["knowledgeBaseId"])
    quota = "data_sources_per_managed" if base.is_managed else "data_sources_per_knowledge_base"
    return quota, len(resources.data_sources(connection, base.id))


_DOCUMENTS: Final = _Limit(
    _document_requests,
    # The first sentence is reported by users, the second is ours.
    "The sum of concurrent IngestKnowledgeBaseDocuments and DeleteKnowledgeBaseDocuments requests"
    " can't exceed ({limit:g}). Wait until some of their documents are in a final state, then retry your request.",
    InvalidRequest,
)
_LIMITS: Final = {
    "IngestKnowledgeBaseDocuments": _DOCUMENTS,
    "DeleteKnowledgeBaseDocuments": _DOCUMENTS,
    "StartIngestionJob": _Limit(
        _ingestion_jobs,
        "There are {limit:g} ingestion jobs running, which is the maximum."
        " Wait for the end of one and retry your request.",
    ),
    "CreateKnowledgeBase": _Limit(
        _knowledge_bases, "The account has {limit:g} knowledge bases, which is the maximum. Delete one first."
    ),
    "CreateDataSource": _Limit(
        _data_sources, "The knowledge base has {limit:g} data sources, which is the maximum. Delete one first."
    ),
}


class Admission:
    """Admits requests within the quotas.

    Args:
        quotas: None admits everything.
        database: Holds the unfinished work that counts.
        clock: Monotonic seconds.
    """

    def __init__(self, quotas: Quotas | None, database: Database, clock: Callable[[], float]) -> None:
        self._quotas = quotas
        self._database = database
        self._clock = clock
        self._buckets: dict[str, TokenBucket] = {}
        self._counting = threading.Lock()

    def count(self, operation: OperationModel) -> None:
        """Count a call.

        Raises:
            Throttled: The rate of the operation is exceeded.
        """
        rate = self._quotas.calls_per_second(operation.name) if self._quotas else math.inf
        if rate == math.inf:
            return
        bucket = self._buckets.setdefault(operation.name, TokenBucket(rate, self._clock))
        if wait_seconds := bucket.take():
            raise throttled(operation, wait_seconds)

    @contextmanager
    def admitted(self, operation: OperationModel, members: Mapping[str, Any], body_bytes: int) -> Iterator[None]:
        """Check the size of a request and the concurrent work.

        Raises:
            InvalidRequest: It is too large, or too many document requests are unfinished.
            QuotaExceeded: The account has reached a quota.
        """
        quotas, limit = self._quotas, _LIMITS.get(operation.name)
        if quotas is not None:
            self._check_size(quotas, operation.name, members, body_bytes)
        if quotas is None or limit is None:
            yield
            return
        # Without the lock, two concurrent requests could both take the last place.
        with self._counting:
            with self._database.read() as view:
                quota, count = limit.counted(view.connection, members)
            maximum = getattr(quotas, quota)
            if count >= maximum:
                raise limit.error(limit.message.format(limit=maximum))
            yield

    def _check_size(self, quotas: Quotas, operation: str, members: Mapping[str, Any], body_bytes: int) -> None:
        if operation == "IngestKnowledgeBaseDocuments" and body_bytes > quotas.ingest_payload_bytes:
            raise InvalidRequest(
                f"The total payload of {body_bytes} bytes exceeds the {quotas.ingest_payload_bytes:g} bytes that an"
                " IngestKnowledgeBaseDocuments request may have. Send fewer documents at once."
            )
        query = members.get("retrievalQuery") or members.get("input") or {}
        characters = len(query.get("text", ""))
        if characters <= quotas.query_characters:
            return
        maximum = quotas.query_characters
        if operation == "Retrieve":
            knowledge_base_id = resource_id(members["knowledgeBaseId"])
            with self._database.read() as view:
                if resources.find_knowledge_base(view.connection, knowledge_base_id).is_managed:
                    maximum = quotas.query_characters_of_managed
        if characters > maximum:
            raise InvalidRequest(
                f"The query has {characters} characters; the maximum is {maximum:g}. Shorten it and retry your request."
            )
