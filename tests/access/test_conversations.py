"""Whose conversations a caller reads, and what of them they may see now."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pytest

from ragstack_common.access.callers import Caller
from ragstack_common.access.policy import AccessPolicy
from ragstack_common.answers.models.protocol import ModelEnd, ModelPiece, ModelRequest, ModelResponse, ModelText
from ragstack_common.registry.records import Status
from ragstack_common.services.ask import AskService
from ragstack_common.settings.answers import AnswerSettings
from tests.access.world import Document, World, deployed, user

POLICY: Final = AccessPolicy(
    rights={"read": ["everyone"], "operate": ["group:operators"]},
    labels={
        "public": {"allow": ["everyone"]},
        "hr": {"allow": ["group:hr"]},
        "board": {"allow": ["group:board"]},
    },
    prefixes={"": {"default": "public", "labels": ["public", "hr", "board"]}},
)
SECRET: Final = "salaries.md"
DOCUMENTS: Final = (
    Document(SECRET, "hr", "The salary of the zebra keeper is ninety pounds a day"),
    Document("leave.md", "public", "Parental leave is sixteen weeks long"),
)
ALICE, BOB, CAROL = user("alice", "hr"), user("bob"), user("carol", "hr")
OLGA = user("olga", "operators")
SALARY, LEAVE = "What is the salary of the zebra keeper?", "How long is parental leave?"
PATH: Final = "/api/conversations"
FORGET_ALICE: Final = {"label": "hr", "principal": "user:alice", "effect": "deny"}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with deployed(tmp_path, POLICY, DOCUMENTS) as made:
        yield made


def ask(world: World, caller: Caller, question: str, conversation: str, **more: Any) -> Any:
    status, answer = world.post(caller, "/api/ask", {"question": question, "conversation": conversation, **more})
    assert status == 200, answer
    return answer


def kept(world: World, caller: Caller, question: str, conversation: str, **more: Any) -> Any:
    answer = ask(world, caller, question, conversation, **more)
    assert answer["conversation"]["saved"], answer["conversation"]
    return answer


def read(world: World, caller: Caller, conversation: str) -> Any:
    status, found = world.call(caller, "GET", f"{PATH}/{conversation}")
    assert status == 200, found
    return found


def outcomes(conversation: Any) -> list[str | None]:
    """Return for each turn why it is withheld, or whether its answer is right."""
    for turn in conversation["turns"]:
        assert (turn["response"] is None) == (turn["withheld"] is not None)
    return [turn["withheld"] or _figure(turn["response"]["answer"]) for turn in conversation["turns"]]


def _figure(answer: str) -> str:
    return next(word for word in ("ninety", "sixteen", "secret") if word in answer)


def listed(world: World, caller: Caller, **query: str) -> list[str]:
    status, found = world.call(caller, "GET", PATH, **query)
    assert status == 200, found
    return [each["title"] for each in found["conversations"]]


def shared_link(world: World, conversation: str, owner: Caller = ALICE) -> str:
    status, found = world.call(owner, "PUT", f"{PATH}/{conversation}/share")
    assert status == 200, found
    return str(found["link"])


def test_an_answer_is_kept_as_it_was_given_with_what_was_asked(world: World) -> None:
    conversation = str(uuid4())
    first = kept(world, ALICE, LEAVE, conversation, top_k=3, chat_history=[])
    second = kept(world, ALICE, SALARY, conversation)

    found = read(world, ALICE, conversation)

    assert (found["title"], found["owner"], found["shared"]) == (LEAVE, "user:alice", False)
    assert (found["withheld_turns"], found["next_token"]) == (0, None)
    for turn, answer in zip(found["turns"], (first, second), strict=True):
        assert turn["entry"] == answer["conversation"]["entry"]
        cited = [each for each in answer["sources"] if each["cited"]]
        assert cited
        assert turn["response"] == {**answer, "sources": cited, "conversation": None, "missing": None}
    assert [turn["question"] for turn in found["turns"]] == [LEAVE, SALARY]
    assert [turn["asked"] for turn in found["turns"]] == [{"top_k": 3}, {}]


def test_a_stream_ends_with_whether_the_turn_is_kept(world: World) -> None:
    conversation = str(uuid4())

    _, events = world.post(ALICE, "/api/ask/stream", {"question": LEAVE, "conversation": conversation})

    name, done = events[-1]
    assert name == "done"
    assert done["conversation"]["saved"]
    assert outcomes(read(world, ALICE, conversation)) == ["sixteen"]


def test_nothing_is_kept_of_a_question_outside_of_a_conversation(world: World) -> None:
    _, answer = world.post(ALICE, "/api/ask", {"question": LEAVE})

    assert answer["conversation"] is None
    assert listed(world, ALICE) == []


@pytest.mark.parametrize("other", [BOB, CAROL, OLGA], ids=lambda each: each.name)
def test_another_person_neither_reads_nor_changes_a_conversation(world: World, other: Caller) -> None:
    """Also one with the same rights, and an operator; the id may be known, from a shared tab or a log."""
    conversation = str(uuid4())
    kept(world, ALICE, SALARY, conversation)
    own = f"{PATH}/{conversation}"

    refused = [
        world.call(other, "GET", own),
        world.call(other, "PATCH", own, {"title": "Mine"}),
        world.call(other, "PUT", f"{own}/share"),
        world.call(other, "DELETE", f"{own}/share"),
        world.call(other, "DELETE", own),
    ]

    assert [(status, answer["error"]["code"]) for status, answer in refused] == [(404, "ConversationNotFound")] * 5
    assert listed(world, other) == []
    assert world.call(other, "DELETE", PATH) == (200, {"deleted": 0})
    assert outcomes(read(world, ALICE, conversation)) == ["ninety"]


def test_an_id_that_another_person_uses_begins_a_conversation_of_ones_own(world: World) -> None:
    conversation = str(uuid4())
    kept(world, ALICE, SALARY, conversation)
    kept(world, BOB, LEAVE, conversation)
    kept(world, ALICE, LEAVE, conversation)

    assert outcomes(read(world, ALICE, conversation)) == ["ninety", "sixteen"]
    assert outcomes(read(world, BOB, conversation)) == ["sixteen"]
    assert world.call(BOB, "DELETE", f"{PATH}/{conversation}") == (200, {"deleted": 1})
    assert outcomes(read(world, ALICE, conversation)) == ["ninety", "sixteen"]


def test_people_of_one_name_at_two_issuers_are_two_people(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation = str(uuid4())
    kept(world, ALICE, SALARY, conversation)

    monkeypatch.setenv("OIDC_ISSUER", "https://another.example")
    world.restart()

    assert listed(world, ALICE) == []
    assert world.call(ALICE, "GET", f"{PATH}/{conversation}")[0] == 404
    kept(world, ALICE, LEAVE, conversation)
    monkeypatch.setenv("OIDC_ISSUER", "https://issuer.example")
    world.restart()
    assert outcomes(read(world, ALICE, conversation)) == ["ninety"]


def revoke(world: World) -> None:
    assert world.call(OLGA, "POST", "/api/access", FORGET_ALICE)[0] == 200


def relabel(world: World) -> None:
    world.relabel(SECRET, "board")


def delete(world: World) -> None:
    world.relabel(SECRET, "hr", Status.DELETED)


def begin_to_delete(world: World) -> None:
    world.relabel(SECRET, "hr", Status.DELETING)


@pytest.mark.parametrize(
    ("change", "reason"),
    [(revoke, "rights"), (relabel, "rights"), (delete, "deleted"), (begin_to_delete, "deleted")],
)
def test_an_answer_disappears_with_the_next_request(world: World, change: Callable[[World], None], reason: str) -> None:
    conversation = str(uuid4())
    kept(world, ALICE, SALARY, conversation)
    kept(world, ALICE, LEAVE, conversation)
    assert outcomes(read(world, ALICE, conversation)) == ["ninety", "sixteen"]

    change(world)
    found = read(world, ALICE, conversation)

    assert outcomes(found) == [reason, "sixteen"]
    assert found["withheld_turns"] == 1
    assert "ninety" not in json.dumps(found)
    assert found["turns"][0]["question"] == SALARY, "their own words stay"


def test_the_closest_documents_of_no_answer_disappear_too(world: World) -> None:
    conversation = str(uuid4())
    answer = kept(world, ALICE, SALARY, conversation, min_confidence=1)
    assert not answer["answered"]
    assert SECRET in {each["source"].rpartition("/")[2] for each in answer["closest"]}

    revoke(world)
    [turn] = read(world, ALICE, conversation)["turns"]

    assert (turn["withheld"], turn["response"]) == ("rights", None)


def test_an_operator_does_not_see_an_answer_from_a_deleted_document_either(world: World) -> None:
    conversation = str(uuid4())
    kept(world, OLGA, SALARY, conversation)

    delete(world)

    assert outcomes(read(world, OLGA, conversation)) == ["deleted"]


def test_who_lost_a_right_does_not_learn_that_the_document_was_deleted_later(world: World) -> None:
    conversation = str(uuid4())
    kept(world, ALICE, SALARY, conversation)

    revoke(world)
    delete(world)

    assert outcomes(read(world, ALICE, conversation)) == ["rights"]


def test_a_right_that_is_given_back_shows_the_answer_again(world: World) -> None:
    conversation = str(uuid4())
    kept(world, ALICE, SALARY, conversation)
    revoke(world)
    assert outcomes(read(world, ALICE, conversation)) == ["rights"]

    assert world.call(OLGA, "POST", "/api/access", {**FORGET_ALICE, "effect": None})[0] == 200

    assert outcomes(read(world, ALICE, conversation)) == ["ninety"]


def test_the_conversation_before_a_question_is_not_stored_with_it(world: World) -> None:
    """A turn would repeat answers whose documents the caller may lose."""
    conversation = str(uuid4())
    history = [{"role": "user", "content": SALARY}, {"role": "assistant", "content": "It is ninety pounds."}]
    kept(world, ALICE, LEAVE, conversation, chat_history=history)

    revoke(world)

    assert outcomes(read(world, ALICE, conversation)) == ["sixteen"]
    assert "ninety" not in json.dumps(read(world, ALICE, conversation))


class Repeating:
    """A model that says again what the conversation before says."""

    name, model, quotes = "repeating", "small", False

    def generate(self, request: ModelRequest) -> ModelResponse:
        raise NotImplementedError

    async def stream(self, request: ModelRequest) -> Any:
        said = " ".join(each.content for each in request.messages)
        yield ModelText(f"As I said, {'ninety' if 'ninety' in said else 'sixteen'} [1].")
        pieces: tuple[ModelPiece, ...] = (ModelEnd("end_turn", 1, 1, "small"),)
        for piece in pieces:
            yield piece


def test_an_answer_that_may_repeat_an_earlier_one_disappears_with_it(world: World) -> None:
    world.answering = AskService(AnswerSettings(), world.searches(), Repeating(), conversations=world.conversations())
    conversation = str(uuid4())
    kept(world, ALICE, SALARY, conversation, version_filter=None)
    history = [{"role": "user", "content": SALARY}, {"role": "assistant", "content": "It is ninety pounds."}]
    kept(world, ALICE, LEAVE, conversation, chat_history=history)

    revoke(world)
    found = read(world, ALICE, conversation)

    assert outcomes(found) == ["rights", "rights"]
    assert "ninety" not in json.dumps(found)


def test_a_changed_document_is_named(world: World) -> None:
    conversation = str(uuid4())
    kept(world, ALICE, SALARY, conversation)
    kept(world, ALICE, LEAVE, conversation)
    assert [turn["changed"] for turn in read(world, ALICE, conversation)["turns"]] == [[], []]

    world.upload_again("leave.md")

    assert [turn["changed"] for turn in read(world, ALICE, conversation)["turns"]] == [[], ["s3://documents/leave.md"]]


def test_a_link_shows_what_its_recipient_may_see(world: World) -> None:
    conversation = str(uuid4())
    kept(world, ALICE, SALARY, conversation)
    kept(world, ALICE, LEAVE, conversation)
    link = shared_link(world, conversation)

    _, of_bob = world.call(BOB, "GET", f"/api/shared/{link}")
    _, of_carol = world.call(CAROL, "GET", f"/api/shared/{link}")

    assert (outcomes(of_bob), of_bob["withheld_turns"]) == (["rights", "sixteen"], 1)
    assert (outcomes(of_carol), of_carol["withheld_turns"]) == (["ninety", "sixteen"], 0)
    assert of_bob["owner"] == of_carol["owner"] == "user:alice"
    assert read(world, ALICE, conversation)["shared"]


def test_an_answer_from_a_replaced_version_stays_with_the_readers_of_that_version(world: World) -> None:
    """The new version may be public because it lacks what the old one said."""
    conversation = str(uuid4())
    kept(world, ALICE, SALARY, conversation)
    link = shared_link(world, conversation)

    world.relabel(SECRET, "public")
    world.upload_again(SECRET)

    assert outcomes(world.call(BOB, "GET", f"/api/shared/{link}")[1]) == ["rights"]
    assert outcomes(world.call(CAROL, "GET", f"/api/shared/{link}")[1]) == ["ninety"]
    assert outcomes(read(world, ALICE, conversation)) == ["ninety"]


def test_an_answer_from_a_document_with_a_wider_label_has_its_readers(world: World) -> None:
    conversation = str(uuid4())
    kept(world, ALICE, SALARY, conversation)
    link = shared_link(world, conversation)

    world.relabel(SECRET, "public")

    assert outcomes(world.call(BOB, "GET", f"/api/shared/{link}")[1]) == ["ninety"]


def test_a_link_says_nothing_of_the_search_that_its_owner_made(world: World) -> None:
    conversation = str(uuid4())
    kept(world, ALICE, LEAVE, conversation)

    _, found = world.call(BOB, "GET", f"/api/shared/{shared_link(world, conversation)}")

    [turn] = found["turns"]
    assert (turn["response"]["slices"], turn["response"]["corpora"], turn["response"]["notes"]) == ([], [], [])
    assert (turn["response"]["inferred_filter"], turn["response"]["best_relevance"]) == (None, None)
    assert [each["source"] for each in turn["response"]["sources"]] == ["s3://documents/leave.md"]


def test_a_link_does_not_say_that_a_hidden_document_was_deleted(world: World) -> None:
    conversation = str(uuid4())
    kept(world, ALICE, SALARY, conversation)
    link = shared_link(world, conversation)
    before = world.call(BOB, "GET", f"/api/shared/{link}")

    delete(world)

    assert world.call(BOB, "GET", f"/api/shared/{link}") == before
    assert outcomes(world.call(CAROL, "GET", f"/api/shared/{link}")[1]) == ["deleted"]


def test_a_link_ends_when_it_is_revoked_and_when_its_conversation_is_deleted(world: World) -> None:
    conversation, other = str(uuid4()), str(uuid4())
    for each in (conversation, other):
        kept(world, ALICE, LEAVE, each)
    first = shared_link(world, conversation)
    assert shared_link(world, conversation) == first, "one link at a time"

    assert world.call(ALICE, "DELETE", f"{PATH}/{conversation}/share") == (200, {"link": None})
    assert world.call(BOB, "GET", f"/api/shared/{first}")[0] == 404
    second, of_other = shared_link(world, conversation), shared_link(world, other)
    assert second != first
    assert world.call(BOB, "GET", f"/api/shared/{first}")[0] == 404
    assert world.call(BOB, "GET", f"/api/shared/{second}")[0] == 200

    world.call(ALICE, "DELETE", f"{PATH}/{conversation}")
    assert world.call(BOB, "GET", f"/api/shared/{second}")[0] == 404
    world.call(ALICE, "DELETE", PATH)
    assert world.call(BOB, "GET", f"/api/shared/{of_other}")[0] == 404


def test_a_link_cannot_be_guessed_from_another_or_from_the_id(world: World) -> None:
    conversation, other = str(uuid4()), str(uuid4())
    kept(world, ALICE, LEAVE, conversation)
    kept(world, ALICE, SALARY, other)
    link, of_other = shared_link(world, conversation), shared_link(world, other)
    middle = len(link) * 32 // 56

    assert len({link[middle + 1 :], of_other[middle + 1 :]}) == 2
    for wrong in (
        conversation,
        link[:-1],
        f"{link}A",
        f"{link}=",
        link[:-2] + ("AA" if link[-2:] != "AA" else "BB"),
        of_other[: middle + 1] + link[middle + 1 :],
        "A" * len(link),
        "%00",
        "ä" * 20,
    ):
        status, answer = world.call(BOB, "GET", f"/api/shared/{wrong}")
        assert (status, answer["error"]["code"]) == (404, "ConversationNotFound"), wrong


def test_reading_a_conversation_is_recorded_as_opening_its_documents(
    tmp_path: Path,
) -> None:
    with deployed(tmp_path, POLICY, DOCUMENTS, AUDIT_READS="true") as world:
        conversation = str(uuid4())
        kept(world, ALICE, SALARY, conversation)
        link = shared_link(world, conversation)
        world.audits.clear()

        read(world, ALICE, conversation)
        world.call(BOB, "GET", f"/api/shared/{link}")

        assert [(each["kind"], each["caller"], each["documents"]) for each in world.audits] == [
            ("opened", "user:alice", ["s3://documents/salaries.md"]),
            ("opened", "user:bob", []),
        ]


def test_no_log_has_a_question_an_answer_or_a_link(world: World) -> None:
    conversation = str(uuid4())
    kept(world, ALICE, SALARY, conversation)
    link = shared_link(world, conversation)
    world.call(ALICE, "GET", PATH, query="zebra")
    world.call(BOB, "GET", f"/api/shared/{link}")

    text = "\n".join([*world.logs, json.dumps(world.audits)])

    assert "zebra" not in text
    assert link not in text
