"""``ragstack sync``."""

from pathlib import Path
from typing import Annotated

import typer

from ragstack_common.registry.document_status import DocumentStatus
from ragstack_local.connection.following import DELETED, NOT_UPLOADED
from ragstack_local.connection_options import AsJson, ConnectionOptions, Timeout, confirm, with_options
from ragstack_local.errors import INTERRUPTED, NOTHING_FOUND
from ragstack_local.files.bucket import Unchanged
from ragstack_local.files.documents import Documents
from ragstack_local.files.ingestion import Round, ingest, note_keys, note_skipped, remove, warn_of_copies
from ragstack_local.files.synchronisation import Folder, SyncPlan, preview
from ragstack_local.files.uploading import UploadOptions, end, note_unlabelled, print_round, round_as_json
from ragstack_local.files.uploads import select
from ragstack_local.show import display


@with_options
def sync(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER", help="A folder of documents.", exists=True, file_okay=False, show_default=False
        ),
    ],
    stack: ConnectionOptions,
    options: UploadOptions,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the differences, and change nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Remove documents without confirmation.")] = False,
    timeout: Timeout = 900.0,
    as_json: AsJson = False,
) -> None:
    """Synchronise a stack with a folder: upload new and changed files, and remove documents of deleted files.

    It shows what differs, and asks before it removes documents. These are all documents below the folder's key that
    the folder does not have, even if other people or programs uploaded them. Documents with other keys stay.

    Use the same --corpus, --version and --metadata as before: an attribute that neither the sidecar nor an option
    sets any more is removed.

    With another --prefix, all documents of the folder move to new keys. Nothing is removed unless every file was
    uploaded.

    Example:  ragstack sync handbook/

    Only the differences:  ragstack sync handbook/ --dry-run

    For a program:  ragstack sync handbook/ --yes --json
    """
    documents, roots = options.open(stack, [folder])
    ours = Folder(folder.expanduser().resolve(), roots)
    ours.name(options.prefix)
    selection = select([ours.path], follow_links=options.follow_links, roots=roots)
    note_skipped(selection, every=options.show_skipped, as_json=as_json)
    note_keys(selection, roots, as_json=as_json)
    plan = ours.plan(documents, selection)
    for line in preview(plan):
        display.console_for(as_json=as_json).print(line, soft_wrap=True)
    if dry_run:
        if as_json:
            kinds = {"new": plan.new, "changed": plan.changed, "unchanged": [file for file, _, _ in plan.unchanged]}
            keys = {kind: [file.key for file in files] for kind, files in kinds.items()}
            display.print_json({"key": ours.key, **keys, "removed": sorted(plan.removed)})
        return
    if plan.removed and not yes:
        confirm(f"Remove {display.counted(len(plan.removed), 'document')}?")
    roots.write()
    try:
        files = [*plan.new, *plan.changed]
        done = ingest(documents, files, timeout, as_json=as_json) if files else Round()
        removed = _remove(documents, plan, done, timeout, as_json=as_json)
    except KeyboardInterrupt as interrupt:
        display.console_for(as_json=as_json).print(str(interrupt))
        raise typer.Exit(INTERRUPTED) from None
    for file, present, status in plan.unchanged:
        done.add(file, present.uri, Unchanged(status))
    done.add_faults(selection.faults)
    warn_of_copies(documents, done, as_json=as_json)
    note_unlabelled(stack, documents, files, done, as_json=as_json)
    left = {uri: status for uri, status in removed.items() if status != DELETED}
    if as_json:
        rows = [{"uri": uri, "status": str(status), "reason": status.reason} for uri, status in removed.items()]
        display.print_json({**round_as_json(done, selection), "removed": rows})
    else:
        print_round(done)
        if removed:
            display.print_unsearchable(left)
            display.console.print(f"{display.counted(len(removed) - len(left), 'document')} removed")
    end(done, timeout)
    if left:
        raise typer.Exit(NOTHING_FOUND)


def _remove(
    documents: Documents, plan: SyncPlan, done: Round, timeout: float, *, as_json: bool
) -> dict[str, DocumentStatus]:
    """Remove what the plan says if every file was uploaded: a document may otherwise lose its only copy."""
    if not plan.removed:
        return {}
    if any(status == NOT_UPLOADED for status in done.statuses.values()):
        words = "Nothing was removed, because a file could not be uploaded: correct it, and run the command again"
        display.console_for(as_json=as_json).print(words, style="yellow", soft_wrap=True)
        return {}
    return remove(documents, [each.uri for each in plan.removed.values()], timeout, as_json=as_json)
