"""Why a message could not be carried out, and what helps."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

from botocore.exceptions import ClientError

from ragstack_common.errors import InvalidDocumentError
from ragstack_common.ingestion.calls import in_one_line, is_contention


class Remedy(IntEnum):
    """What helps, the most patient last."""

    NOTHING = 0
    ANOTHER_DELIVERY = 1
    WAITING = 2
    """Something else must end first, which may take long: the message is sent anew, so that no delivery counts."""


@dataclass(frozen=True)
class Problem:
    """Why a document, or a message, could not be dealt with.

    Attributes:
        cause: In one line.
        remedy: What helps.
        after_seconds: When another delivery may help; None leaves it to the number of deliveries.
    """

    cause: str
    remedy: Remedy = Remedy.ANOTHER_DELIVERY
    after_seconds: float | None = None


def problem_of(error: Exception) -> Problem:
    """Tell what helps against an error: most often that somebody repairs what is wrong, or time."""
    if isinstance(error, InvalidDocumentError):
        return Problem(str(error), Remedy.NOTHING)
    return Problem(in_one_line(error))


def problem_of_submission(error: Exception) -> Problem:
    """The same for a call about documents, which the knowledge base can refuse for what they are."""
    if is_contention(error):
        return Problem(in_one_line(error), Remedy.WAITING)
    refused = isinstance(error, ClientError) and error.response["Error"]["Code"] == "ValidationException"
    return Problem(in_one_line(error), Remedy.NOTHING if refused else Remedy.ANOTHER_DELIVERY)


def worst(problems: Iterable[Problem]) -> Problem:
    """Choose the problem that decides about a message: one that can still be remedied, the most patient one."""
    return max(problems, key=lambda problem: (problem.remedy, problem.after_seconds or 0.0))
