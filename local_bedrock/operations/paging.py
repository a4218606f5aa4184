"""Pages of lists, and the tokens that lead from one page to the next."""

import base64
import binascii
import json
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, TypeVar

from cachetools import TTLCache

from local_bedrock.http.errors import InvalidRequest

T = TypeVar("T", str, int)
Item = TypeVar("Item")

DEFAULT_PAGE: Final = 100
SNAPSHOT_SECONDS: Final = 600.0
MAX_SNAPSHOTS: Final = 1000
"""What is kept of one search takes 320 KB at most."""

_GONE: Final = (
    "The results for this nextToken have expired: send the request again without a nextToken."
    f" Results are kept for {SNAPSHOT_SECONDS / 60:g} minutes, and until a restart"
)
_INVALID: Final = "The nextToken is not valid for this request: send the nextToken of the previous page, or none"


def write_token(position: dict[str, Any]) -> str:
    """Encode a position as a token."""
    return base64.urlsafe_b64encode(json.dumps(position).encode()).decode()


def read_token(token: str | None, **expected: type) -> dict[str, Any] | None:
    """Decode a token; None if there is none.

    Raises:
        InvalidRequest: It isn't a token of this operation.
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
    """The pages of one list, whose tokens no other list accepts.

    Attributes:
        operation: Name of the operation.
        request: The request; its members other than ``nextToken`` and ``maxResults`` identify the list.
    """

    operation: str
    request: Mapping[str, Any]

    def position(self, beginning: T) -> T:
        """Return the position after which the requested page begins; ``beginning`` without a token.

        Raises:
            InvalidRequest: The token belongs to another list.
        """
        found = read_token(self.request.get("nextToken"), after=type(beginning), list=str)
        if found is None:
            return beginning
        if found["list"] != self.fingerprint() or found["after"] < beginning:
            raise InvalidRequest(_INVALID)
        after: T = found["after"]
        return after

    def token(self, after: str | int) -> str:
        """Return the token of the page after a position."""
        return write_token({"after": after, "list": self.fingerprint()})

    def page(
        self, beginning: T, key: str, fetch: Callable[..., list[Item]], size: int = DEFAULT_PAGE
    ) -> tuple[list[Item], str | None]:
        """Return the requested page, and the token of the next one.

        Args:
            beginning: Comes before every position.
            key: The attribute that is the position of an item.
            fetch: Returns at most ``limit`` items whose position is above ``after``.
            size: Unless the request has ``maxResults``.

        Raises:
            InvalidRequest: The token belongs to another list.
        """
        size = self.request.get("maxResults", size)
        found = fetch(after=self.position(beginning), limit=size + 1)
        more = self.token(getattr(found[size - 1], key)) if len(found) > size else None
        return found[:size], more

    def fingerprint(self) -> str:
        """Return an identifier of this list."""
        asked = {name: value for name, value in self.request.items() if name not in ("nextToken", "maxResults")}
        return sha256(json.dumps([self.operation, asked], sort_keys=True).encode()).hexdigest()[:16]


class Snapshots:
    """Results with further pages, kept so that later changes to the store don't shift results between pages.

    The least recently used ones are dropped first.

    Args:
        clock: Seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._lock = threading.Lock()
        self._kept: TTLCache[str, tuple[str, Any]] = TTLCache(MAX_SNAPSHOTS, SNAPSHOT_SECONDS, clock)

    def continued(self, listing: Listing) -> tuple[Any, int] | None:
        """Return the content kept for a request, and the position of its page; None on the first page.

        Raises:
            InvalidRequest: The token belongs to another request, or its snapshot was dropped.
        """
        token = _snapshot_token(listing)
        if token is None:
            return None
        with self._lock:
            fingerprint, content = self._kept.get(token["snapshot"], (None, None))
        if fingerprint is None:
            raise expired()
        if fingerprint != listing.fingerprint() or token["offset"] < 0:
            raise InvalidRequest(_INVALID)
        return content, token["offset"]

    def token(self, listing: Listing, content: Any, offset: int) -> str:
        """Keep the content, which must not change, and return the token of the page at this offset."""
        token = _snapshot_token(listing)
        identifier = token["snapshot"] if token else secrets.token_hex(8)
        with self._lock:
            self._kept[identifier] = listing.fingerprint(), content
        return write_token({"snapshot": identifier, "offset": offset})


def expired() -> InvalidRequest:
    """Return the error of a token whose results are not kept any longer."""
    return InvalidRequest(_GONE)


def _snapshot_token(listing: Listing) -> dict[str, Any] | None:
    return read_token(listing.request.get("nextToken"), snapshot=str, offset=int)
