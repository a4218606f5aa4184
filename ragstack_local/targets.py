"""Which stack a command works on, and the options that say so."""

import os
from typing import Annotated, Final

import typer

from ragstack_common.errors import ConfigurationError
from ragstack_local.connection import Connection
from ragstack_local.search import Caller
from ragstack_local.stack.errors import StackError
from ragstack_local.stack.project import Project

DATA_VARIABLE: Final = "RAGSTACK_DATA"
"""Another folder than .ragstack, for a second local stack beside the first."""

API_URL_VARIABLE: Final = "RAGSTACK_API_URL"
API_KEY_VARIABLE: Final = "RAGSTACK_API_KEY"
TOKEN_VARIABLE: Final = "RAGSTACK_TOKEN"  # noqa: S105 - its name, not a token

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
        help="Use the API at this URL, up to its stage, and nothing else of a stack. Requests to API Gateway are signed"
        " with the AWS credentials unless a key or a token is given.",
    ),
]
ApiKey = Annotated[
    str | None, typer.Option(envvar=API_KEY_VARIABLE, help="For an API that asks for a key. Best set by the variable.")
]
Token = Annotated[
    str | None,
    typer.Option(envvar=TOKEN_VARIABLE, help="For an API that asks for a bearer token. Best set by the variable."),
]
INTERRUPTED: Final = 130
"""Exit code after Ctrl-C."""

Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Follow until it is final, or only start it.")]
Timeout = Annotated[float, typer.Option(help="Seconds to wait at most.", min=1)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def not_blank(text: str | None) -> str | None:
    """Refuse a blank name; the callback of options such as ``--corpus``.

    Raises:
        BadParameter: It is blank.
    """
    if text is not None and not text.strip():
        raise typer.BadParameter("it is blank: write a name, or leave the option out")
    return text


def connect(aws: bool, stack_prefix: str) -> Connection:
    """Find the running local stack, or the one that is deployed, with all its queues and tables.

    Raises:
        StackError: There is none, or only an API is named.
    """
    if aws:
        return Connection.of_deployed_stack(stack_prefix)
    if os.environ.get(API_URL_VARIABLE):
        raise StackError(
            f"{API_URL_VARIABLE} names an API, and this needs the stack's bucket, queues and tables too: give --aws,"
            " with AWS credentials for them, or unset the variable to use the local stack"
        )
    return Connection.of_running_stack(find_project().running)


def api_of(aws: bool, stack_prefix: str, api_url: str | None, api_key: str | None, token: str | None) -> Caller:
    """Find the API to call: the one at a URL, else that of a stack.

    Raises:
        StackError: There is none.
        BadParameter: The URL is not an API's, or given together with ``--aws``; a key and a token are both given as
            options; or no header can hold the secret.
    """
    if is_option(api_key, API_KEY_VARIABLE) and is_option(token, TOKEN_VARIABLE):
        raise typer.BadParameter("give this or --token, not both", param_hint="--api-key")
    for option, secret in (("--api-key", api_key), ("--token", token)):
        if secret and not (secret.isascii() and secret.isprintable()):
            raise typer.BadParameter(
                "it has a line break or another character that a header cannot hold", param_hint=option
            )
    if not names_api(aws, api_url):
        return Caller.of(connect(aws, stack_prefix), api_key, token)
    try:
        return Caller.at(str(api_url), api_key, token)
    except ConfigurationError as error:
        raise typer.BadParameter(str(error), param_hint="--api-url") from None


def names_api(aws: bool, api_url: str | None) -> bool:
    """Whether an API is named, and no stack; ``--aws`` has precedence over the variable.

    Raises:
        BadParameter: Both are given as options.
    """
    if aws and is_option(api_url, API_URL_VARIABLE):
        raise typer.BadParameter("give this or --aws, not both", param_hint="--api-url")
    return bool(api_url) and not aws


def is_option(value: str | None, variable: str) -> bool:
    """Whether a value was given as an option, and not by its variable."""
    return bool(value) and value != os.environ.get(variable)


def find_project() -> Project:
    """Find the checkout and its folder of data."""
    return Project.find(os.environ.get(DATA_VARIABLE))
