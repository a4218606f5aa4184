"""The commands of the local stack: ``ragstack up``, ``demo``, ``down`` and ``env``."""

import os
import re
import shlex
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from local_bedrock import command as bedrock
from local_bedrock.options import DEFAULT_PORT as DEFAULT_BEDROCK_PORT
from local_bedrock.options import EMBEDDING_HELP
from ragstack_common.config import DEFAULT_EMBEDDING
from ragstack_local.errors import StackError
from ragstack_local.search_options import SettingsOptions
from ragstack_local.show import display
from ragstack_local.stack.answers import DEFAULT_PORT as DEFAULT_ANSWERS_PORT
from ragstack_local.stack.local_stack import DEFAULT_DATA, DEFAULT_PORT, RunningStack, StackOptions, local_stack
from ragstack_local.stack.model_servers import ModelServer, chosen_server, running_servers
from ragstack_local.target import running
from ragstack_local.target.connection import NAMES, Project
from ragstack_local.target.environment import DATA_VARIABLE
from ragstack_local.targets import StackTarget, local_settings, with_target

STOP_SECONDS: Final = 60.0
"""Three processes end one after the other, each within 8 seconds; a busy machine took 29."""

COSINE_SHARE: Final = "cosine_share"
"""The setting that is for the local Bedrock, not for the app."""

ANSWER_MODEL: Final = "answer_model"
"""The context value that has answers written by a model."""

MODELS: Final = (
    ("--embedding fastembed", "downloads a model once (`make setup` installs it)"),
    ("--embedding onnx:FOLDER", "a folder with model.onnx and tokenizer.json"),
    ("--embedding 'openai:http://127.0.0.1:11434/v1#MODEL'", "an OpenAI-compatible server, such as Ollama"),
    ("--embedding bedrock:amazon.titan-embed-text-v2:0", "Amazon Bedrock, with your AWS credentials"),
)
"""Embeddings with a model: the option, and what it takes."""

EXAMPLE_FOLDER: Final = ".ragstack/model"

Port = Annotated[int, typer.Option(help="Port of MiniStack: S3, SQS, Lambda, API Gateway.", min=1, max=65535)]
BedrockPort = Annotated[int, typer.Option(help="Port of the local Bedrock.", min=1, max=65535)]
AnswersPort = Annotated[int, typer.Option(help="Port on which answers stream.", min=1, max=65535)]
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


Llm = Annotated[
    str | None,
    typer.Option(
        metavar="auto|MODEL",
        help="Let a model of a server that runs on this machine (Ollama, LM Studio, llama.cpp) write the answers.",
    ),
]


@with_target
def up(
    settings: SettingsOptions,
    port: Port = DEFAULT_PORT,
    bedrock_port: BedrockPort = DEFAULT_BEDROCK_PORT,
    answers_port: AnswersPort = DEFAULT_ANSWERS_PORT,
    data_dir: DataDir = None,
    embedding: Embedding = DEFAULT_EMBEDDING,
    context: Context = None,
    allow_origin: bedrock.AllowOrigin = None,
    llm: Llm = None,
    bedrock_arguments: BedrockArguments = None,
) -> None:
    """Start the local stack, deploy the CDK app into it, and keep it running until Ctrl-C.

    Documents and index stay in the data folder for the next start.

    Example:  ragstack up --port 5566 --bedrock-port 5567

    With AWS's quotas and delays:  ragstack up -- --quotas --indexing-seconds 5

    With settings tuned to your questions:  ragstack up --settings settings.json

    With searches that are balanced over corpora:  ragstack up --context multi_corpus_metadata=people,product

    With answers by a model of Ollama:  ragstack up --llm auto
    """
    project = Project.find()
    ports = (port, bedrock_port, answers_port)
    if llm is not None:
        url, model = chosen_server(llm, running_servers())
        bedrock_arguments = [*(bedrock_arguments or ()), "--llm-url", url, "--llm-model", model]
    options = _options(project, ports, data_dir, embedding, context, settings, bedrock_arguments, allow_origin)
    with local_stack(project, options, display.step) as stack:
        _print_place(stack, options)
        advise_on_embedding(options)
        if ANSWER_MODEL not in options.context:
            _advise_on_servers(running_servers())
        program = display.program()
        display.console.print()
        for what, how in (
            ("Upload documents:", f"{program} ingest PATH"),
            ("Ask:", f"{program} chat"),
            ("Stop:", "Ctrl-C"),
        ):
            display.console.print(f"{what:18} {how}", soft_wrap=True)
        _keep_up(stack)


