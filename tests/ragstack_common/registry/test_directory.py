"""The directory of documents: found word by word, and the same as the registry after any change."""

import gzip
import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import boto3
import pytest

from ragstack_common.registry import directory
from ragstack_common.registry.catalogue import counted_under
from ragstack_common.registry.directory import Directory, DirectoryWriter, ScannedLines
from ragstack_common.registry.documents import DocumentRegistry, RecordChange
from ragstack_common.registry.entries import Entries
from ragstack_common.registry.records import DocumentRecord, Observation, Status
from ragstack_common.registry.table import ENTRIES
from ragstack_common.settings.names import DIRECTORY_KEY
from ragstack_common.text.names import words_to_find
from tests.support.registry_table import TABLE

BUCKET = "snapshot"


class Deployment:
    """A registry, and the job that moves its changes into the object."""

    def __init__(self, dynamodb: Any) -> None:
        self.dynamodb = dynamodb
        self.s3: Any = boto3.client("s3", region_name="us-east-1")
        self.s3.create_bucket(Bucket=BUCKET)
        self.registry = DocumentRegistry(TABLE, dynamodb)
        self.writer = DirectoryWriter(
            dynamodb, TABLE, self.s3, BUCKET, self.registry.scan, self.registry.read, ("access",)
        )
        self.reader = Directory(dynamodb, TABLE, self.s3, BUCKET)

    def put(
        self, key: str, status: Status = Status.INDEXED, label: str | None = None, **attributes: Any
    ) -> DocumentRecord:
        uri = f"s3://documents/{key}"
        before = self.registry.read([uri])[uri]
        is_gone = status is Status.DELETED
        after = DocumentRecord(
            uri,
            status=status,
            label=label,
            observed=Observation() if is_gone else Observation('"e"', attributes=attributes),
            counted=counted_under(attributes) if status is Status.INDEXED else (),
        )
        assert self.registry.write([RecordChange(before, after)]) == set()
        return after

    def entries(self) -> Entries:
        found = self.reader.read()
        assert found is not None
        return found

    def keys(self, query: str, labels: Iterable[str] | None = None) -> list[str]:
        seen = None if labels is None else frozenset(labels)
        found = self.entries().named(words_to_find(query), seen, 100)
        return [entry.uri.removeprefix("s3://documents/") for entry in found]

    def scanned(self) -> ScannedLines:
        found = ScannedLines()
        for page in self.registry.scan():
            found.add(page)
        return found

    def changes(self) -> int:
        answer = self.dynamodb.query(
            TableName=TABLE, KeyConditionExpression="pk = :p", ExpressionAttributeValues={":p": {"S": ENTRIES}}
        )
        return sum("entry" in item or "revision" in item for item in answer["Items"])


@pytest.fixture
def deployment(dynamodb: Any) -> Deployment:
    return Deployment(dynamodb)


@pytest.mark.parametrize(
    ("key", "attributes", "queries"),
    [
        (
            "legal/contract-northwind-2024.pdf",
            {"customer": "Tailspin Toys", "level": 3},
            [
                *("northwind 2024", "2024 northwind", "northwind-2024", "contract-northwind-2024.pdf", "NORTHWIND"),
                *("north", "legal 2024", "legal/contract", "tailspin", "toys contr", "level 3", "customer tailspin"),
            ],
        ),
        ("people/Zürich office.md", {}, ["zurich", "zürich", "Zu\u0308rich", "zuerich", "ZÜR off"]),
        ("people/Zu\u0308rich.md", {}, ["zürich", "zurich", "zuerich"]),
        ("Straße.md", {}, ["strasse", "STRASSE", "straße"]),
        ("東京支店契約書.pdf", {"種類": "契約"}, ["契約書", "東京 契約", "契約 種類"]),
        ("договор-2024.pdf", {}, ["Договор", "2024 дого"]),
        ("عقد-٢٠٢٤.pdf", {}, ["عقد", "2024", "٢٠٢٤"]),
        ("हिन्दी रिपोर्ट.pdf", {}, ["रिपोर्ट", "हिन्दी"]),
        ("สัญญาเช่า.pdf", {}, ["เช่า", "สัญญา"]),
        ("계약서-서울.pdf", {}, ["계약", "서울 계약서"]),
        ("ReleaseNotesV2.docx", {}, ["release notes", "v2", "notes 2", "releasenotesv2", "notes v2"]),
        ("rates_v2/plan (draft).md", {}, ["rates v2", "draft plan", "rates2 plan", "v2"]),
    ],
)
def test_a_document_is_found_by_the_words_of_its_names(
    deployment: Deployment, key: str, attributes: Mapping[str, Any], queries: list[str]
) -> None:
    deployment.put(key, Status.INDEXED, None, **attributes)
    deployment.put("other/file.txt", note="nothing of it")
    deployment.writer.write()

    assert {query: deployment.keys(query) for query in queries} == {query: [key] for query in queries}
    assert deployment.keys("nowhere") == []


