"""Documents over HTTP: in pages, one by one with the state of the bucket, and deleted."""

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests

from ragstack_common.registry.documents import DocumentRegistry, RecordChange
from ragstack_common.registry.records import DocumentRecord, Observation, Operation, OperationKind, Status
from ragstack_common.registry.table import document_id
from ragstack_common.services.bucket import attachment
from tests.ragstack_common.services.conftest import AT, Aws, Call, error_of
from tests.support.registry_table import TABLE

PATH = "/api/documents"
URI = "s3://documents/a.md"
ID = document_id(URI)
ATTRIBUTES: Mapping[str, Any] = {"corpus": "people", "year": 2026, "public": True, "tags": ["x"]}


def detail(call: Call, identifier: str = ID) -> Any:
    status, answer = call("GET", f"{PATH}/{identifier}")
    assert status == 200, answer
    return answer


def found(call: Call, **parameters: str) -> Any:
    status, answer = call("GET", PATH, **parameters)
    assert (status, answer["next_token"]) == (200, None)
    return answer["documents"]


def test_a_document_is_listed_with_all_its_members(aws: Aws, call: Call) -> None:
    seen = replace(aws.put("people/Über uns.md"), attributes=ATTRIBUTES, last_modified=AT - 60)
    aws.record("people/Über uns.md", Status.INDEXED, seen, attempts=2, finished_at=AT + 1.5)

    (document,) = found(call)

    uri = "s3://documents/people/Über uns.md"
    assert document == {
        "id": document_id(uri),
        "uri": uri,
        "key": "people/Über uns.md",
        "status": "INDEXED",
        "reason": None,
        "searchable": True,
        "size": 5,
        "etag": seen.etag,
        "version_id": seen.version_id,
        "corpus": "people",
        "attributes": ATTRIBUTES,
        "attempts": 2,
        "last_modified": "2026-02-02T02:39:00.000Z",
        "received_at": "2026-02-02T02:40:00.000Z",
        "updated_at": "2026-02-02T02:40:01.500Z",
        "finished_at": "2026-02-02T02:40:01.500Z",
    }


@pytest.mark.parametrize("status", sorted(set(Status) - {Status.UPLOADED}))
def test_documents_are_listed_by_status(aws: Aws, call: Call, status: Status) -> None:
    for each in set(Status) - {Status.UPLOADED}:
        aws.record(f"{each}.md", each, Observation(etag='"e"') if each is not Status.DELETED else None)

    (document,) = found(call, status=status)

    assert (document["key"], document["status"]) == (f"{status}.md", status)
    assert document["searchable"] is (status in ("INDEXED", "PARTIALLY_INDEXED"))
    assert (document["size"] is None) is (status == "DELETED")


def test_deleted_documents_are_listed_only_by_their_status(aws: Aws, call: Call) -> None:
    aws.record("a.md", Status.DELETED)
    aws.record("b.md", Status.FAILED, Observation(etag='"e"'), reason="It is empty")

    assert [(each["key"], each["reason"]) for each in found(call)] == [("b.md", "It is empty")]
    assert [each["key"] for each in found(call, status="DELETED")] == ["a.md"]


@pytest.mark.parametrize(
    ("parameters", "keys"),
    [
        ({"prefix": "people/"}, ["people/Leave.md", "people/pay.md"]),
        ({"prefix": "people/P"}, []),
        ({"name": "PAY"}, ["people/pay.md", "product/pay.md"]),
        ({"name": "documents"}, []),
        ({"prefix": "people/", "name": "pay", "status": "INDEXED"}, ["people/pay.md"]),
    ],
    ids=str,
)
def test_documents_are_listed_by_their_keys(aws: Aws, call: Call, parameters: dict[str, str], keys: list[str]) -> None:
    """The bucket is called documents, and its name counts for nothing."""
    for key in ("people/Leave.md", "people/pay.md", "product/pay.md"):
        aws.record(key, Status.INDEXED, Observation(etag='"e"'))

    assert [each["key"] for each in found(call, **parameters)] == keys


