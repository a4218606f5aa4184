"""Files on this machine to searchable documents, followed until each is in a final state."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from ragstack_common.documents import MAX_URI_CHARACTERS, SIDECAR_SUFFIX, DocumentStatus, s3_uri
from ragstack_common.ingestion import batch_check_document_statuses
from ragstack_local.connection import TRANSFER_THREADS, Connection
from ragstack_local.stack.errors import StackError

SUFFIXES: Final = frozenset({".txt", ".md", ".html", ".htm", ".doc", ".docx", ".csv", ".xls", ".xlsx", ".pdf"})
"""Source: user guide of Knowledge Bases, formats of the default parser."""

MAX_SIDECAR_BYTES: Final = 10 * 1024
"""Source: user guide of Knowledge Bases, metadata files."""

FINAL: Final = frozenset(
    {
        "INDEXED",
        "PARTIALLY_INDEXED",
        "METADATA_PARTIALLY_INDEXED",
        "METADATA_UPDATE_FAILED",
        "FAILED",
        "IGNORED",
    }
)
SEARCHABLE: Final = frozenset({"INDEXED", "PARTIALLY_INDEXED", "METADATA_PARTIALLY_INDEXED"})

POLL_SECONDS: Final = 0.5
LONGEST_POLL_SECONDS: Final = 5.0


@dataclass(frozen=True)
class LocalFile:
    """A file to upload.

    Attributes:
        path: Where it is.
        key: Its key in the bucket.
    """

    path: Path
    key: str

    @property
    def sidecar(self) -> Path | None:
        """The file's sidecar, where there is one beside it."""
        path = self.path.with_name(self.path.name + SIDECAR_SUFFIX)
        return path if path.is_file() else None


@dataclass(frozen=True)
class Selection:
    """What was found below the paths: files to upload, and files of types that the service does not read."""

    files: tuple[LocalFile, ...]
    skipped: tuple[Path, ...]


@dataclass(frozen=True)
class Uploaded:
    """An object in the bucket.

    Attributes:
        uri: Its name.
        at: When the bucket took it, in whole seconds.
        before: When the knowledge base last did something with an earlier object of this name.
    """

    uri: str
    at: datetime
    before: datetime | None = None

    def is_meant_by(self, status: DocumentStatus) -> bool:
        """Whether a status is about this upload, and not about what had its name before."""
        return status.updated_at is not None and status.updated_at >= self.at and status.updated_at != self.before


def select(paths: Sequence[Path], prefix: str = "") -> Selection:
    """Find the documents among files and folders; a folder's documents keep its name in their keys.

    Raises:
        StackError: A path does not exist, a named file has an unsupported type, two files would have one key, a name is
            no text, or a sidecar cannot be used.
    """
    files: dict[str, LocalFile] = {}
    skipped: list[Path] = []
    for given in paths:
        path = given.expanduser()
        if not path.exists():
            raise StackError(f"{given} does not exist")
        if path.is_file() and path.suffix.lower() not in SUFFIXES:
            raise StackError(f"{given} is of a type that is not read; supported are {', '.join(sorted(SUFFIXES))}")
        for name, file in _below(path) if path.is_dir() else [(path.name, path)]:
            if file.suffix.lower() not in SUFFIXES:
                skipped.append(file)
                continue
            key = f"{prefix.strip('/')}/{name}".lstrip("/")
            _check_key(key, file, files.get(key))
            files[key] = LocalFile(file, key)
    for found in files.values():
        _check_sidecar(found.sidecar)
    return Selection(tuple(files.values()), tuple(skipped))


def upload(connection: Connection, files: Sequence[LocalFile], done: Callable[[], None]) -> list[Uploaded]:
    """Put the files into the documents bucket, each after its sidecar, several at once.

    Raises:
        StackError: A file's URI would be too long for direct ingestion; nothing is uploaded then.
    """
    for file in files:
        uri = s3_uri(connection.bucket, file.key)
        if len(uri) > MAX_URI_CHARACTERS:
            raise StackError(f"{uri} has {len(uri)} characters; Bedrock takes {MAX_URI_CHARACTERS}: shorten the path")
    s3 = connection.client("s3")
    known = batch_check_document_statuses(
        connection.knowledge_base_id,
        connection.data_source_id,
        [s3_uri(connection.bucket, file.key) for file in files],
        client=connection.client("bedrock-agent"),
    )

    def put(file: LocalFile) -> Uploaded:
        if file.sidecar:
            s3.upload_file(str(file.sidecar), connection.bucket, file.key + SIDECAR_SUFFIX)
        s3.upload_file(str(file.path), connection.bucket, file.key)
        at = s3.head_object(Bucket=connection.bucket, Key=file.key)["LastModified"]
        done()
        uri = s3_uri(connection.bucket, file.key)
        return Uploaded(uri, at, known[uri].updated_at)

    with ThreadPoolExecutor(TRANSFER_THREADS) as threads:
        return list(threads.map(put, files))


