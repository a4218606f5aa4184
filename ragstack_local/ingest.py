"""Uploads with a progress bar that ends when every document is in a final state."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.markup import escape

from ragstack_common.documents import DocumentStatus
from ragstack_local import display
from ragstack_local.connection import Connection
from ragstack_local.uploads import FINAL, LocalFile, follow, upload


def ingest(connection: Connection, files: Sequence[LocalFile], timeout_seconds: float) -> dict[str, DocumentStatus]:
    """Upload files and follow them; every file has a status in the answer, final or not."""
    with display.progress() as bars:
        uploading = bars.add_task("Uploading", total=len(files), detail="")
        uploads = upload(connection, files, lambda: bars.advance(uploading))
        indexing = bars.add_task("Indexing ", total=len(files), detail="")

        def show(statuses: Mapping[str, DocumentStatus]) -> None:
            ended = sum(status in FINAL for status in statuses.values())
            bars.update(indexing, completed=ended, detail=display.summary(statuses))

        return follow(connection, uploads, show, timeout_seconds)


def note_skipped(skipped: Sequence[Path]) -> None:
    """Say which files were passed over."""
    if skipped:
        names = escape(", ".join(os.fsencode(path.name).decode(errors="replace") for path in skipped[:3]))
        more = f" and {len(skipped) - 3} more" if len(skipped) > 3 else ""  # noqa: PLR2004 - as many as were named
        display.console.print(f"[dim]Passed over, of a type that is not read: {names}{more}[/]")
