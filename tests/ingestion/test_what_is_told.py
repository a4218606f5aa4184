"""What receivers of events can rely on: each end has a name of its own, and its repetitions have the same."""

import json

import pytest

from ragstack_common.ingestion.outcomes import ANNOUNCED_AFTER_SECONDS
from ragstack_common.registry.records import Status
from tests.ingestion.services import Killed, lost, raising
from tests.ingestion.world import World

BAD, ALSO_BAD = b"no JSON", b"[]"


def operations(world: World, name: str) -> list[tuple[str, str]]:
    return [(told["type"], told["operation"]) for told in world.told(name)]


answer_of_the_event_bus_is_lost = raising("after", "PutEvents", lost)
dies_before_it_tells = raising("before", "PutEvents", Killed)


def test_a_failure_and_a_deletion_without_the_knowledge_base_have_operations_of_their_own(world: World) -> None:
    world.put("a.txt")
    world.run()
    world.delete("a.txt")
    world.run()
    world.put_sidecar("a.txt", BAD)
    world.put("a.txt")
    world.run()
    world.delete("a.txt")
    world.run()

    told = operations(world, "a.txt")

    assert [kind for kind, _ in told] == ["DocumentIndexed", "DocumentDeleted", "DocumentFailed", "DocumentDeleted"]
    assert len({operation for _, operation in told}) == len(told)


def test_each_failure_has_an_operation_of_its_own_also_in_the_dead_letter_queue(world: World) -> None:
    world.put_sidecar("a.txt", BAD)
    world.put("a.txt")
    world.run()
    world.put_sidecar("a.txt", ALSO_BAD)
    world.run()

    told = operations(world, "a.txt")

    assert [kind for kind, _ in told] == ["DocumentFailed", "DocumentFailed"]
    assert len({operation for _, operation in told}) == len(told)


def test_a_failure_that_is_told_again_has_the_same_operation_though_its_record_was_written_since(world: World) -> None:
    document, sidecar = world.put("a.txt"), world.put_sidecar("a.txt", BAD)
    world.events.clear()
    world.announce(document)
    with world.aws.intercepted(answer_of_the_event_bus_is_lost):
        world.ingest()
    world.announce(sidecar)

    world.run()

    assert len(world.aws.published) == 2, "the answer was lost, so that it is told again"
    assert len(operations(world, "a.txt")) == 1


def test_of_two_ends_the_later_one_is_told_by_its_time_which_repetitions_do_not_change(world: World) -> None:
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


def test_an_end_that_another_one_follows_before_it_was_told_is_told_all_the_same(world: World) -> None:
    world.put("a.txt", "granite is hard")
    with world.aws.intercepted(dies_before_it_tells), pytest.raises(Killed):
        world.run()
    indexed = world.record("a.txt")
    world.put("a.txt", "granite is grey")

    world.announce()
    world.ingest()
    world.run()

    assert indexed.operation is not None
    assert [kind for kind, _ in operations(world, "a.txt")] == ["DocumentIndexed", "DocumentIndexed"]
    assert operations(world, "a.txt")[0] == ("DocumentIndexed", indexed.operation.id)


def test_a_document_waits_where_what_it_was_before_cannot_be_told(world: World) -> None:
    world.put("a.txt", "granite is hard")
    world.run()
    world.put("a.txt", "granite is grey")
    world.put("b.txt", "granite is new")

    world.announce()
    with world.aws.intercepted(answer_of_the_event_bus_is_lost):
        world.ingest()

    assert world.record("a.txt").status is Status.INDEXED
    assert world.record("b.txt").status is Status.INDEXING
    world.run()
    world.check()


def test_what_has_been_told_long_ago_is_not_told_again(world: World) -> None:
    world.put("a.txt", "granite is hard")
    world.run()
    world.aws.clock.sleep(ANNOUNCED_AFTER_SECONDS + 1)
    world.put("a.txt", "granite is grey")

    world.run()

    assert len(world.aws.published) == 2


def test_a_failure_that_is_repaired_at_once_is_in_the_dead_letter_queue_once(world: World) -> None:
    world.put_sidecar("a.txt", BAD)
    world.put("a.txt")
    world.run()
    world.delete_sidecar("a.txt")

    world.run()

    assert len(world.dead()) == 1
    assert [kind for kind, _ in operations(world, "a.txt")] == ["DocumentFailed", "DocumentIndexed"]