def test_words_that_are_not_all_there_find_nothing(deployment: Deployment) -> None:
    deployment.put("legal/contract-northwind-2024.pdf")
    deployment.writer.write()

    assert [deployment.keys(query) for query in ("northwind 2025", "orthwind", "s3", "+", "2024 2023")] == [[]] * 5


def test_whole_words_of_the_name_come_first(deployment: Deployment) -> None:
    for key, attributes in (
        ("a/northwinds.md", {}),
        ("northwind/a.md", {}),
        ("z/northwind.md", {}),
        ("a/b.md", {"customer": "Northwind"}),
    ):
        deployment.put(key, Status.INDEXED, None, **attributes)
    deployment.writer.write()

    assert deployment.keys("northwind") == ["z/northwind.md", "a/b.md", "northwind/a.md", "a/northwinds.md"]


def test_without_an_object_nothing_is_known(deployment: Deployment) -> None:
    deployment.put("a.md")

    assert deployment.reader.read() is None


def test_a_change_counts_at_once_and_moves_into_the_object(deployment: Deployment) -> None:
    deployment.put("a.md", city="Bern")
    deployment.writer.write()
    deployment.put("a.md", city="Basel")
    deployment.put("new.md", Status.FAILED)

    assert (deployment.keys("bern"), deployment.keys("basel"), deployment.keys("new")) == ([], ["a.md"], ["new.md"])
    assert deployment.changes() == 2

    deployment.writer.write()

    assert deployment.changes() == 0
    assert (deployment.keys("bern"), deployment.keys("basel"), deployment.keys("new")) == ([], ["a.md"], ["new.md"])

    deployment.put("a.md", Status.DELETED)
    assert deployment.keys("a") == []
    deployment.writer.write()
    assert deployment.keys("a") == []


def test_a_new_status_alone_writes_no_line(deployment: Deployment) -> None:
    deployment.put("a.md", Status.WAITING, city="Bern", year=2024.0, price=0.5, note="ü")
    deployment.writer.write()

    deployment.put("a.md", Status.INDEXING, city="Bern", year=2024.0, price=0.5, note="ü")
    deployment.put("a.md", Status.INDEXED, city="Bern", year=2024.0, price=0.5, note="ü")

    assert deployment.changes() == 0


