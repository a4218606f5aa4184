"""The command line `ragstack`."""

import inspect
import os
import shlex
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final, NoReturn

import typer
from boto3.exceptions import Boto3Error
from botocore.exceptions import BotoCoreError, ClientError
from rich.text import Text

from evaluation import command as evaluation
from local_bedrock import command
from local_bedrock.options import DEFAULT_PORT as DEFAULT_BEDROCK_PORT
from local_bedrock.options import EMBEDDING_HELP
from ragstack_common import DISTRIBUTION, __version__
from ragstack_common.config import DEFAULT_EMBEDDING
from ragstack_common.errors import MissingPackageError, RagStackError
from ragstack_local import asking, display, ingesting, repairing, replaying, single_documents
from ragstack_local.collections import command as collections_command
from ragstack_local.connection import DEFAULT_PREFIX
from ragstack_local.demo import run_demo
from ragstack_local.stack import running
from ragstack_local.stack.errors import StackError
from ragstack_local.stack.local_stack import DEFAULT_PORT, RunningStack, StackOptions, local_stack
from ragstack_local.targets import API_URL_VARIABLE, DATA_VARIABLE, OnAws, Prefix, connect, find_project

FAILED: Final = 3
STOP_SECONDS: Final = 20.0

SET_BY_THE_STACK: Final = (
    "target",
    "prefix",
    "knowledge_base",
    "knowledge_base_id",
    "data_source_id",
    "bedrock_endpoint",
    "aws_endpoint",
)
"""Context values that say where the local stack is, or what it searches."""

app = typer.Typer(
    name="ragstack",
    no_args_is_help=True,
    # Click's own help: it joins the lines of a paragraph and cuts no option, however narrow the terminal is.
    rich_markup_mode=None,
    context_settings={"max_content_width": 120},
    pretty_exceptions_enable=False,
    help="Search over your documents: on this machine without an AWS account, or deployed to AWS.\n\n"
    "A first session:  `ragstack up`  in one terminal; in another  `ragstack ingest FOLDER`  and  "
    "`ragstack query 'what you want to know'`.\n\n"
    f"With --api-url (or {API_URL_VARIABLE}) these commands use an API anywhere, and nothing else of its stack: ingest,"
    " status, delete, reconcile, query, corpora, versions and facets. failures, replay, discard and env need a local"
    " stack, or with --aws credentials for the stack's services.\n\n"
    "Exit codes: 0 success, 1 nothing found or a document not searchable, 2 wrong usage, 3 failure, "
    "130 interrupted.\n\n"
    f"Everything local is kept in the project's folder .ragstack, or where the variable {DATA_VARIABLE} says; "
    "with another folder and other ports, a second local stack runs beside the first.",
)

Port = Annotated[int, typer.Option(help="Port of MiniStack: S3, SQS, Lambda, API Gateway.", min=1, max=65535)]
BedrockPort = Annotated[int, typer.Option(help="Port of the local Bedrock.", min=1, max=65535)]
DataDir = Annotated[
    Path | None, typer.Option(help="Folder of objects, index and logs; survives restarts. Default: .ragstack/local")
]
Embedding = Annotated[str, typer.Option(help=EMBEDDING_HELP)]
BedrockArguments = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[-- BEDROCK_OPTIONS]", help="After a --, options of `ragstack bedrock`.", show_default=False
    ),
]
Context = Annotated[
    list[str] | None,
    typer.Option(
        "--context",
        metavar="NAME=VALUE",
        help="A context value of the CDK app, such as multi_corpus_metadata=people,product. Repeatable.",
    ),
]


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


@app.command()
def up(
    port: Port = DEFAULT_PORT,
    bedrock_port: BedrockPort = DEFAULT_BEDROCK_PORT,
    data_dir: DataDir = None,
    embedding: Embedding = DEFAULT_EMBEDDING,
    context: Context = None,
    allow_origin: command.AllowOrigin = None,
    bedrock_arguments: BedrockArguments = None,
) -> None:
    """Start the local stack, deploy the CDK app into it, and keep it up until Ctrl-C.

    Documents and index stay in the data folder and are there again at the next start.

    Example:  ragstack up --port 5566 --bedrock-port 5567

    With AWS's quotas and pace:  ragstack up -- --quotas --indexing-seconds 5

    With searches that are balanced over corpora:  ragstack up --context multi_corpus_metadata=people,product
    """
    project = find_project()
    project.require_checkout()
    options = _stack_options(
        data_dir or project.data / "local", port, bedrock_port, embedding, context, bedrock_arguments
    )
    options = replace(options, origins=tuple(allow_origin or ()))
    with local_stack(project, options, display.step) as stack:
        display.print_urls(stack.connection, options.data)
        display.console.print(f"\nPut documents in:  {display.program()} ingest PATH   Ctrl-C ends the stack.")
        _keep_up(stack)


