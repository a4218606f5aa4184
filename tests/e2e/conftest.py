"""The whole chain on this machine: the real cdk command line, MiniStack and the local Bedrock."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.support import ROOT, LocalStack, iterate

NEEDED = (".ministack/bin/ministack", "node_modules/.bin/cdk")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the documentation, whose pages print what is in a stack that no other test has used."""
    items.sort(key=lambda item: item.path.name != "test_documentation_examples.py")


@pytest.fixture(scope="session", autouse=True)
def installed() -> None:
    missing = [name for name in NEEDED if not (ROOT / name).exists()]
    if missing:
        pytest.skip(f"{' and '.join(missing)} missing: run `make setup`")


@pytest.fixture(scope="session")
def stack(installed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    yield from iterate(LocalStack(tmp_path_factory.mktemp("stack"), auth="none,oidc"))


@pytest.fixture(scope="session")
def handbook(stack: LocalStack) -> Path:
    """The sample documents, uploaded by the command line."""
    folder = ROOT / "samples" / "documents"
    done = stack.run("ingest", folder, "--prefix", "samples", timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder
