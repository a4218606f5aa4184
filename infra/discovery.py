"""Reads where an OpenID Connect provider gives tokens, when the stacks are synthesized."""

import urllib.request
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from threading import Thread
from typing import Any, Final
from urllib.parse import urlsplit

import urllib3
from aws_cdk import Annotations
from constructs import Construct

from infra.access_options import parse_origin
from ragstack_common.access.provider_metadata import read_metadata
from ragstack_common.core.errors import RagStackError

DEADLINE_SECONDS: Final = 10.0
"""Time limit for name resolution, connections and all reads together."""

Read = Callable[[str], Mapping[str, Any]]

Discovery = Callable[[Construct, str], str | None]
"""Returns the token endpoint of an issuer; None if it is not known, with a warning at the construct."""


def undiscovered(_scope: Construct, _issuer: str) -> None:
    """Return None: tests synthesize without a network."""


def token_endpoint(
    scope: Construct, issuer: str, read: Read | None = None, *, seconds: float = DEADLINE_SECONDS
) -> str | None:
    """Return where an issuer gives tokens for codes, which can be on another host than the issuer.

    None, with a warning at the construct, if its metadata cannot be read: synthesis works offline.
    """
    problem = "it has no valid token_endpoint with https"
    try:
        endpoint = _in_time(read or _read, issuer, seconds).get("token_endpoint")
        if isinstance(endpoint, str) and (parse_origin(endpoint) or "").startswith("https:"):
            return endpoint
    except (RagStackError, urllib3.exceptions.HTTPError) as error:  # the latter: an invalid proxy
        problem = str(error)
    except TimeoutError:
        problem = f"it did not answer within {seconds:g} s"
    Annotations.of(scope).add_warning_v2(
        "ragstack:issuer",
        f"The metadata of {issuer} cannot be used ({problem}). The console can call this host alone, so people cannot"
        " sign in if the issuer's token endpoint is on another one: synthesize again when the metadata can be read",
    )
    return None


def _in_time(read: Read, issuer: str, seconds: float) -> Mapping[str, Any]:
    """Read, and wait no longer than a number of seconds: the timeouts of a client are for each of its steps.

    Raises:
        TimeoutError: It takes longer.
    """
    found: Future[Mapping[str, Any]] = Future()

    def work() -> None:
        try:
            found.set_result(read(issuer))
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            found.set_exception(error)

    Thread(target=work, daemon=True).start()
    return found.result(seconds)


def _read(issuer: str) -> Mapping[str, Any]:
    """Read the metadata through the proxy of the environment, as the CDK does."""
    address, proxies = urlsplit(issuer), urllib.request.getproxies()
    proxy = proxies.get(address.scheme)
    if proxy is None or urllib.request.proxy_bypass(address.hostname or ""):
        return read_metadata(issuer)
    return read_metadata(issuer, urllib3.ProxyManager(proxy))