@with_target
def demo(
    settings: SettingsOptions,
    once: Annotated[bool, typer.Option("--once", help="Exit after the queries instead of keeping it running.")] = False,
    port: Port = DEFAULT_PORT,
    bedrock_port: BedrockPort = DEFAULT_BEDROCK_PORT,
    answers_port: AnswersPort = DEFAULT_ANSWERS_PORT,
    data_dir: DataDir = None,
    embedding: Embedding = DEFAULT_EMBEDDING,
    context: Context = None,
    bedrock_arguments: BedrockArguments = None,
) -> None:
    """Demonstrate RAGStack: start the local stack, upload samples/documents, wait until it is searchable, and ask.

    The documents stay in the data folder, which is that of `ragstack up`.

    Example:  ragstack demo --once
    """
    from ragstack_local.demo import run_demo  # noqa: PLC0415 - help does without

    project = Project.find()
    ports = (port, bedrock_port, answers_port)
    options = _options(project, ports, data_dir, embedding, context, settings, bedrock_arguments)
    with local_stack(project, options, display.step) as stack:
        run_demo(stack.connection, project.root)
        display.console.print()
        _print_place(stack, options)
        if not once:
            display.console.print()
            display.console.print(f"Ask more:  {display.program()} chat   Stop the stack: Ctrl-C", soft_wrap=True)
            _keep_up(stack)
    if once:
        again = _start_again(project, options)
        display.console.print(f"\nThe stack has stopped. To start it again:  {again}", soft_wrap=True)


