"""The options that commands share: which stack or API a command uses, and how it answers."""

import inspect
import os
import sys
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, is_dataclass
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from ragstack_common.core.addresses import is_here
from ragstack_common.core.errors import ConfigurationError
from ragstack_local.connection.address import Address, UrlOfFile
from ragstack_local.connection.connection import DEFAULT_PREFIX, LOCAL_CREDENTIALS, LOCAL_REGIONS, Connection, Project
from ragstack_local.connection.environment import API_KEY_VARIABLE, API_URL_VARIABLE, TOKEN_VARIABLE, source_file
from ragstack_local.errors import StackError
from ragstack_local.show import display

if TYPE_CHECKING:
    from ragstack_local.api.http_operations import HttpOperations


def _with_file(context: typer.Context, parameter: typer.CallbackParam, url: str | None) -> str | None:
    """Remember that a file of the current folder names the API, unless the command line or the environment does."""
    file = source_file(API_URL_VARIABLE)
    source = context.get_parameter_source(str(parameter.name))
    is_typed = source is not None and source.name == "COMMANDLINE"
    return url if url is None or file is None or is_typed else UrlOfFile(url, file)


OnAws = Annotated[
    bool,
    typer.Option(
        "--aws",
        help="Use the stack deployed to AWS instead of the local one; needs AWS credentials for its services. The"
        " variables of `ragstack env` are ignored.",
    ),
]
Prefix = Annotated[str, typer.Option(help="First part of the names of the deployed stacks.")]
ApiUrl = Annotated[
    str | None,
    typer.Option(
        "--api-url",
        metavar="URL",
        envvar=API_URL_VARIABLE,
        callback=_with_file,
        help="Use only the API at this URL, written up to its stage. Requests to API Gateway are signed with the AWS"
        " credentials unless a key or a token is given.",
    ),
]
ApiKey = Annotated[
    str | None, typer.Option(envvar=API_KEY_VARIABLE, help="For an API that needs a key. Prefer the variable.")
]
Token = Annotated[
    str | None,
    typer.Option(envvar=TOKEN_VARIABLE, help="For an API that needs a bearer token. Prefer the variable."),
]
Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Wait for the final status, or only start.")]
Timeout = Annotated[float, typer.Option(help="Maximum seconds to wait.", min=1)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]

_announced: ContextVar[set[str] | None] = ContextVar("announced", default=None)
"""The lines that this command has printed about its stack; None if it prints JSON."""


def announce(where: str) -> None:
    """Print which stack the command uses, once, on the error stream; nothing if the command prints JSON."""
    printed = _announced.get()
    if printed is not None and where not in printed:
        printed.add(where)
        display.errors.print(where, style="dim", soft_wrap=True)


def local_settings() -> list[str]:
    """Return the names of environment variables that lead AWS SDKs to a local stack, as `ragstack env` sets them.

    These are endpoints on this machine, and with the local credentials also these and the local region.
    """
    found = [name for name, value in os.environ.items() if name.startswith("AWS_ENDPOINT_URL") and is_here(value)]
    if all(os.environ.get(name) == value for name, value in LOCAL_CREDENTIALS.items()):
        local = LOCAL_CREDENTIALS | LOCAL_REGIONS
        found += [name for name, value in local.items() if os.environ.get(name) == value]
    return sorted(found)


def leave_local_settings() -> None:
    """Remove these variables from the environment, for a command that uses AWS."""
    ignored = local_settings()
    for name in ignored:
        del os.environ[name]
    if ignored:
        announce(f"Ignored, because they are for a local stack: {', '.join(ignored)} (`ragstack env --unset`)")


@dataclass(frozen=True)
class DeploymentOptions:
    """The stack that a command uses: the local one, or one deployed to AWS.

    A command with a parameter of this type, decorated with :func:`with_options`, has these fields as options.
    """

    aws: OnAws = False
    stack_prefix: Prefix = DEFAULT_PREFIX

    def connect(self) -> Connection:
        """Find the running local stack, or the deployed one, with its bucket, queues and tables.

        Raises:
            StackError: There is none, or the environment names only an API.
        """
        if self.aws:
            from botocore.exceptions import NoCredentialsError, NoRegionError  # noqa: PLC0415 - only AWS needs it

            leave_local_settings()
            try:
                connection = Connection.from_deployed_stack(self.stack_prefix)
            except (NoCredentialsError, NoRegionError) as error:
                raise StackError(f"--aws needs AWS credentials and a region: {error}") from None
            announce(connection.described)
            return connection
        if os.environ.get(API_URL_VARIABLE):
            raise StackError(
                f"{API_URL_VARIABLE} names only an API, and this command needs the stack: give --aws, or unset the"
                " variable to use the local stack"
            )
        connection = Connection.from_running_stack(Project.find().running)
        announce(connection.described)
        return connection


