"""Addresses to which secrets may be sent."""

import re
from typing import Final
from urllib.parse import urlsplit

EMBEDDING_KEY_VARIABLE: Final = "RAGSTACK_EMBEDDING_API_KEY"
"""The key of the server of an ``openai`` embedding."""

_LOOPBACK: Final = re.compile(r"127(\.\d{1,3}){3}|::1|(.+\.)?localhost")
"""Source: RFC 6761, section 6.3: names under ``localhost`` are this machine's too."""


def is_here(url: str) -> bool:
    """Whether a URL leads to this machine."""
    try:
        return _LOOPBACK.fullmatch(urlsplit(url).hostname or "") is not None
    except ValueError:
        return False


def keeps_secrets(url: str) -> bool:
    """Whether data that is sent to a URL can only be read by the server."""
    try:
        scheme = urlsplit(url).scheme
    except ValueError:
        return False
    return scheme == "https" or (scheme == "http" and is_here(url))
