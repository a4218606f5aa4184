"""Measure starts of the local stack: the first one, later ones, after a kill, and with other callers in turns.

A start takes from the command until it prints where the stack is. Processor seconds are the sum over all processes of
the stack, and depend less on other load. Sizes are those of the parts of the data folder while the stack runs; a file
with several hard links counts once, in the first part that has it.

Run, on Linux: ``python benchmarks/start.py [--starts 3]``, after ``make setup``. Reach: second and later starts take at
most 8 s on two cores, also after a kill, and 16 documents take at most 60 MB.
"""

import argparse
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from parts.measuring import table
from rich.console import Console

from ragstack_local.connection import running
from ragstack_local.connection.environment import DATA_VARIABLE

ROOT = Path(__file__).resolve().parents[1]
RAGSTACK = Path(sys.executable).with_name("ragstack")
DOCUMENTS = ROOT / "samples" / "documents"
PORTS = ("--port", "--bedrock-port", "--answers-port", "--issuer-port", "--console-port")
PEOPLE, ANYBODY = ("--auth", "none,oidc"), ("--auth", "none")
MAX_SECONDS = 300.0
MIN_SHOWN_MB = 0.05


class Stack:
    """A local stack on a data folder of its own.

    Args:
        home: Data of the command line, and of the stack.
    """

    def __init__(self, home: Path) -> None:
        self.data = home / "local"
        self._home = home
        self._ports = [part for option, port in zip(PORTS, _free_ports(), strict=True) for part in (option, str(port))]
        self._environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        self._environment |= {DATA_VARIABLE: str(home)}

    def start(self, *options: str) -> tuple[float, float]:
        """Start, and return the seconds and the processor seconds until it answers."""
        began = time.monotonic()
        self.process = subprocess.Popen(
            [RAGSTACK, "up", *self._ports, *options], env=self._environment, stdout=subprocess.DEVNULL
        )
        while "api_url" not in (running.read(self._home / "running.json") or {}):
            if self.process.poll() is not None or time.monotonic() - began > MAX_SECONDS:
                raise SystemExit("The stack did not start")
            time.sleep(0.02)
        elapsed = time.monotonic() - began
        return elapsed, sum(map(_processor_seconds, self._processes()))

    def stop(self) -> None:
        """End in order."""
        self.process.terminate()
        self.process.wait()

    def kill(self) -> None:
        """End every process at once, as a power cut does."""
        for number in self._processes():
            os.kill(number, signal.SIGKILL)
        self.process.wait()

    def run(self, *arguments: str | Path) -> None:
        """Run a command against the stack."""
        subprocess.run([RAGSTACK, *arguments], env=self._environment, stdout=subprocess.DEVNULL, check=True)

    def sizes(self) -> dict[str, float]:
        """Return the megabytes on the disk of each part of the data folder."""
        seen: set[int] = set()
        sizes: dict[str, float] = {}
        for file in sorted(self.data.rglob("*")):
            found = file.lstat()
            if found.st_ino not in seen:
                seen.add(found.st_ino)
                part = file.relative_to(self.data).parts[0]
                sizes[part] = sizes.get(part, 0.0) + found.st_blocks * 512 / 1e6
        return sizes

    def _processes(self) -> list[int]:
        mark = f"{DATA_VARIABLE}={self._home}".encode()
        found = []
        for environ in Path("/proc").glob("[0-9]*/environ"):
            try:
                if mark in environ.read_bytes().split(b"\0"):
                    found.append(int(environ.parent.name))
            except OSError:
                continue
        return found


def _processor_seconds(process: int) -> float:
    """Return the processor time of a process, and of those that it has started and that have ended."""
    try:
        # Source: proc_pid_stat(5), utime, stime, cutime and cstime.
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:15]
    except OSError:
        return 0.0
    return sum(map(int, fields)) / os.sysconf("SC_CLK_TCK")


def _free_ports() -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in PORTS]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def measure(stack: Stack, starts: int) -> dict[str, list[tuple[float, float]]]:
    """Return the times of each kind of start; the stack is up at the end."""
    times: dict[str, list[tuple[float, float]]] = {"first": [stack.start(*PEOPLE)]}
    stack.run("ingest", DOCUMENTS, "--prefix", "samples")
    for _ in range(starts):
        stack.stop()
        times.setdefault("later", []).append(stack.start(*PEOPLE))
    for _ in range(starts):
        stack.kill()
        times.setdefault("after a kill", []).append(stack.start(*PEOPLE))
    stack.stop()
    times["first with other callers"] = [stack.start(*ANYBODY)]
    for _ in range(starts):
        for callers in (PEOPLE, ANYBODY):
            stack.stop()
            times.setdefault("callers of the start before last", []).append(stack.start(*callers))
    return times


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--starts", type=int, default=3, help="of each kind but the first ones")
    options = parser.parse_args(arguments)
    console = Console()
    with tempfile.TemporaryDirectory() as home:
        stack = Stack(Path(home))
        try:
            times = measure(stack, options.starts)
            sizes = stack.sizes()
        finally:
            stack.kill()
    rows = []
    for kind, found in times.items():
        elapsed, processor = (statistics.median(each) for each in zip(*found, strict=True))
        rows.append((kind, f"{elapsed:.1f}", f"{processor:.1f}", str(len(found))))
    columns = ("start", "s", "processor s", "of")
    console.print(table("Starts of the local stack, medians", columns, rows))
    parts = sorted(sizes.items(), key=lambda each: -each[1])
    sized = [(part, f"{size:.1f}") for part, size in parts if size >= MIN_SHOWN_MB]
    sized.append(("all", f"{sum(sizes.values()):.1f}"))
    console.print(table("The data folder with the sample documents", ("part", "MB"), sized))


if __name__ == "__main__":
    main()
