"""Verifies the tokens of an OpenID Connect provider."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final
from urllib.parse import urlsplit

import jwt

from ragstack_common.access.provider_metadata import TIMEOUT_SECONDS, read_metadata
from ragstack_common.core.errors import ConfigurationError, NotAuthenticatedError, ServiceUnavailableError
from ragstack_common.settings.access import TOKEN_KINDS, AccessSettings

ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Algorithms with a private key. A token cannot choose one with a shared secret, or none."""

LEEWAY_SECONDS: Final = 10
"""Allowed clock skew."""

KEYS_SECONDS: Final = 300
"""Time after which the provider's keys are fetched again."""

COOLDOWN_SECONDS: Final = 30
"""Minimum time between two fetches that tokens with unknown keys cause."""

MAX_TOKEN_CHARACTERS: Final = 16_384
"""API Gateway takes 10,240 bytes of headers."""


class TokenVerifier:
    """Verifies tokens: signature, issuer, audience, expiry and algorithm. Thread-safe.

    The issuer's URL is that in its tokens; its keys are found by OpenID Connect Discovery. A token must have one of the
    audiences. The access tokens of Amazon Cognito have none, and name the client instead.
    """

    def __init__(self, issuer: str, audiences: Sequence[str]) -> None:
        self._issuer = issuer
        self._audiences = frozenset(audiences)

    def verify(self, token: str) -> Mapping[str, Any]:
        """Return the claims of a token.

        Raises:
            NotAuthenticatedError: The token is not valid.
            ServiceUnavailableError: The issuer's keys cannot be fetched.
        """
        if len(token) > MAX_TOKEN_CHARACTERS:
            raise NotAuthenticatedError("The token is too long")
        try:
            key = self._find_key(token)
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=ALGORITHMS,
                issuer=self._issuer,
                leeway=LEEWAY_SECONDS,
                options={"require": ["exp", "iss"], "verify_aud": False},
            )
        except jwt.PyJWKClientConnectionError as error:
            raise ServiceUnavailableError(f"The keys of {self._issuer} cannot be fetched: try again") from error
        except jwt.ExpiredSignatureError:
            raise NotAuthenticatedError("The token expired: sign in again") from None
        except (jwt.PyJWTError, ValueError, RecursionError) as error:
            raise NotAuthenticatedError(f"The token is not valid ({type(error).__name__}): sign in again") from error
        named = claims["aud"] if "aud" in claims else claims.get("client_id")
        if self._audiences.isdisjoint([named] if isinstance(named, str) else named or []):
            raise NotAuthenticatedError("The token is for another audience: sign in again")
        return claims

    def _find_key(self, token: str) -> jwt.PyJWK:
        """Return the key that a token's header names, or the issuer's only one.

        Source: OpenID Connect Core, section 10.1.
        """
        if (name := jwt.get_unverified_header(token).get("kid")) is not None:
            return self._keys.get_signing_key(name)
        keys = [key for key in self._keys.get_jwk_set().keys if key.public_key_use in ("sig", None)]
        if len(keys) != 1:
            raise jwt.PyJWKClientError(f"The token names none of the issuer's {len(keys)} keys")
        return keys[0]

    @cached_property
    def _keys(self) -> jwt.PyJWKClient:
        uri = read_metadata(self._issuer).get("jwks_uri")
        if not isinstance(uri, str):
            raise ServiceUnavailableError(f"The issuer {self._issuer} does not say where its keys are: try again")
        return jwt.PyJWKClient(uri, lifespan=KEYS_SECONDS, timeout=TIMEOUT_SECONDS, cooldown_duration=COOLDOWN_SECONDS)


def verifier_from_env(env: Mapping[str, str]) -> TokenVerifier | None:
    """Return the verifier of the tokens that the environment describes; None if there are no tokens.

    Raises:
        ConfigurationError: The issuer or the audience is missing, or the issuer's address is not encrypted.
    """
    settings = AccessSettings.from_env(env)
    if not TOKEN_KINDS.intersection(settings.api_auth):
        return None
    if not settings.oidc_issuer or not settings.oidc_audience:
        raise ConfigurationError("OIDC_ISSUER and OIDC_AUDIENCE are not set")
    address = urlsplit(settings.oidc_issuer)
    if address.scheme != "https" and address.hostname not in ("localhost", "127.0.0.1"):
        raise ConfigurationError(f"OIDC_ISSUER={settings.oidc_issuer} must begin with https://")
    return TokenVerifier(settings.oidc_issuer, settings.oidc_audience)
