"""Why a document or a message could not be processed, and how it is tried again."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from botocore.exceptions import ClientError

from ragstack_common.core.errors import InvalidDocumentError
from ragstack_common.ingestion.bedrock_agent import in_one_line, is_contention


class Retry(IntEnum):
    """How a message with a problem is tried again, the most patient way last."""

    NEVER = 0
    REDELIVER = 1
    WAIT = 2
    """Another operation must end first, which can take long: a copy of the message is sent, so no delivery counts."""


@dataclass(frozen=True)
class Problem:
    """Why a document or a message could not be processed.

    Without *after_seconds*, the delay before the next attempt grows with the deliveries.
    """

    cause: str
    retry: Retry = Retry.REDELIVER
    after_seconds: float | None = None


CLAIMED: Final = Problem("Another invocation is processing the document", Retry.WAIT, after_seconds=2.0)
"""It usually ends long before its lease. If it was killed, the message waits repeatedly until the lease expires."""

LOST_RACE: Final = Problem("Another invocation changed the document's record", Retry.WAIT, after_seconds=1.0)
OUT_OF_TIME: Final = Problem("There were too many documents for one invocation", Retry.WAIT, after_seconds=1.0)


def problem_of(error: Exception) -> Problem:
    """Return the problem of a call, or of a message that cannot be read."""
    never = isinstance(error, InvalidDocumentError)
    return Problem(in_one_line(error), Retry.NEVER if never else Retry.REDELIVER)


def call_problem_of(error: Exception) -> Problem:
    """Return the problem of a call about documents, which the knowledge base can refuse because of their content."""
    if is_contention(error):
        return Problem(in_one_line(error), Retry.WAIT)
    refused = isinstance(error, ClientError) and error.response["Error"]["Code"] == "ValidationException"
    return Problem(in_one_line(error), Retry.NEVER if refused else Retry.REDELIVER)
