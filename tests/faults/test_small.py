"""Services fail, functions die, and in the end everything is as the bucket says: a small run, by `make faults`."""

import os

import pytest

from ragstack_common.registry.records import Status
from tests.faults.faulty_stack import FaultyStack
from tests.faults.scenario import Size, run
from tests.support.soak import SOAK

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not SOAK, reason="takes more than a minute: run `make faults`"),
    pytest.mark.timeout(1200),
]

# `reconcile` is at work and left in peace: a message whose function died stays away for longer than all this may take.
SMALL = Size(
    uploads=40,
    overwrites=10,
    deletions=10,
    seconds=6.0,
    seconds_between_kills=2.0,
    kills=2,
    functions=("ingestion", "ingestion_status", "documents"),
    seconds_between_jobs=3.0,
    jobs=1,
    full=False,
    timeout_seconds=10,
    rest_seconds=float(os.environ.get("FAULTS_REST_SECONDS", "240")),
    least={
        "INDEXED": 1,
        "FAILED": 1,
        "DELETED": 1,
        "uploads over HTTP": 1,
        "deletions over HTTP": 1,
        "kills at work": 1,
        "faults of AWS": 51,
        "faults of Bedrock": 3,
    },
)
SEED = int(os.environ.get("FAULTS_SEED", "2026"))


def test_everything_agrees_at_rest_after_faults(stack: FaultyStack) -> None:
    result = run(stack, SMALL, SEED)

    assert not result.wrong, "\n".join(result.wrong)
    assert {record.status for record in result.now.registry.values()} == {
        Status.INDEXED,
        Status.FAILED,
        Status.DELETED,
    }
    assert {each.type for each in result.events} == {"DocumentIndexed", "DocumentFailed", "DocumentDeleted"}
    assert result.now.jobs
