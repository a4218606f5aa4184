"""More documents than a function has time for: it does what it can, and leaves the rest to another."""

from typing import Any

from ragstack_common.ingestion.messages import QueueMessage
from ragstack_common.registry.records import Status
from tests.ingestion.services import Killed
from tests.ingestion.world import SECONDS_LEFT, World

DOCUMENTS = 60
SECONDS_OF_A_LOOK = 1.1


def end_in_time(world: World) -> None:
    """Let S3 be slow, and end functions when their time is over."""
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


def test_no_more_documents_are_looked_at_than_there_is_time_for_and_no_delivery_counts(world: World) -> None:
    names = [f"{number}.txt" for number in range(DOCUMENTS)]
    for name in names:
        world.put(name)
    world.events.clear()
    world.look(*names)
    end_in_time(world)

    world.run()

    assert {world.record(name).status for name in names} == {Status.INDEXED}
    assert {world.record(name).attempts for name in names} == {1}
    assert world.ingestion_queue.latest == 1
    assert world.dead() == []
