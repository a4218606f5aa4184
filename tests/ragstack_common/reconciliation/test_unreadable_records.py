"""Everybody who meets a record that cannot be read says which it is and what to do, and goes on with the others."""

import json
import logging
from typing import Any

import pytest

from ragstack_common.api.documents import Documents, DocumentsBucket
from ragstack_common.errors import RegistryError
from ragstack_common.ingestion.follow import FollowingService
from ragstack_common.ingestion.messages import QueueMessage, look
from ragstack_common.ingestion.submit import IngestionService
from ragstack_common.registry.listing import Listing
from ragstack_common.registry.records import DocumentRecord, Operation, OperationKind, Status
from ragstack_common.registry.table import document_id
from tests.ragstack_common.reconciliation.stack import LONG, Stack


@pytest.fixture
def broken(stack: Stack) -> Stack:
    """Two documents, of which one has a record that cannot be read."""
    stack.indexed("good.txt", "broken.txt")
    edit(stack, "broken.txt", {"attempts": {"S": "many"}})
    return stack


def edit(stack: Stack, key: str, changes: dict[str, Any]) -> None:
    (item,) = stack.registry.items([document_id(stack.uri(key))]).values()
    stack.aws.dynamodb.put_item(TableName=stack.bucket, Item={**item, **changes})


def names_it_and_what_to_do(stack: Stack, text: str) -> bool:
    return stack.uri("broken.txt") in text and "`ragstack reconcile`" in text and "attempts" in text


def test_the_ingestion_function_goes_on_with_the_others_of_a_message(
    broken: Stack, caplog: pytest.LogCaptureFixture
) -> None:
    broken.put("good.txt", "Another text.")
    message = QueueMessage("both", look([broken.uri("broken.txt"), broken.uri("good.txt")]), 1)
    alone = QueueMessage("alone", look([broken.uri("broken.txt")]), 1)

    with caplog.at_level(logging.WARNING, "ragstack"):
        again = IngestionService(broken.services()).process([message, alone], LONG)

    assert again == ["alone"], "the other is done but for the one"
    assert broken.record("good.txt").status is Status.INDEXING
    assert names_it_and_what_to_do(broken, caplog.text)
    assert broken.looks() == ["broken.txt"]


def test_the_ingestion_function_puts_its_message_aside_in_the_end_with_the_cause(broken: Stack) -> None:
    message = QueueMessage("m", look([broken.uri("broken.txt")]), 20)

    assert IngestionService(broken.services()).process([message], LONG) == []

    (letter,) = broken.letters("dead")
    assert letter["Body"] == message.body
    assert names_it_and_what_to_do(broken, letter["MessageAttributes"]["Cause"]["StringValue"])


def test_the_status_function_goes_on_with_the_others_of_a_message_and_puts_it_aside(broken: Stack) -> None:
    broken.put("good.txt", "Another text.")
    broken.look("good.txt")
    assert IngestionService(broken.services()).process(broken.take("ingestion"), LONG) == []
    (message,) = broken.take("status")
    ((uri, operation),) = json.loads(message.body)["follow"]
    both = json.dumps({"follow": [[broken.uri("broken.txt"), "x"], [uri, operation]], "checks": 0})

    broken.source.settled(broken.identifier("good.txt"))
    assert FollowingService(broken.services()).process([QueueMessage("m", both, 1)]) == []

    assert broken.record("good.txt").status is Status.INDEXED
    (letter,) = broken.letters("dead")
    assert json.loads(letter["Body"]) == {"look": [broken.uri("broken.txt")], "forced": False}
    assert names_it_and_what_to_do(broken, letter["MessageAttributes"]["Cause"]["StringValue"])
    assert broken.take("status") == []


def test_whoever_asks_for_the_document_is_told(broken: Stack) -> None:
    listing = Listing(broken.aws.dynamodb, broken.bucket)
    documents = Documents(broken.registry, listing, DocumentsBucket(broken.bucket, broken.aws.s3))
    identifier = document_id(broken.uri("broken.txt"))

    for ask in (
        lambda: documents.detail(identifier),
        lambda: documents.delete(identifier),
        lambda: documents.named(key="broken.txt"),
        lambda: listing.find(identifier),
        lambda: broken.registry.read([broken.uri("good.txt"), broken.uri("broken.txt")]),
    ):
        with pytest.raises(RegistryError) as raised:
            ask()
        assert names_it_and_what_to_do(broken, str(raised.value))
    assert broken.aws.s3.head_object(Bucket=broken.bucket, Key="broken.txt"), "nothing was deleted"


def test_a_list_has_the_others_of_its_page(broken: Stack, caplog: pytest.LogCaptureFixture) -> None:
    listing = Listing(broken.aws.dynamodb, broken.bucket)
    documents = Documents(broken.registry, listing, DocumentsBucket(broken.bucket, broken.aws.s3))

    with caplog.at_level(logging.ERROR, "ragstack"):
        page = listing.page(limit=1)

    assert [document.uri for document in page.documents] == [broken.uri("good.txt")]
    assert page.next_token is None
    (told,) = page.unreadable
    assert names_it_and_what_to_do(broken, told)
    assert told in caplog.text
    answer = documents.page()
    assert [each.uri for each in answer.documents] == [broken.uri("good.txt")]
    assert answer.unreadable == [told]


def test_a_synchronisation_waits_for_no_record_that_cannot_be_read(stack: Stack) -> None:
    stack.indexed("broken.txt")
    stack.claim(
        "broken.txt", status=Status.INDEXING, operation=Operation("x", OperationKind.INGEST, 0.0, stack.clock())
    )
    edit(stack, "broken.txt", {"revision": {"S": "many"}})

    job = stack.reconcile("full")

    assert job.status == "COMPLETE"
    assert job.report["records"]["made_anew"]["count"] == 1


def test_what_nobody_asked_for_is_in_nobodys_way(broken: Stack) -> None:
    found = broken.registry.read_each([broken.uri("good.txt"), broken.uri("broken.txt"), broken.uri("new.txt")])

    assert isinstance(found[broken.uri("broken.txt")], RegistryError)
    assert isinstance(found[broken.uri("good.txt")], DocumentRecord)
    assert found[broken.uri("new.txt")] == DocumentRecord(broken.uri("new.txt"))
