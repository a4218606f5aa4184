"""Documents that outlive a local stack which was killed, with the real MiniStack as S3."""

import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import urllib3

from local_bedrock.server import running as running_bedrock
from ragstack_common.ingestion.requests import identifier_key, s3_document, source_type_of, to_request
from ragstack_common.registry.documents import RecordChange
from ragstack_common.registry.records import DocumentRecord, Operation, OperationKind, Status
from ragstack_local.connection.connection import Connection, Project
from ragstack_local.connection.following import open_registry
from ragstack_local.errors import StackError
from ragstack_local.stack import checkpoints
from ragstack_local.stack.deployment import BUCKET, KnowledgeBaseType, LocalKnowledgeBase, _remove_other_assets
from ragstack_local.stack.local_stack import StackOptions, _start_ministack
from ragstack_local.stack.processes import Child
from ragstack_local.stack.recovery import DataFolder, Session, list_documents
from ragstack_local.stack.recovery import _synchronise as synchronise
from tests.ragstack_local.support import stack_at
from tests.support.ports import free_ports
from tests.support.registry_table import TABLE, create_table

ODD_KEYS = (
    "plain.md",
    "a b+c%20d/Zürich & Büro.md",
    "日本語.md",
    "file",
    "file/below it.md",
    "notes.meta.json",
    "notes",
    "doubled//slash.md",
    "../up.md",
    "long/" + "x" * 250 + ".md",
    "x.md.metadata.json",
)


@pytest.fixture
def project() -> Project:
    found = Project.find()
    if not (found.root / ".ministack").exists():
        pytest.skip(".ministack is missing: run `make setup`")
    return found


@contextmanager
def ministack(project: Project, folder: DataFolder, *origins: str) -> Iterator[tuple[Connection, Child]]:
    """Run MiniStack on the folder as the local stack does, and create the bucket as its deployment does."""
    (port,) = free_ports(1)
    child = _start_ministack(project, StackOptions(folder.path, port, origins=origins), folder)
    url = f"http://127.0.0.1:{port}"

    def answers() -> bool:
        try:
            return urllib3.request("GET", f"{url}/_ministack/health", timeout=10, retries=False).status == 200
        except urllib3.exceptions.HTTPError:
            return False

    try:
        child.wait_until(answers, 60)
        connection = stack_at(bucket=BUCKET, aws_endpoint=url)
        s3 = connection.client("s3")
        if BUCKET not in [bucket["Name"] for bucket in s3.list_buckets()["Buckets"]]:
            s3.create_bucket(Bucket=BUCKET)
            s3.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
        yield connection, child
    finally:
        child.stop()


def kill(child: Child) -> None:
    os.killpg(child.process.pid, signal.SIGKILL)
    child.process.wait(60)


def put(connection: Connection, *keys: str, text: str = "") -> None:
    for key in keys:
        connection.client("s3").put_object(Bucket=BUCKET, Key=key, Body=f"{text or key}".encode())


def objects(connection: Connection) -> dict[str, str]:
    s3 = connection.client("s3")
    listed = s3.list_objects_v2(Bucket=BUCKET).get("Contents", [])
    return {o["Key"]: s3.get_object(Bucket=BUCKET, Key=o["Key"])["Body"].read().decode() for o in listed}


@contextmanager
def knowledge_base(
    connection: Connection, folder: DataFolder, kind: KnowledgeBaseType | None = None
) -> Iterator[Connection]:
    with running_bedrock(folder.path / "bedrock", s3_endpoint=connection.aws_endpoint) as url:
        own = LocalKnowledgeBase.ensure(url, kind)
        yield replace(
            connection,
            bedrock_endpoint=url,
            knowledge_base_id=own.knowledge_base_id,
            data_source_id=own.data_source_id,
            vector_store=own.vector_store,
        )


def uris(connection: Connection) -> set[str]:
    return {
        identifier_key(detail["identifier"])
        for ids in connection.data_sources
        for detail in list_documents(connection, ids)
    }


