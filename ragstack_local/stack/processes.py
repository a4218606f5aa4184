"""Child processes that end with this one, the ports they listen on, and the signals that end the local stack."""

import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from local_bedrock.http.guard import ENDS_WITH_PARENT
from local_bedrock.options import LOCAL
from ragstack_local.connection import running
from ragstack_local.errors import StackError

STOP_SECONDS: Final = 8.0
POLL_SECONDS: Final = 0.05
LOG_LINES: Final = 15


@dataclass
class _Interrupts:
    held: int = 0
    pending: bool = False


_INTERRUPTS: Final = _Interrupts()


@contextmanager
def raised_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt for SIGINT, SIGTERM and SIGHUP, unless the signal is ignored."""
    found = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    # A handler is None if it wasn't set from Python; it couldn't be restored.
    before = {number: handler for number, handler in found.items() if handler not in (None, signal.SIG_IGN)}
    try:
        for number in before:
            signal.signal(number, _interrupt)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def held_interrupts() -> Iterator[None]:
    """Delay an interrupt until the end of the block, so that a process can't start without its cleanup."""
    _INTERRUPTS.held += 1
    try:
        yield
    finally:
        _INTERRUPTS.held -= 1
        if _INTERRUPTS.pending and not _INTERRUPTS.held:
            _INTERRUPTS.pending = False
            raise KeyboardInterrupt


def _interrupt(*_: object) -> None:
    if _INTERRUPTS.held:
        _INTERRUPTS.pending = True
    else:
        raise KeyboardInterrupt


def require_free_port(port: int, purpose: str, option: str) -> None:
    """Check that this process can listen on a port.

    Raises:
        StackError: The port is in use, or not permitted; the message names the option that chooses another port.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOCAL, port))
        except PermissionError:
            raise StackError(f"Port {port} ({purpose}) is not permitted: choose another with {option}") from None
        except OSError:
            raise StackError(
                f"Port {port} ({purpose}) is in use: stop what listens there, or choose another with {option}"
            ) from None


@dataclass
class Child:
    """A process in a group of its own, with the processes that it starts."""

    name: str
    log: Path
    process: subprocess.Popen[bytes]
    _is_stopped: bool = field(default=False, init=False)

    @classmethod
    def start(
        cls,
        name: str,
        command: Sequence[str | Path],
        env: Mapping[str, str],
        log: Path,
        folder: Path | None = None,
        *,
        ends_with_parent: bool = False,
    ) -> "Child":
        """Start a process whose output goes to a log file.

        In a group of its own, it doesn't receive Ctrl-C before this process has cleaned up.

        Args:
            name: For messages.
            command: The program and its arguments.
            env: The complete environment.
            log: Replaced. A note of the process is kept next to it, see :func:`running.note`.
            folder: The working directory; None for the current one.
            ends_with_parent: The command calls :func:`guard.end_with_parent`, so it ends even if this process is
                killed.
        """
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as output:
            process = subprocess.Popen(  # noqa: S603 - the commands are ours
                [str(part) for part in command],
                cwd=folder,
                env={
                    # They run from the project's own environments, and would compile themselves at each start.
                    **{name: value for name, value in env.items() if name != "PYTHONDONTWRITEBYTECODE"},
                    **({ENDS_WITH_PARENT: "1"} if ends_with_parent else {}),
                },
                stdin=subprocess.PIPE if ends_with_parent else subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        running.note(log, process.pid)
        return cls(name, log, process)

    def wait_until(self, ready: Callable[[], bool], timeout_seconds: float) -> None:
        """Wait until the process answers.

        Raises:
            StackError: It ended, or did not answer in time; the message holds the end of its log.
        """
        deadline = time.monotonic() + timeout_seconds
        while not ready():
            self.require_alive()
            if time.monotonic() > deadline:
                raise StackError(f"{self.name} did not answer within {timeout_seconds:g} s:\n{self.last_lines()}")
            time.sleep(POLL_SECONDS)

    def require_alive(self) -> None:
        """Check that the process still runs.

        Raises:
            StackError: It has ended; the message holds the end of its log.
        """
        if self.process.poll() is not None:
            raise StackError(f"{self.name} ended with code {self.process.returncode}:\n{self.last_lines()}")

    def last_lines(self) -> str:
        """Return the end of the log, and the path of the whole log."""
        lines = self.log.read_text(errors="replace").splitlines()[-LOG_LINES:]
        return "\n".join([*lines, f"(full log: {self.log})"])

    def stop(self) -> bool:
        """End the process and everything it started; return whether it was running and ended when asked."""
        if self._is_stopped:
            return False  # its process group id may have been reused
        ended = False
        try:
            if self.process.poll() is None:
                running.signal_group(self.process.pid, signal.SIGTERM)
                ended = self.process.wait(STOP_SECONDS) in (0, -signal.SIGTERM)
        except subprocess.TimeoutExpired:
            pass
        finally:
            running.signal_group(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self._is_stopped = True
            if self.process.stdin is not None:
                self.process.stdin.close()
            running.forget(self.log)
        return ended