def follow(
    connection: Connection,
    uploads: Iterable[Uploaded],
    changed: Callable[[Mapping[str, DocumentStatus]], None],
    timeout_seconds: float,
) -> dict[str, DocumentStatus]:
    """Ask until every document is in a final state that is newer than its upload, or the time is over.

    Args:
        connection: The stack.
        uploads: What to follow.
        changed: Told after each round what is known so far.
        timeout_seconds: Time for all of them.

    Returns:
        The last known status of each; one that is not in :data:`FINAL` has not got there in time.
    """
    agent = connection.client("bedrock-agent")
    waiting = {document.uri: document for document in uploads}
    statuses: dict[str, DocumentStatus] = {}
    deadline = time.monotonic() + timeout_seconds
    pause = POLL_SECONDS
    while waiting:
        answers = batch_check_document_statuses(
            connection.knowledge_base_id, connection.data_source_id, list(waiting), client=agent
        )
        for uri, status in answers.items():
            is_new = waiting[uri].is_meant_by(status)
            statuses[uri] = status if is_new else DocumentStatus("WAITING", "The upload has not been taken up yet")
            if is_new and status in FINAL:
                del waiting[uri]
        changed(statuses)
        if waiting and time.monotonic() > deadline:
            break
        if waiting:
            time.sleep(pause)
            pause = min(pause * 1.2, LONGEST_POLL_SECONDS)
    return statuses


def list_documents(connection: Connection) -> Iterable[dict[str, Any]]:
    """List the documents of the stack's data source, page by page."""
    agent = connection.client("bedrock-agent")
    pages = agent.get_paginator("list_knowledge_base_documents").paginate(
        knowledgeBaseId=connection.knowledge_base_id, dataSourceId=connection.data_source_id
    )
    for page in pages:
        yield from page["documentDetails"]


def queue_depth(connection: Connection, queue_url: str) -> int:
    """Count a queue's messages, those in flight included; SQS says approximately."""
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    attributes = connection.client("sqs").get_queue_attributes(QueueUrl=queue_url, AttributeNames=names)["Attributes"]
    return sum(int(value) for value in attributes.values())


def _below(folder: Path) -> Iterator[tuple[str, Path]]:
    """Find the files that are not hidden and no sidecars, and name them from the folder on."""
    root = folder.resolve()
    for file in sorted(root.rglob("*")):
        path = file.relative_to(root)
        passed_over = path.name.endswith(SIDECAR_SUFFIX) or any(part.startswith(".") for part in path.parts)
        if not passed_over and file.is_file():
            yield (root.name / path).as_posix(), file


def _check_key(key: str, file: Path, other: LocalFile | None) -> None:
    try:
        key.encode()
    except UnicodeEncodeError:
        raise StackError(f"The name of {str(file)!a} is no UTF-8, which a key must be: rename it") from None
    if other and not file.samefile(other.path):
        raise StackError(f"{other.path} and {file} would both be uploaded as {key}: upload one with another --prefix")


def _check_sidecar(sidecar: Path | None) -> None:
    if sidecar is None:
        return
    if sidecar.stat().st_size > MAX_SIDECAR_BYTES:
        raise StackError(f"{sidecar} has {sidecar.stat().st_size} bytes; a sidecar may have {MAX_SIDECAR_BYTES}")
    try:
        content = json.loads(sidecar.read_bytes())
    except ValueError as error:
        raise StackError(f"{sidecar} is not JSON: {error}") from error
    if not isinstance(content, dict) or not isinstance(content.get("metadataAttributes"), dict):
        raise StackError(f'{sidecar} must hold {{"metadataAttributes": {{...}}}}')
