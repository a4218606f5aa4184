"""Uploads and deletions, followed until each document has its final status, with progress bars."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ragstack_common.registry.document_status import DocumentStatus
from ragstack_common.registry.records import Status
from ragstack_local.connection.following import ENDED, NOT_UPLOADED, Gone, Uploaded
from ragstack_local.connection.roots import Roots
from ragstack_local.files.bucket import NotUploaded, Result, Unchanged
from ragstack_local.files.documents import Documents
from ragstack_local.files.uploads import Fault, LocalFile, Selection, Skip, Skipped, shown
from ragstack_local.show import display

SHOW_SKIPPED: Final = "--show-skipped"

SHOWN_COPIES: Final = 5
"""Groups of documents with the same content that are listed."""


@dataclass
class Round:
    """The results of one ingestion."""

    statuses: dict[str, DocumentStatus] = field(default_factory=dict)  # by URI, or by path for a file without one
    paths: dict[str, str] = field(default_factory=dict)
    uploaded: dict[str, Uploaded] = field(default_factory=dict)
    unchanged: int = 0
    failed: int = 0  # of the unchanged ones
    copies: list[list[str]] = field(default_factory=list)  # groups of URIs with the same content

    def add(self, file: LocalFile, uri: str | None, result: Result) -> None:
        """Note the result of one file."""
        path = shown(file.path)
        name = uri or path
        if uri is not None:
            self.paths[uri] = path
        match result:
            case Unchanged(status):
                self.unchanged += 1
                self.failed += status == str(Status.FAILED)
                self.statuses[name] = status
            case NotUploaded():
                self.statuses[name] = DocumentStatus(NOT_UPLOADED, result.reason)
            case Uploaded():
                self.statuses[name] = result.until_then
                self.uploaded[name] = result

    def add_faults(self, faults: Sequence[Fault]) -> None:
        """Note files that could not be selected, because of their names for example."""
        self.statuses |= {shown(fault.path): DocumentStatus(NOT_UPLOADED, fault.reason) for fault in faults}


def ingest(
    documents: Documents,
    files: Sequence[LocalFile],
    timeout_seconds: float,
    *,
    force: bool = False,
    as_json: bool = False,
) -> Round:
    """Upload files, then follow them for at most the timeout; a file that cannot be uploaded does not stop the others.

    Raises:
        KeyboardInterrupt: The message says how much has been done.
    """
    done = Round()
    with display.progress(as_json=as_json) as bars:
        uploading = bars.add_task("Uploading", total=len(files), detail="")
        try:
            with closing(documents.upload(files, force=force)) as results:
                for file, uri, result in results:
                    done.add(file, uri, result)
                    bars.advance(uploading)
            indexing = bars.add_task("Indexing ", total=len(done.uploaded), visible=bool(done.uploaded), detail="")

            def show(statuses: Mapping[str, DocumentStatus]) -> None:
                done.statuses.update(statuses)
                followed = {uri: done.statuses[uri] for uri in done.uploaded}
                ended = sum(status in ENDED for status in followed.values())
                bars.update(indexing, completed=ended, detail=display.summary(followed))

            show({})
            documents.follow(done.uploaded, show, timeout_seconds)
        except KeyboardInterrupt:
            unconfirmed = len(files) - len(done.statuses)
            raise KeyboardInterrupt(display.interrupted(done.statuses, unconfirmed)) from None
    # Uploads end in any order.
    order = {shown(file.path): place for place, file in enumerate(files)}
    done.statuses = dict(sorted(done.statuses.items(), key=lambda item: order[done.paths.get(item[0], item[0])]))
    return done


def remove(
    documents: Documents, uris: Sequence[str], timeout_seconds: float | None, *, as_json: bool = False
) -> dict[str, DocumentStatus]:
    """Delete documents, and wait until no search finds them unless the timeout is None; return statuses by URI.

    Raises:
        KeyboardInterrupt: The message says how much has been done.
    """
    statuses: dict[str, DocumentStatus] = {}
    with display.progress(as_json=as_json) as bars:
        deleting = bars.add_task("Deleting ", total=len(uris), detail="")
        waiting = bars.add_task("Waiting  ", total=len(uris), visible=timeout_seconds is not None, detail="")

        def show(found: Mapping[str, DocumentStatus]) -> None:
            statuses.update(found)
            ended = sum(status in ENDED for status in statuses.values())
            bars.update(waiting, completed=ended, detail=display.summary(statuses))

        try:
            for uri, status in documents.remove(uris):
                statuses[uri] = status
                bars.advance(deleting)
            if timeout_seconds is not None:
                documents.follow(dict.fromkeys(statuses, Gone()), show, timeout_seconds)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(display.interrupted(statuses, len(uris) - len(statuses))) from None
    return statuses


def warn_of_copies(documents: Documents, done: Round, *, as_json: bool = False) -> None:
    """Look for documents with the content of an upload under other keys, and print them."""
    done.copies = documents.copies(done.uploaded)
    console = display.console_for(as_json=as_json)
    for uris in done.copies[:SHOWN_COPIES]:
        console.print(f"The same content under {len(uris)} keys: {', '.join(uris)}", style="yellow", soft_wrap=True)
    if len(done.copies) > SHOWN_COPIES:
        console.print(f"... and {display.counted(len(done.copies) - SHOWN_COPIES, 'more group')}", style="yellow")
    if done.copies:
        console.print("Searches find each of them; `ragstack delete URI` deletes one.", style="yellow")


def note_keys(selection: Selection, roots: Roots, *, as_json: bool = False) -> None:
    """Print what the keys of each named folder begin with, and warn if another path has them too."""
    console = display.console_for(as_json=as_json)
    for path, key in selection.named.items():
        if path.is_dir():
            console.print(f"Keys of {shown(path)}: {key}/...", style="dim", soft_wrap=True)
        if others := roots.others(path):
            console.print(
                f"{shown(others[0])} has the key {key}, too: files with the same name replace each other. Choose"
                " another key with --prefix",
                style="yellow",
                soft_wrap=True,
            )


def note_skipped(selection: Selection, *, every: bool = False, as_json: bool = False) -> None:
    """Print how many files are skipped and why."""
    console = display.console_for(as_json=as_json)
    if counted := Counter(map(_skip_kind, selection.skipped)):
        counts = ", ".join(f"{count:,} {kind}" for kind, count in sorted(counted.items()))
        more = "" if every else f" ({SHOW_SKIPPED} lists them)"
        console.print(f"Skipped: {counts}{more}", style="dim", soft_wrap=True)
    for each in selection.skipped if every else ():
        console.print(f"  {shown(each.path)}: {each.why}", style="dim", soft_wrap=True)


def _skip_kind(skipped: Skipped) -> str:
    """Return a file's type, or why it is skipped if that is not its type."""
    if skipped.why is not Skip.TYPE:
        return str(skipped.why)
    return shown(Path(skipped.path.suffix.lower())) if skipped.path.suffix else "without a type"
