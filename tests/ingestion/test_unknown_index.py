"""What the knowledge base has of a document that the registry has never heard of, from an ingestion job."""

from tests.ingestion.world import World


def index_behind_the_registrys_back(world: World) -> None:
    """Have an ingestion job read the bucket before any event was."""
    world.source.synchronised()


def test_a_version_that_fails_takes_out_of_the_index_what_an_ingestion_job_put_there(world: World) -> None:
    world.put("a.txt", "granite is hard")
    index_behind_the_registrys_back(world)
    assert world.chunks("a.txt")
    world.put("a.txt", "\n")

    world.run()

    world.check()


def test_a_look_takes_out_of_the_index_what_cannot_be_used(world: World) -> None:
    world.put("a.txt", "granite is hard")
    index_behind_the_registrys_back(world)
    world.put_sidecar("a.txt", b"no JSON")
    world.run()

    world.look("a.txt")
    world.run()

    world.check()


def test_what_failed_and_is_deleted_leaves_the_knowledge_base_though_a_job_put_it_there(world: World) -> None:
    world.put("a.txt", "\n")
    world.run()
    index_behind_the_registrys_back(world)
    world.delete("a.txt")

    world.run()

    world.check()


def test_what_is_deleted_before_anybody_read_of_it_leaves_the_knowledge_base(world: World) -> None:
    world.put("a.txt", "granite is hard")
    index_behind_the_registrys_back(world)
    world.delete("a.txt")

    world.run()

    world.check()


def test_a_sidecar_without_a_document_asks_for_no_deletion(world: World) -> None:
    world.put_sidecar("a.txt", {"corpus": "stones"})

    world.run()

    assert world.count("DeleteKnowledgeBaseDocuments") == 0
