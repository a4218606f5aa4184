"""A process that stays for the next message, and is replaced when it ends or takes too long."""

import gc
import json
import os
from collections.abc import Iterator

import pytest

from ragstack_common.reading.warm_process import ProcessEnded, WarmProcess

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


def test_a_process_that_ends_is_replaced_and_its_code_is_told(process: WarmProcess) -> None:
    before = identifier(process)

    with pytest.raises(ProcessEnded) as ended:
        process.call(b"end 97", LONG)

    assert (ended.value.exit_code, ended.value.answered) == (97, 1)
    assert identifier(process) != before


def test_a_process_that_takes_too_long_is_killed(process: WarmProcess) -> None:
    before = identifier(process)

    with pytest.raises(TimeoutError):
        process.call(b"wait", 0.0)

    with pytest.raises(ProcessLookupError):
        os.kill(before, 0)
    assert process.call(b"again", LONG) == b"again"


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
