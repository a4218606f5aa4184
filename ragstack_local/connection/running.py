"""Files that record where the running local stack is, and its processes.

The stack's process locks the first file, so that after a crash neither the file nor a reused process id can suggest
that a stack is running. The others, one next to each log, survive a kill and name the processes that must be ended.
"""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Final

from ragstack_common.core.json_text import parse_json
from ragstack_local.errors import StackError

STOP_SECONDS: Final = 8.0
POLL_SECONDS: Final = 0.05

IN_USE: Final = "in-use"
"""The file that a stack leaves in its data folder until it ends cleanly."""

LOGS: Final = "logs"
"""Subfolder of the data folder with the logs of the stack's processes."""

TEMPORARY: Final = "unpacked-functions"
"""Subfolder of the data folder into which MiniStack unpacks functions, 40 MB a worker. Removed after each run."""


@contextmanager
def announcing(file: Path, data: Path) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Hold the lock of the running stack; yields a function that publishes where the stack is.

    Processes and files left by a killed stack are cleaned up first.

    Args:
        file: Records where the stack is.
        data: The stack's data folder.

    Raises:
        StackError: Another stack is running.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a+", errors="replace") as held:
        while not _lock(held, fcntl.LOCK_EX):
            if not _lock(held, fcntl.LOCK_SH):
                raise StackError(
                    "A local stack is running already: `ragstack status` shows it, `ragstack down` ends it."
                    " A second one needs a folder of its own (--data-dir) and other ports"
                )
            # A reader holds the lock too, but only while it reads.
            fcntl.flock(held, fcntl.LOCK_UN)
            time.sleep(0.01)

        os.fchmod(held.fileno(), 0o600)
        held.seek(0)
        earlier = held.read()

        def announce(fields: Mapping[str, Any]) -> None:
            held.truncate(0)
            held.write(json.dumps({"process_id": os.getpid(), **fields, "data": str(data)}, indent=2))
            held.flush()

        announce({})
        _end_leftovers(earlier)
        try:
            yield announce
        finally:
            held.truncate(0)


def read(file: Path) -> dict[str, Any] | None:
    """Read what the running stack publishes: only process id and data folder while it starts.

    Returns:
        None if no stack is running; empty if the file is being written.
    """
    try:
        with file.open() as text:
            if _lock(text, fcntl.LOCK_SH):
                return None
            fields = json.load(text)
    except OSError:
        return None
    except ValueError:
        return {}
    is_written = isinstance(fields, dict) and isinstance(fields.get("process_id"), int)
    return fields if is_written else {}


def read_data_folder(file: Path) -> Path | None:
    """Return the data folder of the running stack; None if no stack is running, or the file is being written."""
    fields = read(file)
    return Path(fields["data"]) if fields else None


def was_killed(file: Path) -> bool:
    """Whether a stack that no longer runs did not end by itself, so that processes of it may be left."""
    try:
        return read(file) is None and bool(file.read_bytes())
    except OSError:
        return False


def clean_up(file: Path) -> bool:
    """End the processes of a killed stack and remove its temporary files; return whether there was one."""
    try:
        with file.open("r+", errors="replace") as held:
            if not _lock(held, fcntl.LOCK_EX):
                return False
            earlier = held.read()
            _end_leftovers(earlier)
            held.truncate(0)
            return bool(earlier)
    except FileNotFoundError:
        return False


def _end_leftovers(announced: str) -> None:
    """End the processes of a killed stack and remove its temporary files.

    The record is only trusted to name a data folder. That folder must have the file that a killed stack leaves, and
    nothing but the stack's own subfolder of it is removed.
    """
    try:
        fields = parse_json(announced)
    except ValueError:  # empty after an orderly end; incomplete after an early kill
        return
    named = fields.get("data") if isinstance(fields, dict) else None
    if isinstance(named, str) and (data := Path(named)).is_absolute() and (data / IN_USE).is_file():
        end_leftovers(data / LOGS)
        shutil.rmtree(data / TEMPORARY, ignore_errors=True)


def _lock(file: IO[str], how: int) -> bool:
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def note(log: Path, process_id: int) -> None:
    """Record a process next to its log, so that another command can end it if this one is killed."""
    log.with_suffix(".pid").write_text(f"{process_id} {_look_at(process_id)[1]}")


def forget(log: Path) -> None:
    """Remove the note of a process that has ended."""
    log.with_suffix(".pid").unlink(missing_ok=True)


def end_leftovers(logs: Path) -> None:
    """End the processes whose notes are in a folder of logs, and everything they started."""
    for found in sorted(logs.glob("*.pid")):
        number, _, started = found.read_text(errors="replace").partition(" ")
        if number.isdecimal() and int(number) > 1:  # 0 would be this process's own group
            _end_leftover(int(number), started)
        found.unlink(missing_ok=True)


def _end_leftover(process_id: int, started: str) -> None:
    runs, found = _look_at(process_id)
    if runs and found == started:
        for number in (signal.SIGTERM, signal.SIGKILL):
            signal_group(process_id, number)
            deadline = time.monotonic() + STOP_SECONDS
            while _look_at(process_id) == (True, started) and time.monotonic() < deadline:
                time.sleep(POLL_SECONDS)
    elif not runs and found in ("", started) and started.partition(" ")[0] == _boot():
        # The system doesn't reuse an id while its process group exists.
        signal_group(process_id, signal.SIGKILL)


def _look_at(process_id: int) -> tuple[bool, str]:
    """Return whether a process runs, and an identity that a later process with the same id does not have."""
    if sys.platform == "linux":
        try:
            fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return False, ""
        # Source: proc_pid_stat(5), state and starttime.
        return fields[0] != "Z", f"{_boot()} {fields[19]}"
    line = ["ps", "-o", "stat=,lstart=", "-p", str(process_id)]
    state, _, start = subprocess.run(line, capture_output=True, text=True, check=False).stdout.strip().partition(" ")  # noqa: S603
    return bool(state) and not state.startswith("Z"), f"{_boot()} {start.strip()}"


def _boot() -> str:
    file = Path("/proc/sys/kernel/random/boot_id")
    return file.read_text().strip() if file.exists() else "-"


def signal_group(group: int, number: signal.Signals) -> None:
    """Signal all processes of a group, if any are left."""
    with suppress(ProcessLookupError, PermissionError):  # no process is left; macOS reports zombies by PermissionError
        os.killpg(group, number)
