"""Uploads, followed until it is known what became of them."""

import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from boto3.exceptions import S3UploadFailedError
from botocore.exceptions import ClientError, EndpointConnectionError

from ragstack_common.documents import DocumentStatus, s3_document
from ragstack_common.ingestion import ingest_documents_with_retry
from ragstack_local.connection import Connection
from ragstack_local.ingest import ingest
from ragstack_local.stack.errors import StackError
from ragstack_local.uploads import LocalFile, Uploaded, follow, list_documents, queue_depth, select, upload
from tests.cli.support import stack_at


def nothing(*_: object) -> None:
    pass


def put_in(connection: Connection, *uris: str) -> None:
    """Do what the ingestion function does."""
    documents = [s3_document(uri, connection.data_source_id) for uri in uris]
    ingest_documents_with_retry(
        connection.knowledge_base_id,
        connection.data_source_id,
        documents,
        client=connection.client("bedrock-agent"),
    )


def uploaded(connection: Connection, path: Path) -> Uploaded:
    (document,) = upload(connection, [LocalFile(path, path.name)], nothing)
    return document


def keep_listing(connection: Connection) -> None:
    """List until it fails: data sources are deleted in the background."""
    for _ in range(100):
        list(list_documents(connection))
        time.sleep(0.05)


def test_a_key_that_bedrock_would_refuse_is_named_before_anything_is_uploaded(
    connection: Connection, folder: Path
) -> None:
    (folder / "a.md").write_text("Leave.")
    (folder / f"{'x' * 150}.md").write_text("Travel.")

    with pytest.raises(StackError, match="Bedrock takes 133: shorten the path"):
        upload(connection, select([folder]).files, nothing)

    assert connection.client("s3").list_objects_v2(Bucket=connection.bucket)["KeyCount"] == 0


def test_documents_and_sidecars_get_into_the_bucket(connection: Connection, folder: Path) -> None:
    (folder / "a b+c.md").write_text("Leave.")
    (folder / "a b+c.md.metadata.json").write_text('{"metadataAttributes": {"topic": "leave"}}')
    (folder / "travel.md").write_text("Travel.")
    finished: list[None] = []

    uploads = upload(connection, select([folder]).files, lambda: finished.append(None))

    listed = connection.client("s3").list_objects_v2(Bucket=connection.bucket)["Contents"]
    assert [item["Key"] for item in listed] == [
        "handbook/a b+c.md",
        "handbook/a b+c.md.metadata.json",
        "handbook/travel.md",
    ]
    assert [document.uri for document in uploads] == [
        f"s3://{connection.bucket}/handbook/a b+c.md",
        f"s3://{connection.bucket}/handbook/travel.md",
    ]
    assert len(finished) == 2


def test_an_upload_is_followed_until_it_is_indexed(connection: Connection, folder: Path) -> None:
    (folder / "leave.md").write_text("Thirty days of leave.")
    document = uploaded(connection, folder / "leave.md")
    put_in(connection, document.uri)
    seen: list[dict[str, DocumentStatus]] = []

    def note(statuses: Mapping[str, DocumentStatus]) -> None:
        seen.append(dict(statuses))

    statuses = follow(connection, [document], note, 20)

    assert statuses == {document.uri: "INDEXED"}
    assert seen[-1] == statuses


def test_a_document_that_failed_is_final_and_keeps_its_reason(connection: Connection, folder: Path) -> None:
    (folder / "empty.md").write_text("")
    document = uploaded(connection, folder / "empty.md")
    put_in(connection, document.uri)

    statuses = follow(connection, [document], nothing, 20)

    assert statuses == {document.uri: "FAILED"}
    assert statuses[document.uri].reason == "The file is empty."


def test_an_upload_that_nobody_takes_up_waits_until_the_time_is_over(connection: Connection, folder: Path) -> None:
    (folder / "leave.md").write_text("Thirty days of leave.")
    document = uploaded(connection, folder / "leave.md")

    start = time.monotonic()
    statuses = follow(connection, [document], nothing, 0.7)
    seconds = time.monotonic() - start

    assert statuses == {document.uri: "WAITING"}
    assert statuses[document.uri].reason == "The upload has not been taken up yet"
    assert 0.7 <= seconds < 3


def test_what_was_indexed_before_the_upload_does_not_count(connection: Connection, folder: Path) -> None:
    path = folder / "leave.md"
    path.write_text("Thirty days of leave.")
    first = uploaded(connection, path)
    put_in(connection, first.uri)
    follow(connection, [first], nothing, 20)

    # Within the same second, which is as exactly as a bucket tells the time.
    path.write_text("Twenty-five days of leave.")
    second = uploaded(connection, path)
    before = follow(connection, [second], nothing, 0.1)
    put_in(connection, second.uri)
    after = follow(connection, [second], nothing, 20)

    assert before == {second.uri: "WAITING"}
    assert after == {second.uri: "INDEXED"}


def test_one_that_failed_before_and_is_mended_is_followed_anew(connection: Connection, folder: Path) -> None:
    path = folder / "leave.md"
    path.write_text("")
    first = uploaded(connection, path)
    put_in(connection, first.uri)
    failed = follow(connection, [first], nothing, 20)

    path.write_text("Thirty days of leave.")
    second = uploaded(connection, path)
    put_in(connection, second.uri)

    assert failed == {first.uri: "FAILED"}
    assert follow(connection, [second], nothing, 20) == {second.uri: "INDEXED"}


def test_more_documents_than_one_call_takes_are_all_followed(connection: Connection, folder: Path) -> None:
    for number in range(23):
        (folder / f"{number:02}.md").write_text(f"Page {number}.")
    uploads = upload(connection, select([folder]).files, nothing)
    put_in(connection, *(document.uri for document in uploads))

    statuses = follow(connection, uploads, nothing, 20)

    assert statuses == {document.uri: "INDEXED" for document in uploads}
    assert len(list(list_documents(connection))) == 23


def test_nothing_to_follow_is_followed_at_once() -> None:
    assert follow(stack_at(), [], nothing, 60) == {}


def test_a_bucket_that_is_gone_is_an_error_and_nothing_counts_as_uploaded(connection: Connection, folder: Path) -> None:
    (folder / "leave.md").write_text("Thirty days of leave.")
    connection.client("s3").delete_bucket(Bucket=connection.bucket)

    with pytest.raises(S3UploadFailedError, match="NoSuchBucket"):
        ingest(connection, select([folder]).files, 5)


def test_a_knowledge_base_that_is_gone_is_an_error(connection: Connection) -> None:
    ids = {"knowledgeBaseId": connection.knowledge_base_id, "dataSourceId": connection.data_source_id}
    connection.client("bedrock-agent").delete_data_source(**ids)

    with pytest.raises(ClientError, match="ResourceNotFoundException"):
        keep_listing(connection)


def test_a_knowledge_base_that_does_not_answer_is_an_error() -> None:
    with pytest.raises(EndpointConnectionError):
        list(list_documents(stack_at()))


def test_a_queue_counts_what_waits_and_what_is_in_work(connection: Connection) -> None:
    sqs = connection.client("sqs")
    for number in range(3):
        sqs.send_message(QueueUrl=connection.queue_url, MessageBody=str(number))
    sqs.receive_message(QueueUrl=connection.queue_url, MaxNumberOfMessages=1)

    assert queue_depth(connection, connection.queue_url) == 3
    assert queue_depth(connection, connection.dead_letter_queue_url) == 0
