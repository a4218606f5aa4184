"""Revocations and changed labels count at once, although the index follows later."""

import json
import threading
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ragstack_common.access.policy import AccessPolicy
from ragstack_common.answers.models.protocol import ModelEnd, ModelPiece, ModelRequest, ModelResponse, ModelText
from ragstack_common.registry.records import Status
from ragstack_common.registry.table import document_id
from ragstack_common.services.ask import AskService
from ragstack_common.services.search_models import RetrieveRequest
from ragstack_common.settings.answers import AnswerSettings
from tests.access.world import Document, World, deployed, stable, user
from tests.support.knowledge_base import KNOWLEDGE_BASE

POLICY = AccessPolicy(
    rights={"read": ["everyone"], "write": ["group:hr"], "operate": ["group:operators"]},
    labels={"hr": {"allow": ["group:hr"]}, "public": {"allow": ["everyone"]}, "board": {"allow": ["group:board"]}},
    prefixes={"hr/": {"default": "hr", "labels": ["public", "board"]}, "": {"default": "public"}},
)
ALICE, BOB, OLGA = user("alice", "hr"), user("bob"), user("olga", "operators")
QUESTION = "How many days of leave are there?"
REQUEST = RetrieveRequest(query=QUESTION)
SECRET = "hr/salaries.md"
DOCUMENTS = (
    Document(SECRET, "hr", "Days of leave are there for Zebra", {"corpus": "Zebra", "city": "Zebra"}),
    Document("handbook.md", "public", "There are five days of leave", {"corpus": "people", "city": "Berlin"}),
    Document("travel.md", "public", "Book trains early", {"corpus": "people", "city": "Berlin"}),
)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with deployed(tmp_path, POLICY, DOCUMENTS) as made:
        yield made


def found(world: World) -> Any:
    """Return what Alice finds on every path that searches."""
    tool = {"collection_name": KNOWLEDGE_BASE, "texts": [QUESTION, "travel"]}
    return stable(
        {
            "retrieve": world.call(ALICE, "POST", "/api/retrieve", {"query": QUESTION, "explain": True, "passages": 3}),
            "every corpus": world.call(ALICE, "POST", "/api/retrieve", {"query": QUESTION, "corpus_filter": "all"}),
            "chunks": world.call(ALICE, "POST", "/api/retrieve", {"query": QUESTION, "deduplicate_by": "chunk"}),
            "ask": world.post(ALICE, "/api/ask", {"question": QUESTION}),
            "stream": world.post(ALICE, "/api/ask/stream", {"question": QUESTION}),
            "tool": world.call(ALICE, "POST", "/tools/retriever", {"input": tool}),
            "mcp search": world.tool(ALICE, "search", query=QUESTION),
            "mcp ask": world.tool(ALICE, "ask", question=QUESTION),
            "mcp tool": world.tool(ALICE, "retriever", **tool),
        }
    )


def listed(world: World) -> Any:
    """Return what Alice finds on every path that lists."""
    return stable(
        {
            "documents": world.call(ALICE, "GET", "/api/documents"),
            "key": world.call(ALICE, "GET", "/api/documents", key=SECRET),
            "id": world.call(ALICE, "GET", f"/api/documents/{document_id(f's3://documents/{SECRET}')}"),
            "facets": world.call(ALICE, "GET", "/api/facets"),
            "corpora": world.call(ALICE, "GET", "/api/corpora"),
            "status": world.tool(ALICE, "get_document_status", document=SECRET),
        }
    )


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    """What Alice finds if the document never existed."""
    with deployed(tmp_path_factory.mktemp("without"), POLICY, DOCUMENTS[1:]) as world:
        return found(world), listed(world)


def test_what_alice_finds_has_the_document(world: World) -> None:
    answers = found(world)

    assert [name for name, answer in answers.items() if "Zebra" not in str(answer)] == []