def test_a_line_that_changes_during_the_move_stays(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    deployment.put("a.md", city="Bern")
    deployment.writer.write()
    deployment.put("a.md", city="Basel")
    put, name = deployment.s3.put_object, "put_object"

    def change_then_put(**parameters: Any) -> Any:
        deployment.put("a.md", city="Chur")
        return put(**parameters)

    monkeypatch.setattr(deployment.s3, name, change_then_put)
    deployment.writer.write()
    monkeypatch.undo()

    assert deployment.changes() == 1
    assert deployment.keys("chur") == ["a.md"]
    assert deployment.keys("basel") == []


def test_a_writer_that_ends_before_it_names_the_object_loses_nothing(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment.put("a.md", city="Bern")
    deployment.writer.write()
    deployment.put("b.md", city="Bern")
    monkeypatch.setattr(DirectoryWriter, "_mark", lambda *_: True)
    deployment.writer.write()
    monkeypatch.undo()

    assert deployment.keys("bern") == ["a.md", "b.md"]
    deployment.writer.write()
    assert deployment.keys("bern") == ["a.md", "b.md"]
    assert deployment.changes() == 0


def test_of_two_writers_at_the_same_time_the_newer_object_is_named(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A snapshot and a reconciliation may run at once; readers must not believe that they have the newer object."""
    deployment.put("a.md", city="Bern")
    deployment.writer.write()
    deployment.put("b.md", city="Bern")
    mark, marks = DirectoryWriter._mark, 0

    def interrupted(self: DirectoryWriter, etag: str, changes: Any) -> bool:
        nonlocal marks
        marks += 1
        if marks == 1:
            deployment.entries()  # keeps the older object
            deployment.put("c.md", city="Bern")
            deployment.writer.write()
        return mark(self, etag, changes)

    monkeypatch.setattr(DirectoryWriter, "_mark", interrupted)
    deployment.writer.write()
    monkeypatch.undo()

    assert deployment.keys("bern") == ["a.md", "b.md", "c.md"]
    marker = deployment.dynamodb.get_item(TableName=TABLE, Key={"pk": {"S": ENTRIES}, "sk": {"S": "~object"}})
    assert marker["Item"]["etag"]["S"] == deployment.s3.head_object(Bucket=BUCKET, Key=DIRECTORY_KEY)["ETag"]


def test_an_object_that_was_not_named_is_read_once(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    deployment.put("a.md", city="Bern")
    deployment.writer.write()
    deployment.put("b.md", city="Bern")
    monkeypatch.setattr(DirectoryWriter, "_mark", lambda *_: True)
    deployment.writer.write()
    monkeypatch.undo()
    unpack, unpacked = directory._unpacked, []

    def counted(etag: str | None, body: bytes) -> Any:
        unpacked.append(body)
        return unpack(etag, body)

    monkeypatch.setattr(directory, "_unpacked", counted)

    for _ in range(3):
        assert deployment.keys("bern") == ["a.md", "b.md"]

    assert len(unpacked) == 1


@pytest.mark.parametrize(
    "spoil", [lambda body: body[:-9], lambda _: b"", lambda _: b"{}", lambda _: gzip.compress(b"{}")]
)
@pytest.mark.parametrize("job", ["snapshot", "reconciliation"])
def test_a_damaged_object_counts_as_absent_until_the_next_job_writes_it(
    deployment: Deployment, spoil: Callable[[bytes], bytes], job: str
) -> None:
    deployment.put("a.md", city="Bern")
    deployment.writer.write()
    body = deployment.s3.get_object(Bucket=BUCKET, Key=DIRECTORY_KEY)["Body"].read()
    deployment.s3.put_object(Bucket=BUCKET, Key=DIRECTORY_KEY, Body=spoil(body))

    assert deployment.reader.read() is None

    if job == "snapshot":
        deployment.writer.write()
    else:
        deployment.writer.rebuild(deployment.scanned())

    assert deployment.keys("bern") == ["a.md"]


def test_an_object_that_is_gone_is_written_by_the_next_job(deployment: Deployment) -> None:
    deployment.put("a.md", city="Bern")
    deployment.writer.write()
    deployment.s3.delete_object(Bucket=BUCKET, Key=DIRECTORY_KEY)

    assert deployment.reader.read() is None

    deployment.writer.write()
    assert deployment.keys("bern") == ["a.md"]


def test_callers_find_only_documents_of_their_labels_and_attachments_of_their_mails(deployment: Deployment) -> None:
    deployment.put("mail.eml", label="hr")
    deployment.put("mail.eml.ragstack/offer.pdf", label="open")
    deployment.put("offer.md", label="open")
    deployment.put("offer-hr.md", label="hr")
    deployment.put("offer-none.md")
    deployment.writer.write()

    assert deployment.keys("offer", ["open"]) == ["offer.md"]
    assert sorted(deployment.keys("offer", ["open", "hr"])) == [
        "mail.eml.ragstack/offer.pdf",
        "offer-hr.md",
        "offer.md",
    ]
    assert len(deployment.keys("offer")) == 4


def test_documents_with_all_of_some_values_are_found_whatever_their_status(deployment: Deployment) -> None:
    deployment.put("a.pdf", Status.FAILED, customer="Northwind", year=2024, tags=["x", "y"])
    deployment.put("b.pdf", customer="Northwind", year=2025)
    deployment.put("c.pdf", customer="Dingo", year=2024, note='["customer","Northwind"]')
    deployment.writer.write()

    def found(*groups: Any) -> list[str]:
        return sorted(entry.uri[-5:] for entry in deployment.entries().having(groups, None))

    assert found([("customer", "Northwind")], [("year", 2024)]) == ["a.pdf"]
    assert found([("customer", "Northwind")]) == ["a.pdf", "b.pdf"]
    assert found([("year", 2024), ("year", "2024")], [("customer", "Dingo"), ("customer", "Northwind")]) == [
        "a.pdf",
        "c.pdf",
    ]
    assert found([("tags", "y")]) == ["a.pdf"]
    assert found([("year", "2024")]) == []


def test_whole_numbers_are_the_same_with_a_decimal_point(deployment: Deployment) -> None:
    """Tables with empty cells are often exported with them."""
    deployment.put("a.pdf", Status.FAILED, year=2024, price=0.5)
    deployment.writer.write()
    deployment.put("b.pdf", year=2024.0, note="2024.0")

    for _ in ("in the table", "in the object"):
        found = deployment.entries().having([[("year", 2024)]], None)
        assert sorted(entry.uri[-5:] for entry in found) == ["a.pdf", "b.pdf"]
        deployment.writer.write()
    assert deployment.entries().values.seen_with(None) == {"year": {2024: 2}, "price": {0.5: 1}, "note": {"2024.0": 1}}


def test_a_document_is_found_by_each_of_many_values(deployment: Deployment) -> None:
    """The catalogue counts only as many as a transaction has room for."""
    lists = {f"list{number}": [f"member {number} {member}" for member in range(10)] for number in range(5)}
    deployment.put("a.pdf", Status.INDEXED, None, **lists, year=2024)
    deployment.writer.write()

    assert [entry.uri[-5:] for entry in deployment.entries().having([[("year", 2024)]], None)] == ["a.pdf"]


def test_a_document_that_is_indexed_again_has_its_old_values_too(deployment: Deployment) -> None:
    """Searches find the version before until the new one is indexed."""
    deployment.put("a.pdf", customer="Northwind")
    uri = "s3://documents/a.pdf"
    before = deployment.registry.read([uri])[uri]
    after = DocumentRecord(
        uri,
        status=Status.INDEXING,
        observed=Observation('"f"', attributes={"customer": "Dingo"}),
        counted=before.counted,
    )
    deployment.registry.write([RecordChange(before, after)])
    deployment.writer.write()

    (entry,) = deployment.entries().named(words_to_find("a"), None, 9)
    assert entry.values == (("customer", "Dingo"), ("customer", "Northwind"))


def test_values_are_counted_by_label_without_labels_themselves_and_attachments(deployment: Deployment) -> None:
    deployment.put("a.pdf", Status.FAILED, "hr", customer="Northwind", access="hr", secret=True)
    deployment.put("b.pdf", Status.INDEXED, "open", customer="Northwind", year=2024)
    deployment.put("m.eml.ragstack/c.pdf", Status.INDEXED, "open", customer="Dingo")
    deployment.writer.write()

    values = deployment.entries().values
    assert values.seen_with(None) == {"customer": {"Northwind": 2}, "year": {2024: 1}, "secret": {}}
    assert values.seen_with(["open"]) == {"customer": {"Northwind": 1}, "year": {2024: 1}}
    assert values.seen_with([]) == {}


def test_a_reconciliation_corrects_lines_and_removes_those_of_no_document(deployment: Deployment) -> None:
    deployment.put("a.md", city="Bern")
    deployment.put("gone.md")
    deployment.writer.write()
    for each in ("gone.md",):
        record = deployment.registry.read([f"s3://documents/{each}"])[f"s3://documents/{each}"]
        deployment.dynamodb.delete_item(
            TableName=TABLE, Key={"pk": {"S": f"DOCUMENT#{record.id}"}, "sk": {"S": "DOCUMENT"}}
        )
    body = deployment.s3.get_object(Bucket=BUCKET, Key=DIRECTORY_KEY)["Body"].read()
    spoiled = gzip.compress(gzip.decompress(body).replace(b"bern", b"rome"))
    deployment.s3.put_object(Bucket=BUCKET, Key=DIRECTORY_KEY, Body=spoiled)
    scanned = deployment.scanned()
    deployment.put("new.md")
    deployment.writer.write()  # between the reading and the comparison

    deployment.writer.rebuild(scanned)

    assert (deployment.keys("bern"), deployment.keys("rome")) == (["a.md"], [])
    assert (deployment.keys("gone"), deployment.keys("new")) == ([], ["new.md"])


def test_with_too_many_documents_there_is_no_object(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory, "MAX_DOCUMENTS", 1)
    deployment.put("a.md")
    deployment.put("b.md")

    assert "more than 1 documents" in deployment.writer.write()["reason"]
    assert deployment.reader.read() is None

    deployment.put("b.md", Status.DELETED)
    assert "more than 1 documents" in deployment.writer.write()["reason"]
    scanned = deployment.scanned()
    deployment.writer.rebuild(scanned)
    assert deployment.keys("a") == ["a.md"]


@pytest.mark.parametrize("seed", range(3))
def test_after_any_changes_every_document_is_found_and_no_other(deployment: Deployment, seed: int) -> None:
    chance = random.Random(seed)
    names = [f"{folder}/{name}-{number}.md" for folder in "ab" for name in ("red", "blue") for number in range(4)]
    deployment.writer.write()
    for _ in range(60):
        deployment.put(
            chance.choice(names),
            chance.choice([*Status][1:]),
            chance.choice(["hr", "open", None]),
            city=chance.choice(["Bern", "Basel"]),
        )
        if chance.random() < 0.2:
            deployment.writer.write()
    expected = {
        label: {
            record.uri
            for page in deployment.registry.scan()
            for record in page
            if record.status is not Status.DELETED and label in (None, record.label)
        }
        for label in (None, "hr", "open")
    }

    for label, uris in expected.items():
        found = deployment.entries().named(words_to_find("md"), None if label is None else [label], 100)
        assert {entry.uri for entry in found} == uris
        assert len(found) == len(uris)
