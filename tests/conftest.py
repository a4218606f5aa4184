"""Which tests one worker runs, where tests run on several."""

from typing import Any, Final

import pytest
from xdist.scheduler import LoadScopeScheduling

TOGETHER: Final = {
    "tests/e2e/": "the local stack",
    "tests/conformance/test_files.py": "the files of every kind",
}
"""Tests below these paths share something that is slow to make; every other test goes wherever a worker is free."""


class _Scheduling(LoadScopeScheduling):
    """Groups by path. The groups of xdist's marks are lost with pytest 9.2, which keeps a test's id in another form."""

    def _split_scope(self, nodeid: str) -> str:
        return next((group for path, group in TOGETHER.items() if nodeid.startswith(path)), nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    return _Scheduling(config, log) if config.getvalue("dist") == "loadscope" else None
