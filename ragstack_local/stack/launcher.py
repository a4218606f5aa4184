"""Starts MiniStack behind the guard and the queue of the API, with items of its table that survive a kill.

Run by MiniStack's own interpreter: ``python -P launcher.py JOURNAL KEPT [ORIGIN ...]``, with the file of the items, and
:class:`durable_items.KeptItems` as JSON.

MiniStack itself allows every web page: it accepts any Origin and Host, and sends ``Access-Control-Allow-Origin: *``.
"""

import hashlib
import importlib.util
import json
import os
import sys
import tempfile
import zipfile
from pathlib import Path
from threading import Lock
from types import ModuleType, SimpleNamespace
from typing import Any, Final

GUARD: Final = Path(__file__).parents[2] / "local_bedrock" / "http" / "guard.py"
SIGNALS: Final = ("/_ministack/cfn-response/", "/_ministack/cfn-signal/")
"""Callbacks of CloudFormation's custom resources and wait conditions, under a token that cannot be guessed."""

MAX_BODY_BYTES: Final = 250 * 1024 * 1024
"""Longest body for other services: packages of functions. Source: AWS Lambda quotas, deployment package, unzipped.

The knowledge base takes documents of 50 MB.
"""

API: Final = "/_aws/execute-api/"

_unpacking = Lock()


class SharedZipFile(zipfile.ZipFile):
    """Unpacks each archive once, and links to it afterwards.

    MiniStack unpacks all layers for each instance of a function, which takes a second of processor time.
    """

    def extractall(self, path: Any = None, members: Any = None, pwd: Any = None) -> None:
        """Link what the archive holds into a folder. MiniStack always unpacks whole archives into empty folders."""
        assert members is pwd is None
        content = Path(str(self.filename)).read_bytes()
        shared = Path(tempfile.gettempdir(), f"archive-{hashlib.sha256(content).hexdigest()}")
        with _unpacking:
            if not shared.exists():
                partial = shared.with_suffix(".partial")
                super().extractall(partial)
                partial.rename(shared)
        for child in shared.iterdir():
            Path(path, child.name).symlink_to(child)


def is_closed(method: str, path: str) -> bool:
    """Return whether a route of MiniStack's own changes its state, as ``reset`` and ``config`` do."""
    is_signal = method == "PUT" and path.startswith(SIGNALS)
    return path.startswith("/_ministack/") and method not in ("GET", "HEAD") and not is_signal


def main() -> None:
    """Serve until asked to end."""
    here = Path(__file__)
    guard, limit = _load(GUARD), _load(GUARD.with_name("body_limit.py"))
    refused, queue, durable = (
        _load(here.with_name(name)) for name in ("refused_tokens.py", "api_queue.py", "durable_items.py")
    )
    os.umask(guard.PRIVATE_UMASK)
    guard.end_with_parent()
    from ministack import app as ministack  # type: ignore[import-not-found] # noqa: PLC0415 - not in this environment
    from ministack.core import lambda_runtime  # type: ignore[import-not-found] # noqa: PLC0415

    lambda_runtime.zipfile = SimpleNamespace(**{**vars(zipfile), "ZipFile": SharedZipFile})
    journal, kept, *origins = sys.argv[1:]
    items = durable.DurableItems(ministack.app, durable.Journal(Path(journal)), durable.KeptItems(**json.loads(kept)))
    limited = limit.BodyLimit(
        refused.RefusedTokens(queue.ApiQueue(items)),
        lambda path: limit.API_BYTES if path.startswith(API) else MAX_BODY_BYTES,
    )
    ministack.app = guard.BrowserGuard(limited, origins=origins, is_closed=is_closed)
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
