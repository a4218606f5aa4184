"""``python -m ragstack_local.bedrock`` runs the local Bedrock alone."""

import argparse
import sys
from pathlib import Path

from ragstack_local.bedrock import server
from ragstack_local.bedrock.embedding import EmbeddingError
from ragstack_local.bedrock.options import DEFAULT_EMBEDDING, LOCAL, Options
from ragstack_local.bedrock.server import PortInUseError
from ragstack_local.bedrock.store.database import DataFolderError


def main() -> int:
    """Parse the command line, serve, and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m ragstack_local.bedrock", description="A Bedrock Knowledge Base on this machine."
    )
    parser.add_argument("--host", default=LOCAL, help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, required=True, help="port to listen on; 0 takes a free one")
    parser.add_argument("--data-dir", type=Path, required=True, help="folder of the index, created if missing")
    parser.add_argument("--embedding", default=DEFAULT_EMBEDDING, help="default: %(default)s")
    parser.add_argument("--s3-endpoint", help="where documents are read (default: boto3's own settings)")
    arguments = parser.parse_args()
    try:
        server.run(
            Options(**vars(arguments)),
            announce=lambda line: print(line, flush=True),  # noqa: T201 - it is the command line
        )
    except (EmbeddingError, DataFolderError, PortInUseError) as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
