"""An OpenID Connect provider, as the command line uses it. oauthlib has the protocol, and httpx2 sends the requests."""

import base64
import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self
from urllib.parse import urlsplit

import httpx2
from oauthlib.oauth2 import DeviceClient, OAuth2Error, WebApplicationClient

from local_bedrock.options import LOCAL
from ragstack_common.core.addresses import keeps_secrets
from ragstack_common.core.json_text import parse_json
from ragstack_local.errors import StackError

TIMEOUT_SECONDS: Final = 30.0
WANTED_SCOPES: Final = ("openid", "email", "profile", "offline_access")
"""Requested if the provider has them; a refresh token often needs the last."""

DEFAULT_POLL_SECONDS: Final = 5.0
"""Source: RFC 8628, section 3.2."""


@dataclass(frozen=True)
class Tokens:
    """The token that the API accepts, when it expires in seconds since 1970, and a refresh token if there is one."""

    bearer: str
    expires_at: float
    refresh: str | None = None


@dataclass(frozen=True)
class ClientRegistration:
    """The command line, as it is registered with the provider.

    Attributes:
        client_id: Its id. It has no secret.
        audiences: The audiences of tokens that the API accepts.
        scopes: The requested scopes; empty for the usual ones.
    """

    client_id: str
    audiences: tuple[str, ...]
    scopes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Authorization:
    """A request that a browser opens, and what its answer must match."""

    url: str
    redirect_uri: str
    state: str
    nonce: str
    verifier: str


