"""Files that are put into the documents bucket, and those that are there already."""

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ragstack_common.ingestion.sidecars import with_attribute
from ragstack_local.connection.connection import Connection
from ragstack_local.connection.following import NO_SIDECAR, Uploaded
from ragstack_local.files.bucket import Bucket, NotUploaded, Result, Unchanged
from ragstack_local.files.documents import StackDocuments
from ragstack_local.files.uploads import LocalFile, select
from tests.ragstack_local import functions
from tests.ragstack_local.functions import keys
from tests.support.changed_client import changed_client

SIDECAR = ".metadata.json"


def meddled(connection: Connection, happens: Callable[[str], object]) -> Any:
    """Return a client; whenever it has put an object, something happens to the file."""

    def put(method: Any, **request: Any) -> Any:
        answer = method(**request)
        happens(request["Key"])
        return answer

    return changed_client(connection.client("s3"), "put_object", put)


def text_of(connection: Connection, key: str) -> str:
    return str(connection.client("s3").get_object(Bucket=connection.bucket, Key=key)["Body"].read().decode())


def versions(connection: Connection, key: str) -> int:
    found = connection.client("s3").list_object_versions(Bucket=connection.bucket, Prefix=key)
    return sum(version["Key"] == key for version in found.get("Versions", []))


def note(folder: Path, text: str = "Thirty days.", sidecar: dict[str, Any] | None = None) -> LocalFile:
    path = folder / "leave.md"
    path.write_text(text)
    sidecar_path = path.with_name(path.name + SIDECAR)
    if sidecar is not None:
        sidecar_path.write_text(json.dumps({"metadataAttributes": sidecar}))
    else:
        sidecar_path.unlink(missing_ok=True)
    return LocalFile(path, "handbook/leave.md")


def put(connection: Connection, file: LocalFile, **given: Any) -> Result:
    bucket = Bucket.for_stack(connection, given)
    return bucket.put(file, functions.record_of(connection, bucket.uri(file.key)))


def indexed(connection: Connection, file: LocalFile, **given: Any) -> Uploaded:
    result = put(connection, file, **given)
    assert isinstance(result, Uploaded)
    functions.index(connection, Bucket.for_stack(connection).uri(file.key))
    return result


def test_documents_with_unusual_names_are_uploaded(connection: Connection, folder: Path) -> None:
    (folder / "a b+c.md").write_text("Leave.")
    (folder / f"a b+c.md{SIDECAR}").write_text('{"metadataAttributes": {"topic": "leave"}}')
    (folder / "Zürich.md").write_text("Travel.")

    results = dict(Bucket.for_stack(connection).put_all(select([folder]).files, {}))

    assert keys(connection) == ["handbook/Zürich.md", "handbook/a b+c.md", f"handbook/a b+c.md{SIDECAR}"]
    assert {file.key for file in results} == {"handbook/Zürich.md", "handbook/a b+c.md"}
    assert all(isinstance(result, Uploaded) and result.version_id for result in results.values())


def test_the_bucket_describes_uploads_as_ingestion_reads_them(connection: Connection, folder: Path) -> None:
    file = note(folder, sidecar={"topic": "leave"})

    uploaded = indexed(connection, file, corpus="people")
    record = functions.record_of(connection, Bucket.for_stack(connection).uri(file.key))

    assert uploaded.is_ended_by(record)
    assert record.observed.sidecar_etag == uploaded.sidecar_etag
    assert record.observed.attributes == {"corpus": "people", "topic": "leave"}


def test_an_indexed_file_is_not_uploaded_again(connection: Connection, folder: Path) -> None:
    file = note(folder, sidecar={"topic": "leave"})
    indexed(connection, file, year=2026)

    assert isinstance(put(connection, file, year=2026), Unchanged)
    assert versions(connection, file.key) == 1


WRITTEN: dict[str, Callable[[Connection, str], object]] = {
    "it must be looked at again": functions.mark_again,
    "it is in motion": functions.submit,
    "it was forgotten": functions.forget,
}


