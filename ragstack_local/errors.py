"""What can go wrong on the way to a stack, in addition to the errors of ragstack_common."""

from ragstack_common.errors import RagStackError


class StackError(RagStackError):
    """The stack can't do this; the message says what to do next."""


class ApiError(RagStackError):
    """The API answered with an error, or not at all."""
