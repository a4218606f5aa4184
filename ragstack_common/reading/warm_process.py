"""A process that answers messages one after the other, and is replaced when it ends.

It works on AWS Lambda, which has no shared memory and therefore none of the locks of ``multiprocessing``'s pools. Where
there is shared memory, and several processes work at once, ``local_bedrock/processes/worker_pool.py`` has such a pool.
"""

import os
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, Pipe
from typing import Final

_KEPT_VARIABLES: Final = ("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT")
"""A process that reads hostile files gets no credentials."""


class ProcessEnded(Exception):  # noqa: N818 - expected of hostile files
    """The process ended before it answered.

    Attributes:
        exit_code: Negative for a signal, as in ``subprocess``.
        answered: How many messages it had answered.
    """

    def __init__(self, exit_code: int | None, answered: int) -> None:
        super().__init__(f"exit code {exit_code}")
        self.exit_code = exit_code
        self.answered = answered


class ProcessBusy(Exception):  # noqa: N818 - expected of a process that answers one message after the other
    """Other calls took too much of the time of this one."""


class WarmProcess:
    """Runs a module of Python that calls :func:`serve`, from its first use to the end of this process.

    Args:
        module: Its name.
        arguments: For it, after the numbers of its two pipes.
        folders: More folders of packages, after those of this process.
    """

    def __init__(self, module: str, arguments: Sequence[str] = (), folders: Sequence[str] = ()) -> None:
        self._module, self._arguments, self._folders = module, arguments, folders
        self._lock = threading.Lock()
        self._running: _Running | None = None

    def start(self) -> None:
        """Start the process in the background, so that the first call waits less."""
        with self._lock:
            self._process()

    def call(self, message: bytes, timeout_seconds: float) -> bytes:
        """Send a message, and return the answer; calls wait for each other, for up to half of their time.

        Raises:
            ProcessBusy: Other calls took too much of the time; the same call may succeed later.
            TimeoutError: There was no answer in time; the process is killed.
            ProcessEnded: The process ended.
        """
        until = time.monotonic() + timeout_seconds
        waits = not self._lock.acquire(blocking=False)
        if waits and not self._lock.acquire(timeout=max(0.0, timeout_seconds / 2)):
            raise ProcessBusy
        try:
            running = self._process()
            try:
                return running.answer(message, until)
            except BaseException as error:  # an interrupted call leaves an answer, which the next one would get
                self._running = None
                running.end()
                if isinstance(error, TimeoutError) and waits:
                    raise ProcessBusy from None
                if isinstance(error, EOFError | OSError) and not isinstance(error, TimeoutError):
                    raise ProcessEnded(running.process.returncode, running.answered) from None
                raise
        finally:
            self._lock.release()

    def close(self) -> None:
        """End the process; the next call starts another one."""
        with self._lock:
            if self._running is not None:
                self._running.end()
                self._running = None

    def _process(self) -> "_Running":
        if self._running is not None and self._running.process.poll() is not None:
            # Killed between two messages, for its memory for example: the next message is not to blame.
            self._running.end()
            self._running = None
        if self._running is None:
            self._running = _Running(self._module, self._arguments, self._folders)
        return self._running


class _Running:
    """The process, and the ends of its pipes."""

    def __init__(self, module: str, arguments: Sequence[str], folders: Sequence[str]) -> None:
        theirs, self.messages = Pipe(duplex=False)
        self.answers, answering = Pipe(duplex=False)
        environment = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
        descriptors = (theirs.fileno(), answering.fileno())
        self.process = subprocess.Popen(  # noqa: S603 - this interpreter, and arguments of our own
            [sys.executable, "-P", "-m", module, *map(str, descriptors), *arguments],
            env={**environment, "PYTHONPATH": os.pathsep.join([*sys.path, *folders])},
            pass_fds=descriptors,
            stdin=subprocess.DEVNULL,
        )
        theirs.close()
        answering.close()
        self.answered = 0
        self.end = weakref.finalize(self, _end, self.process, self.messages, self.answers)

    def answer(self, message: bytes, until: float) -> bytes:
        self.messages.send_bytes(message)
        if not self.answers.poll(max(0.0, until - time.monotonic())):
            raise TimeoutError
        answer = self.answers.recv_bytes()
        self.answered += 1
        return answer


def _end(process: "subprocess.Popen[bytes]", *pipes: Connection) -> None:
    for pipe in pipes:
        pipe.close()
    try:
        # One that is ending by itself has a code of its own.
        process.wait(0.2)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def serve(messages: int, answers: int, answer: Callable[[bytes], bytes]) -> None:
    """Answer the messages of a :class:`WarmProcess` until it closes its end.

    Args:
        messages: Number of the pipe from which they are read.
        answers: Number of the pipe to which answers are written.
        answer: Called with each message.
    """
    with Connection(messages, writable=False) as received, Connection(answers, readable=False) as sent:
        while True:
            try:
                message = received.recv_bytes()
            except EOFError:
                return
            sent.send_bytes(answer(message))
