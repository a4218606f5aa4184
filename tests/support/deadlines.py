"""A deadline that comes when a test says so and not by the clock: no machine is too slow for what is in time."""

import asyncio
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any, Final

import pytest

from ragstack_common.core import deadline

POLL_SECONDS: Final = 0.01


@contextmanager
def deadline_after(ends: int = 0, when: Callable[[], object] = lambda: True) -> Iterator[None]:
    """Let the deadline of parallel calls pass as soon as this many of them have ended and *when* is true.

    The time that is asked for does not count: `test_deadline` shows that it is kept to.
    """
    waiting = SimpleNamespace(**{**vars(asyncio), "wait": partial(_wait, ends, when)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deadline, "asyncio", waiting)
        yield


async def _wait(ends: int, when: Callable[[], object], tasks: Collection[asyncio.Task[Any]], **_: float) -> Any:
    while (ended := sum(task.done() for task in tasks)) < len(tasks) and (ended < ends or not when()):  # noqa: ASYNC110
        await asyncio.sleep(POLL_SECONDS)
    return await asyncio.wait(tasks, timeout=0)
