"""Local Bedrocks as processes, forked from one that has imported them: each starts without a second of imports."""

import ctypes
import multiprocessing
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from local_bedrock.options import Options
from local_bedrock.server import run
from tests.support.children import END_SECONDS

if sys.platform == "linux":
    _PROCESSES = multiprocessing.get_context("forkserver")
    _PROCESSES.set_forkserver_preload([__name__])
else:  # the frameworks of macOS do not survive a fork
    _PROCESSES = multiprocessing.get_context("spawn")

_PR_SET_PDEATHSIG: Final = 1
"""Source: Linux, include/uapi/linux/prctl.h."""


@contextmanager
def forked_bedrock(data_dir: Path, **options: Any) -> Iterator[str]:
    """Serve in a process of its own, yield the URL, and kill the process.

    Args:
        data_dir: As in :class:`Options`.
        options: Other fields of :class:`Options`; a free port is used.
    """
    lines, announced = _PROCESSES.Pipe(duplex=False)
    process = _PROCESSES.Process(target=_serve, args=(announced, Options(data_dir, port=0, **options)))
    process.start()
    announced.close()
    try:
        url = re.search(r"http://\S+:\d+", lines.recv())
        assert url
        yield url[0]
    finally:
        process.kill()
        process.join(END_SECONDS)


def _serve(announced: Connection, options: Options) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)  # ends with a test run that is killed
    run(options, announce=announced.send)
