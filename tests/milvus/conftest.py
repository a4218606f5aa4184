"""A Milvus Lite file for each module, and small embeddings."""

import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("milvus_lite", reason="needs the extra milvus")

from pymilvus import MilvusClient
from pymilvus.client import grpc_handler

POLLS_PER_SECOND = 100


@pytest.fixture(scope="session", autouse=True)
def _soon() -> Iterator[None]:
    """Let pymilvus look after a moment whether an index is made, not after half a second."""
    soon = SimpleNamespace(**{**vars(time), "sleep": lambda _seconds: time.sleep(1 / POLLS_PER_SECOND)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grpc_handler, "time", soon)
        yield


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("milvus") / "lite.db"


@pytest.fixture(scope="module")
def client(file: Path) -> Iterator[MilvusClient]:
    """Keeps the file's server running for the module, and does what no backend does."""
    client = MilvusClient(str(file), dedicated=True)
    yield client
    client.close()
    from milvus_lite.server_manager import server_manager_instance  # noqa: PLC0415 - an extra

    server_manager_instance.release_server(str(file))
