"""What can go wrong with the local stack or on the way to a deployed one."""

from ragstack_common.errors import RagStackError


class StackError(RagStackError):
    """The stack cannot do what was asked; the message says what to do next."""
