"""Backends that index documents, each with an empty store."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ragstack_common.search import create_retrieval_backend
from tests.contract.case import PATIENCE_SECONDS, Make
from tests.support.milvus import looking_soon

PATIENT: dict[str, Any] = {"timeout_seconds": PATIENCE_SECONDS}


@dataclass(frozen=True)
class Writable:
    """One engine or wrapper.

    Attributes:
        name: Name in the test's id.
        open: Yields a function that makes backends of an empty store in the folder.
        rejected: The id of a document that only the store rejects; None if there is none.
    """

    name: str
    open: Callable[[Path], AbstractContextManager[Make]]
    rejected: str | None = None


@contextmanager
def _chroma(folder: Path) -> Iterator[Make]:
    config = {"type": "chroma", "path": str(folder / "new"), "collection_name": "written", **PATIENT}
    yield lambda: create_retrieval_backend(config)


@contextmanager
def _milvus(folder: Path) -> Iterator[Make]:
    pytest.importorskip("milvus_lite", reason="needs the extra milvus")
    from milvus_lite.server_manager import server_manager_instance  # noqa: PLC0415 - an extra

    uri = str(folder / "new.db")
    with looking_soon():
        yield lambda: create_retrieval_backend({"type": "milvus", "uri": uri, "collection_name": "written", **PATIENT})
    server_manager_instance.release_server(uri)


@contextmanager
def _wrapped(folder: Path) -> Iterator[Make]:
    config: dict[str, Any] = {"type": "chroma", "path": str(folder / "new"), "collection_name": "written", **PATIENT}
    for wrapper in ("multislice", "reranked", "cached", "metered"):
        config = {"type": wrapper, "backend": config}
    yield lambda: create_retrieval_backend(config)


ALL = [
    Writable("chroma", _chroma),
    Writable("milvus", _milvus, rejected="x" * 513),
    Writable("wrapped", _wrapped),
]
