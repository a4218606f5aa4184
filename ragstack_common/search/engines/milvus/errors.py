"""What the errors of Milvus's client mean."""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import grpc
from pymilvus.exceptions import MilvusException

from ragstack_common.core.errors import (
    AccessDeniedError,
    CollectionNotFoundError,
    PartitionNotFoundError,
    RetrievalError,
    RetrievalTimeoutError,
    ServiceUnavailableError,
    ThrottledError,
)

REJECTED: Final = frozenset({6, 1100})
"""Codes of a value that a field cannot have, of Lite and of a server. Source: Milvus's merr package."""

NOT_LOADED: Final = frozenset({101, 201})
"""Codes of a collection or partition that is not in memory. Source: Milvus's merr package."""

_MEANINGS: Final[dict[Any, tuple[type[RetrievalError], str]]] = {
    2: (ServiceUnavailableError, "check that Milvus is running, and its address"),
    3: (AccessDeniedError, "check the user name and the password"),
    8: (ThrottledError, "send fewer requests a second"),
    9: (ThrottledError, "Milvus rejects requests until its quota allows them"),
    100: (CollectionNotFoundError, "check the collection's name and the database"),
    200: (PartitionNotFoundError, "check the partition's name"),
    800: (CollectionNotFoundError, "the database does not exist"),
    grpc.StatusCode.UNAVAILABLE: (ServiceUnavailableError, "check that Milvus is running, and its address"),
    grpc.StatusCode.DEADLINE_EXCEEDED: (RetrievalTimeoutError, "try again, or raise timeout_seconds"),
    grpc.StatusCode.UNAUTHENTICATED: (AccessDeniedError, "check the user name and the password"),
    grpc.StatusCode.PERMISSION_DENIED: (AccessDeniedError, "grant the user Search and Query on the collection"),
    grpc.StatusCode.RESOURCE_EXHAUSTED: (ThrottledError, "send fewer requests a second"),
}
"""Source: pymilvus.exceptions.ErrorCode, common.proto's ErrorCode, and Milvus's merr package."""

_DENIED: Final = re.compile("auth check|authenticat|permission den", re.IGNORECASE)

# It logs the filter of every failed call, with a traceback; the error itself is raised anyway.
logging.getLogger("pymilvus.decorators").setLevel(logging.CRITICAL)


@contextmanager
def translated_errors(subject: str) -> Iterator[None]:
    """Translate pymilvus's errors; *subject* begins the message."""
    try:
        yield
    except MilvusException as error:
        raise _translated(subject, error.code, error.message) from error
    except grpc.RpcError as error:
        raise _translated(subject, error.code(), error.details() or "") from error
    except grpc.FutureTimeoutError as error:
        raise _translated(subject, 2, "no connection in time") from error
    except ValueError as error:  # gRPC raises it for a channel that was closed meanwhile
        raise ServiceUnavailableError(f"{subject}: the connection to Milvus was closed; try again") from error


def _translated(subject: str, code: Any, message: str) -> RetrievalError:
    kind, advice = _MEANINGS.get(code, (RetrievalError, "see the message"))
    if kind is RetrievalError and _DENIED.search(message):
        kind, advice = AccessDeniedError, "check the user name and the password"
    line = message.strip().partition("\n")[0]  # the lines after it quote the filter
    return kind(f"{subject}: Milvus says {line[:200]!r} (code {code}); {advice}")
