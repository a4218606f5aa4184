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

LONG_STORIES = {
    create_two,
    overwrite_with_what_cannot_be_read,
    bad_sidecar_for_what_is_indexed,
    overwrite_while_indexing,
    delete_and_put_back_while_deleting,
}
"""Ended at every second step, the others at every one; all at every one where there is time (RAGSTACK_SOAK)."""

WITHOUT_EFFECT = {
    *("BatchGetItem", "GetItem", "GetKnowledgeBaseDocuments", "GetObject", "HeadObject"),
    "UpdateItem",  # reserves a turn for a call; no document depends on it
}
"""Who ends after one of these leaves every document as who ends before it: steps only where there is time."""


class Mortal:
    """A function of a world, in the place of which it stands, that ends at one of its steps.

    The first step is before its first call, each other one after a call, which was carried out and whose answer is
    lost.

    Attributes:
        steps: So far, in all invocations.
    """

    def __init__(self, world: World, name: str, last: int | None = None) -> None:
        self.steps = 0
        self._last = last
        self._world = world
        self._process = getattr(world, name)
        setattr(world, name, self)

    def __call__(self, messages: Any) -> Any:
        with self._world.aws.intercepted(self._count):
            return self._process(messages)

    def _count(self, moment: str, operation: str, _data: dict[str, Any]) -> None:
        if self.steps > 0 if moment == "before" else operation in WITHOUT_EFFECT and not SOAK:
            return
        self.steps += 1
        if self.steps == self._last:
            raise Killed


def told_of(world: World) -> dict[str, list[Any]]:
    """Which ends were announced, each once however often it was told."""
    return {name: [(told["type"], told["etag"]) for told in world.told(name)] for name in world.keys}


@pytest.mark.parametrize("story", STORIES, ids=[story.__name__ for story in STORIES])
def test_a_function_killed_between_any_two_steps_loses_nothing(make_world: Callable[[], World], story: Story) -> None:
    undisturbed = make_world()
    story(undisturbed)
    functions = {name: Mortal(undisturbed, name) for name in ("ingestion", "following")}
    undisturbed.run()
    undisturbed.check()
    expected = told_of(undisturbed)

    for victim, function in functions.items():
        for step in range(1, function.steps + 1, 2 if story in LONG_STORIES and not SOAK else 1):
            where = f"{victim} killed at step {step}"
            world = make_world()
            story(world)
            Mortal(world, victim, step)
            with pytest.raises(Killed):
                world.run()

            world.run()

            world.check()
            for name, told in told_of(world).items():
                # What was true for a while may be told before; nothing is told again as if it had been done again.
                assert told[-1:] == expected[name][-1:], where
                assert len(set(told)) == len(told), where
            assert world.ingestion_queue.latest <= 3, where
    assert functions["ingestion"].steps >= 4
    # What is never submitted is never followed.
    assert functions["following"].steps >= 3 or story is bad_sidecar


def test_the_dead_letter_queue_names_each_failed_document_with_its_cause(world: World) -> None:
    bad_sidecar(world)

    world.run()

    [letter] = world.dead()
    failed = json.loads(letter["Body"])["failed"]
    record = world.record("a.txt")
    assert failed["uri"] == record.uri
    assert failed["reason"] == record.reason == letter["MessageAttributes"]["Cause"]["StringValue"]
    assert "sidecar" in failed["reason"]
