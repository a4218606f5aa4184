"""Which stack a command works on, and the options that say so."""

import os
from typing import Annotated, Final

import typer

from ragstack_local.connection import Connection
from ragstack_local.stack.project import Project

DATA_VARIABLE: Final = "RAGSTACK_DATA"
"""Another folder than .ragstack, for a second local stack beside the first."""

OnAws = Annotated[bool, typer.Option("--aws", help="Use the stack deployed to AWS instead of the local one.")]
Prefix = Annotated[str, typer.Option(help="First part of the names of the deployed stacks.")]
ApiKey = Annotated[str | None, typer.Option(envvar="RAGSTACK_API_KEY", help="For an API that asks for one.")]
INTERRUPTED: Final = 130
"""Exit code after Ctrl-C."""

Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Follow until it is final, or only start it.")]
Timeout = Annotated[float, typer.Option(help="Seconds to wait at most.", min=1)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def connect(aws: bool, stack_prefix: str) -> Connection:
    """Find the running local stack, or the one that is deployed.

    Raises:
        StackError: There is none.
    """
    return Connection.of_deployed_stack(stack_prefix) if aws else Connection.of_running_stack(find_project().running)


def find_project() -> Project:
    """Find the checkout and its folder of data."""
    return Project.find(os.environ.get(DATA_VARIABLE))
