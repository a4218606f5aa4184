"""Serves the function ``answers`` next to MiniStack, which buffers responses and cannot run the Lambda Web Adapter.

``python -m ragstack_local.stack.answers PORT HANDLER [ORIGIN ...]`` serves the ASGI application of a handler's file.
"""

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Final

from local_bedrock.http.guard import PRIVATE_UMASK, Guard, end_with_parent
from local_bedrock.options import LOCAL

DEFAULT_PORT: Final = 4568

HANDLER: Final = Path("lambdas", "answers", "handler.py")
"""Below the checkout."""

SHUTDOWN_LIMIT_SECONDS: Final = 2
KEEP_ALIVE_SECONDS: Final = 60


def main() -> None:
    """Serve until asked to end."""
    import uvicorn  # noqa: PLC0415 - commands that only know the port start faster

    from local_bedrock.http.connections import Protocol  # noqa: PLC0415 - the same

    port, handler, *origins = sys.argv[1:]
    os.umask(PRIVATE_UMASK)
    end_with_parent()
    uvicorn.run(
        Guard(_load(Path(handler)).app, origins=origins),
        host=LOCAL,
        port=int(port),
        http=Protocol,
        ws="none",
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=SHUTDOWN_LIMIT_SECONDS,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
    )


def _load(handler: Path) -> ModuleType:
    found = importlib.util.spec_from_file_location("handler", handler)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
