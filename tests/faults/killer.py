"""Kills processes that run functions, as a power cut does: between any two of their steps."""

import os
import signal
import time
from collections import Counter
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Final

from tests.e2e.support import LocalStack
from tests.faults.faulty_stack import FUNCTION, FUNCTIONS
from tests.faults.repeating import Repeating

WORKER: Final = b"_worker.py"
NAMED: Final = f"{FUNCTION}=".encode()

BUSY_SHARE: Final = 0.8
"""Attempts to find a process at work, before any process is killed."""

PATIENCE_SECONDS: Final = 3.0


class Killer(Repeating):
    """Kills one process after the other for as long as its context lasts, the first of them at work.

    Attributes:
        kills: How many, by function and by what it was doing.
    """

    def __init__(
        self,
        stack: LocalStack,
        seconds_between: float,
        most: int,
        seed: int = 0,
        functions: Collection[str] = FUNCTIONS,
    ) -> None:
        super().__init__(seconds_between, seed)
        self.kills: Counter[tuple[str, str]] = Counter()
        self._stack = stack
        self._most = most
        self._functions = functions

    @property
    def of_busy(self) -> int:
        """Kills that hit a function at work."""
        return sum(count for (_, doing), count in self.kills.items() if doing == "busy")

    def of_function(self, name: str) -> int:
        """Kills of one function."""
        return sum(count for (function, _), count in self.kills.items() if function == name)

    def act(self) -> bool:
        self._kill_one()
        return self.kills.total() < self._most

    def _kill_one(self) -> None:
        busy_only = self.chance.random() < BUSY_SHARE or self.of_busy == 0
        end = time.monotonic() + PATIENCE_SECONDS
        while not self.is_over.is_set():
            workers = [
                (process_id, function, is_busy(process_id))
                for process_id, function in sorted(workers_of(self._stack).items())
                if function in self._functions and has_begun(process_id)
            ]
            chosen = [worker for worker in workers if worker[2] or not busy_only]
            if chosen:
                # What is seldom at work has its turn too.
                turns = [1 / (1 + self.of_function(function)) for _, function, _ in chosen]
                process_id, function, busy = self.chance.choices(chosen, turns)[0]
                with suppress(ProcessLookupError):
                    os.kill(process_id, signal.SIGKILL)
                    self.kills[function, "busy" if busy else "idle"] += 1
                return
            if time.monotonic() > end:
                return
            # Not in step with anything that the function does.
            time.sleep(self.chance.uniform(0.005, 0.05))


def workers_of(stack: LocalStack) -> dict[int, str]:
    """Find the processes that run functions, with the function of each, but those that only search."""
    found = {}
    for process_id in stack.processes():
        with suppress(OSError):
            folder = Path(f"/proc/{process_id}")
            if WORKER not in (folder / "cmdline").read_bytes():
                continue
            environ = (folder / "environ").read_bytes().split(b"\0")
            names = [entry.removeprefix(NAMED).decode() for entry in environ if entry.startswith(NAMED)]
            if names and names[0] in FUNCTIONS:
                found[process_id] = names[0]
    return found


def has_begun(process_id: int) -> bool:
    """Check whether a function has called a service yet, and was not only imported.

    The local Lambda ends every process of a function when one cannot be started, and ends it in the middle of its work:
    a kill during an import would spread over the others, again and again.
    """
    with suppress(OSError):
        handles = [handle.readlink() for handle in Path(f"/proc/{process_id}/fd").iterdir()]
        return any(handle.name.startswith("socket:") for handle in handles)
    return False


def is_busy(process_id: int) -> bool:
    """Check whether a function is at work: an idle one waits for a line on its standard input."""
    try:
        call = Path(f"/proc/{process_id}/syscall").read_text().split()
    except OSError:
        return False
    reads = {"x86_64": "0", "aarch64": "63"}[os.uname().machine]
    return call[:2] != [reads, "0x0"]