@pytest.mark.parametrize(
    ("parameters", "names"),
    [
        ({"status": "indexed"}, "status"),
        ({"status": "UPLOADED"}, "status"),
        ({"corpus": ""}, "corpus"),
        ({"corpus": "x" * 201}, "corpus"),
        ({"limit": "101"}, "limit"),
        ({"limit": "ten"}, "limit"),
        ({"next_token": ""}, "next_token"),
        ({"next_token": "bm9uc2Vuc2U"}, "next_token"),
        ({"key": ""}, "key"),
        ({"key": "a.md", "uri": URI}, "key and uri"),
        ({"key": "a.md", "status": "FAILED"}, "key and uri"),
        ({"key": "a.md", "prefix": "a"}, "key and uri"),
        ({"prefix": "x" * 201}, "prefix"),
        ({"name": ""}, "name"),
        ({"uri": "s3://elsewhere/a.md"}, "uri"),
        ({"uri": "s3://documents/"}, "uri"),
        ({"status": ["FAILED", "INDEXED"]}, "status"),
    ],
    ids=str,
)
def test_an_invalid_parameter_is_named(call: Call, parameters: dict[str, Any], names: str) -> None:
    answer = call("GET", PATH, **parameters)

    assert error_of(answer) == (400, "InvalidRequest")
    assert answer[1]["error"]["message"].startswith(names)


def test_a_document_has_its_history_and_waits_for_nothing(aws: Aws, call: Call) -> None:
    seen = aws.put("a.md")
    aws.record("a.md", Status.FAILED, seen, reason="FAILED: it is empty", knowledge_base_status="FAILED")

    answer = detail(call)

    assert answer["history"] == [
        {"at": "2026-02-02T02:40:00.000Z", "status": "WAITING", "reason": None},
        {"at": "2026-02-02T02:40:01.500Z", "status": "FAILED", "reason": None},
    ]
    assert (answer["status"], answer["reason"], answer["knowledge_base_status"]) == (
        "FAILED",
        "FAILED: it is empty",
        "FAILED",
    )
    assert (answer["created_at"], answer["again"], answer["waiting_for"]) == ("2026-02-02T02:40:00.000Z", False, None)


@pytest.mark.parametrize(
    ("status", "awaits"),
    [
        (Status.WAITING, "The ingestion function"),
        (Status.SUBMITTING, "The knowledge base accepts"),
        (Status.INDEXING, "The knowledge base indexes"),
        (Status.DELETING, "The knowledge base removes"),
    ],
)
def test_a_document_in_progress_names_what_it_waits_for(aws: Aws, call: Call, status: Status, awaits: str) -> None:
    operation = Operation("o", OperationKind.INGEST, time.time() + 60)
    before = aws.record("a.md", status, aws.put("a.md", "One."), operation=operation)

    quiet = detail(call)
    aws.put("a.md", "Two, and the event is not read yet.")
    changed = detail(call)

    assert quiet["waiting_for"].startswith(awaits)
    assert (quiet["again"], quiet["searchable"]) == (False, False)
    assert (changed["status"], changed["again"], changed["searchable"]) == (status, True, False)
    assert changed["waiting_for"].startswith(awaits)
    assert "changed in the bucket" in changed["waiting_for"]
    assert changed["version_id"] == before.observed.version_id


@pytest.mark.parametrize("status", [Status.SUBMITTING, Status.DELETING])
def test_a_document_whose_function_was_killed_says_so(aws: Aws, call: Call, status: Status) -> None:
    aws.record("a.md", status, aws.put("a.md"), operation=Operation("o", OperationKind.INGEST, AT))

    assert "stopped early" in detail(call)["waiting_for"]
    assert "`ragstack replay`" in detail(call)["waiting_for"]


