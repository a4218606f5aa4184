"""The commands of the local stack: ``ragstack up``, ``demo``, ``down`` and ``env``."""

import os
import re
import shlex
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from local_bedrock import command as bedrock
from local_bedrock.options import EMBEDDING_CHOICE_HELP
from ragstack_common.settings.access import AuthKind, Tenants
from ragstack_common.settings.model_cache import AUTOMATIC, EMBEDDING_VARIABLE
from ragstack_local.connection import running
from ragstack_local.connection.connection import NAMES, Connection, Project
from ragstack_local.connection.environment import DATA_VARIABLE
from ragstack_local.connection_options import DeploymentOptions, local_settings, with_options
from ragstack_local.errors import StackError
from ragstack_local.search_options import SettingsOptions
from ragstack_local.show import display
from ragstack_local.stack.console import question_url
from ragstack_local.stack.deployment import KnowledgeBaseType
from ragstack_local.stack.issuer import USERS
from ragstack_local.stack.last_callers import LOCAL_AUTH, LastCallers
from ragstack_local.stack.local_stack import DEFAULT_DATA, RunningStack, StackOptions, local_stack
from ragstack_local.stack.model_servers import ModelServer, chosen_server, running_servers

STOP_SECONDS: Final = 60.0
"""Three processes end one after the other, each within 8 seconds; a busy machine took 29."""

ANSWER_MODEL: Final = "answer_model"
"""The context value that names the model which writes answers."""


def _port(purpose: str) -> Any:
    return typer.Option(help=f"Port {purpose}.", min=1, max=65535)


@dataclass(frozen=True)
class StartOptions(SettingsOptions):
    """How `ragstack up` and `ragstack demo` start the local stack."""

    port: Annotated[int, _port("of MiniStack: S3, SQS, Lambda, API Gateway")] = StackOptions.port
    bedrock_port: Annotated[int, _port("of the local Bedrock")] = StackOptions.bedrock_port
    answers_port: Annotated[int, _port("on which answers stream")] = StackOptions.answers_port
    issuer_port: Annotated[int, _port("of the local issuer, with --auth oidc")] = StackOptions.issuer_port
    console_port: Annotated[int, _port("of the console")] = StackOptions.console_port
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder of objects, index and logs; survives restarts. Default: .ragstack/local")
    ] = None
    knowledge_base: Annotated[
        KnowledgeBaseType | None,
        typer.Option(
            help="Type of the local knowledge base: vector is like one with a vector store, managed like one of type"
            " MANAGED. A data folder keeps its type. Default: as at the last start, at first vector",
            show_default=False,
        ),
    ] = None
    embedding: Annotated[str, typer.Option(envvar=EMBEDDING_VARIABLE, help=EMBEDDING_CHOICE_HELP)] = AUTOMATIC
    context: Annotated[
        list[str] | None,
        typer.Option(
            "--context",
            metavar="NAME=VALUE",
            help="A context value of the CDK app, such as multi_corpus_metadata=people,product. Repeatable.",
        ),
    ] = None

    def read(self, project: Project, bedrock_arguments: Sequence[str], origins: Sequence[str] = ()) -> StackOptions:
        """Check everything, also the options for the local Bedrock, before a process starts."""
        project.require_checkout()
        values = self.values()
        share = values.pop("cosine_share", None)  # for the local Bedrock, not for the app
        arguments = [*(() if share is None else ("--cosine-share", share)), *bedrock_arguments]
        chosen = bedrock.check(arguments)
        answering = {ANSWER_MODEL: _model_id(chosen["llm_model"])} if chosen["llm_url"] else {}
        return StackOptions(
            data=(self.data_dir or project.data / DEFAULT_DATA).absolute(),
            port=self.port,
            bedrock_port=self.bedrock_port,
            answers_port=self.answers_port,
            issuer_port=self.issuer_port,
            console_port=self.console_port,
            knowledge_base=self.knowledge_base,
            embedding=self.embedding,
            bedrock_arguments=tuple(arguments),
            origins=tuple(origins),
            context={**answering, **values, **dict(_context_value(text) for text in self.context or ())},
        )


