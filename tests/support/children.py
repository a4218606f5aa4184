"""Programs that tests start: they end with the test, and with a test run that is killed."""

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

END_SECONDS: Final = 120.0
"""A program that takes longer to end has hung."""

_ENDS_WITH_TEST_RUN: Final = ("setpriv", "--pdeathsig", "TERM", "--") if shutil.which("setpriv") else ()


def start_child(command: Sequence[str | Path], **options: Any) -> "subprocess.Popen[Any]":
    """Start a program that Linux asks to end if the test run dies first; a stack then stops all its processes.

    Args:
        command: The program and its arguments.
        options: Passed to :class:`subprocess.Popen`.
    """
    return subprocess.Popen([*_ENDS_WITH_TEST_RUN, *command], **options)


@contextmanager
def child(command: Sequence[str | Path], **options: Any) -> Iterator["subprocess.Popen[Any]"]:
    """Start a program, and kill it at the end of the block if it still runs.

    Args:
        command: The program and its arguments.
        options: Passed to :class:`subprocess.Popen`.
    """
    process = start_child(command, **options)
    try:
        yield process
    finally:
        process.kill()
        process.wait(END_SECONDS)
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