def submit(connection: Connection, *keys: str) -> None:
    ours = [s3_document(f"s3://{BUCKET}/{key}", connection.data_source_id) for key in keys]
    source_type = source_type_of(connection.vector_store)
    documents: list[Any] = [to_request(each, connection.data_source_id, source_type) for each in ours]
    connection.client("bedrock-agent").ingest_knowledge_base_documents(
        knowledgeBaseId=connection.knowledge_base_id, dataSourceId=connection.data_source_id, documents=documents
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", KnowledgeBaseType)
def test_after_a_kill_all_documents_are_uploaded_again(
    tmp_path: Path, project: Project, kind: KnowledgeBaseType
) -> None:
    folder = DataFolder(tmp_path)
    with folder.opened(), ministack(project, folder) as (connection, child):
        put(connection, *ODD_KEYS)
        put(connection, "plain.md", text="changed")
        put(connection, "deleted.md")
        connection.client("s3").delete_object(Bucket=BUCKET, Key="deleted.md")
        kill(child)

    with folder.opened() as session, ministack(project, folder) as (connection, child):
        with knowledge_base(connection, folder, kind) as whole:
            submit(whole, "deleted.md", "plain.md")
            empty = objects(whole)
            folder.restore(whole)
            known = uris(whole)
        restored = objects(connection)

    assert session.recovers
    assert empty == {}
    assert restored == {key: key for key in ODD_KEYS} | {"plain.md": "changed"}
    assert known == {f"s3://{BUCKET}/plain.md"}
    assert not (tmp_path / "recovered-documents").exists()


def save(connection: Connection) -> None:
    assert urllib3.request("PUT", f"{connection.aws_endpoint}/_ragstack/checkpoint", timeout=60).status == 204


@pytest.mark.slow
def test_after_a_kill_a_start_continues_from_the_checkpoint(tmp_path: Path, project: Project) -> None:
    """Objects, and changes of the registry, are those at the kill; everything else is as of the checkpoint."""
    folder = DataFolder(tmp_path)
    with folder.opened(), ministack(project, folder) as (connection, child):
        queue = connection.client("sqs").create_queue(QueueName="kept")["QueueUrl"]
        put(connection, *ODD_KEYS)
        save(connection)
        put(connection, "plain.md", text="changed")
        put(connection, "deleted.md")
        connection.client("s3").delete_object(Bucket=BUCKET, Key="deleted.md")
        kill(child)

    with folder.opened() as session, ministack(project, folder) as (connection, _):
        queues = connection.client("sqs").list_queues()["QueueUrls"]
        found = objects(connection)
        versioning = connection.client("s3").get_bucket_versioning(Bucket=BUCKET)["Status"]

    assert (session.recovers, session.continues) == (True, True)
    assert [url.rpartition("/")[2] for url in queues] == [queue.rpartition("/")[2]]
    assert found == {key: key for key in ODD_KEYS} | {"plain.md": "changed"}
    assert versioning == "Enabled"


@pytest.mark.slow
def test_after_a_kill_ingestion_compares_what_may_differ(tmp_path: Path, project: Project) -> None:
    """What was on its way continues; of the rest, only the differences are submitted."""
    folder, later = DataFolder(tmp_path), time.time() + 600
    uri = f"s3://{BUCKET}/".__add__
    with ministack(project, folder) as (connection, _), knowledge_base(connection, folder) as served:
        create_table(served.client("dynamodb"), TABLE)
        queue = served.client("sqs").create_queue(QueueName="events")["QueueUrl"]
        whole = replace(served, registry_table=TABLE, queue_url=queue)
        put(whole, "known.md", "new.md", "moving.md", "talk.pptx", "talk.pptx.ragstack.md", "~$lock.docx")
        put(whole, "sidecar.md.metadata.json", text="{}")
        registry = open_registry(whole)
        claim = Operation("one", OperationKind.INGEST, lease_until=later)
        records = [
            DocumentRecord(uri("known.md"), status=Status.INDEXED),
            DocumentRecord(uri("removed.md"), status=Status.INDEXED),
            DocumentRecord(uri("forgotten.md"), status=Status.DELETED),
            DocumentRecord(uri("moving.md"), status=Status.SUBMITTING, operation=claim),
        ]
        registry.write([RecordChange(DocumentRecord(each.uri), each) for each in records])
        submit(whole, "known.md", "talk.pptx.ragstack.md")
        put(whole, "stray.md")
        submit(whole, "stray.md")
        whole.client("s3").delete_object(Bucket=BUCKET, Key="stray.md")
        sqs = whole.client("sqs")
        for seconds in (600, 0):  # one that a function had when the state was written, and one that waits
            sqs.send_message(QueueUrl=queue, MessageBody="{}")
            sqs.receive_message(QueueUrl=queue, VisibilityTimeout=seconds)

        folder.resume(whole)

        in_flight = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["ApproximateNumberOfMessagesNotVisible"])
        received = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10)["Messages"]
        left = uris(whole)
        claimed = registry.read([uri("moving.md")])[uri("moving.md")]

    checks = {body["forced"]: body["check"] for body in (json.loads(message["Body"]) for message in received)}
    assert checks[True] == [uri("moving.md")]
    assert checks[False] == [uri(key) for key in ("known.md", "new.md", "removed.md", "sidecar.md", "talk.pptx")]
    assert len(received) == 2
    assert in_flight["Attributes"] == {"ApproximateNumberOfMessagesNotVisible": "0"}
    assert claimed.is_abandoned(time.time())
    assert left == {uri("known.md"), uri("talk.pptx.ragstack.md")}


