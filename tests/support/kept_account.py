"""An account of moto that serves the next test too, if no call can have changed it."""

from collections.abc import Callable
from itertools import count
from typing import Any, Final, Generic, TypeVar

from botocore.handlers import BUILTIN_HANDLERS
from moto.moto_api._internal.models import moto_api_backend

T = TypeVar("T")

READING: Final = ("BatchGet", "Describe", "Get", "Head", "List", "Query", "Retrieve", "Scan")
"""Beginnings of the names of operations that change nothing."""

_numbers = count(1)
_last_write = 0


def _note(model: Any, **_: Any) -> None:
    global _last_write  # noqa: PLW0603 - of every client of this process
    if not model.name.startswith(READING):
        _last_write = next(_numbers)


BUILTIN_HANDLERS.append(("before-call", _note))  # clients that are made from now on


class KeptAccount(Generic[T]):
    """Makes an account, and makes it again only if it must hold something else or a client may have written to it."""

    def __init__(self) -> None:
        self._made: tuple[int, Any, T] | None = None

    def forget(self) -> None:
        self._made = None

    def get(self, make: Callable[[], T], holds: Any = None) -> T:
        """Return what *make* returned for the account that holds this."""
        if self._made is None or self._made[:2] != (_last_write, holds):
            moto_api_backend.reset()
            made = make()
            self._made = (_last_write, holds, made)
        return self._made[2]
