"""Calls of the knowledge base for documents that were claimed."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from ragstack_common.documents import SIDECAR_SUFFIX, DocumentStatus, key_of, s3_document
from ragstack_common.errors import RegistryError
from ragstack_common.ingestion.direct import delete_documents_with_retry, ingest_documents_with_retry
from ragstack_common.ingestion.problems import Problem, Remedy, problem_of_submission
from ragstack_common.ingestion.settings import IngestionSettings
from ragstack_common.registry.answers import OUTCOMES
from ragstack_common.registry.records import DocumentRecord, OperationKind

_UNKNOWN: Final = "UNKNOWN"
OUT_OF_TIME: Final = Problem("There were too many documents for one invocation", Remedy.WAITING, after_seconds=1.0)


@dataclass(frozen=True)
class Submission:
    """What became of one document in its call.

    Attributes:
        record: The document, as it was claimed.
        answer: What the knowledge base said; None when the call failed.
        problem: Why the call failed.
    """

    record: DocumentRecord
    answer: DocumentStatus | None = None
    problem: Problem | None = None

    @property
    def is_refused(self) -> bool:
        """Whether the knowledge base has said no already, instead of accepting the document."""
        ingests = self.record.operation is not None and self.record.operation.kind is OperationKind.INGEST
        return ingests and self.answer is not None and str(self.answer) in OUTCOMES and self.answer != "INDEXED"


class Submitter:
    """Submits and deletes documents, as many in a call as the service takes."""

    def __init__(
        self,
        settings: IngestionSettings,
        agent: Any,
        has_time: Callable[[], bool],
        *,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Bind a client of bedrock-agent.

        Args:
            settings: How calls are made.
            agent: The client.
            has_time: Tells whether there is time for one more call after the first.
            sleep: Waits that many seconds.
        """
        self._settings = settings
        self._agent = agent
        self._has_time = has_time
        self._sleep = sleep

    def submit(self, records: Sequence[DocumentRecord]) -> Iterator[list[Submission]]:
        """Make the calls, one after the other; tell after each what became of its documents."""
        made = 0
        for kind, call in ((OperationKind.INGEST, self._ingest), (OperationKind.DELETE, self._delete)):
            chosen = [record for record in records if record.operation and record.operation.kind is kind]
            size = self._settings.documents_per_call
            for start in range(0, len(chosen), size):
                batch = chosen[start : start + size]
                if made and not self._has_time():
                    yield [Submission(record, problem=OUT_OF_TIME) for record in batch]
                    continue
                made += 1
                yield self._call(call, batch)

    def _call(
        self, call: Callable[[Sequence[DocumentRecord]], list[dict[str, Any]]], records: Sequence[DocumentRecord]
    ) -> list[Submission]:
        try:
            details = {key_of(detail["identifier"]): detail for detail in call(records)}
        except (ClientError, BotoCoreError, RegistryError) as error:
            return [Submission(record, problem=problem_of_submission(error)) for record in records]
        return [_submission(record, details[record.uri]) for record in records]

    def _ingest(self, records: Sequence[DocumentRecord]) -> list[dict[str, Any]]:
        documents = [
            s3_document(
                record.uri,
                self._settings.data_source_id,
                record.uri + SIDECAR_SUFFIX if record.observed.sidecar_etag else None,
            )
            for record in records
        ]
        details: list[dict[str, Any]] = ingest_documents_with_retry(documents=documents, **self._how(records))[
            "documentDetails"
        ]
        return details

    def _delete(self, records: Sequence[DocumentRecord]) -> list[dict[str, Any]]:
        return delete_documents_with_retry(s3_uris=[record.uri for record in records], **self._how(records))

    def _how(self, records: Sequence[DocumentRecord]) -> dict[str, Any]:
        return {
            "kb_id": self._settings.knowledge_base_id,
            "ds_id": self._settings.data_source_id,
            "max_retries": self._settings.max_retries,
            "base_delay": self._settings.base_delay_seconds,
            "documents_per_call": self._settings.documents_per_call,
            # The operations are the same when a call is repeated by whoever takes over.
            "client_token": " ".join(record.operation.id for record in records if record.operation),
            "client": self._agent,
            "sleep": self._sleep,
        }


def _submission(record: DocumentRecord, detail: dict[str, Any]) -> Submission:
    if detail["status"] != _UNKNOWN:
        return Submission(record, answer=DocumentStatus.of(detail))
    error = detail.get("error")
    problem = problem_of_submission(error) if error else Problem(detail["statusReason"])
    return Submission(record, problem=problem)
