"""Functions are killed between any two of their steps: another invocation takes over, and nothing is lost."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from ragstack_common.settings.names import MANAGED, OTHER_STORE
from tests.ingestion.services import Killed
from tests.ingestion.world import World
from tests.support.soak import SOAK

Story = Callable[[World], None]
"""Leaves events or messages for the function that is killed."""


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


def create_mail(world: World) -> None:
    world.put_sidecar("c.eml", {"corpus": "stones"})
    world.put("c.eml", "granite is old")


def overwrite_mail(world: World) -> None:
    create_mail(world)
    world.run()
    world.put("c.eml", "granite is hard")


def delete_mail(world: World) -> None:
    create_mail(world)
    world.run()
    world.delete("c.eml")


def create_with_a_wrong_ending(world: World) -> None:
    """The knowledge base cannot read it, so its text is submitted instead."""
    world.put("text.docx", "granite is hard")


def overwrite_what_was_converted(world: World) -> None:
    create_with_a_wrong_ending(world)
    world.run()
    world.put("text.docx", "granite is igneous")


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
    create_mail,
    overwrite_mail,
    delete_mail,
    create_with_a_wrong_ending,
    overwrite_what_was_converted,
]

STORIES_BY_STORE = {
    OTHER_STORE: STORIES,
    MANAGED: STORIES if SOAK else [create_with_sidecar, overwrite_with_what_cannot_be_read, delete, overwrite_mail],
}

LONG_STORIES = {
    create_two,
    overwrite_with_what_cannot_be_read,
    bad_sidecar_for_what_is_indexed,
    overwrite_while_indexing,
    delete_and_put_back_while_deleting,
    create_mail,
    overwrite_mail,
    delete_mail,
    create_with_a_wrong_ending,
    overwrite_what_was_converted,
}
"""Killed at every sixteenth step, the others at every eighth one; with RAGSTACK_SOAK all at every one."""

WITHOUT_EFFECT = {
    *("BatchGetItem", "GetItem", "GetKnowledgeBaseDocuments", "GetObject", "HeadObject", "ListObjectsV2", "Retrieve"),
    "UpdateItem",  # reserves a turn for a call; no document depends on it
}
"""A kill after one of these has the same effect as one before it, so they count as steps only with RAGSTACK_SOAK."""


class Mortal:
    """Replaces a function of a world, and is killed at one of its steps.

    The first step is before its first call. Each other step is after a call, whose response is lost.

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


def steps_of(story: Story, function: Mortal) -> range:
    """Return the steps at which a function is killed: one at least, and others for each story."""
    every = 1 if SOAK else 16 if story in LONG_STORIES else 8
    return range(1 + 5 * STORIES.index(story) % max(1, min(every, function.steps)), function.steps + 1, every)


def announced(world: World) -> dict[str, list[Any]]:
    """Return the announced final states, without repetitions."""
    return {name: [(event["type"], event["etag"]) for event in world.outcomes(name)] for name in world.keys}


@pytest.mark.parametrize(
    ("vector_store", "story"),
    [
        pytest.param(store, story, marks=[pytest.mark.slow] if story in LONG_STORIES else [])
        for store, stories in STORIES_BY_STORE.items()
        for story in stories
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_a_function_killed_between_any_two_steps_loses_nothing(
    make_world: Callable[..., World], vector_store: str, story: Story
) -> None:
    undisturbed = make_world(vector_store=vector_store)
    story(undisturbed)
    functions = {name: Mortal(undisturbed, name) for name in ("ingestion", "converting", "following", "comparing")}
    undisturbed.run()
    undisturbed.check()
    expected = announced(undisturbed)

    for victim, function in functions.items():
        assert bool(steps_of(story, function)) is (function.steps > 0)
        for step in steps_of(story, function):
            where = f"{victim} killed at step {step}"
            world = make_world(vector_store=vector_store)
            story(world)
            mortal = Mortal(world, victim, step)
            with suppress(Killed):
                world.run()
            # The knowledge base indexes at its own speed, so a run may need fewer steps to follow it than another one.
            assert mortal.steps == step or mortal.steps >= function.steps // 2, where

            world.run()

            world.check()
            for name, events in announced(world).items():
                # An intermediate state may be announced before; no final state is announced under two operations.
                assert events[-1:] == expected[name][-1:], where
                assert len(set(events)) == len(events), where
            assert world.ingestion_queue.latest <= 3, where
    assert functions["ingestion"].steps >= 4
    # What is never submitted is never followed.
    assert functions["following"].steps >= 2 or story is bad_sidecar
