"""The killer finds what runs functions, tells whether it is at work, and ends it."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.e2e.support import LocalStack
from tests.faults.killer import Killer, is_busy, workers_of
from tests.support.waiting import eventually

WAITS_FOR_A_LINE = "import sys\nprint(flush=True)\nsys.stdin.readline()\n"
WORKS = "import socket, time\ncalls = socket.socket()\nprint(flush=True)\ntime.sleep(600)\n"
IS_IMPORTED = "import time\nprint(flush=True)\ntime.sleep(600)\n"


@contextmanager
def running(folder: Path, script: str, function: str, mark: str) -> Iterator["subprocess.Popen[bytes]"]:
    program = folder / f"{function}{len(script)}_worker.py"
    program.write_text(script)
    environment = {**os.environ, "POWERTOOLS_SERVICE_NAME": function, "RAGSTACK_DATA": mark}
    process = subprocess.Popen(
        [sys.executable, program], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def stack(tmp_path: Path) -> LocalStack:
    return LocalStack(tmp_path)


def test_only_the_functions_of_the_ingestion_path_of_this_stack_are_found(stack: LocalStack, tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    with ExitStack() as processes:
        mine = processes.enter_context(running(tmp_path, WORKS, "ingestion", home))
        processes.enter_context(running(tmp_path, WORKS, "query", home))
        processes.enter_context(running(tmp_path, WORKS, "ingestion_status", str(tmp_path / "other")))

        found = workers_of(stack)

    assert found == {mine.pid: "ingestion"}


@pytest.mark.parametrize(("script", "busy"), [(WAITS_FOR_A_LINE, False), (WORKS, True)], ids=["waits", "works"])
def test_a_function_that_waits_for_an_event_is_idle(script: str, busy: bool, tmp_path: Path) -> None:
    with running(tmp_path, script, "ingestion", "x") as process:
        assert eventually(lambda: is_busy(process.pid) is busy)


def test_a_function_at_work_is_killed_and_counted(stack: LocalStack, tmp_path: Path) -> None:
    with running(tmp_path, WORKS, "ingestion", str(tmp_path / "home")) as process:
        with Killer(stack, 0.05, 1) as killer:
            ended = process.wait(60.0)

        assert ended == -9
        assert killer.kills["ingestion", "busy"] == 1
        assert killer.of_busy == 1


def test_a_function_that_is_only_being_imported_is_left_alone(stack: LocalStack, tmp_path: Path) -> None:
    with running(tmp_path, IS_IMPORTED, "ingestion", str(tmp_path / "home")) as process:
        with Killer(stack, 0.02, 1) as killer:
            time.sleep(0.3)

        assert process.poll() is None
        assert not killer.kills


def test_a_function_that_is_to_be_spared_is_left_alone(stack: LocalStack, tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    with running(tmp_path, WORKS, "reconcile", home) as spared, running(tmp_path, WORKS, "ingestion", home) as process:
        with Killer(stack, 0.05, 1, functions=("ingestion",)) as killer:
            process.wait(60.0)

        assert spared.poll() is None
        assert killer.of_function("ingestion") == 1
        assert killer.of_function("reconcile") == 0
