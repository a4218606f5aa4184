"""Child processes that end when we do, and the ports they listen on."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from ragstack_local.connection import running
from ragstack_local.errors import StackError
from ragstack_local.stack import processes
from ragstack_local.stack.processes import Child, held_interrupts, raised_interrupts, require_free_port
from tests.support.children import child

ROOT = Path(__file__).resolve().parents[2]
FAMILY = "sleep 60 & sleep 60 & echo started; wait"
DEAF = "trap '' TERM; sleep 60 & echo started; while :; do sleep 1; done"

MAX_SECONDS = 60.0
"""What a busy machine may take for what is done at once."""


@pytest.fixture
def start(tmp_path: Path) -> Iterator["Starter"]:
    with ExitStack() as ending:
        yield Starter(tmp_path, ending)


class Starter:
    """Starts children that hold a pipe open, as does all that they start."""

    def __init__(self, folder: Path, ending: ExitStack) -> None:
        self._folder = folder
        self._ending = ending
        os.mkfifo(folder / "pipe")
        self._pipe = os.open(folder / "pipe", os.O_RDONLY | os.O_NONBLOCK)
        ending.callback(os.close, self._pipe)

    def __call__(self, script: str, folder: Path | None = None) -> Child:
        log = self._folder / "logs" / "child.log"
        script = f"exec 3>{self._folder}/pipe\n{script}"
        child = Child.start("The child", ["sh", "-c", script], dict(os.environ), log, folder)
        self._ending.callback(child.stop)
        return child

    def everybody_is_gone(self) -> bool:
        """Whether every process has closed the pipe."""
        deadline = time.monotonic() + MAX_SECONDS
        while time.monotonic() < deadline:
            try:
                return os.read(self._pipe, 1) == b""
            except BlockingIOError:
                time.sleep(0.02)
        return False


def says(child: Child, words: str) -> bool:
    return words in child.log.read_text()


def test_a_child_ends_with_all_that_it_started(start: Starter) -> None:
    child = start(FAMILY)
    child.wait_until(lambda: says(child, "started"), MAX_SECONDS)

    ended = child.stop()

    assert ended
    assert start.everybody_is_gone()


def test_a_child_that_does_not_listen_is_killed_with_its_group(start: Starter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "STOP_SECONDS", 0.3)
    child = start(DEAF)
    child.wait_until(lambda: says(child, "started"), MAX_SECONDS)

    ended = child.stop()

    assert not ended
    assert start.everybody_is_gone()


def test_processes_of_a_dead_child_are_ended(start: Starter) -> None:
    child = start("sleep 60 & sleep 60 & exit 3")
    child.process.wait(MAX_SECONDS)

    child.stop()

    assert start.everybody_is_gone()


def test_a_child_is_ended_once(start: Starter, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its process id may belong to another process later."""
    child = start(FAMILY)
    child.stop()
    signalled: list[int] = []
    monkeypatch.setattr(os, "killpg", lambda group, _: signalled.append(group))

    assert not child.stop()
    assert signalled == []


def test_an_interrupt_while_a_child_ends_leaves_nothing_of_it(start: Starter, monkeypatch: pytest.MonkeyPatch) -> None:
    child = start(DEAF)
    child.wait_until(lambda: says(child, "started"), MAX_SECONDS)
    wait = child.process.wait

    def interrupted(timeout: float | None = None) -> int:
        monkeypatch.setattr(child.process, "wait", wait)
        raise KeyboardInterrupt

    monkeypatch.setattr(child.process, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        child.stop()

    assert start.everybody_is_gone()


def test_a_child_that_ends_early_is_an_error_with_the_end_of_its_log(start: Starter) -> None:
    child = start("for n in $(seq 40); do echo line $n; done; echo the reason >&2; exit 4")

    with pytest.raises(StackError) as caught:
        child.wait_until(lambda: False, MAX_SECONDS)

    lines = str(caught.value).splitlines()
    assert lines[0] == "The child ended with code 4:"
    assert lines[-2:] == ["the reason", f"(full log: {child.log})"]
    assert "line 40" in lines
    assert "line 10" not in lines


def test_a_child_that_does_not_answer_in_time_is_an_error(start: Starter) -> None:
    child = start("echo still thinking; sleep 60")
    child.wait_until(lambda: says(child, "still thinking"), MAX_SECONDS)

    with pytest.raises(StackError, match=r"The child did not answer within 0\.3 s:\nstill thinking"):
        child.wait_until(lambda: False, 0.3)


def test_processes_of_a_killed_command_are_ended_by_its_note(start: Starter, tmp_path: Path) -> None:
    child = start(DEAF)
    child.wait_until(lambda: says(child, "started"), MAX_SECONDS)
    reaper = threading.Thread(target=child.process.wait)
    reaper.start()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "STOP_SECONDS", 0.3)
        running.end_leftovers(tmp_path / "logs")
    reaper.join(MAX_SECONDS)

    assert start.everybody_is_gone()
    assert list((tmp_path / "logs").glob("*.pid")) == []


