"""A client of AWS of which a test changes one operation."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

ClientT = TypeVar("ClientT")


def changed_client(client: ClientT, operation: str, change: Callable[..., Any]) -> ClientT:
    """Return a client of the same type that shares everything else with *client*, which stays as it is.

    Args:
        client: A real client, or one that is changed already.
        operation: The method that is replaced, such as `put_object`.
        change: Called instead, with the original method and the parameters of the call.
    """
    made = object.__new__(type(client))  # copy.copy() looks for its hooks on a client without a model, without end
    vars(made).update(vars(client), **{operation: partial(change, getattr(client, operation))})
    return made
