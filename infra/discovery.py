"""What an OpenID Connect provider publishes about itself, read when the stacks are synthesized."""

import json
import sys
import urllib.request
from collections.abc import Callable
from typing import Any, Final

TIMEOUT_SECONDS: Final = 10.0


def _read(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as response:  # noqa: S310 - options allow https alone
        return json.load(response)


def token_endpoint(issuer: str, read: Callable[[str], Any] = _read) -> str | None:
    """Return where an issuer gives tokens for codes, which can be on another host than the issuer.

    None, with a warning, if its metadata cannot be read: synthesis works offline.
    """
    problem = "it has no token_endpoint with https"
    try:
        found = read(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
    except (OSError, ValueError) as error:
        found, problem = None, str(error)
    endpoint = found.get("token_endpoint") if isinstance(found, dict) else None
    if isinstance(endpoint, str) and endpoint.startswith("https://"):
        return endpoint
    sys.stderr.write(
        f"Warning: the metadata of {issuer} cannot be read ({problem}). The console can call this host alone,"
        " so people cannot sign in if the issuer's token endpoint is on another one.\n"
    )
    return None
