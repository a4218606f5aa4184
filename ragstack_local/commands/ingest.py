"""``ragstack ingest``."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, cast

import typer
from rich.text import Text

from ragstack_common.reading.formats import FORMATS, IMAGES, MEDIA_TYPES
from ragstack_common.registry.document_status import DocumentStatus
from ragstack_common.settings.ingestion import OFF, TEXTRACT
from ragstack_local.connection.following import DELETED, FOUND
from ragstack_local.connection.roots import Roots
from ragstack_local.connection_options import AsJson, ConnectionOptions, Timeout, with_options
from ragstack_local.errors import INTERRUPTED, UsageError
from ragstack_local.files.documents import StackDocuments
from ragstack_local.files.ingestion import Round, note_keys, note_skipped, warn_of_copies
from ragstack_local.files.ingestion import ingest as upload_and_follow
from ragstack_local.files.uploading import UploadOptions, end, note_unlabelled, print_round, round_as_json
from ragstack_local.files.uploads import Selection, select
from ragstack_local.show import display

if TYPE_CHECKING:
    from ragstack_local.files.watching import Watch


RECOGNIZED: Final = tuple(suffix for name in (*IMAGES, "pdf") for suffix in FORMATS[name].suffixes)
"""Endings of files that can have pages to recognize."""


@with_options
def ingest(
    paths: Annotated[
        list[Path],
        typer.Argument(
            help="Files, or folders with all their visible files. Types: "
            + ", ".join(suffix.removeprefix(".") for suffix in sorted(MEDIA_TYPES))
            + "; a file without an ending is read by its content.",
            show_default=False,
        ),
    ],
    stack: ConnectionOptions,
    options: UploadOptions,
    force: Annotated[bool, typer.Option("--force", help="Upload unchanged files too.")] = False,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch", help="Keep running until Ctrl-C: upload changed files, and delete documents of deleted files."
        ),
    ] = False,
    timeout: Timeout = 900.0,
    as_json: AsJson = False,
) -> None:
    """Upload documents and wait until each is searchable or has failed.

    A file NAME.metadata.json next to a document holds its attributes:  {"metadataAttributes": {"topic": "travel"}}

    The attributes of --corpus, --version and --metadata are added to every document.
    If a document's sidecar sets the same attribute, the sidecar wins.

    A file that cannot be uploaded does not stop the others. It is listed at the end with its reason, and the exit
    code is 1.

    A document whose content and attributes are unchanged is not uploaded again, even if it failed.
    An attribute that neither the sidecar nor an option sets any more is removed from the document.
    With --watch, documents that you delete here are deleted from the bucket. Otherwise no document is deleted:
    see `ragstack sync`.

    The keys of a folder's files begin with its name. They are remembered, so that a file keeps its key when you
    name it, or a folder above it, later.

    Example:  ragstack ingest handbook/ prices.csv --prefix company

    With attributes:  ragstack ingest handbook/ --corpus people --version 2026 --metadata 'audience=["staff", "hr"]'

    Follow a folder while you work in it:  ragstack ingest notes/ --watch

    For a program:  ragstack ingest handbook/ --json

    With --api-url every file is uploaded, changed or not.
    """
    if watch and stack.is_api:
        raise typer.BadParameter("this needs the stack's bucket and registry: give --aws", param_hint="--watch")
    if watch and as_json:
        raise typer.BadParameter("--watch runs until Ctrl-C, so there is no result to print", param_hint="--json")
    documents, roots = options.open(stack, paths)
    selection = select(paths, options.prefix or "", follow_links=options.follow_links, roots=roots)
    note_skipped(selection, every=options.show_skipped, as_json=as_json)
    if not selection.files and not selection.faults and not watch:
        raise UsageError("There are no documents in these paths")
    done, watched = Round(), None
    if selection.files or watch:
        note_keys(selection, roots, as_json=as_json)
        roots.write()
        if watch:
            watched = _watch(paths, options, roots, cast("StackDocuments", documents), timeout, selection)
        _note_recognition(stack, selection, as_json=as_json)
        try:
            done = upload_and_follow(documents, selection.files, timeout, force=force, as_json=as_json)
        except KeyboardInterrupt as interrupt:
            display.console_for(as_json=as_json).print(str(interrupt))
            raise typer.Exit(INTERRUPTED) from None
        warn_of_copies(documents, done, as_json=as_json)
        note_unlabelled(stack, documents, selection.files, done, as_json=as_json)
    done.add_faults(selection.faults)
    if as_json:
        display.print_json(round_as_json(done, selection))
    else:
        print_round(done, " (--force uploads them)")
    if watched:
        _keep_watching(watched)
    else:
        end(done, timeout)


def _note_recognition(stack: ConnectionOptions, selection: Selection, *, as_json: bool) -> None:
    """Say before an upload what text recognition may cost."""
    setting = OFF if stack.is_api else stack.connect().recognition
    files = [file for file in selection.files if file.key.lower().endswith(RECOGNIZED)]
    if setting == TEXTRACT and files:
        line = f"Text recognition ({display.counted(len(files), 'file')}): {display.recognition_line(setting)}"
        display.console_for(as_json=as_json).print(line, soft_wrap=True)


def _watch(
    paths: list[Path],
    options: UploadOptions,
    roots: Roots,
    documents: StackDocuments,
    timeout: float,
    selection: Selection,
) -> "Watch":
    from ragstack_local.files.watching import Watch  # noqa: PLC0415 - only --watch needs the library

    def warn(text: str) -> None:
        display.console.print(text, style="yellow", soft_wrap=True)

    watch = Watch(paths, options.prefix or "", documents, timeout, _print_changes, warn, options.follow_links, roots)
    watch.note(selection)
    return watch


def _print_changes(statuses: Mapping[str, DocumentStatus]) -> None:
    for uri, status in statuses.items():
        good = status in FOUND or status == DELETED
        reason = f": {status.reason}" if status.reason and not good else ""
        text = Text.assemble((status, "green" if good else "red"), f" {uri}{reason}")
        display.console.print(text, soft_wrap=True)


def _keep_watching(watched: "Watch") -> None:
    display.console.print("\nWatching. Press Ctrl-C to stop.")
    try:
        watched.run()
    except KeyboardInterrupt as interrupt:
        display.console.print(f"\nStopped watching. {interrupt}".rstrip())
