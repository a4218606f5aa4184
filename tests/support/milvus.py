"""Milvus Lite without the half seconds that its client waits for an index."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Final

import pytest

POLLS_PER_SECOND: Final = 100


@contextmanager
def looking_soon() -> Iterator[None]:
    """Let pymilvus look after a moment whether an index is made, not after half a second."""
    from pymilvus.client import grpc_handler  # noqa: PLC0415 - an extra

    soon = SimpleNamespace(**{**vars(time), "sleep": lambda _seconds: time.sleep(1 / POLLS_PER_SECOND)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grpc_handler, "time", soon)
        yield
