"""Errors of the command line and the local stack, in addition to those of ragstack_common."""

from typing import Final

from ragstack_common.core.errors import OperationError, RagStackError

NOTHING_FOUND: Final = 1
"""Exit code if nothing was found, or a document is not searchable."""

WRONG_USAGE: Final = 2
"""Exit code if the command line cannot be carried out as it is written."""

FAILED: Final = 3
"""Exit code after another error."""

INTERRUPTED: Final = 130
"""Exit code after Ctrl-C."""


class StackError(RagStackError):
    """The stack can't do this; the message says what to do next."""


class UsageError(StackError):
    """The command line names something that does not exist or is malformed; the exit code is that of wrong usage."""


class ApiError(OperationError):
    """The API answered with an error, or not at all."""


class InvalidApiRequestError(ApiError, UsageError):
    """The API rejected the request itself."""
