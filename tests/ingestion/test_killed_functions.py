"""Functions that end between any two of their steps: another takes over, nothing is lost, nothing shows twice."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.ingestion.services import Killed
from tests.ingestion.world import World
from tests.support.soak import SOAK

Story = Callable[[World], None]
"""Leaves the events of what happened, or messages, for the function that is to be killed."""


def create(world: World) -> None:
    world.put("a.txt", "granite is hard")


def create_with_sidecar(world: World) -> None:
    world.put_sidecar("a.txt", {"corpus": "stones", "hardness": 7, "tags": ["grey", "old"]})
    world.put("a.txt", "granite is hard")


def create_two(world: World) -> None:
    world.put("a.txt", "granite is hard")
    world.put("b.txt", "granite is grey")


def overwrite(world: World) -> None:
    create_with_sidecar(world)
    world.run()
    world.put("a.txt", "granite is igneous")


def overwrite_with_what_cannot_be_read(world: World) -> None:
    create_with_sidecar(world)
    world.run()
    world.put("a.txt", "\n")


def delete(world: World) -> None:
    create_with_sidecar(world)
    world.run()
    world.delete("a.txt")


def bad_sidecar(world: World) -> None:
    create(world)
    world.put_sidecar("a.txt", b"no JSON")


def bad_sidecar_for_what_is_indexed(world: World) -> None:
    create_with_sidecar(world)
    world.run()
    world.put_sidecar("a.txt", b"no JSON")


def delete_while_indexing(world: World) -> None:
    create_with_sidecar(world)
    world.announce()
    world.ingest()
    world.delete("a.txt")


def overwrite_while_indexing(world: World) -> None:
    create_with_sidecar(world)
    world.announce()
    world.ingest()
    world.put("a.txt", "granite is igneous")


def delete_and_put_back_while_deleting(world: World) -> None:
    delete(world)
    world.announce()
    world.ingest()
    world.put("a.txt", "granite is back")


STORIES: list[Story] = [
    create,
    create_with_sidecar,
    create_two,
    overwrite,
    overwrite_with_what_cannot_be_read,
    delete,
    bad_sidecar,
    bad_sidecar_for_what_is_indexed,
    delete_while_indexing,
    overwrite_while_indexing,
    delete_and_put_back_while_deleting,
]

MORE_STORIES = {
    create_two,
    overwrite_with_what_cannot_be_read,
    bad_sidecar_for_what_is_indexed,
    overwrite_while_indexing,
    delete_and_put_back_while_deleting,
}
"""Ended at every fourth step, the others at every second; all at every one where there is time (RAGSTACK_SOAK)."""

CASES = [
    (story, victim)
    for story in STORIES
    for victim in ("ingestion", "following")
    if (story, victim) != (bad_sidecar, "following")
]
"""What is never submitted is never followed."""


def told_of(world: World) -> dict[str, list[Any]]:
    """Which ends were announced, each once however often it was told."""
    return {name: [(told["type"], told["etag"]) for told in world.told(name)] for name in world.keys}


def kill_at(world: World, step: int, victim: str) -> bool:
    """Run everything, and end the functions called *victim* at their step of that number; tells whether there was one.

    The first is before its first call, each other one after a call, which was carried out and whose answer is lost.
    """
    steps = 0
    alive = True

    def count(moment: str, _operation: str, _data: dict[str, Any]) -> None:
        nonlocal steps, alive
        if moment == "before" and steps > 0:
            return
        steps += 1
        if steps == step and alive:
            alive = False
            raise Killed

    def mortal(process: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def run(messages: Any) -> Any:
            with world.aws.intercepted(count):
                return process(messages)

        return run

    setattr(world, victim, mortal(getattr(world, victim)))
    for _ in range(2):
        try:
            world.run()
        except Killed:
            continue
        break
    return not alive


@pytest.mark.parametrize(("story", "victim"), CASES, ids=[f"{story.__name__}-{victim}" for story, victim in CASES])
def test_a_function_killed_between_any_two_steps_loses_nothing(
    make_world: Callable[[], World], story: Story, victim: str
) -> None:
    undisturbed = make_world()
    story(undisturbed)
    undisturbed.run()
    undisturbed.check()
    expected = told_of(undisturbed)

    stride = 1 if SOAK else 4 if story in MORE_STORIES else 2
    step = 1 - stride
    killed = True
    while killed:
        step += stride
        world = make_world()
        story(world)

        killed = kill_at(world, step, victim)

        world.check()
        for name, told in told_of(world).items():
            # What was true for a while may be told before; nothing is told again as if it had been done again.
            assert told[-1:] == expected[name][-1:], f"killed at step {step}"
            assert len(set(told)) == len(told), f"killed at step {step}"
        assert world.ingestion_queue.latest <= 3, f"killed at step {step}"
    assert step > 4, "there were steps to be killed at"


def test_the_dead_letter_queue_names_each_failed_document_with_its_cause(world: World) -> None:
    bad_sidecar(world)

    world.run()

    [letter] = world.dead()
    failed = json.loads(letter["Body"])["failed"]
    record = world.record("a.txt")
    assert failed["uri"] == record.uri
    assert failed["reason"] == record.reason == letter["MessageAttributes"]["Cause"]["StringValue"]
    assert "sidecar" in failed["reason"]
