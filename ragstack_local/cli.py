"""The command line `ragstack`: its commands, each imported when it is first used, and how it reports errors."""

import ast
import inspect
from collections.abc import Iterator, Mapping
from functools import cache, wraps
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Final, NoReturn

import typer
from typer.core import TyperGroup

from ragstack_common import DISTRIBUTION, __version__
from ragstack_common.core.errors import DocumentNotFoundError, InvalidRequestError, MissingPackageError, RagStackError
from ragstack_local.connection.environment import API_URL_VARIABLE, DATA_VARIABLE, FILE, read_files
from ragstack_local.errors import FAILED, INTERRUPTED, NOTHING_FOUND, WRONG_USAGE, UsageError

ENTRY_POINTS: Final = "ragstack.commands"
"""The group of entry points that are commands too, under their own names: functions, or Typer apps with commands."""

COMMANDS: Final = {
    "up": "ragstack_local.commands.stack:up",
    "demo": "ragstack_local.commands.stack:demo",
    "down": "ragstack_local.commands.stack:down",
    "env": "ragstack_local.commands.stack:env",
    "bedrock": "local_bedrock.command:bedrock",
    "model": "ragstack_local.commands.model:model",
    "ingest": "ragstack_local.commands.ingest:ingest",
    "sync": "ragstack_local.commands.sync:sync",
    "status": "ragstack_local.commands.status:status",
    "download": "ragstack_local.commands.download:download",
    "delete": "ragstack_local.commands.delete:delete",
    "failures": "ragstack_local.commands.failures:failures",
    "replay": "ragstack_local.commands.failures:replay",
    "discard": "ragstack_local.commands.failures:discard",
    "reconcile": "ragstack_local.commands.reconcile:reconcile",
    "doctor": "ragstack_local.commands.doctor:doctor",
    "certify": "ragstack_local.commands.certify:certify",
    "logs": "ragstack_local.commands.logs:logs",
    "query": "ragstack_local.commands.query:query",
    "ask": "ragstack_local.commands.ask:ask",
    "chat": "ragstack_local.commands.chat:chat",
    "corpora": "ragstack_local.commands.query:corpora",
    "versions": "ragstack_local.commands.query:versions",
    "facets": "ragstack_local.commands.query:facets",
    "build": "ragstack_local.commands.build:build",
    "mcp": "ragstack_local.commands.mcp:mcp",
    "login": "ragstack_local.commands.login:login",
    "logout": "ragstack_local.commands.login:logout",
    "whoami": "ragstack_local.commands.login:whoami",
    "access": "ragstack_local.commands.access:access",
    "conversations": "ragstack_local.commands.conversations:conversations",
    "gaps": "ragstack_local.commands.gaps:gaps",
    "judgments": "ragstack_local.commands.judgments:judgments",
}
"""Module and function of each command, in the order of the help. The function's docstring is the command's help."""


class _Commands(Mapping[str, Any]):
    """Typer's commands by name, each with the options that all commands share."""

    def __init__(self, shared: list[Any]) -> None:
        self._shared = shared

    def __getitem__(self, name: str) -> Any:
        alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
        loaded = _points()[name].load()
        if isinstance(loaded, typer.Typer):
            alone.add_typer(loaded, name=name, help=_summary(_points()[name]))
        else:
            alone.command(name)(loaded)
        made = typer.main.get_command(alone)
        command = made.commands[name] if isinstance(made, TyperGroup) else made
        for each in command.commands.values() if isinstance(command, TyperGroup) else [command]:
            each.params += self._shared
            each.callback = _interruptible(each.callback)
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(_points())

    def __len__(self) -> int:
        return len(_points())


def _interruptible(callback: Any) -> Any:
    """Exit with the code of Ctrl-C, even if it is pressed at a question."""

    @wraps(callback)
    def run(*arguments: Any, **options: Any) -> Any:
        try:
            return callback(*arguments, **options)
        except (KeyboardInterrupt, typer.Abort) as error:
            if isinstance(error, typer.Abort) and not isinstance(error.__context__, KeyboardInterrupt):
                raise  # the answer was no, or the input ended
            typer.echo(str(error) or "Interrupted", err=True)
            raise typer.Exit(INTERRUPTED) from None

    return run


