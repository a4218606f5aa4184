"""Which tests one worker runs, where tests run on several; and what a run reads and compiles once instead of often."""

import os
import sys
from functools import cache
from typing import Any, Final

import botocore.session
import pytest
from botocore.loaders import create_loader
from xdist.scheduler import LoadScopeScheduling

TOGETHER: Final = {
    "tests/e2e/": "the local stack",
    "tests/faults/test_small.py": "a local stack that fails",
    "tests/infra/": "the stacks, synthesized",
    "tests/conformance/test_files.py": "the files of every kind",
    "tests/evaluation/test_command.py": "a measured data set",
    "tests/local/test_contextual_headers.py": "the sample documents, read",
    "tests/milvus/": "a file of Milvus Lite",
    "tests/local/test_pytest_plugin.py": "one run of pytest inside the other",
}
"""Tests below these paths share something that is slow to make; every other test goes wherever a worker is free."""
OF_ONE_BACKEND: Final = "tests/contract/test_backends.py"
"""The tests here of one backend, which is the first part of their parameters, share its store."""

# Every process that a test starts would compile the project anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# Every session of botocore reads the models of its services, a tenth of a second each; they are the same to all.
botocore.session.create_loader = cache(create_loader)


class _Scheduling(LoadScopeScheduling):
    """Groups by path. The groups of xdist's marks are lost with pytest 9.2, which keeps a test's id in another form."""

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(OF_ONE_BACKEND):
            return "the store of " + nodeid.partition("[")[2].partition("-")[0].removesuffix("]")
        return next((group for path, group in TOGETHER.items() if nodeid.startswith(path)), nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    return _Scheduling(config, log) if config.getvalue("dist") == "loadscope" else None
