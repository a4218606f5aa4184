"""The tokens that lead from one page of a list to the next."""

import base64
import binascii
import json
from typing import Any, Final

from ragstack_local.bedrock.faults import InvalidRequest

DEFAULT_PAGE: Final = 100
_INVALID: Final = "The nextToken is not valid for this request: send the one that the page before gave, or none"


def write_token(position: dict[str, Any]) -> str:
    """Make a token of what the next page needs to know."""
    return base64.urlsafe_b64encode(json.dumps(position).encode()).decode()


def read_token(token: str | None, **expected: type) -> dict[str, Any] | None:
    """Read a token; None of none.

    Args:
        token: As the caller sent it.
        expected: The members that it must have, and their types.

    Raises:
        InvalidRequest: It is not one that this operation made.
    """
    if token is None:
        return None
    try:
        position = json.loads(base64.b64decode(token, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError):
        raise InvalidRequest(_INVALID) from None
    if not isinstance(position, dict) or position.keys() != expected.keys():
        raise InvalidRequest(_INVALID)
    if not all(type(position[name]) is kind for name, kind in expected.items()):
        raise InvalidRequest(_INVALID)
    return position


def refuse_token() -> InvalidRequest:
    """Return the error for a token of another request."""
    return InvalidRequest(_INVALID)