def down() -> None:
    """Stop the running local stack, or the processes that are left of one that was killed.

    Example:  ragstack down && ragstack up
    """
    project = Project.find()
    found = running.read(project.running)
    if found is None:
        with display.step("Cleaning up after a killed local stack"):
            was_killed = running.clean_up(project.running)
        if not was_killed:
            raise StackError("No local stack is running")
        display.console.print("Stopped the remaining processes of a killed local stack. Start again: `ragstack up`")
        return
    if "process_id" not in found:
        raise StackError("The local stack is starting or stopping: try again in a moment")
    process_id = found["process_id"]
    os.kill(process_id, signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS
    with display.step(f"Stopping the local stack (process {process_id})"):
        while running.read(project.running) is not None:
            if time.monotonic() > deadline:
                raise StackError(f"Process {process_id} did not end within {STOP_SECONDS:g} s: kill it by hand")
            time.sleep(0.1)


@with_target
def env(
    target: StackTarget,
    unset: Annotated[
        bool, typer.Option("--unset", help="Print the command that removes these variables from the shell.")
    ] = False,
) -> None:
    """Print the stack's URL, ids and endpoints as shell variables, for curl, the AWS CLI and programs.

    API, ANSWERS (where answers stream), BUCKET, KNOWLEDGE_BASE_ID and DATA_SOURCE_ID; for the local stack also its
    credentials, its region and the endpoint of each service, which every AWS SDK reads.

    Example:  eval "$(ragstack env)"; curl -s "$API/health"

    When you are done, or before you use AWS:  eval "$(ragstack env --unset)"
    """
    if unset:
        if names := [*(name for name in NAMES if name in os.environ), *local_settings()]:
            display.console.print(f"unset {' '.join(names)}", soft_wrap=True)
        return
    for name, value in target.connect().variables.items():
        typer.echo(f"export {name}={shlex.quote(value)}")


def _print_place(stack: RunningStack, options: StackOptions) -> None:
    display.print_urls(stack.connection, options.data)
    if stack.is_second:
        variable = f"{DATA_VARIABLE}={shlex.quote(str(options.data))}"
        display.console.print(
            f"Commands use the local stack that was started first. To use this one:  export {variable}", soft_wrap=True
        )


def advise_on_embedding(options: StackOptions) -> None:
    """Say what the default embedding lacks and how to get a model, at the first start on a data folder."""
    shown = options.data / "embedding-advice-shown"
    if options.embedding != DEFAULT_EMBEDDING or shown.exists():
        return
    shown.touch()
    introduction = (
        f"The embedding {DEFAULT_EMBEDDING!r} needs no model, but knows no synonyms."
        " To search with a model, start with an empty data folder and one of:"
    )
    example = f"Example:  {display.program()} up --data-dir {EXAMPLE_FOLDER} {MODELS[0][0]}"
    lines = [introduction, *(f"  {option:54} {what}" for option, what in MODELS), example]
    display.console.print()
    for line in lines:
        display.console.print(line, soft_wrap=True)  # users copy it


def _advise_on_servers(servers: Sequence[ModelServer]) -> None:
    """Say in a line how to use a model server that runs already."""
    for server in servers[:1]:
        display.console.print(
            f"\n{server.name} runs on this machine. To let its model {server.models[0]} write the answers:"
            f"  {display.program()} up --llm auto",
            soft_wrap=True,
        )


def _options(
    project: Project,
    ports: tuple[int, int, int],
    data_dir: Path | None,
    embedding: str,
    context: list[str] | None,
    settings: SettingsOptions,
    bedrock_arguments: list[str] | None,
    origins: list[str] | None = None,
) -> StackOptions:
    """Check everything, also the options for the local Bedrock, before a process starts."""
    project.require_checkout()
    values = settings.values()
    share = values.pop(COSINE_SHARE, None)
    arguments = [*(() if share is None else ("--cosine-share", share)), *(bedrock_arguments or ())]
    chosen = bedrock.check(arguments)
    answering = {ANSWER_MODEL: _model_id(chosen["llm_model"])} if chosen["llm_url"] else {}
    port, bedrock_port, answers_port = ports
    return StackOptions(
        data=(data_dir or project.data / DEFAULT_DATA).absolute(),
        port=port,
        bedrock_port=bedrock_port,
        answers_port=answers_port,
        embedding=embedding,
        bedrock_arguments=tuple(arguments),
        origins=tuple(origins or ()),
        context={**answering, **values, **dict(_context_value(text) for text in context or ())},
    )


def _start_again(project: Project, options: StackOptions) -> str:
    """Write the command that starts a stack on the same data folder and ports."""
    chosen = (
        ("--port", options.port, DEFAULT_PORT),
        ("--bedrock-port", options.bedrock_port, DEFAULT_BEDROCK_PORT),
        ("--answers-port", options.answers_port, DEFAULT_ANSWERS_PORT),
        ("--data-dir", options.data, project.data / "local"),
    )
    given = [f"{option} {shlex.quote(str(value))}" for option, value, default in chosen if value != default]
    return " ".join([display.program(), "up", *given])


def _model_id(model: str | None) -> str:
    """Return a model id for Converse; whatever it is, the local Bedrock uses the model of its own options."""
    return f"local.{re.sub(r'[^a-zA-Z0-9.:-]+', '-', model or 'model')}"


def _context_value(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise typer.BadParameter(f"{text} is not a NAME=VALUE pair", param_hint="--context")
    return name, value


def _keep_up(stack: RunningStack) -> None:
    try:
        stack.watch()
    except KeyboardInterrupt:
        display.console.print("\nStopping the local stack")
