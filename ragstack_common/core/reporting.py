"""What callers and logs learn about an error: status, code, and a message without the account's internals."""

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from http import HTTPStatus
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from ragstack_common.core import errors
from ragstack_common.core.metrics import DEPLOYMENT_FAULTS, UPSTREAM_THROTTLES
from ragstack_common.core.telemetry import LOGGER, MetricSink

MAX_DETAILS: Final = 20
"""Maximum number of problems in a response. A body can have 100,000 unknown members; a response has 6 MB at most."""

MAX_NAME_CHARACTERS: Final = 80
"""Maximum length of a caller's own names in a response."""

_ABOUT_THE_REQUEST: Final = (
    errors.DocumentExistsError,
    errors.InvalidRequestError,
    errors.JobConflictError,
    errors.LimitReachedError,
    errors.NotAllowedError,
    errors.NotAuthenticatedError,
    errors.NotFoundError,
)
"""RAGStack writes these messages itself, about the caller's own input, so they are returned unchanged."""

_INTERNALS: Final = re.compile(
    r"(?P<kept>s3://\S+"
    r"|https?://(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d++)?+(?:/[\w./~-]*+)?+(?![\w@?]|\.\w))"
    r"|(?P<arn>\barn:[\w-]*:[^\s,;\"']+)|(?P<address>(?<![\w+.-])[\w+.-]++://[^\s\"']+)"
    r"|(?P<host>\b(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?\b|(?<![\w.-])(?=[\w-]*+\.)[\w.-]++:\d{2,5}\b)"
    r"|(?P<account>(?<!\d)\d{12}(?!\d))",
    re.IGNORECASE,
)

_STATUS_OF: Final = {
    errors.RagStackError: HTTPStatus.INTERNAL_SERVER_ERROR,
    errors.EmbeddingError: HTTPStatus.BAD_GATEWAY,
    errors.InvalidRequestError: HTTPStatus.BAD_REQUEST,
    errors.UnsupportedContentTypeError: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    errors.NotAuthenticatedError: HTTPStatus.UNAUTHORIZED,
    errors.NotAllowedError: HTTPStatus.FORBIDDEN,
    errors.LimitReachedError: HTTPStatus.TOO_MANY_REQUESTS,
    errors.NotFoundError: HTTPStatus.NOT_FOUND,
    errors.JobConflictError: HTTPStatus.CONFLICT,
    errors.DocumentExistsError: HTTPStatus.CONFLICT,
    errors.GenerationError: HTTPStatus.BAD_GATEWAY,
    errors.ModelThrottledError: HTTPStatus.TOO_MANY_REQUESTS,
    errors.GenerationTimeoutError: HTTPStatus.GATEWAY_TIMEOUT,
    errors.RegistryError: HTTPStatus.BAD_GATEWAY,
    errors.AccessRulesError: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.DeliveryError: HTTPStatus.BAD_GATEWAY,
    errors.ThrottledError: HTTPStatus.TOO_MANY_REQUESTS,
    errors.RetrievalTimeoutError: HTTPStatus.GATEWAY_TIMEOUT,
    errors.RetrievalError: HTTPStatus.BAD_GATEWAY,
}
"""A status below 500 means that the caller can do something: change the request, or send fewer.

What the deployment's own role and resources refuse is a 502, because no caller can change it. Throttling by AWS stays a
429: clients know to wait, and :func:`record_failure` counts it for the alarm.
"""

_CODE_OF: Final[Mapping[type[errors.RagStackError], str]] = {errors.AccessDeniedError: "UpstreamAccessDenied"}
"""Codes other than the class's name: API Gateway answers a caller without permission with ACCESS_DENIED."""

_DEPLOYMENT: Final = (
    errors.AccessDeniedError,
    errors.AccessRulesError,
    errors.CollectionNotFoundError,
    errors.ConfigurationError,
    errors.KnowledgeBaseNotFoundError,
    errors.ModelAccessError,
)
_LASTING: Final = frozenset(
    {
        "403",
        "AccessDenied",
        "AccessDeniedException",
        "AWS.SimpleQueueService.NonExistentQueue",
        "ExpiredTokenException",
        "InvalidSignatureException",
        "KMS.AccessDeniedException",
        "NoSuchBucket",
        "QueueDoesNotExist",
        "ResourceNotFoundException",
        "UnrecognizedClientException",
    }
)
"""Error codes of AWS that last until an operator restores a permission or a resource of the deployment.

S3's answers to HEAD have no body, so their code is the status.
"""


