"""What can go wrong with the local stack or on the way to a deployed one."""

from collections.abc import Sequence
from typing import Final

from ragstack_common.errors import RagStackError

_TOLD_AT_MOST: Final = 50


class StackError(RagStackError):
    """The stack cannot do what was asked; the message says what to do next."""


def refuse(problems: Sequence[str]) -> None:
    """Tell all that is wrong at once, each in a line of its own, so that all of it can be mended at once.

    Raises:
        StackError: There is something.
    """
    if not problems:
        return
    left = len(problems) - _TOLD_AT_MOST
    more = [f"... and {left} more"] if left > 0 else []
    raise StackError("\n".join([*problems[:_TOLD_AT_MOST], *more]))
