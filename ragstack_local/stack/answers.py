"""Serves the function ``answers`` next to MiniStack, which buffers responses and cannot run the Lambda Web Adapter.

``python -m ragstack_local.stack.answers PORT HANDLER [ORIGIN ...]`` serves the ASGI application of a handler's file.
"""

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Final

from local_bedrock.http.guard import PRIVATE_UMASK, BrowserGuard, end_with_parent
from local_bedrock.options import LOCAL

DEFAULT_PORT: Final = 4568

HANDLER: Final = Path("lambdas", "answers", "handler.py")
"""Path in the checkout."""


def main() -> None:
    """Serve until asked to end."""
    import uvicorn  # noqa: PLC0415 - commands that only know the port start faster

    from local_bedrock.http.connections import Protocol  # noqa: PLC0415 - the same

    port, handler, *origins = sys.argv[1:]
    os.umask(PRIVATE_UMASK)
    end_with_parent()
    sys.path.append(str(Path(handler).parent))
    uvicorn.run(
        BrowserGuard(import_module(Path(handler).stem).app, origins=origins),
        host=LOCAL,
        port=int(port),
        http=Protocol,
        ws="none",
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=2,
        timeout_keep_alive=60,
    )


if __name__ == "__main__":
    main()
