"""A process that stays for the next message, and is replaced when it ends or takes too long."""

import gc
import json
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

import pytest

from ragstack_common.reading.warm_process import ProcessBusy, ProcessEnded, WarmProcess
from tests.support.waiting import eventually

LONG = 60.0
"""Seconds after which a test has failed anyway."""


@pytest.fixture
def process() -> Iterator[WarmProcess]:
    made = WarmProcess("tests.support.echoing")
    yield made
    made.close()


def identifier(process: WarmProcess) -> int:
    return int(json.loads(process.call(b"environment", LONG))[0])


def test_messages_of_any_size_are_answered_by_one_process(process: WarmProcess) -> None:
    before = identifier(process)

    for size in (0, 1, 70_000, 20_000_000):
        assert process.call(b"x" * size, LONG) == b"x" * size

    assert identifier(process) == before != os.getpid()


def test_an_ended_process_is_replaced_and_its_exit_code_reported(process: WarmProcess) -> None:
    before = identifier(process)

    with pytest.raises(ProcessEnded) as ended:
        process.call(b"end 97", LONG)

    assert (ended.value.exit_code, ended.value.answered) == (97, 1)
    assert identifier(process) != before


def test_a_process_that_was_killed_between_two_messages_is_replaced(process: WarmProcess) -> None:
    """The caller would blame its file, which the process never saw."""
    before = identifier(process)

    os.kill(before, signal.SIGKILL)
    assert process._running is not None
    process._running.process.wait(LONG)

    assert process.call(b"next", LONG) == b"next"
    assert identifier(process) != before


def test_a_process_that_takes_too_long_is_killed(process: WarmProcess) -> None:
    before = identifier(process)

    with pytest.raises(TimeoutError):
        process.call(b"wait", 0.0)

    with pytest.raises(ProcessLookupError):
        os.kill(before, 0)
    assert process.call(b"again", LONG) == b"again"


def test_a_call_that_waits_for_another_sends_nothing_and_ends_nothing(process: WarmProcess) -> None:
    before = identifier(process)

    with stopped(before) as go_on, ThreadPoolExecutor() as other:
        first = other.submit(process.call, b"first", LONG)
        eventually(process._lock.locked)
        with pytest.raises(ProcessBusy):
            process.call(b"end 97", 0.0)
        go_on()
        assert first.result() == b"first"

    assert identifier(process) == before


@contextmanager
def stopped(process: int) -> Iterator[Callable[[], None]]:
    """Stop a process until the function is called."""
    os.kill(process, signal.SIGSTOP)
    go_on = partial(os.kill, process, signal.SIGCONT)
    try:
        yield go_on
    finally:
        go_on()


def test_the_answer_to_an_interrupted_call_is_not_that_to_the_next(
    process: WarmProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = identifier(process)

    def interrupt(*_: Any) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as interrupted:
        interrupted.setattr(Connection, "poll", interrupt)
        with pytest.raises(KeyboardInterrupt):
            process.call(b"first", LONG)

    assert process.call(b"second", LONG) == b"second"
    assert identifier(process) != before


def test_a_process_gets_no_credentials(process: WarmProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("RAGSTACK_TOKEN", "secret")

    names = {*json.loads(process.call(b"environment", LONG))[1:]}

    assert "PYTHONPATH" in names
    assert not [name for name in names if name.startswith(("AWS_", "RAGSTACK_"))]


def test_a_process_ends_with_the_object_that_started_it() -> None:
    forgotten = WarmProcess("tests.support.echoing")
    before = identifier(forgotten)

    del forgotten
    gc.collect()

    with pytest.raises(ProcessLookupError):
        os.kill(before, 0)
