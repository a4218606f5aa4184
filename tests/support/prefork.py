"""A process that imports modules once, and forks a program for each request: it starts without a second of imports.

The programs are `ragstack` and `run-python CODE`, which runs code as `python -m asyncio` does, but ends with the first
error. Each has the arguments, variables, folder and streams of the command that asked for it.
"""

import ast
import asyncio
import atexit
import inspect
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, Final, NoReturn

from tests.support.children import child
from tests.support.waiting import eventually

RUN_PYTHON: Final = "run-python"
PROGRAMS: Final = ("ragstack", RUN_PYTHON)
CLIENT: Final = """
import json, os, socket, sys
address, *command = sys.argv[1:]
connection = socket.socket(socket.AF_UNIX)
connection.connect(address)
request = json.dumps([command, os.getcwd(), dict(os.environ)]).encode()
socket.send_fds(connection, [len(request).to_bytes(8, "big")], [0, 1, 2])
connection.sendall(request)
sys.exit(int.from_bytes(connection.recv(1) or b"\\xff", "big"))
"""


ROOT: Final = Path(__file__).parents[2]


@contextmanager
def programs(modules: Sequence[str], env: Mapping[str, str]) -> Iterator[Path]:
    """Serve programs that have imported the modules already; yields the folder of the commands that start them."""
    with TemporaryDirectory(dir="/tmp") as short:  # the address of a socket has at most 100 characters
        folder = Path(short)
        address = folder / "socket"
        client = [sys.executable, "-I", "-S", "-c", CLIENT, str(address)]
        if sys.platform != "linux":  # the frameworks of macOS do not survive a fork: each program imports for itself
            client = ["env", f"PYTHONPATH={ROOT}", sys.executable, "-m", "tests.support.prefork"]
        for program in PROGRAMS:
            (folder / program).write_text(f'#!/bin/sh\nexec {shlex.join([*client, program])} "$@"\n', encoding="utf-8")
            (folder / program).chmod(0o755)
        command = [sys.executable, "-m", "tests.support.prefork", str(address), *modules]
        with child(command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL) as server:
            eventually(lambda: server.poll() is not None or address.exists())
            yield folder


def serve(address: str, modules: Sequence[str]) -> None:
    """Fork for each request; returns in the processes that then run a program."""
    for module in modules:
        import_module(module)
    listener = socket.socket(socket.AF_UNIX)
    # A client that finds the socket can connect to it.
    listener.bind(f"{address}.new")
    listener.listen()
    Path(f"{address}.new").rename(address)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        connection, _ = listener.accept()
        if os.fork() == 0:
            break
        connection.close()
    listener.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    length, streams, *_ = socket.recv_fds(connection, 8, 3)
    with connection.makefile("rb") as file:
        request = file.read(int.from_bytes(length, "big"))
    if program := os.fork():
        code = os.waitstatus_to_exitcode(os.waitpid(program, 0)[1])
        connection.sendall(bytes([code % 256]))
        os._exit(0)
    connection.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.modules["__main__"] = ModuleType("__main__")  # that of `python -c`, which processes of theirs need not import
    sys.argv, folder, variables = json.loads(request)
    os.environ.clear()
    os.environ.update(variables)
    os.chdir(folder)


def run(code: str) -> None:
    """Run code that may await."""
    compiled = compile(code, "example", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    done: Any = eval(compiled, {"__name__": "__main__"})
    if inspect.iscoroutine(done):
        asyncio.run(done)


def end_with(program: Callable[[], None]) -> NoReturn:
    """Run a program and end, without freeing every object of every module: that takes most of a second."""
    code = 0
    try:
        program()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(bool(ended.code))
    except BaseException:  # noqa: BLE001
        traceback.print_exc()
        code = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    if sys.argv[1] in PROGRAMS:
        del sys.argv[0]
    else:
        serve(sys.argv[1], sys.argv[2:])
    if sys.argv[0] == RUN_PYTHON:
        sys.path[0] = ""
        end_with(partial(run, sys.argv[1]))
    from ragstack_local.__main__ import main

    end_with(main)
