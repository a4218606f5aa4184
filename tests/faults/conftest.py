"""A stack of its own: faults and killed functions would disturb every other test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import NEEDED
from tests.e2e.support import ROOT, iterate
from tests.faults.faulty_stack import FaultyStack


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[FaultyStack]:
    missing = [name for name in NEEDED if not (ROOT / name).exists()]
    if missing:
        pytest.skip(f"{' and '.join(missing)} missing: run `make setup`")
    stack = FaultyStack(tmp_path)
    for running in iterate(stack):
        assert running is stack
        yield stack
