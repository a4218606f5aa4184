"""Services fail, functions die, and in the end everything is as the bucket says: a small run."""

import os

import pytest

from ragstack_common.registry.records import Status
from tests.faults.faulty_stack import FaultyStack
from tests.faults.scenario import Size, run

pytestmark = pytest.mark.e2e

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
)
SEED = int(os.environ.get("FAULTS_SEED", "2026"))


def test_everything_agrees_at_rest_whatever_failed_on_the_way(stack: FaultyStack) -> None:
    result = run(stack, SMALL, SEED)

    assert not result.wrong, "\n".join(result.wrong)
    statuses = {record.status for record in result.now.registry.values()}
    assert statuses == {Status.INDEXED, Status.FAILED, Status.DELETED}
    assert {each.type for each in result.told} == {"DocumentIndexed", "DocumentFailed", "DocumentDeleted"}
    assert len(result.now.jobs) == 1
    assert result.client.counts["uploads"] >= 1
    assert result.client.counts["deletions"] >= 1
    assert result.killer.of_busy >= 1
    assert sum(result.proxy.by_kind().values()) > 50
    assert sum(result.bedrock_faults.values()) >= 3
