"""The environment variables of the command line."""

from typing import Final

DATA_VARIABLE: Final = "RAGSTACK_DATA"
"""Replaces the folder .ragstack, for a second local stack next to the first."""

API_URL_VARIABLE: Final = "RAGSTACK_API_URL"
API_KEY_VARIABLE: Final = "RAGSTACK_API_KEY"
TOKEN_VARIABLE: Final = "RAGSTACK_TOKEN"  # noqa: S105 - its name, not a token