@pytest.mark.slow
@pytest.mark.parametrize("killed", ["while it is written", "between the renames", "before the old one is removed"])
def test_a_kill_amid_a_checkpoint_leaves_the_earlier_one_or_the_new_one(tmp_path: Path, killed: str) -> None:
    folder = DataFolder(tmp_path)
    new, old = tmp_path / "state.new", tmp_path / "state.old"
    for each in (folder.state, new):
        each.mkdir()
        (each / "complete").touch()
    (tmp_path / "in-use").touch()
    if killed == "while it is written":
        (new / "complete").unlink()
    else:
        folder.state.rename(old)
    if killed == "before the old one is removed":
        new.rename(folder.state)

    with folder.opened() as session:
        assert session.continues
        assert [*tmp_path.glob("state*")] == [folder.state]


def test_objects_that_a_kill_has_left_half_written_are_described_again(tmp_path: Path, project: Project) -> None:
    folder = DataFolder(tmp_path)
    with folder.opened(), ministack(project, folder) as (connection, child):
        put(connection, "whole.md", "replaced.md", "new.md")
        save(connection)
        kill(child)
    (bucket,) = folder.objects.glob(f"*/{BUCKET}")
    (bucket / "replaced.md").write_text("newer")
    (bucket / "new.md.meta.json").unlink()

    with folder.opened(), ministack(project, folder) as (connection, _):
        found = objects(connection)
        head = connection.client("s3").head_object(Bucket=BUCKET, Key="replaced.md")

    assert found == {"whole.md": "whole.md", "replaced.md": "newer", "new.md": "new.md"}
    assert (head["ETag"], head["ContentLength"]) == (f'"{hashlib.md5(b"newer").hexdigest()}"', 5)


def test_packages_of_functions_are_kept_once_and_take_no_space(tmp_path: Path, project: Project) -> None:
    package = io.BytesIO()
    with zipfile.ZipFile(package, "w") as written:
        written.writestr("python/layer.py", os.urandom(100_000))
    folder = DataFolder(tmp_path)
    with folder.opened(), ministack(project, folder) as (connection, child):
        s3, functions = connection.client("s3"), connection.client("lambda")
        s3.create_bucket(Bucket=(assets := "cdk-x-assets-000000000000-us-east-1"))
        s3.put_object(Bucket=assets, Key="layer.zip", Body=package.getvalue())
        for name in ("one", "two"):
            functions.publish_layer_version(LayerName=name, Content={"S3Bucket": assets, "S3Key": "layer.zip"})
        save(connection)
        links = {file.stat().st_nlink for file in (folder.state / "packages").iterdir()}
        s3.delete_object(Bucket=assets, Key="layer.zip")
        kill(child)

    with folder.opened(), ministack(project, folder) as (connection, child):
        save(connection)
        functions = connection.client("lambda")
        sizes = {
            functions.get_layer_version(LayerName=each, VersionNumber=1)["Content"]["CodeSize"]
            for each in ("one", "two")
        }
        child.stop()
    (kept,) = (folder.state / "packages").iterdir()

    assert links == {2}
    assert sizes == {len(package.getvalue())}
    assert kept.read_bytes() == package.getvalue()
    assert (folder.state / "lambda.json").stat().st_size < 50_000


def test_assets_of_earlier_deployments_are_removed(tmp_path: Path, project: Project) -> None:
    folder, bucket = DataFolder(tmp_path), "cdk-hnb659fds-assets-000000000000-us-east-1"
    with ministack(project, folder) as (connection, _):
        s3 = connection.client("s3")
        s3.create_bucket(Bucket=bucket)
        s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
        for key in ("old.zip", "new.zip", "old.zip"):
            s3.put_object(Bucket=bucket, Key=key, Body=key.encode())

        _remove_other_assets(str(connection.aws_endpoint), {"new.zip"})

        listed = [each["Key"] for each in s3.list_objects_v2(Bucket=bucket)["Contents"]]
    assert listed == ["new.zip"]
    assert {file.name for file in folder.objects.rglob("*.zip") if file.is_file()} == {"new.zip"}


