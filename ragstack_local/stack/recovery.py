"""Recovery of the documents of a local stack that was killed.

MiniStack writes objects at once, and everything else in a checkpoint: after each deployment, and when it ends in order.
After a kill, a start continues from the last checkpoint. The registry's records since then are in
:mod:`ragstack_local.stack.durable_items`. Only messages are lost, so ingestion is asked to compare all documents of
bucket, registry and knowledge base: it submits, deletes or follows those that differ, and no other.

Without a checkpoint, because the first start was killed, the objects of the documents bucket are set aside, the stack
starts empty, and they are uploaded again: ingestion then makes the knowledge base and the empty registry match the
bucket. What only the registry has survives in both cases. Documents that only the knowledge base still has are deleted
directly, because no event and no record names them.
"""

import fcntl
import hashlib
import json
import shutil
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from local_bedrock.creation import ACCOUNT
from local_bedrock.http.guard import make_private
from ragstack_common.core.artefacts import document_of, maker_of
from ragstack_common.core.json_text import parse_json
from ragstack_common.core.uris import SIDECAR_SUFFIX, fault_of_uri, is_program_file, s3_uri
from ragstack_common.ingestion import (
    batch_check_document_statuses,
    delete_documents_with_retry,
    start_ingestion_with_retry,
)
from ragstack_common.ingestion.bedrock_agent import batched
from ragstack_common.ingestion.messages import Queue, check
from ragstack_common.ingestion.requests import identifier_key, source_type_of
from ragstack_common.registry.documents import RecordChange
from ragstack_common.registry.records import Status
from ragstack_local.connection import running
from ragstack_local.connection.connection import Connection
from ragstack_local.connection.following import open_registry
from ragstack_local.errors import StackError
from ragstack_local.stack import checkpoints
from ragstack_local.stack.deployment import BUCKET

POLL_SECONDS: Final = 0.1

_URIS_PER_MESSAGE: Final = 50
"""As many as a reconciliation sends."""

_DESCRIPTION_SUFFIX: Final = ".meta.json"

_ENDED: Final = ("COMPLETE", "FAILED", "STOPPED")
"""Source: bedrock-agent, shape IngestionJobStatus."""


@dataclass
class Session:
    """One run on a data folder.

    Attributes:
        recovers: Whether the last run on the folder was killed.
        continues: Whether it has left a checkpoint, from which this run continues.
        is_deployed: Whether the stacks are deployed, with all that the last run left.
        is_written: Whether MiniStack wrote its state and ended.
    """

    recovers: bool = False
    continues: bool = False
    is_deployed: bool = False
    is_written: bool = False