class _LazyGroup(TyperGroup):
    """Lists commands without their modules, whose imports take ten times as long as the rest."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        shared = [each for each in self.params if each.name == "verbose"]
        self.commands = _Commands(shared)  # type: ignore[assignment] # nothing is added later

    def parse_args(self, context: Any, arguments: list[str]) -> list[str]:
        """Accept ``-m NAME`` as the command, as specification 000 writes it."""
        if arguments[:1] == ["-m"] and len(arguments) > 1:
            arguments = arguments[1:]
        return super().parse_args(context, arguments)

    def list_commands(self, _: Any) -> list[str]:
        return list(self.commands)

    def format_commands(self, _: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, _summary(point)) for name, point in _points().items()])


app = typer.Typer(
    name="ragstack",
    cls=_LazyGroup,
    no_args_is_help=True,
    # Plain help joins the lines of a paragraph, and shows every option in full on a narrow terminal.
    rich_markup_mode=None,
    context_settings={"max_content_width": 120},
    pretty_exceptions_enable=False,
    help="Search your documents: on this machine without an AWS account, or deployed to AWS.\n\n"
    "To start:  `ragstack up`  in one terminal; in another  `ragstack ingest FOLDER`  and  "
    "`ragstack ask 'what you want to know'`.\n\n"
    f"With --api-url (or {API_URL_VARIABLE}) these commands need only the URL of an API: ingest, sync, status,"
    " download, delete, failures, replay, discard, reconcile, doctor, query, ask, chat, corpora, versions, facets, mcp,"
    " login, logout, whoami, access, conversations, gaps and judgments. env and logs need a local stack, or with --aws"
    " credentials for the stack's services.\n\n"
    "Exit codes: 0 success, 1 nothing found or a document not searchable, 2 wrong usage, 3 failure, "
    "130 interrupted.\n\n"
    f"Local data is in the project's folder .ragstack, or in the folder that the variable {DATA_VARIABLE} names."
    " `ragstack up --data-dir FOLDER` with other ports starts a second local stack.",
)


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(f"{DISTRIBUTION} {__version__}")
        raise typer.Exit


def _read_environment_files(context: typer.Context, is_verbose: bool) -> None:
    """Read .env before the options of the command, some of which are variables, and say what it sets."""
    if context.obj is None:
        context.obj = read_files()
        if context.obj.lines:
            typer.echo("; ".join(context.obj.lines), err=True)
    if is_verbose:
        for line in context.obj.details:
            typer.echo(line, err=True)


@app.callback()
def _ragstack(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose",
            callback=_read_environment_files,
            expose_value=False,
            help=f"Print more about the files {FILE} and {FILE}.local of the current folder.",
        ),
    ] = False,
) -> None: ...


@cache
def _points() -> dict[str, EntryPoint]:
    own = (EntryPoint(name, value, ENTRY_POINTS) for name, value in COMMANDS.items())
    registered = sorted(entry_points(group=ENTRY_POINTS), key=lambda point: point.name)
    return {point.name: point for point in (*own, *registered)}


def _summary(point: EntryPoint) -> str:
    """Return the whole first paragraph of a command's docstring, which Click would cut.

    It is read from the source of its module, unless the module imports the function. A Typer app has its module's.
    """
    spec = find_spec(point.module)
    module = ast.parse(Path(str(spec.origin)).read_bytes() if spec else b"")
    for each in module.body:
        if isinstance(each, ast.FunctionDef) and each.name == point.attr:
            text = ast.get_docstring(each)
            break
        if isinstance(each, ast.Assign) and [ast.unparse(target) for target in each.targets] == [point.attr]:
            text = ast.get_docstring(module)
            break
    else:
        text = inspect.getdoc(point.load())
    return " ".join((text or "").partition("\n\n")[0].split())


def main() -> None:
    """Run the command line; print a user's mistake as one line without a traceback."""
    try:
        app()
    except (InvalidRequestError, UsageError) as error:
        _fail(error, WRONG_USAGE)
    except DocumentNotFoundError as error:
        _fail(error, NOTHING_FOUND)
    except (RagStackError, OSError) as error:
        _fail(error)
    except ModuleNotFoundError as error:
        _fail(MissingPackageError("This command", error.name, "local"))
    except Exception as error:
        from boto3.exceptions import Boto3Error  # noqa: PLC0415 - slow to import
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

        if not isinstance(error, ClientError | BotoCoreError | Boto3Error):
            raise
        _fail(error)


def _fail(error: Exception, code: int = FAILED) -> NoReturn:
    from rich.text import Text  # noqa: PLC0415 - the help does without

    from ragstack_local.show import display  # noqa: PLC0415

    display.errors.print(Text.assemble(("Error:", "red"), f" {error}"), soft_wrap=True)
    raise SystemExit(code) from None
