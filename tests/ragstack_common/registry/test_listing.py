"""Pages of documents: complete, in order, and with tokens that cannot be forged."""

import json
from base64 import urlsafe_b64encode
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ragstack_common.core.errors import InvalidRequestError
from ragstack_common.registry import documents as module
from ragstack_common.registry.documents import DocumentPage, DocumentRegistry, Listing, RecordChange
from ragstack_common.registry.records import DocumentRecord, Observation, Status, Transition
from ragstack_common.registry.table import uri_in_indexes
from tests.support.registry_table import TABLE, create_table

CORPORA = ("people", "product", "übrige")
TABLES = count()

documents = st.dictionaries(
    st.integers(0, 60).map(lambda number: f"s3://documents/Ordner {number:02}/ä&.md"),
    st.tuples(st.sampled_from(sorted(set(Status) - {Status.UPLOADED})), st.sampled_from([*CORPORA, None])),
    max_size=40,
)


def record(uri: str, status: Status = Status.INDEXED, corpus: str | None = None) -> DocumentRecord:
    attributes = {} if corpus is None else {"corpus": corpus}
    observed = Observation() if status is Status.DELETED else Observation(etag='"e"', size=7, attributes=attributes)
    return DocumentRecord(uri, status=status, observed=observed, history=(Transition(1.0, status),))


def write(client: Any, *records: DocumentRecord, table: str = TABLE) -> None:
    changes = [RecordChange(DocumentRecord(each.uri), each) for each in records]
    assert DocumentRegistry(table, client).write(changes) == set()


def uris(found: DocumentPage) -> list[str]:
    return [document.uri for document in found.documents]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example({"s3://documents/Ordner 12/ä&.md": (Status.INDEXED, None)}, None, None, None, "ORDNER 2", 1)
@given(
    of=documents,
    status=st.none() | st.sampled_from([Status.INDEXED, Status.FAILED, Status.DELETED]),
    corpus=st.none() | st.sampled_from(CORPORA),
    prefix=st.none() | st.sampled_from(["s3://documents/", "s3://documents/Ordner 1", "s3://documents/ordner"]),
    name=st.none() | st.sampled_from(["ORDNER 2", "3/Ä", "documents"]),
    limit=st.integers(1, 12),
)
def test_pages_hold_every_matching_document_once_and_in_order(
    dynamodb: Any,
    of: dict[str, tuple[Status, str | None]],
    status: Status | None,
    corpus: str | None,
    prefix: str | None,
    name: str | None,
    limit: int,
) -> None:
    table = f"registry-{next(TABLES)}"
    create_table(dynamodb, table)
    records = [record(uri, *rest) for uri, rest in of.items()]
    write(dynamodb, *records, table=table)
    reader = DocumentRegistry(table, dynamodb)

    pages = [reader.page(Listing(status, corpus, prefix, name), limit)]
    while pages[-1].next_token:
        pages.append(reader.page(Listing(status, corpus, prefix, name), limit, pages[-1].next_token))

    wanted = [
        each.uri
        for each in records
        if (each.status is not Status.DELETED if status is None else each.status is status)
        and (corpus is None or each.corpus == corpus)
        and each.uri.startswith(prefix or "")
        and all(word in each.uri.removeprefix("s3://documents/").lower() for word in (name or "").lower().split())
    ]
    assert [uri for page in pages for uri in uris(page)] == sorted(wanted, key=str.encode)
    assert all(len(page.documents) == limit for page in pages[:-1])


def test_a_page_ends_early_after_reading_very_many_items(dynamodb: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ITEMS_PER_PAGE", 8)
    monkeypatch.setattr(module, "ITEMS_PER_CALL", 4)
    write(dynamodb, *(record(f"s3://documents/{n:02}", Status.FAILED, "people" if n > 25 else None) for n in range(30)))
    reader = DocumentRegistry(TABLE, dynamodb)

    pages = [reader.page(Listing(Status.FAILED, "people"), 2)]
    while pages[-1].next_token:
        pages.append(reader.page(Listing(Status.FAILED, "people"), 2, pages[-1].next_token))

    assert uris(pages[0]) == []
    assert [uri for page in pages for uri in uris(page)] == [f"s3://documents/{n}" for n in range(26, 30)]


@pytest.mark.parametrize(
    "other",
    [
        Listing(),
        Listing(Status.FAILED, "people"),
        Listing(Status.INDEXED),
        Listing(corpus="people"),
        Listing(Status.INDEXED, "people", prefix="s3://documents/2"),
        Listing(Status.INDEXED, "people", name="2"),
    ],
)
def test_a_token_of_other_filters_is_refused(dynamodb: Any, other: Listing) -> None:
    write(dynamodb, *(record(f"s3://documents/{n}", corpus="people") for n in range(3)))
    reader = DocumentRegistry(TABLE, dynamodb)
    token = reader.page(Listing(Status.INDEXED, "people"), 1).next_token

    with pytest.raises(InvalidRequestError, match="next_token"):
        reader.page(other, 1, token)


@pytest.mark.parametrize(
    "token",
    [
        "",
        "a",
        "%%%",
        "ä",
        "AAAA",
        *(urlsafe_b64encode(text).decode() for text in (b"\xff" * 20, b'[null, null, "x", 7]')),
    ],
)
def test_a_forged_token_is_refused(dynamodb: Any, token: str) -> None:
    with pytest.raises(InvalidRequestError, match="next_token"):
        DocumentRegistry(TABLE, dynamodb).page(Listing(), token=token)


def test_a_token_from_outside_its_prefix_is_refused(dynamodb: Any) -> None:
    """DynamoDB rejects a start outside the range of keys."""
    listing = Listing(prefix="s3://documents/b")
    position = [{"status": None, "corpus": None, "prefix": listing.prefix, "name": None}, "id", "s3://documents/a"]
    token = urlsafe_b64encode(json.dumps(position).encode()).decode()

    with pytest.raises(InvalidRequestError, match="next_token"):
        DocumentRegistry(TABLE, dynamodb).page(listing, token=token)


def test_pages_continue_after_a_uri_that_is_too_long_for_a_key(dynamodb: Any) -> None:
    long = [f"s3://documents/{letter}{'é' * 510}" for letter in "abc"]
    assert all(uri_in_indexes(uri) != uri for uri in long)
    write(dynamodb, *map(record, long))
    reader = DocumentRegistry(TABLE, dynamodb)

    pages = [reader.page(Listing(), limit=1)]
    while pages[-1].next_token:
        pages.append(reader.page(Listing(), limit=1, token=pages[-1].next_token))

    assert [uri for page in pages for uri in uris(page)] == long