@dataclass(frozen=True)
class Provider:
    """A provider. Its methods raise StackError if it refuses, or cannot be reached."""

    metadata: Mapping[str, Any]

    @classmethod
    def discover(cls, issuer: str) -> Self:
        """Read the provider's metadata.

        Raises:
            StackError: The issuer has none, is another one, or sends secrets over plain HTTP to another machine.
        """
        if not keeps_secrets(issuer):
            raise StackError(f"The issuer {issuer} is not encrypted: use https")
        url = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
        found = _sent("GET", url)
        if found.get("issuer") != issuer:
            raise StackError(f"{issuer} calls itself {found.get('issuer')}: use that name")
        for name in ("authorization_endpoint", "token_endpoint", "device_authorization_endpoint"):
            if not keeps_secrets(str(found.get(name, "https:"))):
                raise StackError(f"The {name} of {issuer} is not encrypted: {found[name]}")
        # oauthlib knows no exception for this machine, and warns about scopes that the provider leaves out.
        os.environ |= {"OAUTHLIB_INSECURE_TRANSPORT": "1", "OAUTHLIB_RELAX_TOKEN_SCOPE": "1"}
        return cls(found)

    def authorization(self, application: ClientRegistration, redirect_uri: str) -> Authorization:
        """Prepare a request with PKCE."""
        client = WebApplicationClient(application.client_id)
        verifier = client.create_code_verifier(64)  # Source: RFC 7636, section 4.1: 43 to 128
        state, nonce = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        url = client.prepare_request_uri(
            self.metadata["authorization_endpoint"],
            redirect_uri,
            self._scopes(application),
            state,
            client.create_code_challenge(verifier, "S256"),
            "S256",
            nonce=nonce,
        )
        return Authorization(url, redirect_uri, state, nonce, verifier)

    def redeem(self, application: ClientRegistration, asked: Authorization, answered: str) -> Tokens:
        """Exchange the code in the URL to which the browser was sent back.

        Raises:
            StackError: The person or the provider refused, or the URL answers another request.
        """
        client = WebApplicationClient(application.client_id)
        try:
            code = client.parse_request_uri_response(answered, asked.state)["code"]
        except OAuth2Error as error:
            raise StackError(f"Signing in failed: {error.description or error.error}") from error
        body = client.prepare_request_body(code, asked.redirect_uri, code_verifier=asked.verifier)
        return self._tokens(application, body, asked.nonce)

    def refreshed(self, application: ClientRegistration, refresh_token: str) -> Tokens:
        """Exchange a refresh token; the new tokens keep it if there is no newer one."""
        client = WebApplicationClient(application.client_id)
        return self._tokens(
            application, client.prepare_refresh_body(refresh_token=refresh_token, client_id=application.client_id)
        )

    def from_device(
        self,
        application: ClientRegistration,
        show: Callable[[Mapping[str, Any]], None],
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> Tokens:
        """Wait until a user signs in elsewhere with a code; *show* gets it and the page for it.

        Raises:
            StackError: The provider has no device codes, or nobody signed in.
        """
        endpoint = self.metadata.get("device_authorization_endpoint")
        if endpoint is None:
            raise StackError(f"{self.metadata['issuer']} has no sign-in by device code: leave --device out")
        asked = {"client_id": application.client_id, "scope": " ".join(self._scopes(application))}
        found = _sent("POST", endpoint, data=asked)
        show(found)
        client = DeviceClient(application.client_id)
        body = client.prepare_request_body(found["device_code"], include_client_id=True)
        pause, ends = float(found.get("interval", DEFAULT_POLL_SECONDS)), clock() + float(found["expires_in"])
        while clock() < ends:
            sleep(pause)
            try:
                return self._tokens(application, body)
            except _RefusedError as error:
                if error.code == "slow_down":
                    pause += DEFAULT_POLL_SECONDS  # Source: RFC 8628, section 3.5
                elif error.code != "authorization_pending":
                    raise
        raise StackError("Nobody signed in with the code before it expired")

    def silently(self, application: ClientRegistration, user: str) -> Tokens:
        """Sign in as an example user of the local issuer, as its page would.

        Raises:
            StackError: The issuer is not the local one, or has no such user.
        """
        if urlsplit(self.metadata["issuer"]).hostname != LOCAL:
            raise StackError("--user is for the local issuer, whose users have no passwords: leave it out")
        asked = self.authorization(application, "http://localhost/callback")
        with httpx2.Client(trust_env=False, timeout=TIMEOUT_SECONDS) as http:
            answer = http.post(asked.url, data={"user": user})
        if "location" not in answer.headers:
            raise StackError(f"The local issuer has no user {user}: its users are alice, bob and olga")
        return self.redeem(application, asked, answer.headers["location"])

    def _scopes(self, application: ClientRegistration) -> list[str]:
        known = self.metadata.get("scopes_supported", WANTED_SCOPES)
        return list(application.scopes) or [name for name in WANTED_SCOPES if name in known]

    def _tokens(self, application: ClientRegistration, body: str, nonce: str | None = None) -> Tokens:
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        answer = _sent("POST", self.metadata["token_endpoint"], content=body, headers=headers)
        if nonce is not None and read_claims(answer.get("id_token", "")).get("nonce") != nonce:
            raise StackError("Signing in failed: the answer is for another request")
        bearer = choose_bearer(answer, application.audiences)
        expires_at = read_claims(bearer).get("exp") or time.time() + float(answer.get("expires_in", 0))
        return Tokens(bearer, float(expires_at), answer.get("refresh_token"))


class _RefusedError(StackError):
    """A provider refused a request; the code is that of its JSON."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


def _sent(method: str, url: str, **request: Any) -> dict[str, Any]:
    """Send a request, and return the JSON object in its answer.

    Raises:
        StackError: There is none, or it is an error.
    """
    try:
        with httpx2.Client(trust_env=False, verify=url.startswith("https:"), timeout=TIMEOUT_SECONDS) as http:
            response = http.request(method, url, **request)
        found = response.json()
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        raise StackError(f"The issuer does not answer at {url}: {error}") from error
    if not isinstance(found, dict):
        raise StackError(f"The issuer does not answer at {url} with a JSON object")
    if not response.is_success:
        code = str(found.get("error", response.status_code))
        raise _RefusedError(f"The issuer refused: {found.get('error_description') or code}", code)
    return found


def choose_bearer(answer: Mapping[str, Any], audiences: Sequence[str]) -> str:
    """Return the token that the API accepts: the access token if it is for the API, else the ID token.

    The console has the same rule: web/src/bearer.ts.

    Raises:
        StackError: Neither is for one of the audiences.
    """
    for name in ("access_token", "id_token"):
        claims = read_claims(answer.get(name) or "")
        # The access tokens of Amazon Cognito name the client only.
        named = claims.get("aud", claims.get("client_id"))
        if any(each in audiences for each in (named if isinstance(named, list) else [named])):
            return str(answer[name])
    raise StackError(f"The issuer issued no token for {' or '.join(audiences)}: see --audience and --scope")


def read_claims(token: str) -> dict[str, Any]:
    """Read the claims of a token without verifying them, which the API does; empty if it is not a JWT."""
    try:
        payload = token.split(".")[1]
        found = parse_json(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (IndexError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
