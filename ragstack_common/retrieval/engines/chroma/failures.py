"""What Chroma raises, as errors of the one tree."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
from chromadb.errors import (
    AuthorizationError,
    ChromaAuthError,
    ChromaError,
    InvalidArgumentError,
    InvalidDimensionException,
    NotFoundError,
    RateLimitError,
)

from ragstack_common.errors import (
    AccessDeniedError,
    CollectionNotFoundError,
    DimensionMismatchError,
    InvalidRequestError,
    ServiceUnavailableError,
    ThrottledError,
)

_UNREACHABLE = "Could not connect"
_OTHER_SETTINGS = "with different settings"
"""End of Chroma's message when a client in this process has the folder open with other settings."""

_BUSY = "Error executing plan"
"""How Chroma begins to say that it could not read what another process is writing, as an invalid argument at times."""


@contextmanager
def translated(place: str) -> Iterator[None]:
    """Translate the errors of calls to the store at *place*.

    Raises:
        CollectionNotFoundError: There is no such collection, database or tenant.
        DimensionMismatchError: A vector has another length than those of the collection.
        InvalidRequestError: Chroma refuses an argument.
        AccessDeniedError: The server refuses the caller.
        ThrottledError: The server wants fewer requests.
        ServiceUnavailableError: The store cannot be opened or reached, or failed.
    """
    try:
        yield
    except NotFoundError as error:
        raise CollectionNotFoundError(f"{_text(error)} in {place}: check the name, or build the collection") from error
    except (InvalidArgumentError, InvalidDimensionException) as error:
        if "dimension" in str(error):
            raise DimensionMismatchError(
                f"{_text(error)}: choose the embedding that the collection was built with"
            ) from error
        if _BUSY in str(error):
            raise ServiceUnavailableError(f"Chroma in {place} failed, try again: {_text(error)}") from error
        raise InvalidRequestError(f"Chroma refuses the request: {_text(error)}") from error
    except (AuthorizationError, ChromaAuthError) as error:
        raise AccessDeniedError(f"Chroma refuses access to {place}: check the headers and the database") from error
    except RateLimitError as error:
        raise ThrottledError(f"Chroma in {place} wants fewer requests: try again later") from error
    except (ChromaError, httpx.HTTPError, sqlite3.Error, OSError) as error:
        raise ServiceUnavailableError(f"Chroma in {place} failed: {_text(error)}") from error
    except ValueError as error:
        explanation = _explained(str(error), place)
        if explanation is None:
            raise
        raise ServiceUnavailableError(explanation) from error


def _explained(message: str, place: str) -> str | None:
    """Explain a ValueError of Chroma; None if it says nothing of the store."""
    if message.endswith(_OTHER_SETTINGS):
        return (
            f"This process already has {place} open with other Chroma settings: close that client first, or open it "
            "with Settings(anonymized_telemetry=False)"
        )
    if message.startswith(_UNREACHABLE):
        return f"Chroma in {place} cannot be reached: is it running?"
    return None


def _text(error: Exception) -> str:
    return str(error).strip().rstrip(".") or type(error).__name__
