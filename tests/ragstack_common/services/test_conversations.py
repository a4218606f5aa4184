"""Conversations on moto's DynamoDB: limits, expiry, and what happens at the same time."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Event, Lock
from typing import Any, Final
from uuid import UUID, uuid4

import pytest
from botocore.exceptions import EndpointConnectionError

from ragstack_common.access.callers import EVERYONE, OPERATOR, Caller
from ragstack_common.access.guard import Guard
from ragstack_common.access.policy import AccessPolicy
from ragstack_common.answers.answer import Answerer, Source, Timings, Usage
from ragstack_common.answers.quote.extractive import ExtractiveProvider
from ragstack_common.core.errors import ConversationNotFoundError, InvalidRequestError
from ragstack_common.registry import conversations as table
from ragstack_common.registry.conversations import DAY_SECONDS, ConversationTable
from ragstack_common.registry.documents import DocumentRegistry, RecordChange
from ragstack_common.registry.records import Status
from ragstack_common.registry.table import CONVERSATION, EXPIRES_AT, PARTITION_KEY
from ragstack_common.search.models import Missing, MissingDocument, MissingValue
from ragstack_common.services import ask, conversations
from ragstack_common.services.ask_models import AskRequest, AskResponse, KeptConversation
from ragstack_common.services.conversation_models import TitleChange
from ragstack_common.services.conversations import Conversations
from tests.ragstack_common.services.conftest import AT, Aws
from tests.ragstack_common.services.test_ask import LEAVE, collected, found, question, service
from tests.support.registry_table import TABLE

ALICE: Final = Caller("user:alice", frozenset({EVERYONE, "user:alice"}))
LEAVE_URI: Final = "s3://documents/leave.md"
SOURCE: Final = Source(number=1, content="Sixteen weeks.", source=LEAVE_URI, score=0.9, cited=True)


@dataclass
class Kept:
    """Conversations, and the time at which they are used."""

    aws: Aws
    now: float = AT
    days: int = 90

    @property
    def service(self) -> Conversations:
        client = self.aws.dynamodb
        store = ConversationTable(client, TABLE, self.days, lambda: self.now)
        return Conversations(store, DocumentRegistry(TABLE, client), Guard(), "https://issuer.example")

    def ask(self, conversation: UUID, text: str = "How long is leave?", caller: Caller = ALICE) -> KeptConversation:
        self.now += 1
        request = AskRequest(question=text, conversation=conversation)
        return self.service.keep(caller, request, answer(text), is_registered=True)

    def questions(self, conversation: UUID) -> list[str]:
        return [turn.question for turn in self.service.get(ALICE, conversation).turns]

    def titles(self, **query: Any) -> list[str]:
        return [each.title for each in self.service.page(ALICE, **query).conversations]

    def items(self) -> list[Any]:
        found = self.aws.dynamodb.scan(TableName=TABLE)["Items"]
        return [item for item in found if item[PARTITION_KEY]["S"].startswith(CONVERSATION)]


@pytest.fixture
def kept(aws: Aws) -> Kept:
    aws.record("leave.md", Status.INDEXED, aws.put("leave.md"))
    return Kept(aws)


def answer(text: str, **changes: Any) -> AskResponse:
    made = AskResponse(
        question=text,
        answer="Sixteen weeks [1].",
        answered=True,
        sentences=[],
        sources=[SOURCE],
        answerer=Answerer(provider="extractive", quotes=True),
        usage=Usage(),
        timings=Timings(retrieval_ms=1, total_ms=2),
        complete=True,
        slices=(),
        corpora=(),
    )
    return made.model_copy(update=changes)


@contextmanager
def failing(client: Any, *operations: str) -> Iterator[None]:
    """Have calls of some operations fail as without a network."""

    def refuse(**_: Any) -> None:
        raise EndpointConnectionError(endpoint_url="https://dynamodb")

    for operation in operations:
        client.meta.events.register(f"before-call.dynamodb.{operation}", refuse)
    try:
        yield
    finally:
        for operation in operations:
            client.meta.events.unregister(f"before-call.dynamodb.{operation}", refuse)


@contextmanager
def counting(client: Any, operation: str) -> Iterator[list[None]]:
    """Collect an entry for each call of an operation."""
    calls: list[None] = []

    def count(**_: Any) -> None:
        calls.append(None)

    client.meta.events.register(f"before-call.dynamodb.{operation}", count)
    try:
        yield calls
    finally:
        client.meta.events.unregister(f"before-call.dynamodb.{operation}", count)


def test_conversations_are_listed_with_the_last_used_first(kept: Kept) -> None:
    first, second = uuid4(), uuid4()
    for each, text in ((first, "One?"), (second, "Two?"), (first, "Three?")):
        kept.ask(each, text)

    page = kept.service.page(ALICE)

    assert [(each.id, each.title, each.turns) for each in page.conversations] == [
        (str(first), "One?", 2),
        (str(second), "Two?", 1),
    ]
    assert (page.enabled, page.days, page.next_token) == (True, 90, None)


def test_pages_list_each_conversation_once(kept: Kept) -> None:
    for number in range(5):
        kept.ask(uuid4(), f"Question {number}?")

    found: list[str] = []
    token = None
    for _ in range(3):
        page = kept.service.page(ALICE, limit=2, token=token)
        found += [each.title for each in page.conversations]
        token = page.next_token

    assert found == [f"Question {number}?" for number in (4, 3, 2, 1, 0)]
    assert token is None


@pytest.mark.parametrize("token", ["x", "", "nan~x", "inf~x", "-1~x", "1e3~x", "1.5", "~x", "1~"])
def test_a_token_of_another_listing_is_refused(kept: Kept, token: str) -> None:
    with pytest.raises(InvalidRequestError):
        kept.service.page(ALICE, token=token)


def test_a_search_finds_each_word_in_titles_and_questions(kept: Kept) -> None:
    leave = uuid4()
    kept.ask(leave, "How long is leave in Zürich?")
    kept.ask(leave, "And for fathers?")
    kept.ask(uuid4(), "What does the train cost?")
    kept.service.rename(ALICE, leave, TitleChange(title="Holidays"))

    for query in ("holid", "zürich LEAVE", "zu\u0308rich", "fathers holidays"):
        assert kept.titles(query=query) == ["Holidays"], query
    assert kept.titles(query="train fathers") == []


def test_a_title_is_the_beginning_of_the_first_question_until_it_is_changed(kept: Kept) -> None:
    conversation = uuid4()

    made = kept.ask(conversation, "Why\n  is this question " + "very " * 30 + "long?")
    changed = kept.service.rename(ALICE, conversation, TitleChange(title="  Short  "))
    later = kept.ask(conversation, "Really?")

    assert made.title.startswith("Why is this question very")
    assert made.title.endswith("very…")
    assert len(made.title) <= 81
    assert (changed.title, later.title, kept.titles()) == ("Short", "Short", ["Short"])


def test_the_oldest_turn_gives_way_to_the_51st(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "MAX_KEPT_TURNS", 3)
    monkeypatch.setattr(conversations, "MAX_KEPT_TURNS", 3)
    conversation = uuid4()

    answers = [kept.ask(conversation, f"Question {number}?") for number in range(5)]

    assert kept.questions(conversation) == ["Question 2?", "Question 3?", "Question 4?"]
    assert [each.removed is None for each in answers] == [True, True, True, False, False]
    assert answers[-1].removed == "The oldest turn was deleted: 3 of a conversation are kept"
    assert len(kept.items()) == 4, "the head and three turns"


def test_the_oldest_conversation_gives_way_to_the_201st(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "MAX_CONVERSATIONS", 2)
    monkeypatch.setattr(conversations, "MAX_CONVERSATIONS", 2)
    first, second, third = uuid4(), uuid4(), uuid4()
    kept.ask(first, "One?")
    kept.ask(second, "Two?")
    kept.ask(first, "Three?")

    made = kept.ask(third, "Four?")

    assert made.removed == "The oldest conversation was deleted: 2 of a person are kept"
    assert kept.titles() == ["Four?", "One?"]
    with pytest.raises(ConversationNotFoundError):
        kept.service.get(ALICE, second)


def test_a_turn_that_may_repeat_a_removed_one_depends_on_its_documents(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "MAX_KEPT_TURNS", 2)
    uri = kept.aws.record("secret.md", Status.INDEXED, kept.aws.put("secret.md")).uri
    record = DocumentRegistry(TABLE, kept.aws.dynamodb).read([uri])[uri]
    conversation = uuid4()
    by_model = {"answerer": Answerer(provider="bedrock", model="small")}
    secret = SOURCE.model_copy(update={"source": uri})
    for number, sources in enumerate(([secret], [SOURCE], [SOURCE], [SOURCE])):
        kept.now += 1
        history: Any = [{"role": "user", "content": "Before"}] if number else []
        request = AskRequest(question=f"Question {number}?", conversation=conversation, chat_history=history)
        kept.service.keep(ALICE, request, answer("", sources=sources, **by_model), is_registered=True)

    before = kept.service.get(ALICE, conversation)
    deleted = replace(record, status=Status.DELETED, counted=())
    assert not DocumentRegistry(TABLE, kept.aws.dynamodb).write([RecordChange(record, deleted)])
    after = kept.service.get(ALICE, conversation)

    assert [(turn.question, turn.withheld) for turn in before.turns] == [("Question 2?", None), ("Question 3?", None)]
    assert [turn.withheld for turn in after.turns] == ["deleted", "deleted"]


def test_turns_of_two_tabs_at_once_are_both_kept(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also the first ones, with which the conversation begins."""
    conversation = uuid4()
    # DynamoDB isolates conditional writes; moto's threads see each other's steps.
    one_at_a_time, call = Lock(), kept.aws.dynamodb._make_api_call

    def isolated(*arguments: Any) -> Any:
        with one_at_a_time:
            return call(*arguments)

    monkeypatch.setattr(kept.aws.dynamodb, "_make_api_call", isolated)

    with ThreadPoolExecutor(8) as threads:
        answers = [*threads.map(lambda number: kept.ask(conversation, f"Question {number}?"), range(16))]

    assert all(each.saved for each in answers)
    assert sorted(kept.questions(conversation)) == sorted(f"Question {number}?" for number in range(16))
    assert len({each.entry for each in answers}) == 16


