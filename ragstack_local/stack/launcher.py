"""Starts MiniStack behind the guard and the queue of the API.

Run by MiniStack's own interpreter: ``python -P launcher.py [ORIGIN ...]``.

MiniStack itself allows every web page: it accepts any Origin and Host, and sends ``Access-Control-Allow-Origin: *``.
"""

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Final

GUARD: Final = Path(__file__).parents[2] / "local_bedrock" / "http" / "guard.py"
QUEUE: Final = Path(__file__).with_name("api_queue.py")
INTERNAL: Final = "/_ministack/"
SIGNALS: Final = ("/_ministack/cfn-response/", "/_ministack/cfn-signal/")
"""Callbacks of CloudFormation's custom resources and wait conditions, under a token that cannot be guessed."""


def is_closed(method: str, path: str) -> bool:
    """Return whether a route of MiniStack's own changes its state, as ``reset`` and ``config`` do."""
    is_signal = method == "PUT" and path.startswith(SIGNALS)
    return path.startswith(INTERNAL) and method not in ("GET", "HEAD") and not is_signal


def main() -> None:
    """Serve until asked to end."""
    guard, queue = _load(GUARD), _load(QUEUE)
    os.umask(guard.PRIVATE_UMASK)
    guard.end_with_parent()
    from ministack import app as ministack  # type: ignore[import-not-found] # noqa: PLC0415 - not in this environment

    ministack.app = guard.Guard(queue.ApiQueue(ministack.app), origins=sys.argv[1:], is_closed=is_closed)
    del sys.argv[1:]
    ministack.main()


def _load(file: Path) -> ModuleType:
    # By its path: this package's folder on sys.path would shadow modules of MiniStack and of the functions.
    found = importlib.util.spec_from_file_location(file.stem, file)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
