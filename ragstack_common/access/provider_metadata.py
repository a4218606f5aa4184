"""What an OpenID Connect provider publishes about itself."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import urllib3

from ragstack_common.core.errors import ConfigurationError, ServiceUnavailableError
from ragstack_common.core.json_text import parse_json

TIMEOUT_SECONDS: Final = 5.0
"""Timeout of each read."""

MAX_BYTES: Final = 200_000
"""Maximum length of the metadata; providers publish a few thousand bytes."""


def read_metadata(issuer: str, http: urllib3.PoolManager | None = None) -> Mapping[str, Any]:
    """Return the metadata of an issuer, given its URL as its tokens write it. No redirect is followed.

    Source: OpenID Connect Discovery, sections 4.2 and 4.3.

    Raises:
        ServiceUnavailableError: The issuer does not answer with its metadata.
        ConfigurationError: The metadata has another issuer.
    """
    url = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
    retries = urllib3.Retry(2, redirect=0)
    try:
        with (http or urllib3.PoolManager()).request(
            "GET", url, timeout=TIMEOUT_SECONDS, retries=retries, preload_content=False
        ) as answer:
            text = answer.read(MAX_BYTES + 1)
        found = parse_json(text) if answer.status == HTTPStatus.OK and len(text) <= MAX_BYTES else None
    except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
        raise ServiceUnavailableError(f"The issuer {issuer} does not answer: try again") from error
    if not isinstance(found, dict):
        raise ServiceUnavailableError(f"The issuer {issuer} does not answer with its metadata: try again")
    if found.get("issuer") != issuer:
        raise ConfigurationError(f"OIDC_ISSUER must be {found.get('issuer')!r:.300}, as the issuer calls itself")
    return found