def test_a_conversation_expires_after_its_last_turn(kept: Kept) -> None:
    conversation = uuid4()
    kept.ask(conversation, "One?")
    kept.now += 80 * DAY_SECONDS
    kept.ask(conversation, "Two?")

    kept.now += 89 * DAY_SECONDS
    assert kept.questions(conversation) == ["One?", "Two?"]
    expiring = [float(item[EXPIRES_AT]["N"]) for item in kept.items()]
    kept.now += DAY_SECONDS

    assert min(expiring) >= kept.now - 1, "DynamoDB removes no turn before the conversation ends"
    assert max(expiring) <= kept.now + DAY_SECONDS
    assert kept.titles() == []
    with pytest.raises(ConversationNotFoundError):
        kept.service.get(ALICE, conversation)
    with pytest.raises(ConversationNotFoundError):
        kept.service.rename(ALICE, conversation, TitleChange(title="x"))
    assert kept.items(), "DynamoDB takes days to remove what has expired"


def test_turns_are_renewed_once_a_day(kept: Kept) -> None:
    """A person waits for these writes before the answer ends."""
    conversation = uuid4()
    for _ in range(3):
        kept.ask(conversation)
    kept.now += 2 * DAY_SECONDS

    with counting(kept.aws.dynamodb, "UpdateItem") as first:
        kept.ask(conversation)
    with counting(kept.aws.dynamodb, "UpdateItem") as second:
        kept.ask(conversation)

    assert (len(first), len(second)) == (5, 1), "the head twice and three turns, then the head alone"
    ends = min(float(item[EXPIRES_AT]["N"]) for item in kept.items())
    assert ends >= kept.now + 90 * DAY_SECONDS - 1


