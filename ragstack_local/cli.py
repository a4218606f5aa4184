"""The command line `ragstack`."""

import json
import os
import signal
import time
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from botocore.exceptions import BotoCoreError, ClientError
from rich.markup import escape

from ragstack_common.errors import RagStackError
from ragstack_common.settings import MAX_RESULTS
from ragstack_local import display
from ragstack_local.connection import DEFAULT_PREFIX, Connection
from ragstack_local.demo import run_demo
from ragstack_local.ingest import ingest as upload_and_follow
from ragstack_local.ingest import note_skipped
from ragstack_local.search import Caller
from ragstack_local.stack.errors import StackError
from ragstack_local.stack.local_stack import DEFAULT_BEDROCK_PORT, DEFAULT_PORT, StackOptions, local_stack
from ragstack_local.stack.project import Project
from ragstack_local.uploads import FINAL, SEARCHABLE, count_statuses, queue_depth, select

NOTHING_FOUND: Final = 1
FAILED: Final = 3
STOP_SECONDS: Final = 20.0

app = typer.Typer(
    name="ragstack",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Search over your documents: on this machine without an AWS account, or deployed to AWS.\n\n"
    "A first session:  [bold]ragstack up[/]  in one terminal; in another  [bold]ragstack ingest FOLDER[/]  and  "
    "[bold]ragstack query 'what you want to know'[/].\n\n"
    "Exit codes: 0 success, 1 nothing found or a document not searchable, 2 wrong usage, 3 failure, "
    "130 interrupted.",
)

Port = Annotated[int, typer.Option(help="Port of MiniStack: S3, SQS, Lambda, API Gateway.", min=1, max=65535)]
BedrockPort = Annotated[int, typer.Option(help="Port of the local Bedrock.", min=1, max=65535)]
DataDir = Annotated[
    Path | None, typer.Option(help="Folder of objects, index and logs; survives restarts. Default: .ragstack/NAME")
]
Embedding = Annotated[
    str, typer.Option(help="What texts are embedded with: hashed needs nothing; onnx:FOLDER uses a model of yours.")
]
OnAws = Annotated[bool, typer.Option("--aws", help="Use the stack deployed to AWS instead of the local one.")]
Prefix = Annotated[str, typer.Option(help="First part of the names of the deployed stacks.")]


@app.command()
def up(
    port: Port = DEFAULT_PORT,
    bedrock_port: BedrockPort = DEFAULT_BEDROCK_PORT,
    data_dir: DataDir = None,
    embedding: Embedding = "hashed",
) -> None:
    """Start the local stack, deploy the CDK app into it, and keep it up until Ctrl-C.

    Documents and index stay in the data folder and are there again at the next start.
    """
    project = Project.find()
    options = StackOptions(data_dir or project.data / "local", port, bedrock_port, embedding)
    with local_stack(project, options, display.step) as connection:
        display.print_urls(connection)
        display.console.print("\nPut documents in:  [bold]ragstack ingest PATH[/]   Ctrl-C ends the stack.")
        _wait_for_interrupt()


@app.command()
def demo(
    once: Annotated[bool, typer.Option("--once", help="Exit after the queries instead of staying up.")] = False,
    port: Port = DEFAULT_PORT,
    bedrock_port: BedrockPort = DEFAULT_BEDROCK_PORT,
    data_dir: DataDir = None,
    embedding: Embedding = "hashed",
) -> None:
    """Show the main job: start the local stack, upload samples/ and docs/, wait until they are searchable, and ask."""
    project = Project.find()
    options = StackOptions(data_dir or project.data / "demo", port, bedrock_port, embedding)
    with local_stack(project, options, display.step) as connection:
        run_demo(connection, project.root)
        display.console.print()
        display.print_urls(connection)
        if not once:
            display.console.print("\nAsk more:  [bold]ragstack query 'your question'[/]   Ctrl-C ends the stack.")
            _wait_for_interrupt()