@dataclass(frozen=True)
class DataFolder:
    """The folder in which MiniStack keeps the local stack's state."""

    path: Path

    @property
    def objects(self) -> Path:
        """Objects, by account, bucket and key."""
        return self.path / "s3"

    @property
    def state(self) -> Path:
        """Everything else, as of the last checkpoint."""
        return self.path / "state"

    @property
    def journal(self) -> Path:
        """Items of the registry's table that nothing else has, written at once; it survives a kill."""
        return self.path / "kept-items.jsonl"

    @property
    def changes(self) -> Path:
        """Other items of that table that changed since the last checkpoint."""
        return self.path / "changed-items.jsonl"

    @property
    def _in_use(self) -> Path:
        return self.path / running.IN_USE

    @property
    def _aside(self) -> Path:
        return self.path / "recovered-documents"

    @property
    def _done(self) -> Path:
        return self.path / "restored-documents"

    @contextmanager
    def opened(self) -> Iterator["Session"]:
        """Lock the folder; after a run that was killed, continue from its checkpoint, or start empty without one.

        Raises:
            StackError: Another process uses the folder.
        """
        make_private(self.path)
        was_killed = self._in_use.exists()
        with self._in_use.open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise StackError(
                    f"Another local stack uses {self.path}: end it, or choose another --data-dir"
                ) from None
            checkpoints.settle(self.state)
            # Documents that were set aside must be uploaded to an empty stack.
            has_checkpoint = (self.state / checkpoints.COMPLETE).is_file() and not self._aside.exists()
            if was_killed and has_checkpoint:
                self._mend_objects()
            elif was_killed:
                self._start_empty()
            else:
                self.changes.unlink(missing_ok=True)
            session = Session(recovers=was_killed, continues=was_killed and has_checkpoint)
            try:
                yield session
            finally:
                if session.is_deployed and session.is_written:
                    self._in_use.unlink()

    def _mend_objects(self) -> None:
        """Describe the objects of which a kill has replaced the body alone: their upload was not acknowledged.

        MiniStack describes those that are new.
        """
        for body in (self.objects / ACCOUNT / BUCKET).rglob("*"):
            if not body.is_file() or body.name.endswith((_DESCRIPTION_SUFFIX, ".tmp")):
                continue
            file = body.with_name(body.name + _DESCRIPTION_SUFFIX)
            if file.is_file() and file.stat().st_mtime_ns < body.stat().st_mtime_ns:
                try:
                    description = parse_json(file.read_text())
                    is_current = not description.get("is_delete_marker")
                except (AttributeError, ValueError) as error:
                    raise _damaged(file, body) from error
                content = body.read_bytes()
                if is_current:
                    etag = hashlib.md5(content, usedforsecurity=False).hexdigest()
                    description |= {"etag": f'"{etag}"', "size": len(content), "checksums": {}}
                new = file.with_name(file.name + ".tmp")
                new.write_text(json.dumps(description))
                new.replace(file)

    def _start_empty(self) -> None:
        documents = self.objects / ACCOUNT / BUCKET
        if documents.exists():
            self._aside.mkdir(exist_ok=True)
            earlier = max((int(run.name) for run in self._aside.iterdir()), default=0)
            documents.rename(self._aside / f"{earlier + 1:06}")
        shutil.rmtree(self.objects, ignore_errors=True)
        shutil.rmtree(self.state, ignore_errors=True)
        self.changes.unlink(missing_ok=True)

    def recover(self, session: Session, connection: Connection) -> None:
        """Do what a run that was killed has left, if there was one; the next start does it if this one ends earlier.

        Raises:
            StackError: The knowledge base did not delete documents in time, or a file is damaged.
        """
        if session.continues:
            self.resume(connection)
        elif session.recovers:
            self.restore(connection)
        session.is_deployed = True

    def resume(self, connection: Connection) -> None:
        """Have ingestion continue with what was on its way, and compare all other documents.

        Raises:
            StackError: The knowledge base did not delete in time what the bucket no longer has.
        """
        queue = Queue(connection.queue_url, connection.client("sqs"))
        # A message that a function had received at the checkpoint would stay, and be reported, until it is visible.
        queue.sqs.purge_queue(QueueUrl=queue.url)
        registry, moving, known = open_registry(connection), set[str](), set[str]()
        for records in registry.scan():
            known.update(record.uri for record in records if record.status is not Status.DELETED)
            moving.update(record.uri for record in records if not record.is_final)
            # No function is left that could still call the knowledge base for them.
            now = time.time()
            claims = [(record, record.operation) for record in records if record.operation and record.is_claimed(now)]
            registry.write(
                [RecordChange(each, replace(each, operation=replace(claim, lease_until=0.0))) for each, claim in claims]
            )
        keys = [key.removesuffix(SIDECAR_SUFFIX) for key in _keys(connection) if maker_of(key) is None]
        found = {s3_uri(connection.bucket, key) for key in keys if not is_program_file(key) and not key.endswith("/")}
        for uris, forced in ((moving, True), ((found | known) - moving, False)):
            queue.send([check(batch, forced=forced) for batch in batched(sorted(uris), _URIS_PER_MESSAGE)])
        _delete_others(connection, found | known | moving)

    def restore(self, connection: Connection) -> None:
        """Upload what was set aside, and delete from the knowledge base what the bucket no longer has.

        Raises:
            StackError: The knowledge base did not delete it in time, or a file is damaged.
        """
        s3 = connection.client("s3")
        documents = self._set_aside()
        # Sidecars first: a document uploaded before its sidecar would be indexed twice.
        for key, body in sorted(documents.items(), key=lambda entry: not entry[0].endswith(SIDECAR_SUFFIX)):
            s3.upload_file(str(body), connection.bucket, key)
        _delete_others(connection, {s3_uri(connection.bucket, key) for key in documents})
        if self._aside.exists():
            # A rename is atomic: a kill leaves all of it or nothing.
            shutil.rmtree(self._done, ignore_errors=True)
            self._aside.rename(self._done)
        shutil.rmtree(self._done, ignore_errors=True)

    def _set_aside(self) -> dict[str, Path]:
        """Find the newest body of each key that wasn't deleted; each killed run left a folder.

        Raises:
            StackError: A description is damaged.
        """
        found: dict[str, Path] = {}
        for run in sorted(self._aside.glob("*")):
            for file in sorted(run.rglob(f"*{_DESCRIPTION_SUFFIX}")):
                body = file.with_name(file.name.removesuffix(_DESCRIPTION_SUFFIX))
                try:
                    description = parse_json(file.read_text())
                    key, is_deleted = str(description["key"]), description.get("is_delete_marker")
                except (AttributeError, KeyError, TypeError, ValueError) as error:
                    raise _damaged(file, body) from error
                if is_deleted:
                    found.pop(key, None)
                elif body.is_file():
                    found[key] = body
        return found


