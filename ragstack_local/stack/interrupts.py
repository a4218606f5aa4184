"""Signals that end the local stack, as KeyboardInterrupt, and never between a process's start and the note of it."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass
class _State:
    held: int = 0
    waiting: bool = False


_STATE: Final = _State()


@contextmanager
def raised() -> Iterator[None]:
    """End in order when asked to, and when the terminal is closed; not where the caller chose to ignore that."""
    found = {number: signal.getsignal(number) for number in _SIGNALS}
    # None is a handler that was not set from Python, and could not be set again.
    before = {number: handler for number, handler in found.items() if handler not in (None, signal.SIG_IGN)}
    try:
        for number in before:
            signal.signal(number, _interrupt)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def held() -> Iterator[None]:
    """Let an interrupt wait for the end of the block: what is started in it can be noted for its end."""
    _STATE.held += 1
    try:
        yield
    finally:
        _STATE.held -= 1
        if _STATE.waiting and not _STATE.held:
            _STATE.waiting = False
            raise KeyboardInterrupt


def _interrupt(*_: object) -> None:
    if _STATE.held:
        _STATE.waiting = True
    else:
        raise KeyboardInterrupt
