"""How an error looks to an HTTP caller: its status, its code, and a message without the account's internals."""

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from http import HTTPStatus
from typing import Final

from botocore.exceptions import BotoCoreError, ClientError

from ragstack_common import errors
from ragstack_common.telemetry import LOGGER

_ABOUT_THE_REQUEST: Final = (errors.InvalidRequestError, errors.NotKnownError, errors.JobConflictError)
"""RAGStack writes these messages itself, about the caller's own input, so they are returned unchanged."""

_INTERNALS: Final = re.compile(
    r"(?P<kept>s3://\S+)|(?P<arn>\barn:[\w-]*:[^\s,;\"']+)|(?P<address>\b[a-z][a-z0-9+.-]*://[^\s\"']+)"
    r"|(?P<host>\b(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?\b|\b[\w-]+(?:\.[\w-]+)+:\d{2,5}\b)"
    r"|(?P<account>(?<!\d)\d{12}(?!\d))",
    re.IGNORECASE,
)

_STATUS_OF: Final = {
    errors.RagStackError: HTTPStatus.INTERNAL_SERVER_ERROR,
    errors.EmbeddingError: HTTPStatus.BAD_GATEWAY,
    errors.InvalidRequestError: HTTPStatus.BAD_REQUEST,
    errors.UnsupportedContentTypeError: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    errors.KnowledgeBaseNotFoundError: HTTPStatus.NOT_FOUND,
    errors.CollectionNotFoundError: HTTPStatus.NOT_FOUND,
    errors.NotKnownError: HTTPStatus.NOT_FOUND,
    errors.JobConflictError: HTTPStatus.CONFLICT,
    errors.GenerationError: HTTPStatus.BAD_GATEWAY,
    errors.ModelAccessError: HTTPStatus.FORBIDDEN,
    errors.ModelThrottledError: HTTPStatus.TOO_MANY_REQUESTS,
    errors.GenerationTimeoutError: HTTPStatus.GATEWAY_TIMEOUT,
    errors.RegistryError: HTTPStatus.BAD_GATEWAY,
    errors.DeliveryError: HTTPStatus.BAD_GATEWAY,
    errors.AccessDeniedError: HTTPStatus.FORBIDDEN,
    errors.ThrottledError: HTTPStatus.TOO_MANY_REQUESTS,
    errors.RetrievalTimeoutError: HTTPStatus.GATEWAY_TIMEOUT,
    errors.RetrievalError: HTTPStatus.BAD_GATEWAY,
}


def status_of(error: errors.RagStackError) -> HTTPStatus:
    """Return the status of the error's class, or of its nearest base."""
    return next(_STATUS_OF[kind] for kind in type(error).__mro__ if kind in _STATUS_OF)


def code_of(error: errors.RagStackError) -> str:
    """Return the error code for programs, such as ``InvalidFilter``."""
    return type(error).__name__.removesuffix("Error")


def message_of(error: errors.RagStackError) -> str:
    """Return the message for the caller: one line, without ARNs, account ids and internal addresses."""
    text = " ".join(str(error).split())
    return text if isinstance(error, _ABOUT_THE_REQUEST) else redacted(text)


def redacted(text: str) -> str:
    """Replace ARNs, account ids and addresses in a text from AWS; ``s3://`` URIs stay."""
    return _INTERNALS.sub(lambda found: found["kept"] or f"[{found.lastgroup}]", text)


@contextmanager
def failing_as(kind: type[errors.RagStackError], what: str) -> Iterator[None]:
    """Raise an error of *kind* if a call to AWS fails; only the log has the whole message of AWS.

    The caller gets the service's error code alone: the message may name roles and resources of the account.
    """
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        LOGGER.error("%s: %s", what, " ".join(str(error).split()))
        response = error.response if isinstance(error, ClientError) else {}
        code = response.get("Error", {}).get("Code") or type(error).__name__
        raise kind(f"{what} ({code}); the same request may succeed later") from error


def reaching_the_registry() -> AbstractContextManager[None]:
    """Raise RegistryError if the registry's table cannot be read or written."""
    return failing_as(errors.RegistryError, "The document registry could not be reached")
