"""Documents in the table: conditional writes, and counts that change with them."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.exceptions import ConnectionError as LostConnection

from ragstack_common.core.errors import RegistryError
from ragstack_common.registry.catalogue import Catalogue, counted_under
from ragstack_common.registry.documents import DocumentRegistry, RecordChange
from ragstack_common.registry.records import DocumentRecord, Observation, Status
from ragstack_common.registry.transactions import ACTIONS_PER_TRANSACTION
from tests.support.changed_client import changed_client
from tests.support.registry_table import TABLE

SLEPT: list[float] = []


@pytest.fixture
def registry(dynamodb: Any) -> DocumentRegistry:
    SLEPT.clear()
    return DocumentRegistry(TABLE, dynamodb, sleep=SLEPT.append)


def indexed(name: str, **attributes: Any) -> DocumentRecord:
    return DocumentRecord(
        f"s3://bucket/{name}",
        status=Status.INDEXED,
        observed=Observation('"e"', attributes=attributes),
        counted=counted_under(attributes),
    )


def created(*records: DocumentRecord) -> list[RecordChange]:
    return [RecordChange(DocumentRecord(record.uri), record) for record in records]


def counts(registry: DocumentRegistry) -> dict[tuple[str, Any], int]:
    return {(f.key, f.value): f.documents for f in Catalogue(registry.client, TABLE).facets()}


def only(registry: DocumentRegistry, record: DocumentRecord) -> DocumentRecord:
    return registry.read([record.uri])[record.uri]


def writing(dynamodb: Any, change: Callable[..., Any], **options: Any) -> DocumentRegistry:
    """Return a registry of which a test changes the transactions."""
    return DocumentRegistry(TABLE, changed_client(dynamodb, "transact_write_items", change), **options)


def reading(dynamodb: Any, change: Callable[..., Any], **options: Any) -> DocumentRegistry:
    """Return a registry of which a test changes the reads."""
    return DocumentRegistry(TABLE, changed_client(dynamodb, "batch_get_item", change), **options)


def test_an_unknown_document_has_revision_0(registry: DocumentRegistry) -> None:
    assert registry.read(["s3://bucket/a", "s3://bucket/b"]) == {
        uri: DocumentRecord(uri) for uri in ("s3://bucket/a", "s3://bucket/b")
    }
    assert registry.read([]) == {}
    assert registry.write([]) == set()


def test_a_write_increases_the_revision(registry: DocumentRegistry) -> None:
    record = indexed("a", corpus="stones")

    lost = registry.write(created(record))

    assert lost == set()
    assert only(registry, record) == replace(record, revision=1)
    assert counts(registry) == {("corpus", "stones"): 1}


def test_a_stale_write_is_refused(registry: DocumentRegistry) -> None:
    record = indexed("a", corpus="stones")
    registry.write(created(record))
    read = only(registry, record)
    registry.write([RecordChange(read, replace(read, reason="first"))])

    lost = registry.write([RecordChange(read, replace(indexed("a", corpus="woods"), reason="second"))])

    assert lost == {record.uri}
    assert (only(registry, record).reason, only(registry, record).revision) == ("first", 2)
    assert counts(registry) == {("corpus", "stones"): 1}


def test_only_conflicting_documents_of_a_batch_are_refused(registry: DocumentRegistry) -> None:
    records = [indexed(str(number), corpus="stones", number=number) for number in range(130)]
    registry.write(created(*records[::3]))

    lost = registry.write(created(*records))

    assert lost == {record.uri for record in records[::3]}
    assert registry.read(r.uri for r in records) == {r.uri: replace(r, revision=1) for r in records}
    assert counts(registry) == {("corpus", "stones"): 130} | {("number", number): 1 for number in range(130)}


def test_a_transaction_has_at_most_100_actions(dynamodb: Any) -> None:
    sizes = []

    def count(method: Any, **parameters: Any) -> Any:
        sizes.append(len(parameters["TransactItems"]))
        return method(**parameters)

    registry = writing(dynamodb, count)
    many = {f"key{number}": number for number in range(60)}
    other = {f"key{number}": -number for number in range(60)}
    registry.write(created(*[indexed(str(number), **many) for number in range(12)]))
    read = registry.read(f"s3://bucket/{number}" for number in range(12))
    registry.write([RecordChange(record, replace(record, counted=counted_under(other))) for record in read.values()])

    assert max(sizes) <= ACTIONS_PER_TRANSACTION == 100
    assert sum(counts(registry).values()) == 12 * len(counted_under(other)[1:])


def test_a_batch_is_divided_again_when_some_of_its_documents_conflict(registry: DocumentRegistry) -> None:
    """Without the losers more counts change than before: more than one transaction takes."""
    these, those = ({f"{side}{number}": number for number in range(39)} for side in "ab")
    records = [indexed(str(number), **(those if number % 2 else these)) for number in range(8)]
    registry.write(created(*records))
    read = registry.read(record.uri for record in records)
    swapped = [
        RecordChange(read[record.uri], replace(read[record.uri], counted=counted_under(these if number % 2 else those)))
        for number, record in enumerate(records)
    ]
    registry.write(
        [RecordChange(change.before, replace(change.before, reason="concurrent")) for change in swapped[1::2]]
    )

    lost = registry.write(swapped)

    assert lost == {record.uri for record in records[1::2]}
    assert {value for (key, _), value in counts(registry).items() if key.startswith("a")} == set()
    assert {value for (key, _), value in counts(registry).items() if key.startswith("b")} == {8}


@pytest.mark.parametrize("documents", [1, 3])
def test_a_write_whose_response_was_lost_counts_once(dynamodb: Any, documents: int) -> None:
    """What botocore does after a lost connection, on a table that has forgotten the request's token."""

    def twice(method: Any, **parameters: Any) -> Any:
        method(**parameters)
        return method(**parameters)

    registry = writing(dynamodb, twice)

    lost = registry.write(created(*[indexed(str(number), corpus="stones") for number in range(documents)]))

    assert lost == set()
    assert counts(registry) == {("corpus", "stones"): documents}


