"""What ``ragstack ingest`` and ``ragstack sync`` share: options, and what they print at the end."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import ValidationError

from ragstack_common.core.errors import InvalidDocumentError
from ragstack_common.core.names import canonical
from ragstack_common.core.uris import key_of_uri
from ragstack_local.api.calls import run
from ragstack_local.connection.address import Address
from ragstack_local.connection.connection import Connection
from ragstack_local.connection.following import ENDED, FOUND
from ragstack_local.connection.roots import Roots
from ragstack_local.connection_options import ConnectionOptions
from ragstack_local.errors import NOTHING_FOUND, ApiError, StackError
from ragstack_local.files.documents import ApiDocuments, Documents, StackDocuments
from ragstack_local.files.ingestion import SHOW_SKIPPED, Round
from ragstack_local.files.uploads import FOLLOW_LINKS, LocalFile, Selection, read_options, require, shown
from ragstack_local.show import display

if TYPE_CHECKING:
    from ragstack_common.access.policy import AccessPolicy


@dataclass(frozen=True)
class UploadOptions:
    """What to upload, with which keys and attributes.

    A command with a parameter of this type, decorated with :func:`with_options`, has these fields as options.
    """

    prefix: Annotated[
        str | None,
        typer.Option(help="Prefix for the keys of new folders and files; remembered for later uploads."),
    ] = None
    corpus: Annotated[str | None, typer.Option(help="The corpus of the documents.")] = None
    version: Annotated[str | None, typer.Option(help="The version of the documents, a text.")] = None
    metadata: Annotated[
        list[str] | None,
        typer.Option(
            "--metadata",
            metavar="NAME=VALUE",
            help="Another attribute of every document. Repeatable. A value in JSON is a number, true, false, or a list "
            'of texts like \'["a", "b"]\'; any other value is a text.',
        ),
    ] = None
    follow_links: Annotated[
        bool, typer.Option(FOLLOW_LINKS, help="Follow symbolic links that leave the folder, instead of skipping them.")
    ] = False
    show_skipped: Annotated[
        bool, typer.Option(SHOW_SKIPPED, help="List every skipped file with the reason, not only the number.")
    ] = False

    def open(self, stack: ConnectionOptions, paths: Sequence[Path]) -> "tuple[Documents, Roots]":
        """Open the documents of a stack or an API, and the keys that are remembered for it.

        Raises:
            BadParameter: An attribute is invalid.
            StackError: There is no stack, or a path does not exist.
        """
        try:
            given = read_options(self.corpus, self.version, self.metadata or [])
        except InvalidDocumentError as error:
            raise typer.BadParameter(str(error)) from None
        require(paths)
        if stack.is_api:
            api = stack.api()
            return ApiDocuments(api, given), Roots.for_api(api.url)
        connection = stack.connect()
        return StackDocuments.for_stack(connection, given), Roots.for_stack(connection)


def note_unlabelled(
    stack: ConnectionOptions, documents: Documents, files: Sequence[LocalFile], done: Round, *, as_json: bool
) -> None:
    """Print which uploads have no access label, and where documents get one. Only operators may read the rules."""
    connection = None if stack.is_api else stack.connect()
    if not done.uploaded or (connection is not None and connection.is_local and connection.people_url is None):
        return
    policy = _policy(stack, connection)
    if policy is None:
        return
    keys = {canonical(key_of_uri(uri)) for uri in done.uploaded}
    uploaded = [file for file in files if canonical(file.key) in keys]
    unlabelled = [file.key for file in uploaded if _label(policy, documents, file) is None]
    if not unlabelled:
        return
    some, none_of = ("document has", "it") if len(unlabelled) == 1 else ("documents have", "them")
    display.console_for(as_json=as_json).print(
        f"{len(unlabelled):,} {some} no access label, so only operators see {none_of}. {_how_to_label(policy)}."
        " `ragstack access show` lists the prefixes and their labels",
        style="yellow",
        soft_wrap=True,
    )


def _label(policy: "AccessPolicy", documents: Documents, file: LocalFile) -> str | None:
    wanted = None
    with suppress(InvalidDocumentError, OSError):  # it changed since the upload
        wanted = documents.attributes(file).get(policy.attribute)
    return policy.label_of(file.key, wanted)


def _how_to_label(policy: "AccessPolicy") -> str:
    """Name the prefixes that give a label, and those that let documents name one."""
    prefixes = policy.prefixes.items()
    if given := [prefix or "any other prefix" for prefix, rule in prefixes if rule.default]:
        return f"Documents get a label under {_some(given)}: choose the folder with --prefix"
    if named := [prefix or "any prefix" for prefix, rule in prefixes if rule.labels]:
        return f"Documents can name one under {_some(named)}: add --metadata {policy.attribute}=LABEL"
    return "The access file has no prefix that gives a label: add one, and deploy it"


def _some(names: Sequence[str]) -> str:
    return ", ".join([*names[:5], *(["..."] if names[5:] else [])])


def _policy(stack: ConnectionOptions, connection: Connection | None) -> "AccessPolicy | None":
    """Return what the access file says about labels; None if there is no file, or the caller may not read it.

    Uploads into the bucket of a local stack need no login, so the user may be signed in without the rights of an
    operator: if the stack has an API without a login, that one is called first.
    """
    from ragstack_common.access.policy import AccessPolicy, LabelRule  # noqa: PLC0415 - help does without
    from ragstack_common.services.access import Me, RulesView  # noqa: PLC0415 - imports the AWS SDK
    from ragstack_local.api.http_operations import HttpOperations  # noqa: PLC0415

    apis = [stack.api(connection)]
    if connection is not None and connection.is_local:
        address = Address(connection.api_url)
        apis.insert(0, HttpOperations(lambda: address))
    for api in apis:
        with suppress(ApiError, ValidationError):  # the latter: a stack of another version
            attribute = run(api.request("GET", "/api/me", Me)).label_attribute
            if attribute is None:
                return None
            rules = run(api.request("GET", "/api/access", RulesView))
            labels = {each.label: LabelRule() for each in rules.labels}
            return AccessPolicy(attribute=attribute, labels=labels, prefixes=rules.prefixes)
    return None


def end(done: Round, timeout: float) -> None:
    """End with the exit code that the documents' statuses have.

    Raises:
        StackError: A document did not reach a final status in time.
        Exit: With 1 if a document is not searchable.
    """
    if any(status not in ENDED for status in done.statuses.values()):
        raise StackError(f"Not every document reached a final status within {timeout:g} s: see `ragstack status`")
    if any(status not in FOUND for status in done.statuses.values()):
        raise typer.Exit(NOTHING_FOUND)


def round_as_json(done: Round, selection: Selection) -> dict[str, Any]:
    """Return what was uploaded, skipped and reported."""
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
        "copies": done.copies,
    }


def print_round(done: Round, note: str = "") -> None:
    """Print what was uploaded and what of it cannot be searched; the *note* is about unchanged files."""
    display.print_unsearchable(done.statuses)
    display.console.print(display.summary(done.statuses))
    if done.unchanged:
        display.console.print(f"{done.unchanged:,} unchanged, not uploaded again{note}", style="dim")
    if done.failed:
        display.console.print(
            f"{done.failed:,} of these failed in an earlier run: see `ragstack status --failed`",
            style="yellow",
            soft_wrap=True,
        )
