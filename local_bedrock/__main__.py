"""``python -m local_bedrock`` runs the local Bedrock alone, as ``ragstack bedrock`` does."""

import sys

from local_bedrock.http.guard import end_with_parent
from ragstack_common.core.errors import RagStackError, needs_extra


def main() -> None:
    """Run the command; an expected error is one line, never a traceback."""
    end_with_parent()
    try:
        with needs_extra("local", "The local Bedrock"):
            from local_bedrock.command import alone  # noqa: PLC0415 - imports typer
        alone(prog_name="python -m local_bedrock")
    except RagStackError as error:
        print(f"Error: {error}", file=sys.stderr)  # noqa: T201 - it is the command line
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
