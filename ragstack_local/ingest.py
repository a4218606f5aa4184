"""Uploads with progress bars that end when every document is in a final state."""

import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ragstack_common.documents import DocumentStatus
from ragstack_common.registry.records import Attributes, Status
from ragstack_local import display
from ragstack_local.awaiting import ENDED, NOT_UPLOADED, Uploaded, follow, readable, registry_of
from ragstack_local.bucket import Bucket, NotUploaded, Result, Unchanged
from ragstack_local.connection import Connection
from ragstack_local.uploads import LocalFile, Selection

_NAMED: Final = 3


@dataclass
class Round:
    """What became of files.

    Attributes:
        statuses: Of each document, by URI, final or not.
        uploaded: Documents that are in the bucket now and were not before.
        unchanged: Documents that were in the bucket as they are, and are not uploaded again.
        failed: How many of those failed.
    """

    statuses: dict[str, DocumentStatus] = field(default_factory=dict)
    uploaded: dict[str, Uploaded] = field(default_factory=dict)
    unchanged: int = 0
    failed: int = 0

    def take(self, uri: str, result: Result) -> None:
        """Note what became of one file."""
        match result:
            case Unchanged(status):
                self.unchanged += 1
                self.failed += status == str(Status.FAILED)
                self.statuses[uri] = status
            case NotUploaded():
                self.statuses[uri] = DocumentStatus(NOT_UPLOADED, result.reason)
            case Uploaded():
                self.statuses[uri] = result.until_then
                self.uploaded[uri] = result


def ingest(
    connection: Connection,
    files: Sequence[LocalFile],
    timeout_seconds: float,
    *,
    given: Attributes | None = None,
    force: bool = False,
    beside: bool = False,
) -> Round:
    """Upload files and follow them.

    Args:
        connection: The stack.
        files: Each becomes a document.
        timeout_seconds: Time to become final, for all of them, from the end of the uploads.
        given: Attributes for documents whose own sidecar does not name them.
        force: Whether files are uploaded that are in the bucket as they are.
        beside: Whether progress goes to the error stream, beside what a program reads.

    Raises:
        StackError: A document cannot have its name or its attributes; nothing is uploaded then.
        KeyboardInterrupt: The message says how far it got.
    """
    bucket, registry = Bucket.of(connection, given), registry_of(connection)
    bucket.check(files)
    done = Round()
    known = {} if force else readable(registry, (bucket.uri(file) for file in files))
    with display.progress(beside=beside) as bars:
        uploading = bars.add_task("Uploading", total=len(files), detail="")
        try:
            with closing(bucket.put_all(files, known)) as results:
                for file, result in results:
                    done.take(bucket.uri(file), result)
                    bars.advance(uploading)
            done.statuses = {uri: done.statuses[uri] for uri in map(bucket.uri, files)}
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


def note_passed_over(selection: Selection, *, beside: bool = False) -> None:
    """Say which files are not uploaded; *beside* what a program reads, on the error stream."""
    console = display.errors if beside else display.console
    if selection.skipped:
        console.print(f"Passed over, of a type that is not read: {_some_of(selection.skipped)}", style="dim")
    if selection.orphans:
        console.print(f"Sidecars with no document beside them: {_some_of(selection.orphans)}", style="yellow")


def shown(path: Path) -> str:
    """Write a path so that any terminal and JSON take it, whatever its bytes are."""
    return os.fsencode(path).decode(errors="replace")


def _some_of(paths: Sequence[Path]) -> str:
    names = ", ".join(shown(Path(path.name)) for path in paths[:_NAMED])
    return f"{names} and {len(paths) - _NAMED} more" if len(paths) > _NAMED else names
