"""Documents that an ingestion job indexed and the registry does not know."""

from collections.abc import Callable

import pytest

from tests.ingestion.world import World


def a_failing_version(world: World) -> None:
    world.put("a.txt", "granite is hard")
    world.source.synchronised()
    assert world.chunks("a.txt")
    world.put("a.txt", "\n")


def a_look_at_an_invalid_sidecar(world: World) -> None:
    world.put("a.txt", "granite is hard")
    world.source.synchronised()
    world.put_sidecar("a.txt", b"no JSON")
    world.run()
    world.request_check("a.txt")


def the_deletion_of_a_failed_document(world: World) -> None:
    world.put("a.txt", "\n")
    world.run()
    world.source.synchronised()
    world.delete("a.txt")


def a_deletion_before_the_first_event(world: World) -> None:
    world.put("a.txt", "granite is hard")
    world.source.synchronised()
    world.delete("a.txt")


@pytest.mark.parametrize(
    "story",
    [
        a_failing_version,
        a_look_at_an_invalid_sidecar,
        the_deletion_of_a_failed_document,
        a_deletion_before_the_first_event,
    ],
)
def test_what_an_ingestion_job_indexed_is_removed_by(world: World, story: Callable[[World], None]) -> None:
    story(world)

    world.run()


def test_a_sidecar_without_a_document_causes_no_deletion(world: World) -> None:
    world.put_sidecar("a.txt", {"corpus": "stones"})

    world.run()

    assert world.count("DeleteKnowledgeBaseDocuments") == 0