@pytest.mark.parametrize("status", [Status.INDEXED, Status.PARTIALLY_INDEXED, Status.FAILED])
def test_a_new_upload_never_has_the_status_of_the_previous_version(aws: Aws, call: Call, status: Status) -> None:
    aws.record("a.md", status, replace(aws.put("a.md", "One."), attributes=ATTRIBUTES), finished_at=AT, attempts=3)
    newer = aws.put("a.md", "Two, as yet unread.")

    answer = detail(call)
    (listed,) = found(call, key="a.md")

    assert (answer["status"], answer["searchable"], answer["again"]) == ("UPLOADED", False, True)
    assert (answer["version_id"], answer["size"], answer["finished_at"]) == (newer.version_id, 19, None)
    assert answer["attempts"] == 0
    assert ("previous version" in answer["waiting_for"]) is (status is not Status.FAILED)
    assert listed == {name: value for name, value in answer.items() if name in listed}


def test_the_same_content_uploaded_again_is_a_new_version(aws: Aws, call: Call) -> None:
    aws.record("a.md", Status.INDEXED, aws.put("a.md"))
    aws.put("a.md")

    assert detail(call)["status"] == "UPLOADED"


def test_a_deleted_object_is_searchable_until_it_is_processed(aws: Aws, call: Call) -> None:
    aws.record("a.md", Status.INDEXED, aws.put("a.md"))
    aws.s3.delete_object(Bucket="documents", Key="a.md")

    answer = detail(call)

    assert (answer["status"], answer["searchable"], answer["again"]) == ("INDEXED", True, True)
    assert "gone from the bucket" in answer["waiting_for"]


def test_a_document_that_was_deleted_and_uploaded_again_is_uploaded(aws: Aws, call: Call) -> None:
    aws.record("a.md", Status.DELETED)
    gone = detail(call)
    aws.put("a.md")

    assert (gone["status"], gone["size"], gone["waiting_for"]) == ("DELETED", None, None)
    assert detail(call)["status"] == "UPLOADED"


def test_an_upload_is_found_by_name_before_its_event_is_read(aws: Aws, call: Call) -> None:
    seen = aws.put("Ordner/ä & b.md")

    (by_key,) = found(call, key="Ordner/ä & b.md")
    (by_uri,) = found(call, uri="s3://documents/Ordner/ä & b.md")

    assert by_key == by_uri
    assert (by_key["status"], by_key["searchable"], by_key["etag"]) == ("UPLOADED", False, seen.etag)
    assert (by_key["received_at"], by_key["updated_at"], by_key["attempts"]) == (None, None, 0)


@pytest.mark.parametrize("key", ["nothing.md", "a.md.metadata.json"])
def test_an_unknown_name_finds_nothing(aws: Aws, call: Call, key: str) -> None:
    aws.put("a.md.metadata.json", "{}")

    assert found(call, key=key) == []


@pytest.mark.parametrize("identifier", [ID, "nonsense", "0" * 32])
def test_an_unknown_id_says_that_it_may_be_known_soon(aws: Aws, call: Call, identifier: str) -> None:
    aws.put("a.md")

    answer = call("GET", f"{PATH}/{identifier}")

    assert error_of(answer) == (404, "DocumentNotFound")
    assert "its event is still on its way" in answer[1]["error"]["message"]


def test_a_document_from_a_former_bucket_is_not_found(aws: Aws, call: Call) -> None:
    other = DocumentRecord("s3://before/a.md", status=Status.INDEXED, observed=Observation(etag='"e"'))
    DocumentRegistry(TABLE, aws.dynamodb).write([RecordChange(DocumentRecord(other.uri), other)])

    for method in ("GET", "DELETE"):
        assert error_of(call(method, f"{PATH}/{other.id}")) == (404, "DocumentNotFound")


