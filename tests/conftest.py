"""Which tests one worker runs, where tests run on several; and what a run reads and compiles once instead of often."""

import asyncio
import gc
import os
import sys
from functools import cache
from types import SimpleNamespace
from typing import Any, Final

import botocore.loaders
import botocore.session
import pytest
import uvicorn.server
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

from tests.support.soak import examples

TOGETHER: Final = {
    "tests/e2e/test_lifecycle.py": "a local stack that starts and ends",
    "tests/e2e/test_documentation_examples.py": "the local stack of the documentation",
    "tests/e2e/": "the local stack",
    "tests/faults/test_small.py": "a local stack that fails",
    "tests/infra/": "the stacks, synthesized",
    "tests/conformance/test_files.py": "the files of every kind",
    "tests/evaluation/test_command.py": "a measured data set",
    "tests/local_bedrock/test_contextual_headers.py": "the sample documents, read",
    "tests/milvus/": "a file of Milvus Lite",
    "tests/clients/": "the zoo, and the clients that visit it",
    "tests/local_bedrock/test_pytest_plugin.py": "one run of pytest inside the other",
}
"""Tests below these paths share something that is slow to make; every other test goes wherever a worker is free."""
OF_ONE_BACKEND: Final = "tests/contract/test_backends.py"
"""The tests here of one backend, which is the first part of their parameters, share its store."""
COLLECTED_AFTER: Final = (20_000, 20, 20)
"""New objects until the garbage collector looks at the young ones, and how often it does before it looks at more."""
OFTENER: Final = 5
"""How many times as often as elsewhere a server in this process sees whether it is to end."""

# An example that takes long tells of a busy machine, not of a mistake.
settings.register_profile(
    "busy machine", deadline=None, max_examples=examples(160), suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("busy machine")
# Every process that a test starts would compile the project anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# Service models and fixtures stay for the whole run: to look for garbage among them as often as Python would takes a
# tenth of its time.
gc.set_threshold(*COLLECTED_AFTER)
# Every session of botocore, and every local Bedrock, reads the models of its services, a tenth of a second each; they
# are the same to all.
botocore.loaders.create_loader = botocore.session.create_loader = cache(botocore.loaders.create_loader)
# A server of uvicorn looks ten times a second whether it is to end, and hundreds of tests end one.
vars(uvicorn.server)["asyncio"] = SimpleNamespace(
    **{**vars(asyncio), "sleep": lambda seconds: asyncio.sleep(seconds / OFTENER)}
)


class _Scheduling(LoadScopeScheduling):
    """Groups by path. The groups of xdist's marks are lost with pytest 9.2, which keeps a test's id in another form."""

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(OF_ONE_BACKEND):
            return "the store of " + nodeid.partition("[")[2].partition("-")[0].removesuffix("]")
        return next((group for path, group in TOGETHER.items() if nodeid.startswith(path)), nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    return _Scheduling(config, log) if config.getvalue("dist") == "loadscope" else None