def error_status(error: errors.RagStackError) -> HTTPStatus:
    """Return the status of the error's class, or of its nearest base."""
    return next(_STATUS_OF[kind] for kind in type(error).__mro__ if kind in _STATUS_OF)


def error_code(error: errors.RagStackError) -> str:
    """Return the error code for programs, such as ``InvalidFilter``."""
    return _CODE_OF.get(type(error)) or type(error).__name__.removesuffix("Error")


def public_message(error: errors.RagStackError) -> str:
    """Return the message for the caller: one line, without ARNs, account ids and internal addresses."""
    text = " ".join(str(error).split())
    return text if isinstance(error, _ABOUT_THE_REQUEST) else redacted(text)


def record_failure(error: errors.RagStackError, metrics: MetricSink) -> HTTPStatus:
    """Log why a request failed, without its filters' values, and count what alarms watch; return its status."""
    status = error_status(error)
    if isinstance(error, _DEPLOYMENT) or _aws_code(error.__cause__) in _LASTING:
        metrics.add_metric(DEPLOYMENT_FAULTS, "Count", 1)
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        metrics.add_metric(UPSTREAM_THROTTLES, "Count", 1)
    level = logging.WARNING if status < HTTPStatus.INTERNAL_SERVER_ERROR else logging.ERROR
    LOGGER.log(level, "request failed: %s", errors.loggable(error))
    return status


def invalid_members(problems: Sequence[Mapping[str, Any]]) -> tuple[str, list[dict[str, str]]]:
    """Return a message and details about the invalid members of a request, given pydantic's list of problems."""
    details = []
    for problem in problems[:MAX_DETAILS]:
        # After the member's name, the location may say which of its types was tried.
        member = next((part for part in problem["loc"] if isinstance(part, str)), "body")
        details.append({"member": member[:MAX_NAME_CHARACTERS], "problem": str(problem["msg"])})
    message = "; ".join(f"{detail['member']}: {detail['problem']}" for detail in details)
    more = len(problems) - len(details)
    return f"{message}; and {more} more" if more else message, details


def redacted(text: str) -> str:
    """Replace ARNs, account ids and addresses in a text from AWS.

    ``s3://`` URIs stay, and addresses on the loopback interface without credentials and query.
    """
    return _INTERNALS.sub(lambda found: found["kept"] or f"[{found.lastgroup}]", text)


def redacted_or_none(reason: str | None) -> str | None:
    """Return a reason without ARNs, account ids and addresses, which AWS's messages may contain."""
    return None if reason is None else redacted(reason)


@contextmanager
def failing_as(kind: type[errors.RagStackError], what: str) -> Iterator[None]:
    """Raise an error of *kind* if a call to AWS fails; only the log has the whole message of AWS.

    The caller gets the service's error code alone: the message may name roles and resources of the account.
    """
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        LOGGER.error("%s: %s", what, " ".join(str(error).split()))
        code = _aws_code(error)
        advice = "its operator finds the cause in the log" if code in _LASTING else "the same request may succeed later"
        raise kind(f"{what} ({code}); {advice}") from error


def is_refused(error: BaseException) -> bool:
    """Whether a permission is missing for what an error is about, so that trying again cannot help."""
    return _aws_code(error.__cause__) == "AccessDeniedException"


def _aws_code(error: BaseException | None) -> str:
    """Return the error code of AWS, or the name of another error's class."""
    response = error.response if isinstance(error, ClientError) else {}
    return str(response.get("Error", {}).get("Code") or type(error).__name__)


def reaching_the_registry() -> AbstractContextManager[None]:
    """Raise RegistryError if the registry's table cannot be read or written."""
    return failing_as(errors.RegistryError, "The document registry could not be reached")
