"""Tell the work on a request that its client has disconnected."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_current: Final[ContextVar["Abandonment | None"]] = ContextVar("abandonment", default=None)


class Abandonment:
    """What to do if the client of a request disconnects."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._abandoned = False
        self._actions: list[Callable[[], object]] = []

    def abandon(self) -> None:
        """Carry out the actions: the client has disconnected."""
        with self._lock:
            self._abandoned = True
            actions, self._actions = self._actions, []
        for act in actions:
            act()

    def add(self, act: Callable[[], object]) -> None:
        """Carry out an action when the client disconnects, or now if it has."""
        with self._lock:
            if not self._abandoned:
                self._actions.append(act)
                return
        act()


@contextmanager
def abandonable() -> Iterator[Abandonment]:
    """Let the work in the block, in threads with its context too, use :func:`when_abandoned`."""
    abandonment = Abandonment()
    token = _current.set(abandonment)
    try:
        yield abandonment
    finally:
        _current.reset(token)


def when_abandoned(act: Callable[[], object]) -> None:
    """Carry out an action when the client of the current request disconnects; without a request, never."""
    abandonment = _current.get()
    if abandonment is not None:
        abandonment.add(act)