def happen(what: str, connection: Connection, file: LocalFile, uri: str) -> None:
    s3, bucket = connection.client("s3"), connection.bucket
    match what:
        case "the file changed":
            note(file.path.parent, "Twenty days.", {"topic": "leave"})
        case "the sidecar changed":
            note(file.path.parent, sidecar={"topic": "other"})
        case "it was deleted from the bucket":
            s3.delete_object(Bucket=bucket, Key=file.key)
        case "it was replaced in the bucket":
            s3.put_object(Bucket=bucket, Key=file.key, Body=b"Somebody else's.")
        case "it was replaced by the same":
            s3.put_object(Bucket=bucket, Key=file.key, Body=b"Thirty days.")
        case "its sidecar was deleted from the bucket":
            s3.delete_object(Bucket=bucket, Key=file.key + SIDECAR)
        case _:
            WRITTEN[what](connection, uri)


@pytest.mark.parametrize(
    "what",
    [
        "the file changed",
        "the sidecar changed",
        "it must be looked at again",
        "it is in motion",
        "it was forgotten",
        "it was deleted from the bucket",
        "it was replaced in the bucket",
        "it was replaced by the same",
        "its sidecar was deleted from the bucket",
    ],
)
def test_a_file_that_registry_or_bucket_lacks_is_uploaded_again(
    connection: Connection, folder: Path, what: str
) -> None:
    file = note(folder, sidecar={"topic": "leave"})
    uri = Bucket.for_stack(connection).uri(file.key)
    first = indexed(connection, file)
    happen(what, connection, file, uri)

    again = put(connection, file)

    assert isinstance(again, Uploaded)
    assert again.version_id != first.version_id
    assert not again.is_ended_by(functions.record_of(connection, uri))
    assert keys(connection) == [file.key, file.key + SIDECAR]


def test_an_unchanged_sidecar_is_not_uploaded_with_its_document(connection: Connection, folder: Path) -> None:
    indexed(connection, note(folder, "Thirty days.", {"topic": "leave"}))
    file = note(folder, "Twenty days.", {"topic": "leave"})

    indexed(connection, file)

    assert versions(connection, file.key) == 2
    assert versions(connection, file.key + SIDECAR) == 1
    assert text_of(connection, file.key) == "Twenty days."


@pytest.mark.parametrize("had", [{"sidecar": {"topic": "leave"}}, {"corpus": "people", "version": "2"}], ids=str)
def test_omitted_attributes_are_removed_without_a_second_upload(
    connection: Connection, folder: Path, had: dict[str, Any]
) -> None:
    given = {name: value for name, value in had.items() if name != "sidecar"}
    first = indexed(connection, note(folder, sidecar=had.get("sidecar")), **given)
    file = note(folder)

    again = put(connection, file)

    assert isinstance(again, Uploaded)
    assert again.version_id == first.version_id
    assert not again.is_ended_by(functions.record_of(connection, Bucket.for_stack(connection).uri(file.key)))
    assert keys(connection) == [file.key]
    functions.index(connection, Bucket.for_stack(connection).uri(file.key))
    record = functions.record_of(connection, Bucket.for_stack(connection).uri(file.key))
    assert again.is_ended_by(record)
    assert record.observed.attributes == {}
    assert isinstance(put(connection, file), Unchanged)


@pytest.mark.parametrize("known", [True, False])
def test_a_changed_document_loses_attributes_that_only_the_bucket_has(
    connection: Connection, folder: Path, known: bool
) -> None:
    indexed(connection, note(folder, sidecar={"topic": "leave"}))
    file = note(folder, "Twenty days.")
    happened: list[str] = []
    s3 = connection.client("s3")
    for operation in ("PutObject", "DeleteObject"):
        s3.meta.events.register(
            f"provide-client-params.s3.{operation}",
            lambda params, operation=operation, **_: happened.append(f"{operation} {params['Key']}"),
        )

    record = functions.record_of(connection, Bucket.for_stack(connection).uri(file.key)) if known else None
    result = replace(Bucket.for_stack(connection), s3=s3).put(file, record)

    assert isinstance(result, Uploaded)
    assert result.sidecar_etag == NO_SIDECAR
    assert happened == [f"PutObject {file.key}", f"DeleteObject {file.key}{SIDECAR}"]


def test_a_sidecar_that_is_a_broken_link_removes_no_attributes(connection: Connection, folder: Path) -> None:
    file = note(folder, sidecar={"audience": "board"})
    indexed(connection, file)
    file.sidecar_path.unlink()
    file.sidecar_path.symlink_to("shared.json")

    result = put(connection, file)

    assert result == NotUploaded(f"{file.sidecar_path} is a link to a missing file")
    assert keys(connection) == [file.key, file.key + SIDECAR]