def _damaged(file: Path, body: Path) -> StackError:
    return StackError(
        f"{file} is damaged, so the key of the document {body.name} is not known: move both files elsewhere, start"
        " again, and upload the document"
    )


def _keys(connection: Connection) -> Iterator[str]:
    for page in connection.client("s3").get_paginator("list_objects_v2").paginate(Bucket=connection.bucket):
        yield from (entry["Key"] for entry in page.get("Contents", []))


def _delete_others(connection: Connection, uris: Collection[str]) -> None:
    """Delete the documents of the bucket that only the knowledge base has; *uris* are the others.

    Raises:
        StackError: The knowledge base did not delete them in time.
    """
    for ids in connection.data_sources:
        listed = [identifier_key(detail["identifier"]) for detail in list_documents(connection, ids)]
        gone = [uri for uri in listed if uri not in uris and document_of(uri) not in uris]
        if nameable := [uri for uri in gone if not fault_of_uri(uri)]:
            _delete(connection, ids, nameable)
        if len(nameable) < len(gone):
            _synchronise(connection, ids)


def _delete(connection: Connection, ids: tuple[str, str], uris: list[str]) -> None:
    agent = connection.client("bedrock-agent")
    source_type = source_type_of(connection.vector_store)
    delete_documents_with_retry(*ids, uris, client=agent, source_type=source_type)
    deadline = time.monotonic() + 60.0
    while True:
        statuses = batch_check_document_statuses(*ids, uris, client=agent, source_type=source_type)
        left = [uri for uri, status in statuses.items() if status != "NOT_FOUND"]
        if not left:
            return
        if time.monotonic() > deadline:
            raise StackError(f"{len(left)} documents were deleted before the kill and are still found, as {left[0]}")
        time.sleep(POLL_SECONDS)


def _synchronise(connection: Connection, ids: tuple[str, str]) -> None:
    """Synchronise a knowledge base with the bucket: the way to remove URIs that direct deletion does not accept."""
    agent = connection.client("bedrock-agent")
    job = start_ingestion_with_retry(*ids, client=agent)
    deadline = time.monotonic() + 600.0
    while (status := job["status"]) not in _ENDED:
        if time.monotonic() > deadline:
            raise StackError(f"The knowledge base is {status} for 10 minutes: see its log")
        time.sleep(POLL_SECONDS)
        job = agent.get_ingestion_job(
            knowledgeBaseId=ids[0], dataSourceId=ids[1], ingestionJobId=job["ingestionJobId"]
        )["ingestionJob"]


def list_documents(connection: Connection, ids: tuple[str, str]) -> Iterable[dict[str, Any]]:
    """List the documents that a knowledge base has of a data source, page by page."""
    agent = connection.client("bedrock-agent")
    pages = agent.get_paginator("list_knowledge_base_documents").paginate(knowledgeBaseId=ids[0], dataSourceId=ids[1])
    for page in pages:
        yield from page["documentDetails"]
