"""The options that commands share: which stack or API a command uses, and how it answers."""

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from typing import Annotated, Any, Final, get_type_hints

import typer

from ragstack_common.errors import ConfigurationError
from ragstack_local.api_client import ApiClient
from ragstack_local.connection import DEFAULT_PREFIX, Connection, Project
from ragstack_local.environment import API_KEY_VARIABLE, API_URL_VARIABLE, TOKEN_VARIABLE
from ragstack_local.errors import StackError

NOTHING_FOUND: Final = 1
"""Exit code if nothing was found, or a document is not searchable."""

FAILED: Final = 3
"""Exit code after an error."""

INTERRUPTED: Final = 130
"""Exit code after Ctrl-C."""

OnAws = Annotated[
    bool,
    typer.Option(
        "--aws", help="Use the stack deployed to AWS instead of the local one; needs AWS credentials for its services."
    ),
]
Prefix = Annotated[str, typer.Option(help="First part of the names of the deployed stacks.")]
ApiUrl = Annotated[
    str | None,
    typer.Option(
        "--api-url",
        metavar="URL",
        envvar=API_URL_VARIABLE,
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


@dataclass(frozen=True)
class StackTarget:
    """The stack that a command uses: the local one, or one deployed to AWS.

    A command with a parameter of this type, decorated with :func:`with_target`, has these fields as options.
    """

    aws: OnAws = False
    stack_prefix: Prefix = DEFAULT_PREFIX

    def connect(self) -> Connection:
        """Find the running local stack, or the deployed one, with its bucket, queues and tables.

        Raises:
            StackError: There is none, or the environment names only an API.
        """
        if self.aws:
            return Connection.of_deployed_stack(self.stack_prefix)
        if os.environ.get(API_URL_VARIABLE):
            raise StackError(
                f"{API_URL_VARIABLE} names only an API, and this command needs the stack: give --aws, or unset the"
                " variable to use the local stack"
            )
        return Connection.of_running_stack(Project.find().running)


@dataclass(frozen=True)
class Target(StackTarget):
    """A stack as above, or an API anywhere."""

    api_url: ApiUrl = None
    api_key: ApiKey = None
    token: Token = None

    @property
    def is_api(self) -> bool:
        """Whether only an API is named; ``--aws`` has precedence."""
        return bool(self.api_url) and not self.aws

    def api(self) -> ApiClient:
        """Find the API: the one at the URL, else that of the stack.

        Raises:
            StackError: There is none.
            BadParameter: The URL is not an API's, or a header cannot hold the secret.
        """
        for option, secret in (("--api-key", self.api_key), ("--token", self.token)):
            if secret and not (secret.isascii() and secret.isprintable()):
                raise typer.BadParameter(
                    "it has a line break or another character that a header cannot hold", param_hint=option
                )
        if not self.is_api:
            return ApiClient.of(self.connect(), self.api_key, self.token)
        try:
            return ApiClient.at(str(self.api_url), self.api_key, self.token)
        except ConfigurationError as error:
            raise typer.BadParameter(str(error), param_hint="--api-url") from None


def with_target(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of its parameters that are dataclasses, such as a :class:`Target`.

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
        command(**made, **options)

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


def not_blank(text: str | None) -> str | None:
    """Reject a blank name; the callback of options such as ``--corpus``.

    Raises:
        BadParameter: It is blank.
    """
    if text is not None and not text.strip():
        raise typer.BadParameter("it is blank: write a name, or leave the option out")
    return text