Auth = Annotated[
    str | None,
    typer.Option(
        metavar="none|oidc|none,oidc",
        help="How callers authenticate: not at all, with a token of a local issuer that has three example users,"
        " or in both ways, each with an API of its own. Default: as at the last start, at first none",
        show_default=False,
    ),
]
Access = Annotated[
    Path | None,
    typer.Option(
        help="The access file, with --auth oidc. Default: as at the last start, at first samples/access.json",
        exists=True,
        dir_okay=False,
    ),
]
TenantsOption = Annotated[
    Tenants | None,
    typer.Option(
        help="Whether the tenants of the access file share a knowledge base, or each has its own. Default: as at the"
        " last start, at first label",
        show_default=False,
    ),
]
BedrockArguments = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[-- BEDROCK_OPTIONS]", help="After a --, options of `ragstack bedrock`.", show_default=False
    ),
]
Llm = Annotated[
    str | None,
    typer.Option(
        metavar="auto|MODEL",
        help="Write the answers with a model of a server that runs on this machine (Ollama, LM Studio, llama.cpp).",
    ),
]


@with_options
def up(
    start: StartOptions,
    auth: Auth = None,
    access: Access = None,
    tenants: TenantsOption = None,
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

    With a managed knowledge base:  ragstack up --data-dir managed --knowledge-base managed

    With answers by a model of Ollama:  ragstack up --llm auto

    With people who sign in and see what samples/access.json allows:  ragstack up --auth none,oidc
    """
    project, arguments = Project.find(), bedrock_arguments or []
    if llm is not None:
        url, model = chosen_server(llm, running_servers())
        arguments = [*arguments, "--llm-url", url, "--llm-model", model]
    options = start.read(project, arguments, allow_origin or ())
    last = _last_callers(options.data, auth, access)
    options = replace(options, **_callers(project, auth, access, tenants, last))
    with local_stack(project, options, display.step) as stack:
        _print_place(stack, options)
        _follow_embedding(stack.connection)
        if ANSWER_MODEL not in options.context:
            _advise_on_servers(running_servers())
        program = display.program()
        display.console.print()
        for what, how in (
            ("Upload documents:", f"{program} ingest PATH"),
            ("Ask:", f"{program} chat"),
            *([("Sign in:", f"{program} login --user {' | '.join(USERS)}")] if options.has_people else []),
            ("Stop:", "Ctrl-C"),
        ):
            display.console.print(f"{what:18} {how}", soft_wrap=True)
        _print_console(stack.connection)
        _keep_up(stack)


@with_options
def demo(
    start: StartOptions,
    once: Annotated[bool, typer.Option("--once", help="Exit after the queries instead of keeping it running.")] = False,
    bedrock_arguments: BedrockArguments = None,
) -> None:
    """Demonstrate RAGStack: start the local stack, upload documents of samples/, wait until it finds them, and ask.

    The documents stay in the data folder, which `ragstack up` uses too. Its access rules are those of
    samples/access.json, also if `ragstack up` had others; the next `ragstack up` has its own again.

    Example:  ragstack demo --once
    """
    from ragstack_local.demo import run_demo  # noqa: PLC0415 - help does without

    project = Project.find()
    options = replace(
        start.read(project, bedrock_arguments or []), **_callers(project, "none,oidc", None), is_demonstration=True
    )
    with local_stack(project, options, display.step) as stack:
        _follow_embedding(stack.connection)
        run_demo(stack.connection, project.root)
        display.console.print()
        _print_place(stack, options)
        if not once:
            display.console.print()
            display.console.print(f"Ask more:  {display.program()} chat   Stop the stack: Ctrl-C", soft_wrap=True)
            _print_console(stack.connection)
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
        if not running.was_killed(project.running):
            raise StackError("No local stack is running")
        with display.step("Cleaning up after a killed local stack"):
            running.clean_up(project.running)
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


@with_options
def env(
    stack: DeploymentOptions,
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
    for name, value in stack.connect().variables.items():
        typer.echo(f"export {name}={shlex.quote(value)}")


def _print_place(stack: RunningStack, options: StackOptions) -> None:
    display.print_urls(stack.connection, options.data)
    if stack.is_second:
        variable = f"{DATA_VARIABLE}={shlex.quote(str(options.data))}"
        display.console.print(
            f"Commands use the local stack that was started first. To use this one:  export {variable}", soft_wrap=True
        )


def _print_console(connection: Connection) -> None:
    display.console.print()
    display.console.print(f"Console: {question_url(str(connection.console_url))}", soft_wrap=True)


def _follow_embedding(connection: Connection) -> None:
    """Show how far the stored texts are embedded again, until the end; searches are answered meanwhile."""
    if not (connection.embedding() or {}).get("reembedding"):
        return
    with display.progress() as bars:
        bar = bars.add_task("Embedding the stored texts", total=None, detail="searches are answered")
        while (found := connection.embedding()) and (progress := found["reembedding"]):
            bars.update(bar, completed=progress["done"], total=progress["total"])
            time.sleep(0.2)
        if found:
            bars.update(bar, completed=bars.tasks[bar].total)


def _advise_on_servers(servers: Sequence[ModelServer]) -> None:
    """Print how to use a model server that runs already."""
    for server in servers[:1]:
        display.console.print(
            f"\n{server.name} runs on this machine. To write the answers with its model {server.models[0]}:"
            f"  {display.program()} up --llm auto",
            soft_wrap=True,
        )


def _last_callers(data: Path, auth: str | None, access: Path | None) -> LastCallers | None:
    """Return the callers of the last start; None if there was none, or its damaged record is not needed.

    Raises:
        StackError: The record is damaged, and the options do not replace it.
    """
    try:
        return LastCallers.read(data)
    except StackError:
        if auth is None or (access is None and AuthKind.OIDC in auth.split(",")):
            raise
        return None


def _callers(
    project: Project,
    auth: str | None,
    access: Path | None,
    tenants: Tenants | None = None,
    last: LastCallers | None = None,
) -> dict[str, Any]:
    """Return how callers authenticate, the access file, and how tenants are separated.

    Raises:
        BadParameter: The local stack has no such kinds, or the file is about people and nobody can sign in.
        StackError: The access file of the last start is missing.
    """
    kinds = tuple(auth.split(",")) if auth is not None else last.auth if last is not None else (AuthKind.NONE,)
    if kinds not in LOCAL_AUTH:
        raise typer.BadParameter(f"{auth} is not none, oidc or none,oidc", param_hint="--auth")
    if AuthKind.OIDC not in kinds:
        if access is not None:
            raise typer.BadParameter("it is for people: add --auth oidc or --auth none,oidc", param_hint="--access")
        return {"tenants": tenants or Tenants.LABEL}
    kept = None if access is not None or last is None else last.access
    if kept is not None and not kept.is_file():
        raise StackError(f"The access file of the last start, {kept}, is missing: choose one with --access")
    of_last = [] if auth is not None else [f"--auth {','.join(kinds)}"]
    if tenants is None and last is not None and last.tenants is not Tenants.LABEL:
        of_last.append(f"--tenants {last.tenants}")
    if of_last:
        display.console.print(f"As at the last start: {' '.join(of_last)}", soft_wrap=True)
    return {
        "auth": kinds,
        "access": (access or kept or project.sample_access).absolute(),
        "tenants": tenants or (Tenants.LABEL if last is None else last.tenants),
    }


def _start_again(project: Project, options: StackOptions) -> str:
    """Write the command that starts a stack on the same data folder and ports; it keeps the callers."""
    ports = [each for each in fields(options) if each.name.endswith("port")]
    chosen = {each.name: value for each in ports if (value := getattr(options, each.name)) != each.default}
    if options.data != project.data / DEFAULT_DATA:
        chosen["data-dir"] = shlex.quote(str(options.data))
    given = [f"--{name.replace('_', '-')} {value}" for name, value in chosen.items()]
    return " ".join([display.program(), "up", *given])


def _model_id(model: str | None) -> str:
    """Return a model id for Converse; the local Bedrock ignores it and uses the model of its own options."""
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
