"""Uploads with progress bars that end when every document is in a final state."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ragstack_common.documents import DocumentStatus
from ragstack_common.registry.records import Attributes, Status
from ragstack_local import display
from ragstack_local.awaiting import ENDED, NOT_UPLOADED, Uploaded, follow, registry_of
from ragstack_local.bucket import Bucket, NotUploaded, Result, Unchanged
from ragstack_local.connection import Connection
from ragstack_local.uploads import FOLLOW_LINKS, Fault, LocalFile, Selection, Skip, Skipped, shown

SHOW_SKIPPED: Final = "--show-skipped"

_NAMED: Final = 3

_NOTEWORTHY: Final = {
    Skip.LEAVES: "links that leave the folder",
    Skip.READ_ALREADY: "links to folders that were read already",
    Skip.ORPHAN: "sidecars without a document",
}
"""Reasons, in the plural, for which the files are named even without --show-skipped."""


@dataclass
class Round:
    """What became of files.

    Attributes:
        statuses: Of each document, by URI, final or not; of each file that was refused before that, by its path.
        paths: The file of each document, by URI.
        uploaded: Documents that are in the bucket now and were not before.
        unchanged: Documents that were in the bucket as they are, and are not uploaded again.
        failed: How many of those failed.
    """

    statuses: dict[str, DocumentStatus] = field(default_factory=dict)
    paths: dict[str, str] = field(default_factory=dict)
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

    def add_faults(self, faults: Sequence[Fault]) -> None:
        """Note the files that could not be uploaded, because of their names for example."""
        self.statuses |= {shown(fault.path): DocumentStatus(NOT_UPLOADED, fault.reason) for fault in faults}


def ingest(
    connection: Connection,
    files: Sequence[LocalFile],
    timeout_seconds: float,
    *,
    given: Attributes | None = None,
    force: bool = False,
    beside: bool = False,
) -> Round:
    """Upload files and follow them; a file that cannot be uploaded does not stop the others.

    Args:
        connection: The stack.
        files: Each becomes a document.
        timeout_seconds: Time to become final, for all of them, from the end of the uploads.
        given: Attributes for documents whose own sidecar does not name them.
        force: Whether files are uploaded that are in the bucket as they are.
        beside: Whether progress goes to the error stream, beside what a program reads.

    Raises:
        KeyboardInterrupt: The message says how far it got.
    """
    bucket, registry = Bucket.of(connection, given), registry_of(connection)
    done = Round(paths={bucket.uri(file): shown(file.path) for file in files})
    known = {} if force else registry.read(done.paths)
    with display.progress(beside=beside) as bars:
        uploading = bars.add_task("Uploading", total=len(files), detail="")
        try:
            with closing(bucket.put_all(files, known)) as results:
                for file, result in results:
                    done.take(bucket.uri(file), result)
                    bars.advance(uploading)
            done.statuses = {uri: done.statuses[uri] for uri in done.paths}
            # Of the others it is known already what became of them.
            indexing = bars.add_task("Indexing ", total=len(done.uploaded), visible=bool(done.uploaded), detail="")

            def show(statuses: Mapping[str, DocumentStatus]) -> None:
                done.statuses.update(statuses)
                followed = {uri: done.statuses[uri] for uri in done.uploaded}
                ended = sum(status in ENDED for status in followed.values())
                bars.update(indexing, completed=ended, detail=display.summary(followed))

            show({})
            follow(registry, done.uploaded, show, timeout_seconds, current=bucket.current)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(display.interrupted(done.statuses)) from None
    return done


def note_passed_over(selection: Selection, *, every: bool = False, hints: bool = False, beside: bool = False) -> None:
    """Say how many files are skipped, by type.

    Args:
        selection: What was found.
        every: Whether each is listed, with the reason.
        hints: Whether the options of `ragstack ingest` that change this are named.
        beside: Whether this goes to the error stream, beside what a program reads.
    """
    console = display.errors if beside else display.console
    plain = Counter(_kind_of(each) for each in selection.skipped if every or each.why not in _NOTEWORTHY)
    if plain:
        plural: dict[str, str] = {str(why): words for why, words in _NOTEWORTHY.items()}
        counts = ", ".join(
            f"{count:,} {plural.get(kind, kind) if count > 1 else kind}" for kind, count in sorted(plain.items())
        )
        more = f" ({SHOW_SKIPPED} lists them)" if hints and not every else ""
        console.print(f"Skipped: {counts}{more}", style="dim", soft_wrap=True)
    for each in selection.skipped if every else ():
        console.print(f"  {shown(each.path)}: {each.why}", style="dim", soft_wrap=True)
    for why, words in () if every else _NOTEWORTHY.items():
        if paths := [each.path for each in selection.skipped if each.why is why]:
            more = f". {FOLLOW_LINKS} uploads them" if hints and why is Skip.LEAVES else ""
            console.print(f"Skipped, {words}: {_some_of(paths)}{more}", style="yellow", soft_wrap=True)


def _kind_of(skipped: Skipped) -> str:
    """Name what files are counted under: their type, or why they are skipped."""
    if skipped.why is not Skip.TYPE:
        return str(skipped.why)
    return shown(Path(skipped.path.suffix.lower())) if skipped.path.suffix else "without a type"


def _some_of(paths: Sequence[Path]) -> str:
    names = ", ".join(shown(Path(path.name)) for path in paths[:_NAMED])
    return f"{names} and {len(paths) - _NAMED} more" if len(paths) > _NAMED else names
