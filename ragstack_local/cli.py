"""The command line `ragstack`: its commands, and how it reports errors."""

import inspect
from importlib.metadata import entry_points
from typing import Annotated, Final, NoReturn

import typer
from boto3.exceptions import Boto3Error
from botocore.exceptions import BotoCoreError, ClientError
from rich.text import Text

from local_bedrock.command import bedrock
from ragstack_common import DISTRIBUTION, __version__
from ragstack_common.errors import MissingPackageError, RagStackError
from ragstack_local import display
from ragstack_local.commands import ask, build, chat, delete, failures, ingest, mcp, query, reconcile, stack, status
from ragstack_local.connection import DATA_VARIABLE
from ragstack_local.targets import API_URL_VARIABLE, FAILED

ENTRY_POINTS: Final = "ragstack.commands"
"""The group of entry points whose functions are commands too, under their own names."""

app = typer.Typer(
    name="ragstack",
    no_args_is_help=True,
    # Plain help joins the lines of a paragraph, and shows every option in full on a narrow terminal.
    rich_markup_mode=None,
    context_settings={"max_content_width": 120},
    pretty_exceptions_enable=False,
    help="Search your documents: on this machine without an AWS account, or deployed to AWS.\n\n"
    "To start:  `ragstack up`  in one terminal; in another  `ragstack ingest FOLDER`  and  "
    "`ragstack ask 'what you want to know'`.\n\n"
    f"With --api-url (or {API_URL_VARIABLE}) these commands need only the URL of an API: ingest, status, delete,"
    " failures, replay, discard, reconcile, query, ask, chat, corpora, versions, facets and mcp. env needs a local"
    " stack, or with --aws credentials for the stack's services.\n\n"
    "Exit codes: 0 success, 1 nothing found or a document not searchable, 2 wrong usage, 3 failure, "
    "130 interrupted.\n\n"
    f"Local data is in the project's folder .ragstack, or in the folder that the variable {DATA_VARIABLE} names; with"
    " another folder and other ports, you can run a second local stack.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        display.console.print(f"{DISTRIBUTION} {__version__}")
        raise typer.Exit


@app.callback()
def _ragstack(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None: ...


for _command in (
    stack.up,
    stack.demo,
    stack.down,
    stack.env,
    bedrock,
    ingest.ingest,
    status.status,
    delete.delete,
    failures.failures,
    failures.replay,
    failures.discard,
    reconcile.reconcile,
    query.query,
    ask.ask,
    chat.chat,
    query.corpora,
    query.versions,
    query.facets,
    build.build,
    mcp.mcp,
):
    app.command()(_command)
for _point in sorted(entry_points(group=ENTRY_POINTS), key=lambda point: point.name):
    app.command(_point.name)(_point.load())
for _registered in app.registered_commands:
    # The whole first paragraph: Click would cut it.
    _registered.short_help = " ".join((inspect.getdoc(_registered.callback) or "").partition("\n\n")[0].split())


def main() -> None:
    """Run the command line; print a user's mistake as one line without a traceback."""
    try:
        app()
    except (RagStackError, ClientError, BotoCoreError, Boto3Error, OSError) as error:
        _fail(error)
    except ModuleNotFoundError as error:
        _fail(MissingPackageError("This command", error.name, "local"))


def _fail(error: Exception) -> NoReturn:
    display.errors.print(Text.assemble(("Error:", "red"), f" {error}"), soft_wrap=True)
    raise SystemExit(FAILED) from None