def test_what_callers_see_is_recorded_without_its_text(
    tmp_path: Path, expected: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    with deployed(tmp_path, POLICY, DOCUMENTS, AUDIT_READS="true") as world:
        found(world)
        seen = [event for event in world.audits if event["kind"] == "searched"]
        assert {event["caller"] for event in seen} == {"user:alice"}
        assert all(f"s3://documents/{SECRET}" in event["documents"] for event in seen)
        assert {name for event in seen for name in event} == {"kind", "caller", "documents"}
        assert all(len({*event["documents"]}) == len(event["documents"]) for event in seen)

        world.relabel(SECRET, "board", Status.INDEXED)
        world.audits.clear()
        assert found(world) == expected[0]

        assert world.audits
        assert SECRET not in json.dumps([event["documents"] for event in world.audits if "documents" in event])
        world.audits.clear()
        uri = "s3://documents/handbook.md"
        assert world.call(ALICE, "POST", "/api/view", {"uri": uri})[0] == 200
        assert world.audits == [{"kind": "opened", "caller": "user:alice", "documents": [uri]}]


def test_what_callers_see_is_not_recorded_by_default(world: World) -> None:
    found(world)

    assert [event["kind"] for event in world.audits] == []


@pytest.mark.parametrize(
    ("label", "status"), [("board", Status.INDEXED), (None, Status.INDEXED), ("hr", Status.DELETED)], ids=str
)
def test_a_changed_document_is_gone_at_once(
    world: World, expected: tuple[dict[str, Any], dict[str, Any]], label: str | None, status: Status
) -> None:
    """The index still has it with its old label. It is in no result, count, score, note, citation or listing."""
    found(world)

    world.relabel(SECRET, label, status)

    assert found(world) == expected[0]
    if status is not Status.DELETED:  # that it was deleted is for those who saw it
        assert listed(world) == expected[1]


def test_a_revocation_counts_with_the_next_request(
    world: World, expected: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    found(world)
    listed(world)

    assert world.call(OLGA, "POST", "/api/access", {"label": "hr", "principal": "group:hr", "effect": "deny"})[0] == 200

    assert found(world) == expected[0]
    assert listed(world) == expected[1]


def test_a_revocation_between_search_and_check_counts(
    world: World, expected: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    def revoke() -> None:
        world.index.before_answer = lambda: None
        body = {"label": "hr", "principal": "user:alice", "effect": "deny"}
        assert world.call(OLGA, "POST", "/api/access", body)[0] == 200

    world.call(ALICE, "POST", "/api/retrieve", {"query": QUESTION})
    # As another process would: this one's rules stay as they were.
    searches = world.searches()
    world.index.before_answer = revoke

    answer = world.call(ALICE, "POST", "/api/retrieve", {"query": QUESTION, "explain": True, "passages": 3})

    assert searches is world.searches()
    assert stable(answer) == list(expected[0]["retrieve"])


def test_rules_that_keep_changing_give_no_answer(world: World) -> None:
    """No answer mixes the counts of one moment with the rules of another."""
    effects = iter(["deny", "allow"] * 10)

    def flip() -> None:
        body = {"label": "hr", "principal": "user:alice", "effect": next(effects)}
        assert world.call(OLGA, "POST", "/api/access", body)[0] == 200

    world.call(ALICE, "POST", "/api/retrieve", {"query": QUESTION})
    world.index.before_answer = flip

    status, answer = world.call(ALICE, "POST", "/api/retrieve", {"query": QUESTION})

    assert (status, answer["error"]["code"]) == (502, "Registry")


def test_many_changed_documents_are_in_no_count(tmp_path: Path) -> None:
    """A search that still finds changed documents after its repetitions leaves out what they were counted in."""
    texts = [f"Days of leave are there {'for all ' * number}" for number in range(9)]
    changed = [Document(f"hr/{number}.md", "board", text, indexed_label="hr") for number, text in enumerate(texts)]
    with deployed(tmp_path, POLICY, [*changed, *DOCUMENTS[1:]]) as world:
        body = {"query": "days of leave are there for all", "top_k": 1, "explain": True}
        status, answer = world.call(ALICE, "POST", "/api/retrieve", body)

    assert status == 200
    assert "hr/" not in str(answer)
    assert {part["hits"] for part in answer["slices"]} == {0}
    assert (answer["results"], answer["best_relevance"], answer["notes"]) == ([], None, [])


def test_no_search_after_a_revocation_has_the_document(world: World) -> None:
    """Searches run all the time; those that start after the revocation was answered are the ones that count."""
    revoked, failures, started = threading.Event(), list[str](), threading.Barrier(4)
    # moto shows the item with the version before it has one; DynamoDB's transactions are atomic.
    assert (
        world.call(OLGA, "POST", "/api/access", {"label": "hr", "principal": "group:hr", "effect": "allow"})[0] == 200
    )
    searches = world.searches()

    def search() -> None:
        started.wait()
        for _ in range(12):
            was_revoked = revoked.is_set()
            found = searches.retrieve(REQUEST, ALICE)
            if was_revoked and any(SECRET in (each.source or "") for each in found.results):
                failures.append("found after the revocation")

    threads = [threading.Thread(target=search) for _ in range(3)]
    for thread in threads:
        thread.start()
    started.wait()
    for effect in ("deny", "allow", "deny"):
        body = {"label": "hr", "principal": "group:hr", "effect": effect}
        assert world.call(OLGA, "POST", "/api/access", body)[0] == 200
    revoked.set()
    for thread in threads:
        thread.join()

    assert failures == []
    assert SECRET not in str(searches.retrieve(REQUEST, ALICE))


class Clock:
    """Seconds that pass when a test says so."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True)
class Writing:
    """A model that writes sentences, between which something happens."""

    between: Callable[[], object]
    name: str = "writing"
    model: str = "writing"
    quotes: bool = False

    def generate(self, request: ModelRequest) -> ModelResponse:
        raise NotImplementedError(request)

    async def stream(self, _: ModelRequest) -> AsyncGenerator[ModelPiece, None]:
        for number in range(4):
            yield ModelText(f"Sentence {number} about leave [1]. ")
            if number == 1:
                self.between()
        yield ModelEnd("end_turn", 1, 1, self.model)


def revoke(world: World) -> None:
    body = {"label": "hr", "principal": "group:hr", "effect": "deny"}
    assert world.call(OLGA, "POST", "/api/access", body)[0] == 200


LOSSES: Mapping[str, Callable[[World], object]] = {
    "revoked": revoke,
    "relabelled": lambda world: world.relabel(SECRET, "board"),
    "deleted": lambda world: world.relabel(SECRET, "hr", Status.DELETED),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_a_link_to_a_picture_is_checked_when_it_is_followed(world: World, loss: str) -> None:
    def follow(key: str) -> Any:
        link = {"uri": f"s3://documents/{key}", "passage": "Days of leave", "marks": "0-4"}
        return stable(world.call(ALICE, "GET", "/api/view", **link))

    status, answer = follow(SECRET)
    assert (status, answer["error"]["message"]) == (400, "region: a .md file has no pages")

    LOSSES[loss](world)

    for key in (SECRET, "hr/unknown.md"):
        status, answer = follow(key)
        assert (status, answer["error"]["code"]) == (404, "DocumentNotFound")


def writing(world: World, clock: Clock, loss: Callable[[World], object]) -> None:
    """Let the answers of a world take five seconds, during which its caller may lose a document."""

    def between() -> None:
        loss(world)
        clock.now += 5.0

    world.answering = AskService(AnswerSettings(), world.searches(), Writing(between), clock=clock)


@pytest.mark.parametrize("name", LOSSES)
def test_a_stream_ends_when_its_caller_loses_a_document(world: World, name: str) -> None:
    writing(world, Clock(), LOSSES[name])

    status, events = world.post(ALICE, "/api/ask/stream", {"question": QUESTION})

    assert status == 200
    assert [kind for kind, _ in events][-1] == "error"
    assert events[-1][1]["error"]["code"] == "NotAllowed"
    assert "Sentence 0" in str(events)
    assert "Sentence 2" not in str(events)
    assert [each["resource"] for each in world.audits if each["kind"] == "refused"] == [f"s3://documents/{SECRET}"]


@pytest.mark.parametrize("name", LOSSES)
def test_a_whole_answer_is_refused_after_a_loss(world: World, name: str) -> None:
    writing(world, Clock(), LOSSES[name])

    status, answer = world.post(ALICE, "/api/ask", {"question": QUESTION})

    assert (status, answer["error"]["code"]) == (403, "NotAllowed")
    assert "Sentence" not in str(answer)


def test_an_answer_over_mcp_is_refused_after_a_loss(world: World) -> None:
    writing(world, Clock(), revoke)

    _, answer = world.tool(ALICE, "ask", question=QUESTION)

    assert answer["result"]["isError"]
    assert "Sentence" not in str(answer)


def test_a_stream_continues_while_its_caller_keeps_access(world: World) -> None:
    writing(world, Clock(), lambda made: made.relabel("travel.md", "hr"))

    _, events = world.post(ALICE, "/api/ask/stream", {"question": QUESTION})

    assert "Sentence 3" in str(events)
    assert [kind for kind, _ in events if kind == "error"] == []
