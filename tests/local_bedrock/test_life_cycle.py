"""How statuses pass with time: in the tables at given moments, and over HTTP with a short pace."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local_bedrock.options import Pace
from local_bedrock.server import running
from local_bedrock.store import database as database_module
from ragstack_common.ingestion.requests import text_document
from tests.local_bedrock.support import (
    Bedrock,
    Clock,
    Source,
    bytes_document,
    custom_identifier,
    knowledge_base_request,
    serving,
)
from tests.support.waiting import eventually

STATUS_SECONDS = 1 / 32
"""Seconds of a clock that only the test advances."""
PACE = Pace(creation_seconds=STATUS_SECONDS, indexing_seconds=3 * STATUS_SECONDS, deletion_seconds=2 * STATUS_SECONDS)


@pytest.fixture(scope="module")
def clock() -> Clock:
    return Clock(1_700_000_000.0)


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory, clock: Clock) -> Iterator[Bedrock]:
    with serving(tmp_path_factory.mktemp("slow"), clock=clock, pace=PACE) as bedrock:
        yield bedrock


def passed(clock: Clock, look: Callable[[], str], changes: int) -> list[str]:
    """Note the statuses in their order, of which each stays until its time has passed."""
    seen = [look()]
    for _ in range(changes):
        clock.now += STATUS_SECONDS
        seen.append(eventually(lambda: now if (now := look()) != seen[-1] else None))
    return seen


def base_status(bedrock: Bedrock, knowledge_base_id: str) -> str:
    try:
        return str(bedrock.agent.get_knowledge_base(knowledgeBaseId=knowledge_base_id)["knowledgeBase"]["status"])
    except bedrock.agent.exceptions.ResourceNotFoundException:
        return "gone"


def active(bedrock: Bedrock, clock: Clock, name: str) -> str:
    made = bedrock.knowledge_base(name)
    clock.now += PACE.creation_seconds
    eventually(lambda: base_status(bedrock, made) == "ACTIVE")
    return made


def look_at(source: Source, name: str) -> Callable[[], str]:
    return lambda: str(source.details(custom_identifier(name))[0]["status"])


def test_a_knowledge_base_is_created_and_deleted_in_its_time(slow: Bedrock, clock: Clock) -> None:
    made = slow.agent.create_knowledge_base(**knowledge_base_request("timed"))["knowledgeBase"]["knowledgeBaseId"]
    with pytest.raises(ClientError, match="is in status CREATING"):
        slow.custom_source(made)
    created = passed(clock, lambda: base_status(slow, made), 1)

    slow.agent.delete_knowledge_base(knowledgeBaseId=made)
    clock.now += STATUS_SECONDS  # a half of its time
    deleted = passed(clock, lambda: base_status(slow, made), 1)

    assert created == ["CREATING", "ACTIVE"]
    assert deleted == ["DELETING", "gone"]


@pytest.mark.parametrize(
    ("document", "last"),
    [
        (text_document("bird", "Herons stand in the shallow water."), "INDEXED"),
        (bytes_document("bird", b"no PDF", "application/pdf"), "FAILED"),
    ],
)
def test_a_document_passes_every_status_there_and_back(
    slow: Bedrock, clock: Clock, document: dict[str, Any], last: str
) -> None:
    source = slow.custom_source(active(slow, clock, "passing"))
    source.ingest(document)
    ingested = passed(clock, look_at(source, "bird"), 3)

    source.delete(custom_identifier("bird"))
    deleted = passed(clock, look_at(source, "bird"), 2)

    assert ingested == ["STARTING", "PENDING", "IN_PROGRESS", last]
    assert deleted == ["DELETING", "DELETE_IN_PROGRESS", "NOT_FOUND"]


def test_the_paces_of_documents_are_independent(slow: Bedrock, clock: Clock) -> None:
    source = slow.custom_source(active(slow, clock, "together"))
    identifiers = [custom_identifier(f"bird-{number}") for number in range(10)]

    def all_are(expected: str) -> bool:
        return {detail["status"] for detail in source.details(*identifiers)} == {expected}

    source.ingest(*(text_document(entry["custom"]["id"], "Herons stand.") for entry in identifiers))

    for seconds, expected in ((2 * STATUS_SECONDS, "IN_PROGRESS"), (STATUS_SECONDS, "INDEXED")):
        clock.now += seconds
        eventually(partial(all_are, expected))


def test_due_times_survive_a_restart_and_closing_is_prompt(tmp_path: Path) -> None:
    with serving(tmp_path, pace=Pace(indexing_seconds=3600.0)) as bedrock:
        source = bedrock.custom_source(bedrock.knowledge_base("restarted"))
        source.ingest(text_document("late", "Herons stand."))

    with running(tmp_path) as url:
        again = Source(Bedrock.at(url), source.knowledge_base_id, source.id)
        others = again.ingested(text_document("now", "Ospreys dive."))
        late: dict[str, Any] = again.details(custom_identifier("late"))[0]

    assert others[0]["status"] == "INDEXED"
    assert late["status"] == "STARTING"


@pytest.mark.parametrize("deleted", ["documents", "knowledge base"])
def test_deletions_release_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deleted: str) -> None:
    monkeypatch.setattr(database_module, "RELEASED_PAGES", 10)
    names = [str(number) for number in range(10)]
    with serving(tmp_path) as bedrock:
        source = bedrock.custom_source(bedrock.knowledge_base("large"))
        source.ingested(*(text_document(name, f"heron {name} " * 4000) for name in names))
        full = space(tmp_path)

        if deleted == "documents":
            source.delete(*map(custom_identifier, names))
        else:
            bedrock.agent.delete_knowledge_base(knowledgeBaseId=source.knowledge_base_id)

        assert full > 500_000
        eventually(lambda: space(tmp_path) < full / 2)


def space(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir())
