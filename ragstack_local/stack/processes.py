"""Child processes that end when we do, and the ports they listen on."""

import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from local_bedrock.guard import ENDS_WITH_PARENT
from ragstack_local.connection import LOCAL
from ragstack_local.stack import running
from ragstack_local.stack.errors import StackError

STOP_SECONDS: Final = 8.0
POLL_SECONDS: Final = 0.05
LOG_LINES: Final = 15


def require_free_port(port: int, purpose: str, option: str) -> None:
    """Check that a port can be listened on.

    Raises:
        StackError: Something listens there, or we may not; the message names the option that chooses another port.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOCAL, port))
        except PermissionError:
            raise StackError(f"Port {port} ({purpose}) is not ours to use: choose another with {option}") from None
        except OSError:
            raise StackError(
                f"Port {port} ({purpose}) is in use: stop what listens there, or choose another with {option}"
            ) from None


@dataclass
class Child:
    """A process, with all that it starts, in a group of its own.

    Attributes:
        name: For messages.
        log: The file that takes its output.
        process: The running process.
    """

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
        ends_with_us: bool = False,
    ) -> "Child":
        """Start a process whose output goes to a log file.

        A group of its own keeps Ctrl-C from reaching it before we have put things in order.

        Args:
            name: For messages.
            command: What is started.
            env: All of its environment.
            log: Replaced. A note of the process is kept beside it, see :func:`running.note`.
            folder: Where it works; by default where we do.
            ends_with_us: The command calls :func:`guard.end_with_parent`, and so ends even if this process is killed.
        """
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as output:
            process = subprocess.Popen(  # noqa: S603 - the commands are ours
                [str(part) for part in command],
                cwd=folder,
                env={**env, ENDS_WITH_PARENT: "1"} if ends_with_us else dict(env),
                stdin=subprocess.PIPE if ends_with_us else subprocess.DEVNULL,
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
        """Read the end of the log, and where the rest is."""
        lines = self.log.read_text(errors="replace").splitlines()[-LOG_LINES:]
        return "\n".join([*lines, f"(all of it: {self.log})"])

    def stop(self) -> bool:
        """End the process and all that it started; tell whether it ran until now and ended of itself when asked."""
        if self._is_stopped:
            return False  # by now the number of its group may be somebody else's
        ended = False
        try:
            if self.process.poll() is None:
                running.signal_group(self.process.pid, signal.SIGTERM)
                ended = self.process.wait(STOP_SECONDS) in (0, -signal.SIGTERM)
        except subprocess.TimeoutExpired:
            pass
        finally:
            # Whatever interrupts us, nothing of the group is left.
            running.signal_group(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self._is_stopped = True
            if self.process.stdin is not None:
                self.process.stdin.close()
            running.forget(self.log)
        return ended
