"""More documents than an invocation has time for: it leaves the rest to another one."""

from typing import Any

from ragstack_common.ingestion.messages import QueueMessage
from ragstack_common.registry.records import Status
from tests.ingestion.services import Killed
from tests.ingestion.world import SECONDS_LEFT, World

DOCUMENTS = 30
SECONDS_OF_A_LOOK = 2.2


def end_in_time(world: World) -> None:
    """Slow S3 down, and kill functions that run out of time."""
    process = world.ingestion

    def mortal(delivered: list[QueueMessage]) -> list[str]:
        end = world.aws.clock() + SECONDS_LEFT

        def take_time(moment: str, operation: str, _data: Any) -> None:
            if (moment, operation) == ("before", "HeadObject"):
                world.aws.clock.sleep(SECONDS_OF_A_LOOK)
            if world.aws.clock() > end:
                raise Killed

        with world.aws.intercepted(take_time):
            return process(delivered)

    world.ingestion = mortal  # type: ignore[method-assign]


def test_documents_without_time_left_wait_and_no_delivery_counts(world: World) -> None:
    names = [f"{number}.txt" for number in range(DOCUMENTS)]
    for name in names:
        world.put(name)
    world.events.clear()
    world.request_check(*names)
    end_in_time(world)

    world.run()

    assert {world.record(name).status for name in names} == {Status.INDEXED}
    assert {world.record(name).attempts for name in names} == {1}
    assert world.ingestion_queue.latest == 1
    assert world.dead() == []
