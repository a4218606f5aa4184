"""Snapshots of AWS Lambda (SnapStart): a process starts as a copy of one that was initialized before."""

import os
from collections.abc import Callable
from typing import Final

FROM_SNAPSHOT: Final = os.environ.get("AWS_LAMBDA_INITIALIZATION_TYPE") == "snap-start"
"""Whether this process is the original or a copy. Source: Lambda developer guide, defined environment variables."""


def after_restore(action: Callable[[], object]) -> None:
    """Run an action in each copy, before its first request; nothing in a process without a snapshot."""
    if FROM_SNAPSHOT:
        # In Lambda's Python, and nowhere else.
        from snapshot_restore_py import register_after_restore  # type: ignore[import-not-found]  # noqa: PLC0415

        register_after_restore(action)
