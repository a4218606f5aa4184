"""The tokens that lead from one page of a list to the next."""

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, TypeVar

from ragstack_local.bedrock.faults import InvalidRequest

T = TypeVar("T", str, int)

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


@dataclass(frozen=True)
class Listing:
    """The pages of one list: a token of it is refused by every other list.

    Attributes:
        operation: Name of the operation.
        request: What tells one list of the operation from another, apart from the pages.
    """

    operation: str
    request: Mapping[str, Any]

    def position(self, beginning: T) -> T:
        """Return where the requested page begins: ``beginning``, or what the token says, of the same type.

        Raises:
            InvalidRequest: The token is not one of this list.
        """
        found = read_token(self.request.get("nextToken"), after=type(beginning), list=str)
        if found is None:
            return beginning
        if found["list"] != self._fingerprint():
            raise refuse_token()
        after: T = found["after"]
        return after

    def token(self, after: str | int) -> str:
        """Make the token of the page that begins after this position."""
        return write_token({"after": after, "list": self._fingerprint()})

    def _fingerprint(self) -> str:
        asked = {name: value for name, value in self.request.items() if name not in ("nextToken", "maxResults")}
        return sha256(json.dumps([self.operation, asked], sort_keys=True).encode()).hexdigest()[:16]


def refuse_token() -> InvalidRequest:
    """Return the error for a token of another request."""
    return InvalidRequest(_INVALID)