def test_turns_last_as_long_as_their_conversation_after_the_setting_was_raised(kept: Kept) -> None:
    kept.days = 7
    conversation = uuid4()
    kept.ask(conversation, "One?")

    kept.days = 90
    kept.ask(conversation, "Two?")

    assert min(float(item[EXPIRES_AT]["N"]) for item in kept.items()) >= kept.now + 90 * DAY_SECONDS - 1


def test_a_question_in_an_expired_conversation_begins_it_again(kept: Kept) -> None:
    conversation = uuid4()
    kept.ask(conversation, "One?")
    kept.now += 91 * DAY_SECONDS

    assert kept.ask(conversation, "Two?").saved

    assert kept.questions(conversation) == ["Two?"]
    assert kept.titles() == ["Two?"]


def test_fewer_days_count_at_once(kept: Kept) -> None:
    conversation = uuid4()
    kept.ask(conversation)
    kept.now += 8 * DAY_SECONDS

    kept.days = 7

    assert kept.titles() == []
    with pytest.raises(ConversationNotFoundError):
        kept.service.get(ALICE, conversation)


def test_nothing_is_kept_or_shown_if_conversations_are_turned_off(kept: Kept) -> None:
    earlier = uuid4()
    kept.ask(earlier)
    link = kept.service.share(ALICE, earlier).link
    kept.days = 0

    refused = kept.ask(uuid4())

    assert (refused.saved, refused.reason) == (False, "This deployment keeps no conversations")
    assert (kept.titles(), kept.service.page(ALICE).enabled) == ([], False)
    assert len(kept.items()) == 2, "what was kept before expires"
    with pytest.raises(ConversationNotFoundError):
        kept.service.shared(ALICE, str(link))
    assert kept.service.delete_all(ALICE).deleted == 1, "people may delete theirs"


