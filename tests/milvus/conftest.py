"""A Milvus Lite file for each module, and small embeddings."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("milvus_lite", reason="needs the extra milvus")

from pymilvus import MilvusClient

from tests.support.milvus import looking_soon


@pytest.fixture(scope="session", autouse=True)
def _soon() -> Iterator[None]:
    with looking_soon():
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
