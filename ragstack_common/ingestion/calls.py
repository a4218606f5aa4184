"""Calls of bedrock-agent about many documents: which errors are worth another attempt, and how batches are split."""

import hashlib
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, TypeVar

from botocore.exceptions import BotoCoreError, ClientError, ResponseStreamingError

from ragstack_common.documents import key_of
from ragstack_common.errors import InvalidDocumentError
from ragstack_common.retry import LOST, Backoff

T = TypeVar("T")

DOCUMENTS_PER_CALL: Final = 10
"""Source: bedrock-agent, shapes KnowledgeBaseDocuments and DocumentIdentifiers. The quota page says 25."""

_RETRYABLE: Final = frozenset(
    {"ConflictException", "ThrottlingException", "TooManyRequestsException", "ServiceQuotaExceededException"}
)
_CONTENTION: Final = ("ongoing", "running", "can't exceed")
"""IngestKnowledgeBaseDocuments models no ConflictException and says it in these words of a ValidationException."""

_URI: Final = re.compile(r"s3://[^\s']*")
"""Left out when looking for those words: a document may be called running-shoes.pdf."""

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
        details: list[dict[str, Any]] = self.backoff.call(
            lambda: whole(self.operation(**parameters), "documentDetails"), retry_on=is_retryable
        )
        return details


def whole(answer: Mapping[str, Any], member: str) -> Any:
    """Return a member that every success has: boto3 takes an answer that was cut off for a success without members.

    Raises:
        ResponseStreamingError: The answer was cut off; whether the call was carried out is unknown.
    """
    try:
        return answer[member]
    except KeyError:
        raise ResponseStreamingError(error=f"the answer was cut off before {member}") from None


def is_retryable(error: Exception) -> bool:
    """Tell whether another attempt may succeed: contention, throttling, a failing service, a lost connection."""
    if isinstance(error, LOST):
        return True
    if not isinstance(error, ClientError):
        return False
    if is_contention(error):
        return True
    details = error.response.get("Error", {})
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    internal = details.get("Code") in ("InternalServerException", "ServiceUnavailableException")
    return details.get("Code") in _RETRYABLE or internal or status >= HTTPStatus.INTERNAL_SERVER_ERROR


def is_contention(error: Exception) -> bool:
    """Tell whether something else that the knowledge base does is in the way, such as an ingestion job."""
    if not isinstance(error, ClientError):
        return False
    if error.response.get("Error", {}).get("Code") == "ConflictException":
        return True
    return any(word in _URI.sub("", _validation_message(error)) for word in _CONTENTION)


def in_batches(
    items: Sequence[Any], call: Call, batch_size: int, key: Callable[[Any], str]
) -> dict[str, dict[str, Any]]:
    """Send all items in batches that the service takes.

    When the service finds a batch too long, it and those after it are halved. When it finds fault with one item, the
    batch is halved until that item is alone, so that the others are not refused with it. When a batch fails for good
    while another succeeded, its items are answered for with the status UNKNOWN, the error's text as the reason, and the
    error itself as ``error``.

    Returns:
        The details of each answered item, by its key.

    Raises:
        ClientError: No batch succeeded; the error of the first.
        InvalidDocumentError: Two different items have one key.
        ValueError: *batch_size* is below 1.
    """
    if batch_size < 1:
        raise ValueError(f"The number of documents in a call must be 1 or more, not {batch_size}")
    batches = deque(_chunks(list(_distinct(items, key).items()), batch_size))
    details: dict[str, dict[str, Any]] = {}
    failed: list[Exception] = []
    succeeded = not batches
    while batches:
        batch = batches.popleft()
        try:
            answers = call([item for _, item in batch], [name for name, _ in batch])
        except (ClientError, BotoCoreError) as error:
            half = len(batch) // 2
            if half and _is_too_long(error, call.items):
                batches = deque(_chunks([pair for part in (batch, *batches) for pair in part], half))
                continue
            if half and _refuses_an_item(error, call.items):
                batches.extendleft([batch[half:], batch[:half]])
                continue
            failed.append(error)
            unknown = {"status": "UNKNOWN", "statusReason": in_one_line(error), "error": error}
            details |= {name: unknown for name, _ in batch}
        else:
            succeeded = True
            details |= {key_of(answer.get("identifier") or {}): answer for answer in answers}
    if not succeeded:
        raise failed[0]
    return details


def _chunks(items: list[T], size: int) -> Iterator[list[T]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def _distinct(items: Sequence[Any], key: Callable[[Any], str]) -> dict[str, Any]:
    distinct: dict[str, Any] = {}
    for item in items:
        if distinct.setdefault(key(item), item) != item:
            raise InvalidDocumentError(f"{key(item)} is given twice, with different metadata")
    return distinct


def _is_too_long(error: Exception, items: str) -> bool:
    """Tell whether the service refused the list for its length: ``'documents' failed ... length less than ...``."""
    message = _validation_message(error)
    return _TOO_LONG in message and f"'{items}." not in message


def _refuses_an_item(error: Exception, items: str) -> bool:
    """Tell whether the service found fault with a member: ``at 'documents.3.member.content' failed ...``."""
    return f"'{items}." in _validation_message(error)


def _validation_message(error: Exception) -> str:
    if not isinstance(error, ClientError):
        return ""
    details = error.response.get("Error", {})
    return details.get("Message", "") if details.get("Code") == "ValidationException" else ""


def in_one_line(error: Exception) -> str:
    """Write an error on one line."""
    return " ".join(str(error).split())


def _token(seed: str, keys: Sequence[str]) -> str:
    """Derive a token of 64 characters, the same for the same seed and documents. The service takes 33 to 256."""
    return hashlib.sha256("\0".join([seed, *keys]).encode("utf-8", "surrogatepass")).hexdigest()