@pytest.mark.parametrize("caller", [OPERATOR, Caller("role:arn:aws:iam::123456789012:role/App"), Caller("key:app")])
def test_nothing_is_kept_of_callers_who_have_not_signed_in(kept: Kept, caller: Caller) -> None:
    conversation = uuid4()

    refused = kept.ask(conversation, caller=caller)

    assert (refused.saved, refused.reason) == (False, "Only the conversations of people who signed in are kept")
    assert kept.items() == []
    assert not kept.service.page(caller).enabled
    # Their deployment may have no right to write conversations.
    with failing(kept.aws.dynamodb, "PutItem", "UpdateItem", "DeleteItem"):
        for call in (kept.service.get, kept.service.share, kept.service.unshare, kept.service.delete):
            with pytest.raises(ConversationNotFoundError):
                call(caller, conversation)
        assert kept.service.delete_all(caller).deleted == 0


@pytest.mark.parametrize("operation", ["PutItem", "UpdateItem", "Query"])
def test_a_failed_save_is_not_reported_as_saved(kept: Kept, operation: str) -> None:
    conversation = uuid4()

    with failing(kept.aws.dynamodb, operation):
        refused = kept.ask(conversation)

    assert (refused.saved, refused.reason) == (False, "The registry could not be written: the turn is not kept")
    assert kept.titles() == []
    assert kept.ask(conversation).saved
    assert len(kept.questions(conversation)) == 1


def test_a_turn_is_kept_also_if_older_ones_cannot_be_removed(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "MAX_KEPT_TURNS", 1)
    conversation = uuid4()
    kept.ask(conversation, "One?")

    with failing(kept.aws.dynamodb, "DeleteItem"):
        assert kept.ask(conversation, "Two?").saved
    kept.ask(conversation, "Three?")

    assert kept.questions(conversation) == ["Three?"]


def test_an_answer_that_was_under_way_does_not_bring_a_deleted_conversation_back(kept: Kept) -> None:
    conversation = uuid4()
    kept.ask(conversation, "One?")
    kept.service.delete(ALICE, conversation)

    late = kept.ask(conversation, "Two?")

    assert (late.saved, late.reason) == (False, "The conversation was deleted: begin another one")
    assert kept.titles() == []
    [tombstone] = kept.items()
    assert tombstone.keys() == {PARTITION_KEY, "sk", "deleted", EXPIRES_AT}
    with pytest.raises(ConversationNotFoundError):
        kept.service.delete(ALICE, conversation)


def test_a_deletion_that_was_interrupted_can_be_sent_again(kept: Kept) -> None:
    conversation = uuid4()
    kept.ask(conversation, "One?")

    with failing(kept.aws.dynamodb, "BatchWriteItem"), pytest.raises(Exception, match="registry"):
        kept.service.delete(ALICE, conversation)
    assert kept.titles() == []
    kept.service.delete_all(ALICE)

    assert len(kept.items()) == 1, "the head without content"


