"""The killer ends functions of its stack that are at work, and nothing else."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.e2e.support import LocalStack
from tests.faults.killer import Killer, has_begun, is_busy, workers_of
from tests.support.children import child
from tests.support.waiting import eventually

WAITS_FOR_AN_EVENT = "import sys\nprint(flush=True)\nsys.stdin.readline()\n"
WORKS = "import socket, time\ncalls = socket.socket()\nprint(flush=True)\ntime.sleep(600)\n"
IS_IMPORTED = "import time\nprint(flush=True)\ntime.sleep(600)\n"


@contextmanager
def running(folder: Path, script: str, function: str, mark: str = "home") -> Iterator["subprocess.Popen[bytes]"]:
    program = folder / f"{function}{len(script)}_worker.py"
    program.write_text(script)
    environment = {**os.environ, "POWERTOOLS_SERVICE_NAME": function, "RAGSTACK_DATA": str(folder / mark)}
    with child([sys.executable, program], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process


def test_a_function_at_work_is_killed_and_all_others_are_left_alone(tmp_path: Path) -> None:
    stack = LocalStack(tmp_path)
    with ExitStack() as processes:
        mine = processes.enter_context(running(tmp_path, WORKS, "ingestion"))
        imported = processes.enter_context(running(tmp_path, IS_IMPORTED, "ingestion"))
        idle = processes.enter_context(running(tmp_path, WAITS_FOR_AN_EVENT, "ingestion"))
        spared = processes.enter_context(running(tmp_path, WORKS, "reconcile"))
        others = [
            processes.enter_context(running(tmp_path, WORKS, "query")),
            processes.enter_context(running(tmp_path, WORKS, "ingestion_status", "other")),
        ]
        assert eventually(lambda: is_busy(mine.pid) and not is_busy(idle.pid))
        assert workers_of(stack).keys() == {each.pid for each in (mine, imported, idle, spared)}
        assert not has_begun(imported.pid)

        with Killer(stack, 0.05, 1, functions=("ingestion",)) as killer:
            ended = mine.wait(60.0)

        assert ended == -9
        assert killer.kills == {("ingestion", "busy"): 1}
        assert all(each.poll() is None for each in (imported, idle, spared, *others))