def test_a_deletion_removes_document_and_sidecar(aws: Aws, call: Call) -> None:
    aws.record("a.md", Status.INDEXED, aws.put("a.md"))
    aws.put("a.md.metadata.json", "{}")
    aws.put("a.md2.md")

    status, answer = call("DELETE", f"{PATH}/{ID}")

    assert (status, answer["status"], answer["searchable"]) == (202, "INDEXED", True)
    assert "gone from the bucket" in answer["waiting_for"]
    assert aws.keys() == ["a.md2.md"]
    assert aws.delete_markers() == 2


def test_a_second_deletion_is_accepted_until_the_first_has_ended(aws: Aws, call: Call) -> None:
    before = aws.record("a.md", Status.INDEXED, aws.put("a.md"))

    first, second = (call("DELETE", f"{PATH}/{ID}")[0] for _ in range(2))
    gone = replace(before, status=Status.DELETED, observed=Observation(), counted=())
    DocumentRegistry(TABLE, aws.dynamodb).write([RecordChange(replace(before, revision=1), gone)])
    third = call("DELETE", f"{PATH}/{ID}")

    assert (first, second) == (202, 202)
    assert error_of(third) == (404, "DocumentNotFound")
    assert aws.delete_markers() == 1


def test_a_document_that_was_uploaded_again_can_be_deleted_again(aws: Aws, call: Call) -> None:
    aws.record("a.md", Status.DELETED)
    aws.put("a.md")

    status, answer = call("DELETE", f"{PATH}/{ID}")

    assert (status, answer["status"], aws.keys()) == (202, "DELETED", [])


def test_the_next_deletion_removes_what_an_interrupted_one_left(aws: Aws, call: Call) -> None:
    aws.record("a.md", Status.INDEXED, aws.put("a.md"))
    aws.put("a.md.metadata.json", "{}")

    with aws.s3_out_of_reach("DeleteObject", after=1):
        broken = call("DELETE", f"{PATH}/{ID}")
    left = aws.keys()
    again = call("DELETE", f"{PATH}/{ID}")

    assert error_of(broken) == (502, "ServiceUnavailable")
    assert left == ["a.md.metadata.json"]
    assert (again[0], aws.keys()) == (202, [])


def test_a_file_is_downloaded_in_the_version_that_the_registry_knows(aws: Aws, call: Call) -> None:
    seen = aws.put("people/Über uns.md", "Old.")
    aws.record("people/Über uns.md", Status.INDEXED, seen)

    status, answer = call("GET", f"{PATH}/{document_id('s3://documents/people/Über uns.md')}/download")
    aws.put("people/Über uns.md", "New.")

    assert (status, answer["name"], answer["size"]) == (200, "Über uns.md", 4)
    signed = parse_qs(urlsplit(answer["url"]).query)
    assert signed["versionId"] == [seen.version_id]
    response = requests.get(answer["url"], timeout=5)
    assert response.text == "Old."
    assert response.headers["Content-Disposition"] == (
        "attachment; filename=\"_ber uns.md\"; filename*=UTF-8''%C3%9Cber%20uns.md"
    )


@pytest.mark.parametrize(
    ("key", "header"),
    [
        ("a/plan.pdf", "attachment; filename=\"plan.pdf\"; filename*=UTF-8''plan.pdf"),
        ('say "no".md', "attachment; filename=\"say _no_.md\"; filename*=UTF-8''say%20%22no%22.md"),
        ("100%\\;a=b.md", "attachment; filename=\"100__;a=b.md\"; filename*=UTF-8''100%25%5C%3Ba%3Db.md"),
        ("契約.pdf", "attachment; filename=\"__.pdf\"; filename*=UTF-8''%E5%A5%91%E7%B4%84.pdf"),
        ("dm\u202efdp.exe", "attachment; filename=\"dm_fdp.exe\"; filename*=UTF-8''dm_fdp.exe"),
    ],
)
def test_a_download_has_the_name_of_the_file_in_every_script(key: str, header: str) -> None:
    assert attachment(key) == header
