"""Settings of all tests, and which of them share one worker."""

import gc
import os
import signal
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, settings

from tests.support.soak import examples

GROUPS: Final = {
    "e2e/test_lifecycle.py": "lifecycle stack",
    "e2e/test_documentation_examples.py": "documentation stack",
    "e2e/": "local stack",
    "faults/test_small.py": "faulty stack",
    "infra/": "synthesized stacks",
    "conformance/test_files.py": "files",
    "evaluation/test_command.py": "measured data set",
    "local_bedrock/test_contextual_headers.py": "sample documents",
    "local_bedrock/test_pytest_plugin.py": "nested pytest",
    "milvus/": "milvus lite",
    "clients/": "clients",
}
"""Tests below a path share something slow to start, so they run in one worker; the first match counts."""

# A slow example is a sign of a busy machine, not of a mistake.
settings.register_profile(
    "busy machine", deadline=None, max_examples=examples(160), suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("busy machine")
# Processes that tests start would otherwise compile the project again, each time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# readline exports the size of the terminal to the processes of xdist, and rich would keep it for the whole run.
for size in ("COLUMNS", "LINES"):
    os.environ.pop(size, None)
# Service models and fixtures live for the whole run; fewer collections save a tenth of its time.
gc.set_threshold(20_000, 20, 20)


IGNORED_SIGNALS: Final = "ignored_signals"


def pytest_configure(config: pytest.Config) -> None:
    _handle_ignored_signals(config)
    # pytest 9.1 loses the fixtures of a folder to which the command line returns. 9.2 does not.
    config.args.sort()


def pytest_configure_node(node: Any) -> None:
    node.workerinput[IGNORED_SIGNALS] = node.config.stash[_ignored_signals]


_ignored_signals = pytest.StashKey[list[int]]()


def _handle_ignored_signals(config: pytest.Config) -> None:
    """Replace ignored signals by handlers that do nothing.

    A background job of a shell ignores SIGINT, and `nohup` SIGHUP. Programs inherit what is ignored, but not handlers,
    so programs that tests start can be interrupted as usual, and the test run itself goes on.
    """
    worker = getattr(config, "workerinput", None)
    if worker is None:
        numbers = [int(n) for n in (signal.SIGINT, signal.SIGHUP) if signal.getsignal(n) is signal.SIG_IGN]
    else:
        numbers = worker[IGNORED_SIGNALS]
    for number in numbers:
        signal.signal(number, lambda _number, _frame: None)
    config.stash[_ignored_signals] = numbers


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        path = item.path.relative_to(Path(__file__).parent).as_posix()
        group = next((group for start, group in GROUPS.items() if path.startswith(start)), None)
        if path == "contract/test_backends.py":  # the first part of the parameters is the backend
            group = "backend " + item.name.partition("[")[2].partition("-")[0].removesuffix("]")
        if group:
            item.add_marker(pytest.mark.xdist_group(group))