def test_all_conversations_are_deleted_with_every_turn(kept: Kept) -> None:
    for _ in range(3):
        conversation = uuid4()
        for _ in range(30):
            kept.ask(conversation)

    assert kept.service.delete_all(ALICE).deleted == 3

    assert kept.titles() == []
    assert all("deleted" in item for item in kept.items())


def test_an_answer_that_does_not_fit_into_an_item_is_not_kept(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "MAX_TURN_BYTES", 1000)
    noise = "".join(chr(0x4E00 + (number * 7919) % 20_000) for number in range(2000))
    request = AskRequest(question="Why?", conversation=uuid4())

    refused = kept.service.keep(ALICE, request, answer("Why?", answer=noise), is_registered=True)

    assert (refused.saved, refused.reason) == (False, "The answer is too large to be kept")
    assert kept.items() == []


def test_a_long_conversation_is_given_in_pages_newest_first(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversations, "MAX_RESPONSE_CHARACTERS", 3500)
    conversation = uuid4()
    for number in range(5):
        kept.ask(conversation, f"Question {number}?")

    pages: list[list[str]] = []
    token = None
    for _ in range(5):
        page = kept.service.get(ALICE, conversation, token)
        pages.append([turn.question for turn in page.turns])
        if (token := page.next_token) is None:
            break

    assert len(pages) > 1
    assert [text for page in reversed(pages) for text in page] == [f"Question {number}?" for number in range(5)]
    with pytest.raises(InvalidRequestError):
        kept.service.get(ALICE, conversation, "x")


def test_documents_that_were_not_searchable_are_not_kept(kept: Kept) -> None:
    """They are no sources, so nobody would check whether a reader may still know of them."""
    conversation = uuid4()
    failed = MissingDocument("1", "contract.pdf", "contract.pdf", "FAILED", "it has a password")
    missing = Missing((MissingValue("customer", "Northwind"),), (failed,), "contract.pdf failed")
    request = AskRequest(question="Why?", conversation=conversation)

    kept.service.keep(ALICE, request, answer("Why?", missing=missing), is_registered=True)

    found = kept.service.get(ALICE, conversation)
    assert found.turns[0].response is not None
    assert "contract.pdf" not in found.model_dump_json()


def test_documents_outside_of_the_registry_have_the_label_of_their_passages(kept: Kept) -> None:
    policy = AccessPolicy(labels={"hr": {"allow": ["user:alice"]}})
    guarded = Conversations(kept.service.table, kept.service.registry, Guard(policy), kept.service.issuer)
    outside = SOURCE.model_copy(update={"source": "manual.pdf", "metadata": {"access": "hr"}})
    conversation = uuid4()
    request = AskRequest(question="Why?", conversation=conversation)

    guarded.keep(ALICE, request, answer("Why?", sources=[outside]), is_registered=False)
    link = str(guarded.share(ALICE, conversation).link)

    assert [turn.withheld for turn in guarded.get(ALICE, conversation).turns] == [None]
    bob = Caller("user:bob", frozenset({EVERYONE, "user:bob"}))
    assert [turn.withheld for turn in guarded.shared(bob, link).turns] == ["rights"]


def test_an_answer_without_conversations_says_so() -> None:
    conversation = uuid4()

    response = run(service(found(LEAVE), ExtractiveProvider()), question(conversation=conversation))

    assert response.answered
    assert response.conversation == KeptConversation(
        id=str(conversation),
        title="How long is parental leave?",
        saved=False,
        reason="This deployment keeps no conversations",
    )


def test_an_answer_does_not_wait_for_a_table_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ask, "KEEP_SECONDS", 0.01)
    answers = service(found(LEAVE), ExtractiveProvider())
    release = Event()
    answers._conversations = Slow(release)  # type: ignore[assignment]

    try:
        response = run(answers, question(conversation=uuid4()))
    finally:
        release.set()

    assert response.answered
    assert response.conversation is not None
    assert not response.conversation.saved


@dataclass
class Slow:
    release: Event

    def keep(self, *_: Any, **__: Any) -> None:
        self.release.wait(10)


def run(answers: Any, request: AskRequest) -> AskResponse:
    *_, last = asyncio.run(collected(answers, request))
    assert isinstance(last, AskResponse)
    return last
