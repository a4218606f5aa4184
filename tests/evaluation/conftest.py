"""A data set of birds and boats."""

from pathlib import Path

import pytest

from tests.evaluation.support import write_data_set


@pytest.fixture
def birds(tmp_path: Path) -> Path:
    return write_data_set(tmp_path / "birds")
