"""The environment variables of the command line, and the file ``.env`` that adds to them."""

import os
from pathlib import Path
from typing import Final

import typer

from ragstack_common.core.errors import ConfigurationError

DATA_VARIABLE: Final = "RAGSTACK_DATA"
"""Replaces the folder .ragstack, for a second local stack next to the first."""

API_URL_VARIABLE: Final = "RAGSTACK_API_URL"
API_KEY_VARIABLE: Final = "RAGSTACK_API_KEY"
TOKEN_VARIABLE: Final = "RAGSTACK_TOKEN"  # noqa: S105 - its name, not a token

FILE: Final = ".env"


def user_folder() -> Path:
    """Return the folder of what the command line keeps for this user, about stacks elsewhere too."""
    return Path(os.environ.get(DATA_VARIABLE) or typer.get_app_dir("ragstack"))


def read_file() -> str:
    """Set the variables of the current folder's ``.env`` that the environment does not have; describe what was done.

    Functions never read the file: they have the settings of their deployment.

    Raises:
        ConfigurationError: The file is not a text of variables.
    """
    path = Path(FILE).absolute()
    if not path.is_file():
        return f"There is no {path}"
    from dotenv import dotenv_values  # noqa: PLC0415 - most folders have no such file

    try:
        found = {name: value for name, value in dotenv_values(path).items() if value is not None}
        added = {name: value for name, value in found.items() if name not in os.environ}
        os.environ.update(added)
    except ValueError as error:
        raise ConfigurationError(f"{path} cannot be read: {error}") from error
    kept = sorted(found.keys() - added.keys())
    also = f"; the environment has precedence for {', '.join(kept)}" if kept else ""
    return f"{path} sets {', '.join(sorted(added)) or 'nothing'}{also}"
