"""Who sent a request: from what API Gateway verified, or from a token that is verified here.

Nothing that a client can write itself counts: no header but the token, no parameter and no body.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol, Self, TypeAlias

from ragstack_common.access.callers import (
    OPERATOR,
    Caller,
    Right,
    caller_from_arn,
    caller_from_claims,
    caller_from_key,
)
from ragstack_common.access.guard import Guard
from ragstack_common.access.people import People
from ragstack_common.access.policy import Claims
from ragstack_common.core.errors import NotAuthenticatedError
from ragstack_common.settings.access import TOKEN_KINDS, AccessSettings, AuthKind

CLAIMS: Final = "claims"
"""The member of an authorizer's context that holds the claims of the verified token, as JSON."""

BEARER: Final = 'Bearer realm="ragstack"'
"""The header WWW-Authenticate of responses to callers without a valid proof of identity."""

Note: TypeAlias = Callable[[People, Caller], None]


class Verifier(Protocol):
    """Verifies tokens."""

    def verify(self, token: str) -> Mapping[str, Any]:
        """Return the claims of a token; raises NotAuthenticatedError."""
        ...


class Identity:
    """Finds out who sent a request.

    Without a verifier, API Gateway's authorizer must verify the tokens of every path to this process. *issuer* is the
    issuer of tokens, if there are any.
    """

    def __init__(
        self,
        settings: AccessSettings,
        claims: Claims | None = None,
        verifier: Verifier | None = None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.issuer = settings.oidc_issuer
        self._auth = frozenset(settings.api_auth)
        self._keys = settings.api_keys or {}
        self._claims = claims or Claims()
        self._verifier = verifier
        self._clock = clock

    def caller(self, context: Mapping[str, Any], authorization: str | None = None) -> Caller:
        """Return the caller, given API Gateway's ``requestContext``, which can be empty, and the header Authorization.

        Raises:
            NotAuthenticatedError: There is no proof of identity, or it expired.
            NotAllowedError: The groups in the caller's token cannot be read.
        """
        caller = self._proven(context, authorization)
        if caller.expires_at is not None and caller.expires_at <= self._clock():
            raise NotAuthenticatedError("The token expired: sign in again")
        return caller

    def _proven(self, context: Mapping[str, Any], authorization: str | None) -> Caller:
        identity = context.get("identity") or {}
        if self._auth & TOKEN_KINDS:
            if self._verifier is not None:
                scheme, _, token = (authorization or "").partition(" ")
                if scheme.lower() == "bearer" and token:
                    return caller_from_claims(self._verifier.verify(token.strip()), self._claims)
            elif claims := (context.get("authorizer") or {}).get(CLAIMS):
                return caller_from_claims(json.loads(claims) if isinstance(claims, str) else claims, self._claims)
        if AuthKind.IAM in self._auth and identity.get("userArn"):
            return caller_from_arn(identity["userArn"])
        if AuthKind.API_KEY in self._auth and identity.get("apiKeyId") in self._keys:
            return caller_from_key(self._keys[identity["apiKeyId"]])
        if AuthKind.NONE in self._auth:
            return OPERATOR
        raise NotAuthenticatedError("Sign in: the request has no valid token, signature or key")


@dataclass(frozen=True)
class Callers:
    """Who sends requests, and what they may do; *note* is called with each caller who has the right."""

    identity: Identity
    guard: Guard
    note: Callable[[Caller], None] | None = None

    @classmethod
    def from_env(cls, env: Mapping[str, str], verifier: Verifier | None = None, *, note: Note | None = None) -> Self:
        """Read the settings and the access file that the environment names; raises ConfigurationError.

        The method *note* of the people in the registry is called with each caller.
        """
        guard = Guard.from_env(env)
        claims = None if guard.policy is None else guard.policy.claims
        people = None if note is None else People.from_env(env)
        noted = None if note is None or people is None else partial(note, people)
        return cls(Identity(AccessSettings.from_env(env), claims, verifier), guard, noted)

    def authorized(
        self, right: Right, resource: str, context: Mapping[str, Any], authorization: str | None = None
    ) -> Caller:
        """Return the caller of a request, who has a right.

        Raises:
            NotAuthenticatedError: There is no valid proof of identity.
            NotAllowedError: The caller lacks the right, or the groups in their token cannot be read.
        """
        caller = self.identity.caller(context, authorization)
        self.guard.require(caller, right, resource)
        if self.note is not None:
            self.note(caller)
        return caller