@app.command()
def down() -> None:
    """End the running local stack, as Ctrl-C in its terminal would."""
    project = Project.find()
    process_id = Connection.of_running_stack(project.running).process_id
    assert process_id is not None
    os.kill(process_id, signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS
    with display.step(f"Ending the local stack (process {process_id})"):
        while project.running.exists():
            if time.monotonic() > deadline:
                raise StackError(f"Process {process_id} did not end within {STOP_SECONDS:g} s: kill it by hand")
            time.sleep(0.1)


@app.command()
def bedrock(
    port: Annotated[int, typer.Option(help="Port to listen on.", min=0, max=65535)] = DEFAULT_BEDROCK_PORT,
    data_dir: Annotated[Path, typer.Option(help="Folder of the index, created if missing.")] = Path(
        ".ragstack/bedrock"
    ),
    embedding: Embedding = "hashed",
    s3_endpoint: Annotated[
        str | None, typer.Option(help="Where documents are read. Default: boto3's own settings.")
    ] = None,
) -> None:
    """Run the local Bedrock Knowledge Base alone; any AWS SDK can use it as its endpoint.

    Example:  boto3.client("bedrock-agent-runtime", endpoint_url="http://127.0.0.1:4567")
    """
    # The store and its engine are needed here alone; every other command starts without them.
    from ragstack_local.bedrock import server  # noqa: PLC0415
    from ragstack_local.bedrock.embedding import EmbeddingError  # noqa: PLC0415
    from ragstack_local.bedrock.store.database import DataFolderError  # noqa: PLC0415

    try:
        server.run(
            port=port,
            data_dir=data_dir,
            embedding=embedding,
            s3_endpoint=s3_endpoint,
            announce=lambda line: display.console.print(escape(line)),
        )
    except (EmbeddingError, DataFolderError, server.PortInUseError) as error:
        raise StackError(str(error)) from error


@app.command()
def ingest(
    paths: Annotated[list[Path], typer.Argument(help="Files, or folders that are walked.", show_default=False)],
    prefix: Annotated[str, typer.Option(help="Put before every key in the bucket.")] = "",
    timeout: Annotated[float, typer.Option(help="Seconds to wait for all documents.", min=1)] = 600.0,
    aws: OnAws = False,
    stack_prefix: Prefix = DEFAULT_PREFIX,
) -> None:
    """Upload documents and wait until each is searchable, or it is known why not.

    A file NAME.metadata.json beside a document holds its attributes:  {"metadataAttributes": {"topic": "travel"}}
    """
    selection = select(paths, prefix)
    note_skipped(selection.skipped)
    if not selection.files:
        raise StackError("There is no document below these paths")
    connection = _connect(aws, stack_prefix)
    statuses = upload_and_follow(connection, selection.files, timeout)
    display.print_unsearchable(statuses)
    display.console.print(display.summary(statuses))
    if any(status not in FINAL for status in statuses.values()):
        put_aside = queue_depth(connection, connection.dead_letter_queue_url)
        raise StackError(
            f"Not every document got to a final state within {timeout:g} s;"
            f" the dead-letter queue holds {put_aside} messages. `ragstack status` shows how it goes on"
        )
    if any(status not in SEARCHABLE for status in statuses.values()):
        raise typer.Exit(NOTHING_FOUND)


@app.command()
def query(
    text: Annotated[str, typer.Argument(help="What you want to know.", show_default=False)],
    metadata_filter: Annotated[
        str | None,
        typer.Option("--filter", help='JSON, for example \'{"topic": {"$eq": "travel"}, "year": {"$gte": 2025}}\'.'),
    ] = None,
    top_k: Annotated[int, typer.Option(help="Results at most.", min=1, max=MAX_RESULTS)] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Print the API's answer as JSON.")] = False,
    aws: OnAws = False,
    stack_prefix: Prefix = DEFAULT_PREFIX,
    api_key: Annotated[
        str | None, typer.Option(envvar="RAGSTACK_API_KEY", help="For an API that asks for one.")
    ] = None,
) -> None:
    """Search through the HTTP interface and show the ranked results."""
    body: dict[str, Any] = {"query": text, "top_k": top_k}
    if metadata_filter is not None:
        try:
            body["metadata_filter"] = json.loads(metadata_filter)
        except ValueError as error:
            raise typer.BadParameter(f"not JSON: {error}", param_hint="--filter") from error
    answer = Caller.of(_connect(aws, stack_prefix), api_key).retrieve(body)
    if as_json:
        typer.echo(json.dumps(answer, indent=2, ensure_ascii=False))
    else:
        display.print_results(answer)
    if not answer["results"]:
        raise typer.Exit(NOTHING_FOUND)


@app.command()
def status(aws: OnAws = False, stack_prefix: Prefix = DEFAULT_PREFIX) -> None:
    """Show where the stack is, how many documents are in which state, and what waits in the queues."""
    connection = _connect(aws, stack_prefix)
    display.print_urls(connection)
    counts = count_statuses(connection)
    documents = ", ".join(f"{count} {name}" for name, count in sorted(counts.items())) or "none"
    display.console.print(f"[dim]Documents       [/] {documents}")
    display.console.print(f"[dim]Waiting events  [/] {queue_depth(connection, connection.queue_url)}")
    display.console.print(f"[dim]Dead letters    [/] {queue_depth(connection, connection.dead_letter_queue_url)}")


def main() -> None:
    """Run the command line; a mistake of the user is one line, never a trace."""
    try:
        app()
    except (RagStackError, ClientError, BotoCoreError) as error:
        display.errors.print(f"[red]Error:[/] {escape(str(error))}", soft_wrap=True)
        raise SystemExit(FAILED) from None


def _connect(aws: bool, stack_prefix: str) -> Connection:
    return Connection.of_deployed_stack(stack_prefix) if aws else Connection.of_running_stack(Project.find().running)


def _wait_for_interrupt() -> None:
    try:
        signal.pause()
    except KeyboardInterrupt:
        display.console.print("\nEnding the local stack")