def test_a_kill_during_the_recovery_loses_nothing_and_the_newest_wins(tmp_path: Path, project: Project) -> None:
    folder = DataFolder(tmp_path)
    with folder.opened(), ministack(project, folder) as (connection, child):
        put(connection, *ODD_KEYS, "old.md")
        kill(child)
    with folder.opened(), ministack(project, folder) as (connection, child):
        # Some of it, in another order, so that "file" and "file/below it.md" lie elsewhere than before.
        put(connection, "file/below it.md", "file")
        put(connection, "plain.md", text="newer")
        put(connection, "old.md")
        connection.client("s3").delete_object(Bucket=BUCKET, Key="old.md")
        kill(child)

    with folder.opened(), ministack(project, folder) as (connection, child):
        with knowledge_base(connection, folder) as whole:
            folder.restore(whole)
        restored = objects(connection)

    assert restored == {key: key for key in ODD_KEYS} | {"plain.md": "newer"}


def test_after_a_kill_without_documents_the_index_is_emptied(tmp_path: Path, project: Project) -> None:
    folder = DataFolder(tmp_path)
    with folder.opened():
        pass

    with (
        folder.opened(),
        ministack(project, folder) as (connection, _),
        knowledge_base(connection, folder) as whole,
    ):
        submit(whole, "gone.md")
        # Only a synchronisation takes such a key, and only another one removes it.
        put(whole, "two\nlines.md")
        synchronise(whole, *whole.data_sources)
        whole.client("s3").delete_object(Bucket=BUCKET, Key="two\nlines.md")
        before = uris(whole)
        folder.restore(whole)
        known = uris(whole)

    assert f"s3://{BUCKET}/two\nlines.md" in before
    assert known == set()


@pytest.mark.parametrize("state", [{"is_deployed": True}, {"is_written": True}, {}])
def test_a_run_that_did_not_get_to_its_end_is_recovered_from(tmp_path: Path, state: dict[str, bool]) -> None:
    folder = DataFolder(tmp_path)
    with folder.opened() as session:
        for name, value in state.items():
            setattr(session, name, value)

    with folder.opened() as again:
        pass

    assert not session.recovers
    assert again.recovers


@pytest.mark.parametrize("has_checkpoint", [True, False])
def test_a_recovery_that_was_interrupted_is_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_checkpoint: bool
) -> None:
    folder, done = DataFolder(tmp_path), []

    def interrupted(_folder: DataFolder, _connection: Connection) -> None:
        done.append(1)
        if len(done) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(DataFolder, "resume" if has_checkpoint else "restore", interrupted)
    with folder.opened():
        if has_checkpoint:
            folder.state.mkdir()
            (folder.state / checkpoints.COMPLETE).touch()

    def run() -> Session:
        with folder.opened() as session:
            session.is_written = True
            folder.recover(session, stack_at())
        return session

    with pytest.raises(KeyboardInterrupt):
        run()

    assert [run().recovers, run().recovers] == [True, False]
    assert done == [1, 1]


def test_a_second_user_of_the_folder_is_refused_and_harms_nothing(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    code = (
        "import sys, pathlib\n"
        "from ragstack_local.stack.recovery import DataFolder\n"
        "with DataFolder(pathlib.Path(sys.argv[1])).opened(): pass\n"
    )
    with folder.opened() as session:
        folder.objects.mkdir()
        (folder.objects / "object").write_text("x")

        done = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=False)

        with pytest.raises(StackError, match=f"Another local stack uses {tmp_path}: end it, or choose another"):
            folder.opened().__enter__()
        assert (folder.objects / "object").exists()
        session.is_deployed = session.is_written = True

    assert "StackError: Another local stack uses" in done.stderr
    with folder.opened() as again:
        assert not again.recovers


@pytest.mark.parametrize("content", [b"", b"\0\0", b"\xff", b"[]", b"{}", b"[" * 99_999], ids=repr)
def test_a_damaged_description_of_a_document_is_named(tmp_path: Path, content: bytes) -> None:
    aside = tmp_path / "recovered-documents" / "000001"
    aside.mkdir(parents=True)
    (aside / "leave.md").write_text("x")
    (aside / "leave.md.meta.json").write_bytes(content)

    with pytest.raises(StackError, match=r"leave.md.meta.json is damaged, .* leave.md is not known: move both files"):
        DataFolder(tmp_path)._set_aside()


def test_a_folder_of_documents_is_described_as_the_recovery_reads_it(tmp_path: Path, project: Project) -> None:
    """MiniStack's layout is its own affair: this fails where a new version changes it."""
    folder = DataFolder(tmp_path)
    with folder.opened(), ministack(project, folder) as (connection, _):
        put(connection, "a/b.md")
        connection.client("s3").delete_object(Bucket=BUCKET, Key="a/b.md")

    (description,) = folder.objects.rglob("*.meta.json")
    content = json.loads(description.read_text())
    assert (content["key"], content["is_delete_marker"]) == ("a/b.md", True)
