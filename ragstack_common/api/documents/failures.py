"""Errors of AWS to ours, with what the caller may know of them."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from botocore.exceptions import BotoCoreError, ClientError

from ragstack_common.errors import RagStackError, RegistryError
from ragstack_common.ingestion.calls import in_one_line
from ragstack_common.telemetry import LOGGER


@contextmanager
def failing_as(kind: type[RagStackError], what: str) -> Iterator[None]:
    """Raise an error of *kind* where a call to AWS fails, and write the whole of it into the log alone.

    The caller is told the service's code only: its message may name roles and resources of the account.
    """
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        LOGGER.error("%s: %s", what, in_one_line(error))
        raise kind(f"{what} ({_code(error)}); the same request may succeed later") from error


def reaching_the_registry() -> AbstractContextManager[None]:
    """Raise RegistryError where the registry's table cannot be read or written."""
    return failing_as(RegistryError, "The document registry could not be reached")


def _code(error: ClientError | BotoCoreError) -> str:
    return (
        error.response.get("Error", {}).get("Code", "Unknown")
        if isinstance(error, ClientError)
        else type(error).__name__
    )