def test_a_vanished_file_does_not_stop_the_other_uploads(connection: Connection, folder: Path) -> None:
    for name in ("a.md", "b.md", "c.md"):
        (folder / name).write_text(name)
    files = select([folder]).files
    (folder / "b.md").unlink()

    results = dict(Bucket.for_stack(connection).put_all(files, {}))

    assert results[files[1]] == NotUploaded("The file vanished before it was uploaded")
    assert keys(connection) == ["handbook/a.md", "handbook/c.md"]


def test_a_file_that_changes_during_upload_ends_with_its_last_text(connection: Connection, folder: Path) -> None:
    file, texts = note(folder), ["Twenty-nine days.", "Twenty-eight days."]
    s3 = meddled(connection, lambda _: texts and file.path.write_text(texts.pop()))

    result = replace(Bucket.for_stack(connection), s3=s3).put(file)

    assert isinstance(result, Uploaded)
    now = Bucket.for_stack(connection).current(f"s3://{connection.bucket}/{file.key}")
    assert isinstance(now, Uploaded)
    assert result.version_id == now.version_id
    assert text_of(connection, file.key) == file.path.read_text() == "Twenty-nine days."


def test_a_file_that_never_stops_changing_is_reported(connection: Connection, folder: Path) -> None:
    file = note(folder)

    def grow(_: str) -> None:
        file.path.write_text(file.path.read_text() + "x")

    result = replace(Bucket.for_stack(connection), s3=meddled(connection, grow)).put(file)

    assert isinstance(result, NotUploaded)
    assert "It kept changing" in result.reason


def test_a_document_is_deleted_before_its_sidecar(connection: Connection, folder: Path) -> None:
    indexed(connection, note(folder, sidecar={"topic": "leave"}))
    deleted: list[str] = []
    s3 = connection.client("s3")
    s3.meta.events.register("provide-client-params.s3.DeleteObject", lambda params, **_: deleted.append(params["Key"]))

    replace(Bucket.for_stack(connection), s3=s3).remove("handbook/leave.md")

    assert deleted == ["handbook/leave.md", f"handbook/leave.md{SIDECAR}"]
    assert keys(connection) == []


def test_an_interrupted_upload_starts_no_further_files(connection: Connection, folder: Path) -> None:
    for number in range(200):
        (folder / f"{number:03}.md").write_text("x")
    begun: list[str] = []
    s3 = meddled(connection, begun.append)

    with closing(replace(Bucket.for_stack(connection), s3=s3).put_all(select([folder]).files, {})) as results:
        next(results)

    assert len(begun) < 100


@pytest.mark.parametrize("sidecar", [None, {"topic": "leave"}])
def test_the_label_of_the_stack_is_not_a_change(
    connection: Connection, folder: Path, sidecar: dict[str, Any] | None
) -> None:
    """Ingestion writes it into the sidecar of the bucket, which the file's own sidecar lacks."""
    file = note(folder, sidecar=sidecar)
    labelled = with_attribute(file.sidecar.read_bytes() if file.sidecar else None, "access", "people")
    indexed(connection, file)
    connection.client("s3").put_object(Bucket=connection.bucket, Key=f"{file.key}{SIDECAR}", Body=labelled)
    uri = Bucket.for_stack(connection).uri(file.key)
    functions.index(connection, uri)
    before = functions.record_of(connection, uri)
    functions.write(connection, before, replace(before, label="people"))

    again = put(connection, file)
    present = StackDocuments.for_stack(connection).present("handbook")
    changed = put(connection, note(folder, sidecar={"topic": "other"}))

    assert isinstance(again, Unchanged)
    assert StackDocuments.for_stack(connection).is_current(note(folder, sidecar=sidecar), present[file.key])
    assert isinstance(changed, Uploaded)


def test_a_folder_of_the_bucket_is_listed_in_each_form(connection: Connection) -> None:
    bucket = Bucket.for_stack(connection)
    names = ["Vertr\u00e4ge/a.md", "Vertra\u0308ge/b.md", "Vertrage/c.md", "Vertr/d.md"]
    for key in names:
        bucket.s3.put_object(Bucket=bucket.name, Key=key, Body=b"x")

    for prefix in ("Vertr\u00e4ge/", "Vertra\u0308ge/"):
        assert {*bucket.entity_tags_of_name(prefix)} == {*names[:2]}
    assert {*bucket.entity_tags_of_name("")} == {*names}
    assert {*bucket.entity_tags_of_name("\u00e4")} == set()