@app.command()
def demo(
    once: Annotated[bool, typer.Option("--once", help="Exit after the queries instead of staying up.")] = False,
    port: Port = DEFAULT_PORT,
    bedrock_port: BedrockPort = DEFAULT_BEDROCK_PORT,
    data_dir: DataDir = None,
    embedding: Embedding = DEFAULT_EMBEDDING,
    context: Context = None,
    bedrock_arguments: BedrockArguments = None,
) -> None:
    """Demonstrate RAGStack: start the local stack, upload samples/documents, wait until it is searchable, and ask.

    The documents stay in the data folder, which is that of `ragstack up`.

    Example:  ragstack demo --once
    """
    project = find_project()
    project.require_checkout()
    options = _stack_options(
        data_dir or project.data / "local", port, bedrock_port, embedding, context, bedrock_arguments
    )
    with local_stack(project, options, display.step) as stack:
        run_demo(stack.connection, project.root)
        display.console.print()
        display.print_urls(stack.connection, options.data)
        if not once:
            display.console.print(f"\nAsk more:  {display.program()} query 'your question'   Ctrl-C ends the stack.")
            _keep_up(stack)
    if once:
        again = _same_stack(port, bedrock_port, data_dir, embedding, context, bedrock_arguments)
        display.console.print(
            f"\nThe stack has stopped. To search these documents again:  {display.program()} {again}", soft_wrap=True
        )


@app.command()
def down() -> None:
    """Stop the running local stack, as Ctrl-C in its terminal would, or what is left of one that was killed.

    Example:  ragstack down && ragstack up
    """
    project = find_project()
    found = running.read(project.running)
    if found is None:
        with display.step("Cleaning up after a killed local stack"):
            was_killed = running.clean_up(project.running)
        if not was_killed:
            raise StackError("No local stack is running")
        display.console.print("Stopped what a killed local stack left running. Start again with `ragstack up`.")
        return
    if "process_id" not in found:
        raise StackError("The local stack is starting or ending: try again in a moment")
    process_id = found["process_id"]
    os.kill(process_id, signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS
    with display.step(f"Ending the local stack (process {process_id})"):
        while running.read(project.running) is not None:
            if time.monotonic() > deadline:
                raise StackError(f"Process {process_id} did not end within {STOP_SECONDS:g} s: kill it by hand")
            time.sleep(0.1)


@app.command()
def env(aws: OnAws = False, stack_prefix: Prefix = DEFAULT_PREFIX) -> None:
    """Print the stack's URL, ids and endpoints as shell variables, for curl, the AWS CLI and programs.

    API, BUCKET, KNOWLEDGE_BASE_ID and DATA_SOURCE_ID; for the local stack also its credentials, its region and the
    endpoint of each service, which every AWS SDK reads.

    Example:  eval "$(ragstack env)"; curl -s "$API/health"
    """
    for name, value in connect(aws, stack_prefix).variables.items():
        typer.echo(f"export {name}={shlex.quote(value)}")


app.command()(command.bedrock)


app.command()(ingesting.ingest)
app.command()(ingesting.status)
app.command()(single_documents.delete)
app.command()(repairing.failures)
app.command()(replaying.replay)
app.command()(repairing.discard)
app.command()(repairing.reconcile)
app.command()(asking.query)
app.command()(asking.corpora)
app.command()(asking.versions)
app.command()(asking.facets)
app.command()(collections_command.build)
app.command("eval")(evaluation.evaluate)
app.command()(evaluation.tune)
for _command in app.registered_commands:
    # Whole, because Click cuts a summary that it finds by itself.
    _command.short_help = " ".join((inspect.getdoc(_command.callback) or "").partition("\n\n")[0].split())


def main() -> None:
    """Run the command line; a mistake of the user is one line, never a trace."""
    try:
        app()
    except (RagStackError, ClientError, BotoCoreError, Boto3Error, OSError) as error:
        _fail(error)
    except ModuleNotFoundError as error:
        _fail(MissingPackageError("This command", error.name, "local"))


def _fail(error: Exception) -> NoReturn:
    display.errors.print(Text.assemble(("Error:", "red"), f" {error}"), soft_wrap=True)
    raise SystemExit(FAILED) from None


def _stack_options(
    data_dir: Path,
    port: int,
    bedrock_port: int,
    embedding: str,
    context: list[str] | None,
    bedrock_arguments: list[str] | None,
) -> StackOptions:
    """Put together what the local stack is told; what is for the local Bedrock is checked before anything starts."""
    command.check(bedrock_arguments or [])
    values = dict(_context_value(text) for text in context or ())
    return StackOptions(
        data_dir.absolute(), port, bedrock_port, embedding, tuple(bedrock_arguments or ()), context=values
    )


def _same_stack(
    port: int,
    bedrock_port: int,
    data_dir: Path | None,
    embedding: str,
    context: list[str] | None,
    bedrock_arguments: list[str] | None,
) -> str:
    """Write the arguments that start the stack of a demonstration again."""
    options = (
        ("--port", port, DEFAULT_PORT),
        ("--bedrock-port", bedrock_port, DEFAULT_BEDROCK_PORT),
        ("--data-dir", data_dir, None),
        ("--embedding", embedding, DEFAULT_EMBEDDING),
        *(("--context", value, None) for value in context or ()),
    )
    given = [part for name, value, default in options if value != default for part in (name, str(value))]
    return shlex.join(["up", *given, *(["--", *bedrock_arguments] if bedrock_arguments else [])])


def _context_value(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise typer.BadParameter(f"{text} is no NAME=VALUE", param_hint="--context")
    if name in SET_BY_THE_STACK:
        raise typer.BadParameter(f"{name} is what the local stack itself sets", param_hint="--context")
    return name, value


def _keep_up(stack: RunningStack) -> None:
    try:
        stack.watch()
    except KeyboardInterrupt:
        display.console.print("\nEnding the local stack")
