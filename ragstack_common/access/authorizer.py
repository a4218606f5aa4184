"""The authorizer of API Gateway: lets requests with a valid token pass, and hands the token's claims on.

API Gateway remembers the answer for a minute by the token. So the answer permits every route, and the functions decide
about rights, and look at the expiry again. They also refuse tokens whose groups cannot be read, because API Gateway
would not pass on the reason.
"""

import json
from collections.abc import Mapping
from typing import Any, Self

from ragstack_common.access.callers import claims_that_count, user_from_claims
from ragstack_common.access.identity import CLAIMS, Verifier
from ragstack_common.access.policy import Claims, policy_from_env
from ragstack_common.access.tokens import verifier_from_env
from ragstack_common.core.errors import ConfigurationError, NotAuthenticatedError


class Authorizer:
    """Answers API Gateway's requests to authorize a token. Only the claims of principals are passed on."""

    def __init__(self, verifier: Verifier, claims: Claims) -> None:
        self._verifier = verifier
        self._claims = claims

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> Self:
        """Build the authorizer that the environment describes; raises ConfigurationError."""
        verifier, policy = verifier_from_env(env), policy_from_env(env)
        if verifier is None:
            raise ConfigurationError("API_AUTH names no kind of token")
        return cls(verifier, Claims() if policy is None else policy.claims)

    def authorize(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Return the policy for the event of an authorizer of the type TOKEN, with the token's claims as its context.

        Raises:
            NotAuthenticatedError: The token is not valid.
            ServiceUnavailableError: The issuer's keys cannot be fetched.
        """
        scheme, _, token = str(event.get("authorizationToken") or "").partition(" ")
        if scheme.lower() != "bearer":
            raise NotAuthenticatedError("The header Authorization has no bearer token")
        verified = self._verifier.verify(token.strip())
        user = user_from_claims(verified, self._claims)
        stage = "/".join(event["methodArn"].split("/")[:2])
        allow = {"Action": "execute-api:Invoke", "Effect": "Allow", "Resource": f"{stage}/*"}
        return {
            # API Gateway takes texts of ASCII characters alone.
            "principalId": user.encode("ascii", "backslashreplace").decode(),
            "policyDocument": {"Version": "2012-10-17", "Statement": [allow]},
            "context": {CLAIMS: json.dumps(claims_that_count(verified, self._claims))},
        }
