"""The entry point of ``ragstack``, which needs no optional package to report that one is missing."""

import sys

from ragstack_common import DISTRIBUTION, __version__
from ragstack_common.core.errors import MissingPackageError, needs_extra


def main() -> None:
    """Run the command line."""
    try:
        with needs_extra("client", "The command line"):
            from ragstack_local import cli  # noqa: PLC0415 - imports typer
    except MissingPackageError as error:
        if sys.argv[1:] == ["--version"]:
            sys.stdout.write(f"{DISTRIBUTION} {__version__}\n")
            return
        sys.stderr.write(f"Error: {error}\n")
        raise SystemExit(3) from None
    cli.main()


if __name__ == "__main__":
    main()