@dataclass(frozen=True)
class ConnectionOptions(DeploymentOptions):
    """A stack as above, or an API anywhere."""

    api_url: ApiUrl = None
    api_key: ApiKey = field(default=None, repr=False)
    token: Token = field(default=None, repr=False)

    @property
    def is_api(self) -> bool:
        """Whether only an API is named; ``--aws`` has precedence."""
        return bool(self.api_url) and not self.aws

    def address(self, connection: Connection | None = None) -> Address:
        """Find the API: the one at the URL, else that of the stack.

        Args:
            connection: The stack, if the command has found it before.

        Raises:
            StackError: There is none.
            BadParameter: The URL is not an API's, or a header cannot hold the secret.
        """
        for option, secret in (("--api-key", self.api_key), ("--token", self.token)):
            if secret and not (secret.isascii() and secret.isprintable()):
                raise typer.BadParameter(
                    "it has a line break or another character that a header cannot hold", param_hint=option
                )
        if self.api_url is None or not self.is_api:
            return Address.for_stack(connection or self.connect(), self.api_key, self.token)
        if not is_here(self.api_url):
            leave_local_settings()
        try:
            address = Address.for_url(self.api_url, self.api_key, self.token)
        except ConfigurationError as error:
            raise typer.BadParameter(str(error), param_hint="--api-url") from None
        if address.file is None:
            announce(f"Stack: the API {address.api_url}")
        else:  # also printed if the command prints JSON
            display.errors.print(
                f"Stack: the API {address.api_url}, named by {address.file}. It gets no key, token, login or signature:"
                f" confirm it with --api-url, or set {API_URL_VARIABLE} in the environment",
                style="dim",
                soft_wrap=True,
            )
        return address

    def api(self, connection: Connection | None = None) -> "HttpOperations":
        """Return a client of the API; see :meth:`address` for arguments and errors."""
        from ragstack_local.api.http_operations import HttpOperations  # noqa: PLC0415 - help does without

        address = self.address(connection)
        return HttpOperations(lambda: address)


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add to a command the options of its parameters that are dataclasses, such as a :class:`ConnectionOptions`.

    Typer reads options from the signature; this replaces each of these parameters there by the fields of its type.
    """
    hints = get_type_hints(command, include_extras=True)
    groups = {name: hints.pop(name) for name, kind in list(hints.items()) if is_dataclass(kind)}
    members = {name: fields(kind) for name, kind in groups.items()}
    for kind in groups.values():
        hints |= get_type_hints(kind, include_extras=True)

    @wraps(command)
    def run(**options: Any) -> None:
        made = {
            name: kind(**{each.name: options.pop(each.name) for each in members[name]}) for name, kind in groups.items()
        }
        before = _announced.set(None if options.get("as_json") else set())
        try:
            command(**made, **options)
        finally:
            _announced.reset(before)

    own = [each for each in inspect.signature(command).parameters.values() if each.name not in groups]
    given = [
        inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default)
        for some in members.values()
        for each in some
    ]
    parameters = [each.replace(annotation=hints[each.name]) for each in (*own, *given)]
    vars(run)["__signature__"] = inspect.Signature(parameters, return_annotation=None)
    run.__annotations__ = hints
    return run


def confirm(question: str) -> None:
    """Ask before something is deleted.

    Raises:
        BadParameter: There is no terminal to ask on.
        Abort: The answer is no.
    """
    if not _is_terminal():
        raise typer.BadParameter("there is no terminal to ask on: confirm with --yes", param_hint="--yes")
    typer.confirm(question, abort=True, err=True)


def _is_terminal() -> bool:
    return sys.stdin.isatty()


def not_blank(text: str | None) -> str | None:
    """Reject a blank name; the callback of options such as ``--corpus``.

    Raises:
        BadParameter: It is blank.
    """
    if text is not None and not text.strip():
        raise typer.BadParameter("it is blank: write a name, or leave the option out")
    return text
