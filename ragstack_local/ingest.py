"""Uploads with progress bars that end when every document is in a final state."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.markup import escape

from ragstack_common.documents import DocumentStatus
from ragstack_common.registry.records import Attributes, Status
from ragstack_local import display
from ragstack_local.awaiting import ENDED, NOT_UPLOADED, Uploaded, follow, registry_of
from ragstack_local.bucket import Bucket, NotUploaded, Unchanged
from ragstack_local.connection import Connection
from ragstack_local.uploads import LocalFile


@dataclass
class Round:
    """What became of files.

    Attributes:
        statuses: Of each document, by URI, final or not.
        uploaded: Documents that are in the bucket now and were not before.
        unchanged: Documents that were indexed as they are.
    """

    statuses: dict[str, DocumentStatus] = field(default_factory=dict)
    uploaded: dict[str, Uploaded] = field(default_factory=dict)
    unchanged: int = 0


def ingest(
    connection: Connection,
    files: Sequence[LocalFile],
    timeout_seconds: float,
    *,
    given: Attributes | None = None,
    force: bool = False,
) -> Round:
    """Upload files and follow them.

    Args:
        connection: The stack.
        files: Each becomes a document.
        timeout_seconds: Time to become final, for all of them, from the end of the uploads.
        given: Attributes for documents whose own sidecar does not name them.
        force: Whether files are uploaded that are indexed as they are.

    Raises:
        StackError: A file's name is too long; nothing is uploaded then.
        InvalidDocumentError: A document cannot have its attributes; nothing is uploaded then.
        KeyboardInterrupt: The message says how far it got.
    """
    bucket, registry = Bucket.of(connection, given), registry_of(connection)
    bucket.check(files)
    done = Round()
    known = {} if force else registry.read(bucket.uri(file) for file in files)
    with display.progress() as bars:
        uploading = bars.add_task("Uploading", total=len(files), detail="")
        try:
            for file, result in bucket.put_all(files, known, lambda: bars.advance(uploading)):
                uri = bucket.uri(file)
                match result:
                    case Unchanged():
                        done.unchanged += 1
                        done.statuses[uri] = DocumentStatus(Status.INDEXED)
                    case NotUploaded():
                        done.statuses[uri] = DocumentStatus(NOT_UPLOADED, result.reason)
                    case Uploaded():
                        done.statuses[uri] = result.until_then
                        done.uploaded[uri] = result
            indexing = bars.add_task("Indexing ", total=len(files), detail="")

            def show(statuses: Mapping[str, DocumentStatus]) -> None:
                done.statuses.update(statuses)
                ended = sum(status in ENDED for status in done.statuses.values())
                bars.update(indexing, completed=ended, detail=display.summary(done.statuses))

            show({})
            follow(registry, done.uploaded, show, timeout_seconds, current=bucket.current)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(display.interrupted(done.statuses)) from None
    return done


def note_skipped(skipped: Sequence[Path]) -> None:
    """Say which files were passed over."""
    if skipped:
        names = escape(", ".join(os.fsencode(path.name).decode(errors="replace") for path in skipped[:3]))
        more = f" and {len(skipped) - 3} more" if len(skipped) > 3 else ""  # noqa: PLR2004 - as many as were named
        display.console.print(f"[dim]Passed over, of a type that is not read: {names}{more}[/]")
