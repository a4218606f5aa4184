"""Request bodies: one JSON object each, checked the same way by every function."""

from collections.abc import Sequence
from email.message import Message
from typing import Any, Final

from pydantic_core import from_json

from ragstack_common.core.errors import InvalidRequestError, UnsupportedContentTypeError
from ragstack_common.core.reporting import MAX_NAME_CHARACTERS

MAX_BODY_CHARACTERS: Final = 2 * 1024 * 1024
"""Maximum length of a body: a filter has up to a million characters, and a query 20,000."""

MAX_MEMBERS: Final = 100
"""Maximum number of top-level members. No request has half as many; to list 100,000 unknown ones took 6 s."""


def unknown_parameter(name: str, known: Sequence[str] = ()) -> InvalidRequestError:
    """Return the error for a query parameter that a route does not have."""
    shown = name[:MAX_NAME_CHARACTERS]
    return InvalidRequestError(f"{shown}: unknown parameter; this route takes {', '.join(known) or 'none'}")


def check_length(body: str) -> None:
    """Check the length of a body; raises InvalidRequestError."""
    if len(body) > MAX_BODY_CHARACTERS:
        raise InvalidRequestError(
            f"The request body is too long: at most {MAX_BODY_CHARACTERS:,} characters are accepted"
        )


def check_content_type(content_type: str) -> None:
    """Check that a body is JSON; raises UnsupportedContentTypeError."""
    header = Message()
    header["Content-Type"] = content_type
    if header.get_content_type() != "application/json" or header.get_content_charset("utf-8") not in ("utf-8", "utf8"):
        raise UnsupportedContentTypeError(
            f"The content type {content_type[:MAX_NAME_CHARACTERS]!r} is not supported: send JSON in UTF-8, with the "
            "header Content-Type: application/json"
        )


def read_json(text: str) -> dict[str, Any]:
    """Read a body: one JSON object.

    Raises:
        InvalidRequestError: The body is anything else.
    """
    try:
        value = from_json(text, allow_inf_nan=False)
    except (TypeError, ValueError) as error:  # a TypeError for text that is not Unicode
        raise InvalidRequestError(f"The request body is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise InvalidRequestError("The request body must be a JSON object")
    if len(value) > MAX_MEMBERS:
        raise InvalidRequestError(
            f"The request body has {len(value):,} members; at most {MAX_MEMBERS} are accepted: see GET /openapi.json"
        )
    return value
