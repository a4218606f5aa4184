"""Services fail, functions die, and in the end everything is as the bucket says: a small run."""

import os

import pytest

from ragstack_common.registry.records import Status
from tests.faults.faulty_stack import FaultyStack
from tests.faults.scenario import Size, run

pytestmark = pytest.mark.e2e

SMALL = Size(
    uploads=40,
    overwrites=10,
    deletions=10,
    seconds=6.0,
    seconds_between_kills=2.0,
    kills=2,
    timeout_seconds=10,
    rest_seconds=float(os.environ.get("FAULTS_REST_SECONDS", "240")),
)
SEED = int(os.environ.get("FAULTS_SEED", "2026"))


def test_everything_agrees_at_rest_whatever_failed_on_the_way(stack: FaultyStack) -> None:
    result = run(stack, SMALL, SEED)

    assert not result.wrong, "\n".join(result.wrong)
    statuses = {record.status for record in result.now.registry.values()}
    assert statuses == {Status.INDEXED, Status.FAILED, Status.DELETED}
    assert result.killer.of_busy >= 1
    assert sum(result.proxy.by_kind().values()) > 50
    assert sum(result.bedrock_faults.values()) >= 3
