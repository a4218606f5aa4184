"""Calls of bedrock-agent about many documents: which errors are worth another attempt, and how batches are split."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from botocore.exceptions import ClientError

from ragstack_common.documents import key_of
from ragstack_common.errors import InvalidDocumentError
from ragstack_common.retry import LOST, Backoff

DOCUMENTS_PER_CALL: Final = 10
"""Source: bedrock-agent, shapes KnowledgeBaseDocuments and DocumentIdentifiers. The quota page says 25."""

_RETRYABLE: Final = frozenset(
    {"ConflictException", "ThrottlingException", "TooManyRequestsException", "ServiceQuotaExceededException"}
)
_CONTENTION: Final = ("ongoing", "running", "can't exceed")
"""IngestKnowledgeBaseDocuments models no ConflictException and says it in these words of a ValidationException."""

_TOO_LONG: Final = "length less than or equal to"


@dataclass(frozen=True)
class Call:
    """One operation on a list of documents.

    Attributes:
        operation: The client's method with everything but the documents and the token.
        items: The name of the parameter that takes the documents.
        token: What client tokens are derived from; None for operations that take none.
        backoff: How often and after which delays a batch is tried again.
    """

    operation: Callable[..., Any]
    items: str
    token: str | None
    backoff: Backoff

    def __call__(self, batch: Sequence[Any], keys: Sequence[str]) -> list[dict[str, Any]]:
        """Send one batch; all its attempts carry the same client token."""
        parameters = {self.items: list(batch)}
        if self.token is not None:
            parameters["clientToken"] = _token(self.token, keys)  # type: ignore[assignment]
        answer = self.backoff.call(lambda: self.operation(**parameters), retry_on=is_retryable)
        details: list[dict[str, Any]] = answer.get("documentDetails", [])
        return details


def is_retryable(error: Exception) -> bool:
    """Tell whether another attempt may succeed: contention, throttling, a failing service, a lost connection."""
    if isinstance(error, LOST):
        return True
    if not isinstance(error, ClientError):
        return False
    details = error.response.get("Error", {})
    if details.get("Code") == "ValidationException":
        return any(word in details.get("Message", "") for word in _CONTENTION)
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    internal = details.get("Code") in ("InternalServerException", "ServiceUnavailableException")
    return details.get("Code") in _RETRYABLE or internal or status >= HTTPStatus.INTERNAL_SERVER_ERROR


def in_batches(
    items: Sequence[Any], call: Call, batch_size: int, key: Callable[[Any], str]
) -> dict[str, dict[str, Any]]:
    """Send all items in batches that the service takes.

    A batch that the service refuses as too long is halved, and so are those after it. When a batch fails for good
    while another succeeded, its items are answered for with the status UNKNOWN and the error as the reason.

    Returns:
        The details of each answered item, by its key.

    Raises:
        ClientError: No batch succeeded; the error of the first.
        InvalidDocumentError: Two different items have one key.
        ValueError: *batch_size* is below 1.
    """
    if batch_size < 1:
        raise ValueError(f"The number of documents in a call must be 1 or more, not {batch_size}")
    waiting = list(_distinct(items, key).items())
    details: dict[str, dict[str, Any]] = {}
    failed: list[Exception] = []
    succeeded = not waiting
    while waiting:
        batch = waiting[:batch_size]
        try:
            answers = call([item for _, item in batch], [name for name, _ in batch])
        except (ClientError, *LOST) as error:
            if _is_too_long(error) and len(batch) > 1:
                batch_size = len(batch) // 2
                continue
            failed.append(error)
            details |= {name: {"status": "UNKNOWN", "statusReason": _in_one_line(error)} for name, _ in batch}
        else:
            succeeded = True
            details |= {key_of(answer.get("identifier") or {}): answer for answer in answers}
        waiting = waiting[batch_size:]
    if not succeeded:
        raise failed[0]
    return details


def _distinct(items: Sequence[Any], key: Callable[[Any], str]) -> dict[str, Any]:
    distinct: dict[str, Any] = {}
    for item in items:
        if distinct.setdefault(key(item), item) != item:
            raise InvalidDocumentError(f"{key(item)} is given twice, with different metadata")
    return distinct


def _is_too_long(error: Exception) -> bool:
    if not isinstance(error, ClientError):
        return False
    details = error.response.get("Error", {})
    return details.get("Code") == "ValidationException" and _TOO_LONG in details.get("Message", "")


def _in_one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _token(seed: str, keys: Sequence[str]) -> str:
    """Derive a token of 64 characters, the same for the same seed and documents. The service takes 33 to 256."""
    return hashlib.sha256("\0".join([seed, *keys]).encode("utf-8", "surrogatepass")).hexdigest()
