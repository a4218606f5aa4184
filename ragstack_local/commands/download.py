"""``ragstack download``."""

import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated, Final

import typer

from ragstack_common.core.uris import saved_name
from ragstack_local.api.calls import run
from ragstack_local.connection_options import AsJson, ConnectionOptions, with_options
from ragstack_local.files.documents import ApiDocuments
from ragstack_local.show import display

STANDARD_OUTPUT: Final = Path("-")


@with_options
def download(
    stack: ConnectionOptions,
    document: Annotated[str, typer.Argument(metavar="URI", help="A document, by URI, key or id.", show_default=False)],
    to: Annotated[
        Path, typer.Option(metavar="PATH", help="A file, a folder that exists, or - for the standard output.")
    ] = Path(),
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
    as_json: AsJson = False,
) -> None:
    """Save the file of a document, also of one that failed.

    Example:  ragstack download handbook/leave.md

    Under another name:  ragstack download handbook/leave.md --to old.md

    To another program:  ragstack download handbook/leave.md --to - | wc
    """
    if to == STANDARD_OUTPUT and as_json:
        raise typer.BadParameter("the file cannot be written between JSON: name a file", param_hint="--to")
    if to != STANDARD_OUTPUT and not to.is_dir():
        _check(to, force=force)
    documents = ApiDocuments(stack.api())
    found = documents.download(document)
    if to == STANDARD_OUTPUT:
        run(documents.api.download(found.url, sys.stdout.buffer))
        sys.stdout.buffer.flush()
        return
    target = to / saved_name(found.name) if to.is_dir() else to
    _check(target, force=force)
    with _replacing(target) as file:
        size = run(documents.api.download(found.url, file))
        _check(target, force=force)  # somebody else may have written it
    if as_json:
        display.print_json({"path": str(target), "size": size})
    else:
        display.console.print(f"Wrote {display.counted(size, 'byte')} to {target}", soft_wrap=True)


def _check(target: Path, *, force: bool) -> None:
    """Check that a file may be written.

    Raises:
        BadParameter: It may not.
    """
    if not target.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {target.parent}", param_hint="--to")
    exists = target.exists() or target.is_symlink()
    if exists and not target.is_file():
        raise typer.BadParameter(f"{target} is not a file", param_hint="--to")
    if exists and not force:
        raise typer.BadParameter(f"{target} exists already: replace it with --force", param_hint="--to")


@contextmanager
def _replacing(target: Path) -> Iterator[IO[bytes]]:
    """Open a file next to the target, which replaces it if the block succeeds, and is removed otherwise."""
    beside = target.with_name(f".ragstack-{secrets.token_hex(8)}")
    try:
        with beside.open("xb") as file:
            yield file
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)
