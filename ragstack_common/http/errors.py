"""Errors as responses: the body, the header Retry-After, and what a bug looks like."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from ragstack_common.core import errors
from ragstack_common.core.reporting import error_status
from ragstack_common.core.telemetry import LOGGER


def retry_after(error: Exception) -> str | None:
    """Return the header Retry-After of the response to an error, in seconds; None if it has none."""
    if isinstance(error, errors.LimitReachedError):
        return str(error.retry_after_seconds)
    is_throttled = isinstance(error, errors.RagStackError) and error_status(error) is HTTPStatus.TOO_MANY_REQUESTS
    return "1" if is_throttled else None  # the knowledge base counts requests by the second


def unexpected(error: Exception, request_id: str) -> tuple[str, str]:
    """Log a bug with its traceback; return its code and message for the caller."""
    LOGGER.error("unexpected error", exc_info=error)
    return (
        "InternalError",
        f"The service failed with an unexpected error; its log has the details for request {request_id}",
    )


def error_body(
    code: str, message: str, request_id: str, details: Sequence[Mapping[str, str]] = ()
) -> dict[str, dict[str, Any]]:
    """Return an error as the API's JSON."""
    return {"error": {"code": code, "message": message, "details": [*details], "requestId": request_id}}
