"""A data set of birds and boats, and local Bedrocks in threads."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from evaluation import index
from local_bedrock import server
from local_bedrock.command import check
from ragstack_local.cli import app
from tests.evaluation.support import write_data_set

InProcess = Callable[..., None]


@pytest.fixture
def birds(tmp_path: Path) -> Path:
    return write_data_set(tmp_path / "birds")


class Thread:
    """A local Bedrock in a thread, in place of a process."""

    def require_alive(self) -> None:
        """It is."""


@contextmanager
def _running(folder: Path, arguments: Sequence[str], _: Mapping[str, str]) -> Iterator[tuple[Thread, str]]:
    read = check([*arguments])
    options = {name: read[name] for name in ("embedding", "cosine_share", "feedback", "contextual_headers")}
    with server.running(folder, **options) as url:
        yield Thread(), url


@pytest.fixture(scope="package", autouse=True)
def in_threads() -> Iterator[None]:
    """Save the second that a process takes to start; commands that tests start as processes start processes too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index, "running", _running)
        yield


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> InProcess:
    """Run the command line here, and let its errors pass."""

    def run(*arguments: str | Path, data: Path) -> None:
        monkeypatch.setenv("RAGSTACK_DATA", str(data))
        app(list(map(str, arguments)), standalone_mode=False)

    return run