def test_a_change_after_a_lost_response_loses_no_write(dynamodb: Any) -> None:
    plain = DocumentRegistry(TABLE, dynamodb)
    times = []

    def twice_with_another_write_between(method: Any, **parameters: Any) -> Any:
        times.append(1)
        if len(times) > 1:
            return method(**parameters)
        method(**parameters)
        read = plain.read(["s3://bucket/1"])["s3://bucket/1"]
        assert plain.write([RecordChange(read, replace(read, reason="noted"))]) == set()
        return method(**parameters)

    registry = writing(dynamodb, twice_with_another_write_between)

    lost = registry.write(created(*[indexed(str(number), corpus="stones") for number in range(3)]))

    assert lost <= {"s3://bucket/1"}
    assert counts(registry) == {("corpus", "stones"): 3}


def cancelled(*codes: str) -> ClientError:
    reasons = [{"Code": code} for code in codes]
    response: Any = {
        "Error": {"Code": "TransactionCanceledException", "Message": "Transaction cancelled"},
        "CancellationReasons": reasons,
    }
    return ClientError(response, "TransactWriteItems")


def failing(*errors: Exception) -> Callable[..., Any]:
    left = list(errors)

    def step(method: Any, **parameters: Any) -> Any:
        if left:
            raise left.pop(0)
        return method(**parameters)

    return step


PASSING = [
    cancelled("None", "TransactionConflict"),
    cancelled("ThrottlingError", "None"),
    cancelled("ProvisionedThroughputExceeded", "TransactionConflict"),
    ClientError({"Error": {"Code": "TransactionInProgressException", "Message": "."}}, "TransactWriteItems"),
]


