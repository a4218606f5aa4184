"""``ragstack ingest``."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from ragstack_common.documents import DocumentStatus
from ragstack_common.errors import InvalidDocumentError
from ragstack_local import display
from ragstack_local.documents import ApiDocuments, Documents, StackDocuments
from ragstack_local.errors import StackError
from ragstack_local.following import DELETED, ENDED, FOUND
from ragstack_local.ingestion import SHOW_SKIPPED, Round, note_skipped
from ragstack_local.ingestion import ingest as upload_and_follow
from ragstack_local.targets import INTERRUPTED, NOTHING_FOUND, AsJson, Target, Timeout, with_target
from ragstack_local.uploads import FOLLOW_LINKS, Selection, read_options, select, shown

if TYPE_CHECKING:
    from ragstack_local.watching import Watch


@with_target
def ingest(
    paths: Annotated[
        list[Path],
        typer.Argument(help="Files, or folders with all their visible files.", show_default=False),
    ],
    target: Target,
    prefix: Annotated[str, typer.Option(help="Put before every key in the bucket.")] = "",
    corpus: Annotated[str | None, typer.Option(help="The corpus of the documents.")] = None,
    version: Annotated[str | None, typer.Option(help="The version of the documents, a text.")] = None,
    metadata: Annotated[
        list[str] | None,
        typer.Option(
            "--metadata",
            metavar="NAME=VALUE",
            help="Another attribute of every document. Repeatable. A value in JSON is a number, true, false, or a list "
            'of texts like \'["a", "b"]\'; any other value is a text.',
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Upload unchanged files too.")] = False,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch", help="Keep running until Ctrl-C: upload changed files, and delete documents of deleted files."
        ),
    ] = False,
    follow_links: Annotated[
        bool, typer.Option(FOLLOW_LINKS, help="Follow symbolic links that leave the folder, instead of skipping them.")
    ] = False,
    show_skipped: Annotated[
        bool, typer.Option(SHOW_SKIPPED, help="List every skipped file with the reason, not only the number.")
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
    With --watch, documents that you delete here are deleted from the bucket. Otherwise no document is deleted.

    Example:  ragstack ingest handbook/ prices.csv --prefix company

    With attributes:  ragstack ingest handbook/ --corpus people --version 2026 --metadata 'audience=["staff", "hr"]'

    Follow a folder while you work in it:  ragstack ingest notes/ --watch

    For a program:  ragstack ingest handbook/ --json

    With --api-url every file is uploaded, changed or not.
    """
    if watch and target.is_api:
        raise typer.BadParameter("this needs the stack's bucket and registry: give --aws", param_hint="--watch")
    if watch and as_json:
        raise typer.BadParameter("--watch runs until Ctrl-C, so there is no result to print", param_hint="--json")
    try:
        given = read_options(corpus, version, metadata or [])
    except InvalidDocumentError as error:
        raise typer.BadParameter(str(error)) from None
    selection = select(paths, prefix, follow_links=follow_links)
    note_skipped(selection, every=show_skipped, as_json=as_json)
    if not selection.files and not selection.faults and not watch:
        raise StackError("There are no documents in these paths")
    done, watched = Round(), None
    if selection.files or watch:
        documents: Documents
        if target.is_api:
            documents = ApiDocuments(target.api(), given)
        else:
            documents = stack = StackDocuments.of(target.connect(), given)
            watched = _watch(paths, prefix, stack, timeout, selection, follow_links=follow_links) if watch else None
        try:
            done = upload_and_follow(documents, selection.files, timeout, force=force, as_json=as_json)
        except KeyboardInterrupt as interrupt:
            display.console_for(as_json=as_json).print(str(interrupt))
            raise typer.Exit(INTERRUPTED) from None
    done.add_faults(selection.faults)
    if as_json:
        display.print_json(_as_json(done, selection))
    else:
        _print(done)
    if watched:
        _keep_watching(watched)
    else:
        _end(done, timeout)


def _end(done: Round, timeout: float) -> None:
    """End with the exit code that the documents' statuses have.

    Raises:
        StackError: A document did not reach a final status in time.
        Exit: With 1 if a document is not searchable.
    """
    if any(status not in ENDED for status in done.statuses.values()):
        raise StackError(f"Not every document reached a final status within {timeout:g} s: see `ragstack status`")
    if any(status not in FOUND for status in done.statuses.values()):
        raise typer.Exit(NOTHING_FOUND)


def _as_json(done: Round, selection: Selection) -> dict[str, Any]:
    return {
        "documents": [
            {
                "uri": name if name in done.paths else None,
                "path": done.paths.get(name, name),
                "status": str(status),
                "reason": status.reason,
                "uploaded": name in done.uploaded,
            }
            for name, status in done.statuses.items()
        ],
        "skipped": [{"path": shown(each.path), "reason": str(each.why)} for each in selection.skipped],
    }


def _print(done: Round) -> None:
    display.print_unsearchable(done.statuses)
    display.console.print(display.summary(done.statuses))
    if done.unchanged:
        display.console.print(f"{done.unchanged:,} unchanged, not uploaded again (--force uploads them)", style="dim")
    if done.failed:
        display.console.print(
            f"{done.failed:,} of these failed in an earlier run: see `ragstack status --failed`",
            style="yellow",
            soft_wrap=True,
        )


def _watch(
    paths: list[Path],
    prefix: str,
    documents: StackDocuments,
    timeout: float,
    selection: Selection,
    *,
    follow_links: bool,
) -> "Watch":
    from ragstack_local.watching import Watch  # noqa: PLC0415 - only --watch needs the library

    def warn(text: str) -> None:
        display.console.print(text, style="yellow", soft_wrap=True)

    watch = Watch(paths, prefix, documents, timeout, _print_changes, warn, follow_links)
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
