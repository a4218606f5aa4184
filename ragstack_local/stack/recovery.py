"""Recovery of the documents of a local stack that was killed.

MiniStack writes objects at once and everything else when it is asked to end. After a kill the two do not match, so the
objects of the documents bucket are set aside, the stack starts empty, and they are uploaded again: ingestion then
makes the knowledge base and the empty registry match the bucket. What only the registry has survives in
:mod:`ragstack_local.stack.durable_items`. Documents that only the knowledge base still has are
deleted directly, because no event and no record names them.
"""

import fcntl
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from local_bedrock.creation import ACCOUNT
from local_bedrock.http.guard import make_private
from ragstack_common.core.json_text import parse_json
from ragstack_common.core.uris import SIDECAR_SUFFIX, fault_of_uri, s3_uri
from ragstack_common.ingestion import (
    batch_check_document_statuses,
    delete_documents_with_retry,
    start_ingestion_with_retry,
)
from ragstack_common.ingestion.requests import identifier_key, source_type_of
from ragstack_local.connection import running
from ragstack_local.connection.connection import Connection
from ragstack_local.errors import StackError
from ragstack_local.stack.deployment import BUCKET

POLL_SECONDS: Final = 0.1

_DESCRIPTION_SUFFIX: Final = ".meta.json"

_ENDED: Final = ("COMPLETE", "FAILED", "STOPPED")
"""Source: bedrock-agent, shape IngestionJobStatus."""


@dataclass
class Session:
    """One run on a data folder.

    Attributes:
        recovers: Whether the last run on the folder was killed.
        is_written: Whether MiniStack wrote its state and ended.
    """

    recovers: bool = False
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
        """Everything else, written when MiniStack ends."""
        return self.path / "state"

    @property
    def journal(self) -> Path:
        """Items of the registry's table that nothing else has, written at once; it survives a kill."""
        return self.path / "kept-items.jsonl"

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
        """Lock the folder; after a run that was killed, set its documents aside and start empty.

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
            if was_killed:
                self._start_empty()
            session = Session(recovers=was_killed)
            try:
                yield session
            finally:
                if session.is_deployed and session.is_written:
                    self._in_use.unlink()

    def _start_empty(self) -> None:
        documents = self.objects / ACCOUNT / BUCKET
        if documents.exists():
            self._aside.mkdir(exist_ok=True)
            earlier = max((int(run.name) for run in self._aside.iterdir()), default=0)
            documents.rename(self._aside / f"{earlier + 1:06}")
        shutil.rmtree(self.objects, ignore_errors=True)
        shutil.rmtree(self.state, ignore_errors=True)

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
        for ids in connection.data_sources:
            listed = [identifier_key(detail["identifier"]) for detail in list_documents(connection, ids)]
            gone = [uri for uri in listed if uri.removeprefix(s3_uri(connection.bucket, "")) not in documents]
            if nameable := [uri for uri in gone if not fault_of_uri(uri)]:
                _delete(connection, ids, nameable)
            if len(nameable) < len(gone):
                _synchronise(connection, ids)
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
                    raise StackError(
                        f"{file} is damaged, so the key of the document {body.name} is not known: move both files"
                        " elsewhere, start again, and upload the document"
                    ) from error
                if is_deleted:
                    found.pop(key, None)
                elif body.is_file():
                    found[key] = body
        return found


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
