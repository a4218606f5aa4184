"""Contents behind URLs that need no credentials, as presigned URLs of S3: random, and valid for five minutes."""

import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

from cachetools import TTLCache
from starlette.responses import JSONResponse, Response

LIFETIME_SECONDS: Final = 300.0
"""Source: bedrock-agent-runtime, documentation of GetDocumentContentResponse$presignedUrl."""

PREFIX: Final = "/_ragstack/documents/"

MAX_DOWNLOADS: Final = 10_000
"""URLs that are valid at the same time; the oldest ones end first."""


class ContentGone(Exception):  # noqa: N818 - named as it is reported
    """The content was deleted or replaced; the message is for the caller."""


@dataclass(frozen=True)
class Download:
    """A content.

    Attributes:
        name: The name of the file, for browsers.
        read: Returns the content, or raises :class:`ContentGone`.
    """

    name: str
    media_type: str
    read: Callable[[], bytes]


class Downloads:
    """The valid URLs.

    Args:
        clock: Seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._lock = threading.Lock()
        self._valid: TTLCache[str, Download] = TTLCache(MAX_DOWNLOADS, LIFETIME_SECONDS, clock)

    def add(self, download: Download) -> str:
        """Return the path of a new URL."""
        token = secrets.token_urlsafe(32)
        with self._lock:
            self._valid[token] = download
        return PREFIX + token

    def response(self, token: str) -> Response:
        """Answer a request. The content is never displayed or run by a browser: it may be a hostile web page."""
        with self._lock:
            found = self._valid.get(token)
        if found is None:
            return _error(HTTPStatus.FORBIDDEN, "The URL has expired: call GetDocumentContent again")
        try:
            content = found.read()
        except ContentGone as error:
            return _error(HTTPStatus.NOT_FOUND, str(error))
        headers = {
            "Content-Type": found.media_type,  # among the headers, or Starlette adds a charset that may be wrong
            "Content-Disposition": f"attachment; filename*=UTF-8''{quote(found.name, safe='')}",
            "Content-Security-Policy": "default-src 'none'; sandbox",
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "private, no-store",
        }
        return Response(content, headers=headers)


def _error(status: HTTPStatus, message: str) -> Response:
    return JSONResponse({"message": message}, status)
