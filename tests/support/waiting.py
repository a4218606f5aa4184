"""Waiting in real time for what another thread or process does."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(find: Callable[[], T | None], seconds: float = 120.0) -> T:
    """Return the first true value of *find*.

    Raises:
        AssertionError: There was none in time.
    """
    deadline = time.monotonic() + seconds
    while not (found := find()):
        assert time.monotonic() < deadline, f"{find} stayed {found!r} for {seconds:g} seconds"
        time.sleep(0.05)
    return found
