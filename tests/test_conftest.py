"""The settings of all tests."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support import changed
from tests.support.children import END_SECONDS, start_child
from tests.support.waiting import eventually

ROOT = Path(__file__).parents[1]
ENDS = f"{__file__}::test_a_signal_ends_a_program"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_a_program(number: signal.Signals) -> None:
    program = start_child(["sleep", "600"])

    program.send_signal(number)

    assert program.wait(END_SECONDS) == -number


def test_signals_work_where_a_shell_ignores_them() -> None:
    """A background job ignores SIGINT, and nohup SIGHUP; programs inherit that."""
    command = f"trap '' INT HUP; exec {sys.executable} -m pytest -q -n 1 -p no:cacheprovider {ENDS}"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}

    done = subprocess.run(
        ["sh", "-c", command], cwd=ROOT, env=environment, capture_output=True, timeout=END_SECONDS, check=False
    )

    assert done.returncode == 0, done.stdout


def test_a_killed_test_run_leaves_no_program_running(tmp_path: Path) -> None:
    program = "from tests.support.children import start_child as start; import time; start(['sh', '-c', '{}']).wait()"
    writes = "exec 3>pipe; echo started >&3; exec sleep 600"
    os.mkfifo(tmp_path / "pipe")
    pipe = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = start_child([sys.executable, "-c", program.format(writes)], cwd=tmp_path, env=environment)
    eventually(lambda: _reads(pipe) == b"started\n")

    run.send_signal(signal.SIGKILL)
    run.wait(END_SECONDS)

    eventually(lambda: _reads(pipe) == b"")  # no writer is left
    os.close(pipe)


def _reads(pipe: int) -> bytes | None:
    try:
        return os.read(pipe, 100)
    except BlockingIOError:
        return None


def test_a_quick_run_leaves_out_slow_tests_of_files_that_did_not_change(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changed, "changed_files", lambda: ["tests/test_b.py"])
    items = []
    for name in ("tests/test_a.py::test_slow", "tests/test_a.py::test_quick", "tests/test_b.py::test_slow"):
        item = pytest.Function.from_parent(request.node.parent, name=request.node.name, callobj=lambda: None)
        item._nodeid = name
        if name.endswith("slow"):
            item.add_marker(pytest.mark.slow)
        items.append(item)

    changed.pytest_collection_modifyitems(SimpleNamespace(getoption=lambda _: True), items)  # type: ignore[arg-type]

    assert [item.nodeid for item in items] == ["tests/test_a.py::test_quick", "tests/test_b.py::test_slow"]


@pytest.mark.slow
def test_workers_run_the_tests_that_were_chosen(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        """
from tests.support import changed

changed.ALWAYS, changed.nearest = (), lambda _: iter(["test_near.py"])
pytest_plugins = ["tests.support.changed"]
"""
    )
    (tmp_path / "test_near.py").write_text("def test_it(): pass")
    (tmp_path / "test_far.py").write_text("def test_it(): assert False")

    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "1", "--changed", "-p", "no:cacheprovider", "--rootdir", tmp_path],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ended.returncode, "1 passed" in ended.stdout) == (0, True), ended.stdout + ended.stderr
