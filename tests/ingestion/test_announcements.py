"""Promises to the receivers of events: each final state has its own operation, which its repetitions share."""

import json

import pytest

from ragstack_common.ingestion.outcomes import ANNOUNCED_AFTER_SECONDS
from ragstack_common.registry.records import Status
from tests.ingestion.services import Killed, lost, raising
from tests.ingestion.world import World

BAD, ALSO_BAD = b"no JSON", b"[]"


def operations(world: World, name: str) -> list[tuple[str, str]]:
    return [(event["type"], event["operation"]) for event in world.outcomes(name)]


response_of_the_event_bus_is_lost = raising("after", "PutEvents", lost)
killed_before_announcing = raising("before", "PutEvents", Killed)


def test_every_final_state_has_its_own_operation(world: World) -> None:
    """Some end without a call of the knowledge base."""
    world.put("a.txt")
    world.run()
    world.delete("a.txt")
    world.run()
    world.put_sidecar("a.txt", BAD)
    world.put("a.txt")
    world.run()
    world.put_sidecar("a.txt", ALSO_BAD)
    world.run()
    assert len(world.dead()) == 2
    world.delete("a.txt")
    world.run()

    announced = operations(world, "a.txt")

    kinds = ["Indexed", "Deleted", "Failed", "Failed", "Deleted"]
    assert [kind for kind, _ in announced] == [f"Document{kind}" for kind in kinds]
    assert len({operation for _, operation in announced}) == len(announced)


def test_a_repeated_announcement_has_the_same_operation(world: World) -> None:
    """The record was written again in between."""
    document, sidecar = world.put("a.txt"), world.put_sidecar("a.txt", BAD)
    world.events.clear()
    world.announce(document)
    with world.aws.intercepted(response_of_the_event_bus_is_lost):
        world.ingest()
    world.announce(sidecar)

    world.run()

    assert len(world.aws.published) == 2, "the response was lost, so it is announced again"
    assert len(operations(world, "a.txt")) == 1


def test_repetitions_keep_finished_at_which_orders_final_states(world: World) -> None:
    world.put("a.txt")
    world.announce()
    world.ingest()
    [message] = world.status_queue.collect()
    world.status_queue.repeat(message)
    world.run()
    world.aws.clock.sleep(0.5)
    world.delete("a.txt")
    world.run()

    details = [json.loads(entry["Detail"]) for entry in world.aws.published]

    times = {
        detail["operation"]: {d["finished_at"] for d in details if d["operation"] == detail["operation"]}
        for detail in details
    }
    assert [len(each) for each in times.values()] == [1, 1]
    (indexed,), (deleted,) = times.values()
    assert indexed < deleted


def test_a_final_state_is_announced_before_another_one_replaces_it(world: World) -> None:
    world.put("a.txt", "granite is hard")
    with world.aws.intercepted(killed_before_announcing), pytest.raises(Killed):
        world.run()
    indexed = world.record("a.txt")
    world.put("a.txt", "granite is grey")

    world.announce()
    world.ingest()
    world.run()

    assert indexed.operation is not None
    assert [kind for kind, _ in operations(world, "a.txt")] == ["DocumentIndexed", "DocumentIndexed"]
    assert operations(world, "a.txt")[0] == ("DocumentIndexed", indexed.operation.id)


def test_a_document_waits_until_its_last_final_state_is_announced(world: World) -> None:
    world.put("a.txt", "granite is hard")
    world.run()
    world.put("a.txt", "granite is grey")
    world.put("b.txt", "granite is new")

    world.announce()
    with world.aws.intercepted(response_of_the_event_bus_is_lost):
        world.ingest()

    assert world.record("a.txt").status is Status.INDEXED
    assert world.record("b.txt").status is Status.INDEXING
    world.run()


def test_a_final_state_is_not_announced_again_after_half_an_hour(world: World) -> None:
    world.put("a.txt", "granite is hard")
    world.run()
    world.aws.clock.sleep(ANNOUNCED_AFTER_SECONDS + 1)
    world.put("a.txt", "granite is grey")

    world.run()

    assert len(world.aws.published) == 2
