"""Documents that an ingestion job indexed and the registry does not know."""

from tests.ingestion.world import World


def index_behind_the_registrys_back(world: World) -> None:
    """Run an ingestion job before any event is read."""
    world.source.synchronised()


def test_a_failing_version_removes_what_an_ingestion_job_indexed(world: World) -> None:
    world.put("a.txt", "granite is hard")
    index_behind_the_registrys_back(world)
    assert world.chunks("a.txt")
    world.put("a.txt", "\n")

    world.run()

    world.check()


def test_a_look_removes_a_document_with_an_invalid_sidecar_from_the_index(world: World) -> None:
    world.put("a.txt", "granite is hard")
    index_behind_the_registrys_back(world)
    world.put_sidecar("a.txt", b"no JSON")
    world.run()

    world.look("a.txt")
    world.run()

    world.check()


def test_deleting_a_failed_document_removes_what_an_ingestion_job_indexed(world: World) -> None:
    world.put("a.txt", "\n")
    world.run()
    index_behind_the_registrys_back(world)
    world.delete("a.txt")

    world.run()

    world.check()


def test_deleting_a_document_before_its_first_event_removes_what_an_ingestion_job_indexed(world: World) -> None:
    world.put("a.txt", "granite is hard")
    index_behind_the_registrys_back(world)
    world.delete("a.txt")

    world.run()

    world.check()


def test_a_sidecar_without_a_document_causes_no_deletion(world: World) -> None:
    world.put_sidecar("a.txt", {"corpus": "stones"})

    world.run()

    assert world.count("DeleteKnowledgeBaseDocuments") == 0
