"""Settings of all tests."""

import gc
import os
import signal
import sys
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, settings

from tests.support.quick_clients import parse_models_once
from tests.support.soak import examples

pytest_plugins = ("tests.support.changed",)

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
# Whatever models are in the cache of this user.
os.environ["RAGSTACK_EMBEDDING"] = "hashed"
# Service models and fixtures live for the whole run; fewer collections save a tenth of its time.
gc.set_threshold(20_000, 20, 20)
parse_models_once()


IGNORED_SIGNALS: Final = "ignored_signals"
MAX_ID: Final = 100


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Leave long texts and the bytes of files out of the names of tests.

    Each worker of xdist reports all names, and each test its own; all workers must have the same names, and archives
    contain the time at which they were made.
    """
    if isinstance(val, bytes):
        return argname
    return repr(val[:MAX_ID]) if isinstance(val, str) and len(val) > MAX_ID else None


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