@pytest.mark.parametrize("error", PASSING, ids=["conflict", "throttled", "both", "in progress"])
def test_a_conflicting_transaction_is_retried(dynamodb: Any, error: Exception) -> None:
    slept: list[float] = []
    registry = writing(dynamodb, failing(error, error), sleep=slept.append)

    assert registry.write(created(indexed("a", corpus="stones"))) == set()

    assert len(slept) == 2
    assert all(0 < seconds <= 2 for seconds in slept)
    assert counts(registry) == {("corpus", "stones"): 1}


@pytest.mark.parametrize(
    "error",
    [
        cancelled("ItemCollectionSizeLimitExceeded", "TransactionConflict"),
        cancelled(),
        ClientError({"Error": {"Code": "AccessDeniedException", "Message": "No."}}, "TransactWriteItems"),
        LostConnection(error=OSError("gone")),
    ],
    ids=["size", "without reasons", "denied", "lost"],
)
def test_errors_other_than_conflicts_are_raised(dynamodb: Any, error: Exception) -> None:
    slept: list[float] = []
    registry = writing(dynamodb, failing(error), sleep=slept.append)

    with pytest.raises(type(error)):
        registry.write(created(indexed("a")))

    assert slept == []


def partial(answers: int) -> Callable[..., Any]:
    """Let the table answer for one key of each request, this many times."""
    left = [None] * answers

    def step(method: Any, **parameters: Any) -> Any:
        if not left:
            return method(**parameters)
        left.pop()
        [(table, asked)] = parameters["RequestItems"].items()
        answer = method(RequestItems={table: {**asked, "Keys": asked["Keys"][:1]}})
        return {**answer, "UnprocessedKeys": {table: {**asked, "Keys": asked["Keys"][1:]}}}

    return step


def test_unprocessed_keys_are_read_again(dynamodb: Any) -> None:
    records = [indexed(str(number)) for number in range(6)]
    DocumentRegistry(TABLE, dynamodb).write(created(*records))
    slept: list[float] = []
    registry = reading(dynamodb, partial(3), sleep=slept.append)

    read = registry.read(record.uri for record in records)

    assert [record.revision for record in read.values()] == [1] * 6
    assert len(slept) == 3


def test_a_partial_answer_is_an_error_and_not_an_unknown_document(dynamodb: Any) -> None:
    records = [indexed(str(number)) for number in range(60)]
    DocumentRegistry(TABLE, dynamodb).write(created(*records))
    registry = reading(dynamodb, partial(50), sleep=SLEPT.append)

    with pytest.raises(RegistryError, match="part of the items"):
        registry.read(record.uri for record in records)


@pytest.mark.parametrize(
    "record",
    [
        replace(indexed("a"), uri="s3://bucket/" + "k" * 1024),
        replace(indexed("a"), uri="s3://bucket/" + "日" * 341),
        indexed("a", corpus="日" * 1500),
        indexed("a", **{"k" * 2000: "v" * 150}),
        indexed("a", **{"k" * 900: "日" * 150}),
        indexed("a", **{"a\x1fb": "v"}),
        indexed("a", text="x" * 9000, **{f"key{number}": "v" * 100 for number in range(50)}),
        replace(indexed("a"), reason="r" * 20_000),
    ],
    ids=["uri", "uri in bytes", "corpus in bytes", "name", "value in bytes", "divider", "much", "reason"],
)
def test_extreme_names_and_attributes_are_written_and_counted(
    registry: DocumentRegistry, record: DocumentRecord
) -> None:
    registry.write(created(indexed("other", topic="t")))

    assert registry.write(created(record)) == set()

    read = only(registry, record)
    assert read == replace(record, revision=1)
    assert counts(registry)["topic", "t"] == 1
    assert Catalogue(registry.client, TABLE).documents() == 2
    assert registry.write([RecordChange(read, replace(read, status=Status.DELETED, counted=()))]) == set()
    assert counts(registry) == {("topic", "t"): 1}
