"""The whole of it: `make soak`."""

import os
import sys

import pytest

from ragstack_common.registry.jobs import FULL
from tests.faults.faulty_stack import FUNCTIONS, FaultyStack
from tests.faults.scenario import Size, run
from tests.support.soak import SOAK

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not SOAK, reason="takes many minutes: run `make soak`"),
    pytest.mark.timeout(2 * 3600),
]

LARGE = Size(
    uploads=int(os.environ.get("SOAK_UPLOADS", "2000")),
    overwrites=int(os.environ.get("SOAK_OVERWRITES", "500")),
    deletions=int(os.environ.get("SOAK_DELETIONS", "500")),
    seconds=float(os.environ.get("SOAK_SECONDS", "240")),
    seconds_between_kills=float(os.environ.get("SOAK_SECONDS_BETWEEN_KILLS", "10")),
    kills=1000,
    functions=FUNCTIONS,
    seconds_between_jobs=float(os.environ.get("SOAK_SECONDS_BETWEEN_JOBS", "30")),
    jobs=1000,
    full=True,
    timeout_seconds=20,
    rest_seconds=3600.0,
)
SEED = int(os.environ.get("SOAK_SEED", "1"))


def test_everything_agrees_after_thousands_of_operations(stack: FaultyStack) -> None:
    result = run(stack, LARGE, SEED, lambda line: print(line, file=sys.__stdout__, flush=True))

    assert not result.wrong, f"{len(result.wrong)} disagreements:\n" + "\n".join(result.wrong[:50])
    assert result.killer.of_busy >= 5
    assert {function for function, _ in result.killer.kills} == {*FUNCTIONS}
    assert any(job.kind == FULL and job.status == "COMPLETE" for job in result.now.jobs)