def test_processes_of_a_dead_process_are_ended_by_its_note(start: Starter, tmp_path: Path) -> None:
    child = start("sleep 60 & exit 0")
    child.process.wait(MAX_SECONDS)

    running.end_leftovers(tmp_path / "logs")

    assert start.everybody_is_gone()


@pytest.mark.parametrize("changed", ["start", "boot"])
def test_a_later_process_with_the_same_number_is_left_alone(start: Starter, tmp_path: Path, changed: str) -> None:
    child = start(FAMILY)
    child.wait_until(lambda: says(child, "started"), MAX_SECONDS)
    note = tmp_path / "logs" / "child.pid"
    number, boot, started = note.read_text().split(" ", 2)
    note.write_text(f"{number} {boot} {started}0" if changed == "start" else f"{number} other {started}")

    running.end_leftovers(tmp_path / "logs")

    assert child.process.poll() is None
    assert not note.exists()


@pytest.mark.parametrize("text", ["", "x", "12", "4194305 a b", "-1 a b"])
def test_an_incomplete_or_stale_note_is_removed(tmp_path: Path, text: str) -> None:
    (tmp_path / "child.pid").write_text(text)

    running.end_leftovers(tmp_path)

    assert list(tmp_path.iterdir()) == []


def test_a_child_ends_with_its_parent_however_that_dies(tmp_path: Path) -> None:
    guarded = "from local_bedrock.http import guard; import time; guard.end_with_parent(); print('up'); time.sleep(60)"
    parent = (
        "import os, sys, time; from pathlib import Path; from ragstack_local.stack.processes import Child\n"
        f"command = [sys.executable, '-u', '-c', {guarded!r}]\n"
        "child = Child.start('x', command, os.environ, Path('log'), ends_with_parent=True)\n"
        "child.wait_until(lambda: 'up' in Path('log').read_text(), 60)\n"
        "print(child.process.pid, flush=True); time.sleep(60)\n"
    )
    with child(
        [sys.executable, "-c", parent],
        stdout=subprocess.PIPE,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as process:
        assert process.stdout is not None
        group = int(process.stdout.readline())
        process.kill()

    deadline = time.monotonic() + MAX_SECONDS
    while running._look_at(group)[0] and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not running._look_at(group)[0]


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0"])
def test_a_port_in_use_is_named_with_its_option(address: str) -> None:
    if address == "0.0.0.0" and sys.platform == "darwin":
        pytest.skip("macOS lets two programs listen there")
    with socket.socket() as listener:
        listener.bind((address, 0))
        listener.listen()
        port = listener.getsockname()[1]

        with pytest.raises(StackError) as caught:
            require_free_port(port, "MiniStack", "--port")

    assert str(caught.value) == (
        f"Port {port} (MiniStack) is in use: stop what listens there, or choose another with --port"
    )


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def send(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_interrupts(number: signal.Signals) -> None:
    with raised_interrupts(), pytest.raises(KeyboardInterrupt):
        send(number)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_waits_while_a_process_is_started_and_noted(number: signal.Signals) -> None:
    noted = []

    def start() -> None:
        with held_interrupts():
            send(number)
            noted.append("the process")

    with raised_interrupts(), pytest.raises(KeyboardInterrupt):
        start()

    assert noted == ["the process"]


def test_without_a_signal_the_handlers_are_restored() -> None:
    before = [signal.getsignal(number) for number in SIGNALS]

    with raised_interrupts(), held_interrupts():
        pass

    assert [signal.getsignal(number) for number in SIGNALS] == before


def test_a_signal_that_was_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with raised_interrupts():
            send(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
