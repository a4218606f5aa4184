"""Serves the local issuer; what it issued is in memory.

``python -m ragstack_local.stack.issuer_app PORT KEY_FILE [ORIGIN ...]``
"""

import os
import secrets
import sys
import time
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import jwt
import uvicorn
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from oauthlib.oauth2 import AuthorizationEndpoint, BearerToken, OAuth2Error, TokenEndpoint
from oauthlib.oauth2.rfc6749.errors import FatalClientError
from oauthlib.oauth2.rfc8628.endpoints import DeviceAuthorizationEndpoint
from oauthlib.oauth2.rfc8628.grant_types import DeviceCodeGrant
from oauthlib.openid import RequestValidator
from oauthlib.openid.connect.core.grant_types import AuthorizationCodeGrant, RefreshTokenGrant
from starlette.applications import Starlette
from starlette.datastructures import URL
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from local_bedrock.http.body_limit import BodyLimit
from local_bedrock.http.guard import PRIVATE_UMASK, BrowserGuard, end_with_parent
from local_bedrock.options import LOCAL
from ragstack_local.stack.issuer import CLIENT, USERS

SCOPES: Final = ("openid", "email", "profile", "offline_access")

TOKEN_SECONDS: Final = 3600
CODE_SECONDS: Final = 300.0
POLL_SECONDS: Final = 1

DEVICE_GRANT: Final = "urn:ietf:params:oauth:grant-type:device_code"
"""Source: RFC 8628, section 3.4."""


@dataclass
class _Grant:
    """What a code, a device code or a refresh token is for; the user of a device code signs in later."""

    user: str | None
    scopes: Sequence[str]
    expires_at: float
    redirect_uri: str | None = None
    challenge: str | None = None
    nonce: str | None = None


class _Validator(RequestValidator):  # type: ignore[misc] # oauthlib has no types
    """Answers oauthlib's questions from memory, which a restart of the stack empties."""

    def __init__(self, issuer: str, key: rsa.RSAPrivateKey, origins: Iterable[str], clock: Callable[[], float]) -> None:
        super().__init__()
        self._clock = clock
        self._devices: dict[str, _Grant] = {}
        self._user_codes: dict[str, str] = {}
        self._codes: dict[str, _Grant] = {}
        self._refresh_tokens: dict[str, _Grant] = {}
        self._issuer = issuer
        self._key = key
        self._origins = frozenset(origins)

    def token(self, request: Any, seconds: int, **more: Any) -> str:
        """Sign a token for the user of a request."""
        now = int(self._clock())
        claims = {
            "iss": self._issuer,
            "aud": request.client_id,
            "sub": request.user,
            "email": f"{request.user}@example.com",
            "email_verified": True,
            "groups": USERS[request.user],
            "iat": now,
            "exp": now + seconds,
        }
        return jwt.encode({**claims, **more}, self._key, "RS256", {"kid": key_id(self._key)})

    def access_token(self, request: Any, seconds: int) -> str:
        return self.token(request, seconds, client_id=request.client_id, scope=" ".join(request.scopes))

    # Clients

    def client_authentication_required(self, *_: Any, **__: Any) -> bool:
        return False

    def authenticate_client_id(self, client_id: str, request: Any, *_: Any, **__: Any) -> bool:
        request.client = SimpleNamespace(client_id=client_id)
        return client_id == CLIENT

    def validate_client_id(self, client_id: str, *_: Any, **__: Any) -> bool:
        return client_id == CLIENT

    def validate_redirect_uri(self, _: str, redirect_uri: str, *__: Any, **___: Any) -> bool:
        """Send codes only to programs on this machine and to the pages that may use the stack."""
        parts = urlsplit(redirect_uri)
        is_here = parts.scheme == "http" and parts.hostname in (LOCAL, "localhost")
        return is_here or f"{parts.scheme}://{parts.netloc}" in self._origins

    def get_default_redirect_uri(self, *_: Any, **__: Any) -> None:
        return None

    def get_default_scopes(self, *_: Any, **__: Any) -> list[str]:
        return ["openid"]

    def validate_scopes(self, _: str, scopes: Sequence[str], *__: Any, **___: Any) -> bool:
        return set(scopes) <= set(SCOPES)

    def validate_response_type(self, *_: Any, **__: Any) -> bool:
        return True  # the endpoint knows no other than `code`

    def validate_grant_type(self, _: str, grant_type: str, *__: Any, **___: Any) -> bool:
        return grant_type in ("authorization_code", "refresh_token", DEVICE_GRANT)

    def is_origin_allowed(self, _: str, origin: str, *__: Any, **___: Any) -> bool:
        return origin in self._origins

    # Codes

    def is_pkce_required(self, *_: Any, **__: Any) -> bool:
        return True

    def save_authorization_code(self, _: str, code: Mapping[str, str], request: Any, *__: Any, **___: Any) -> None:
        self._codes[code["code"]] = _Grant(
            request.user,
            request.scopes,
            self._clock() + CODE_SECONDS,
            request.redirect_uri,
            request.code_challenge,
            request.nonce,
        )

    def validate_code(self, _: str, code: str, __: Any, request: Any, *___: Any, **____: Any) -> bool:
        grant = self._codes.get(code)
        if grant is None or grant.expires_at < self._clock():
            return False
        request.user, request.scopes = grant.user, grant.scopes
        return True

    def confirm_redirect_uri(self, _: str, code: str, redirect_uri: str, *__: Any, **___: Any) -> bool:
        return self._codes[code].redirect_uri == redirect_uri

    def get_code_challenge(self, code: str, _: Any) -> str | None:
        return self._codes[code].challenge

    def get_code_challenge_method(self, *_: Any) -> str:
        return "S256"  # also if the client announced `plain`

    def get_authorization_code_nonce(self, _: str, code: str, *__: Any) -> str | None:
        return self._codes[code].nonce

    def invalidate_authorization_code(self, _: str, code: str, *__: Any, **___: Any) -> None:
        del self._codes[code]

    # Tokens

    def finalize_id_token(self, id_token: Mapping[str, Any], *rest: Any) -> str:
        return self.token(rest[-1], TOKEN_SECONDS, **id_token)

    def validate_user_match(self, *_: Any) -> bool:
        return True

    def validate_silent_login(self, *_: Any) -> bool:
        return False  # no browser stays signed in

    def save_bearer_token(self, token: Mapping[str, Any], request: Any, *_: Any, **__: Any) -> None:
        """Remember the new refresh token, and forget what it replaces."""
        if name := token.get("refresh_token"):
            self._refresh_tokens[name] = _Grant(request.user, request.scopes, 0.0)
        self._refresh_tokens.pop(request.refresh_token, None)
        self._devices.pop(request.device_code, None)

    def validate_refresh_token(self, refresh_token: str, _: Any, request: Any, *__: Any, **___: Any) -> bool:
        grant = self._refresh_tokens.get(refresh_token)
        request.user = grant.user if grant else None
        return grant is not None

    def get_original_scopes(self, refresh_token: str, *_: Any, **__: Any) -> Sequence[str]:
        return self._refresh_tokens[refresh_token].scopes

    def is_ours(self, id_token: str) -> bool:
        """Return whether a token was issued here, also if it expired."""
        try:
            jwt.decode(
                id_token,
                self._key.public_key(),
                ["RS256"],
                audience=CLIENT,
                issuer=self._issuer,
                options={"verify_exp": False, "verify_iat": False},
            )
        except jwt.InvalidTokenError:
            return False
        return True

    def sign_out(self, id_token: str) -> None:
        """Forget the refresh tokens of the user of an ID token."""
        user = jwt.decode(id_token, options={"verify_signature": False})["sub"]
        self._refresh_tokens = {name: each for name, each in self._refresh_tokens.items() if each.user != user}

    # Devices

    def add_device(self, found: MutableMapping[str, Any]) -> None:
        """Remember the codes of a device, and take the scopes out of its response."""
        scopes = found.pop("scope", "openid").split()
        self._devices[found["device_code"]] = _Grant(None, scopes, self._clock() + CODE_SECONDS)
        self._user_codes[found["user_code"]] = found["device_code"]

    def sign_in_on_device(self, user_code: str, user: str) -> bool:
        """Sign in a user; return whether the code is known, and new."""
        grant = self._devices.get(self._user_codes.pop(user_code, ""))
        if grant is not None:
            grant.user = user
        return grant is not None

    def validate_device_code(self, _: str, code: str, request: Any, *__: Any, **___: Any) -> str | None:
        grant = self._devices.get(code)
        if grant is None:
            return None
        if grant.expires_at < self._clock():
            return str(DeviceCodeGrant.DEVICE_CODE_EXPIRED)
        request.user, request.scopes = grant.user, grant.scopes
        return str(DeviceCodeGrant.DEVICE_CODE_AUTHORIZED if grant.user else DeviceCodeGrant.DEVICE_CODE_PENDING)


def create_issuer(
    issuer: str,
    key: rsa.RSAPrivateKey,
    *,
    origins: Sequence[str] = (),
    token_seconds: int = TOKEN_SECONDS,
    clock: Callable[[], float] = time.time,
) -> BrowserGuard:
    """Make the application.

    Args:
        issuer: Its own URL, as its tokens write it.
        key: Signs the tokens.
        origins: Web pages that may use it, and receive codes.
        token_seconds: For how long an access token is valid.
        clock: Seconds since 1970.
    """
    validator = _Validator(issuer, key, origins, clock)
    bearer = BearerToken(
        validator,
        token_generator=lambda request: validator.access_token(request, token_seconds),
        expires_in=token_seconds,
        refresh_token_generator=lambda _: secrets.token_urlsafe(32),
    )
    pages = _Pages(issuer, validator, bearer)
    public = jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    keys = {"keys": [{**public, "kid": key_id(key), "use": "sig", "alg": "RS256"}]}
    application = Starlette(
        routes=[
            Route("/.well-known/openid-configuration", _fixed(pages.metadata)),
            Route("/keys", _fixed(keys)),
            Route("/authorize", pages.authorize, methods=["GET", "POST"]),
            Route("/token", pages.token, methods=["POST"]),
            Route("/device_authorization", pages.device_authorization, methods=["POST"]),
            Route("/device", pages.device, methods=["GET", "POST"]),
            Route("/logout", pages.logout),
        ]
    )
    limited = BodyLimit(application, lambda _: 64 * 1024)
    return BrowserGuard(limited, origins=[issuer, *origins], pages=("/authorize", "/logout"))


class _Pages:
    """What the issuer answers."""

    def __init__(self, issuer: str, validator: _Validator, bearer: BearerToken) -> None:
        self._validator = validator
        code = AuthorizationCodeGrant(validator)
        grants = {
            "authorization_code": code,
            "refresh_token": RefreshTokenGrant(validator),
            DEVICE_GRANT: DeviceCodeGrant(validator),
        }
        self._authorizations = AuthorizationEndpoint("code", bearer, {"code": code})
        self._tokens = TokenEndpoint("authorization_code", bearer, grants)
        self._devices = DeviceAuthorizationEndpoint(
            validator,
            f"{issuer}/device",
            expires_in=int(CODE_SECONDS),
            interval=POLL_SECONDS,
            verification_uri_complete=f"{issuer}/device?user_code={{user_code}}",
            user_code_generator=_user_code,
        )
        self.metadata = {
            "issuer": issuer,
            "authorization_endpoint": f"{issuer}/authorize",
            "token_endpoint": f"{issuer}/token",
            "device_authorization_endpoint": f"{issuer}/device_authorization",
            "end_session_endpoint": f"{issuer}/logout",
            "jwks_uri": f"{issuer}/keys",
            "response_types_supported": ["code"],
            "grant_types_supported": [*grants],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "token_endpoint_auth_methods_supported": ["none"],
            "code_challenge_methods_supported": ["S256"],
            "scopes_supported": [*SCOPES],
        }

    async def authorize(self, request: Request) -> Response:
        uri = str(request.url)
        try:
            scopes, _ = self._authorizations.validate_authorization_request(uri)
        except FatalClientError as error:
            return _refused(error)
        except OAuth2Error as error:
            return RedirectResponse(error.in_uri(error.redirect_uri), 302)
        user = await _user_in(request)
        if user is None:
            return _sign_in_page("Sign in")
        headers, body, status = self._authorizations.create_authorization_response(
            uri, scopes=scopes, credentials={"user": user}
        )
        return Response(body, status, headers)

    async def token(self, request: Request) -> Response:
        uri, body = str(request.url), await _read_form(request)
        headers, answer, status = self._tokens.create_token_response(uri, "POST", body, dict(request.headers))
        return Response(answer, status, headers)

    async def device_authorization(self, request: Request) -> Response:
        uri, body = str(request.url), await _read_form(request)
        headers = {"Content-Type": request.headers.get("content-type", "")}
        try:
            _, found, status = self._devices.create_device_authorization_response(uri, "POST", body, headers)
        except OAuth2Error as error:
            return _refused(error)
        self._validator.add_device(found)
        return JSONResponse(found, status)

    async def device(self, request: Request) -> Response:
        """Sign in a user on the device whose code is in the query."""
        named = request.query_params.get("user_code", "").strip().upper()
        if not named:
            return _sign_in_page("Enter the code", asks_code=True)
        user = await _user_in(request)
        if user is None:
            return _sign_in_page("Sign in on the device")
        if not self._validator.sign_in_on_device(named, user):
            return _sign_in_page("The code is unknown, or was used", asks_code=True)
        return _page("You are signed in on the device", "<p>You can close this page.</p>")

    async def logout(self, request: Request) -> Response:
        """Sign the user of an ID token out, and go back. Source: OpenID Connect RP-Initiated Logout 1.0, section 2."""
        id_token = request.query_params.get("id_token_hint", "")
        if not self._validator.is_ours(id_token):
            return JSONResponse(
                {"error": "invalid_request", "error_description": "id_token_hint is not a token of this issuer"}, 400
            )
        self._validator.sign_out(id_token)
        back = request.query_params.get("post_logout_redirect_uri")
        if back is None:
            return _page("You are signed out", "<p>You can close this page.</p>")
        if not self._validator.validate_redirect_uri(CLIENT, back):
            return JSONResponse(
                {"error": "invalid_request", "error_description": "post_logout_redirect_uri is not registered"}, 400
            )
        state = request.query_params.get("state")
        return RedirectResponse(URL(back) if state is None else URL(back).include_query_params(state=state), 302)


def _fixed(content: Mapping[str, Any]) -> Callable[[Request], Response]:
    return lambda _: JSONResponse(dict(content))


def _refused(error: OAuth2Error) -> Response:
    return JSONResponse({"error": error.error, "error_description": error.description}, 400)


def _user_code() -> str:
    """Return a code without vowels and digits, which a person types. Source: RFC 8628, section 6.1."""
    letters = [secrets.choice("BCDFGHJKLMNPQRSTVWXZ") for _ in range(8)]
    return f"{''.join(letters[:4])}-{''.join(letters[4:])}"


async def _read_form(request: Request) -> str:
    """Return the form in a body; in one that is not text, no name and no value is valid."""
    return (await request.body()).decode(errors="replace")


async def _user_in(request: Request) -> str | None:
    """Return the example user whom the form names; None for another one, or before the form was sent."""
    if request.method != "POST":
        return None
    named = parse_qs(await _read_form(request)).get("user", [""])[0]
    return named if named in USERS else None


_STYLE: Final = """
:root { color-scheme: light dark; }
body {
  margin: 0; min-height: 100vh; display: grid; place-content: center; grid-template-columns: minmax(0, 24rem);
  font: 15px/1.5 Inter, system-ui, sans-serif;
  color: light-dark(#1a1b1f, #e9eaee); background: light-dark(#fbfbfa, #121316);
}
main {
  margin: 1rem; padding: 2rem; border: 1px solid light-dark(#e2e2dc, #363a43); border-radius: .75rem;
  background: light-dark(#fff, #1b1d22);
}
svg { display: block; }
h1 { margin: 1rem 0 .25rem; font-size: 22px; line-height: 1.3; }
p { margin: 0 0 1rem; }
small { color: light-dark(#5b5e66, #a9aeb9); }
button, input {
  box-sizing: border-box; width: 100%; min-height: 2.5rem; padding: 0 .75rem; font: inherit; border-radius: .5rem;
  border: 1px solid light-dark(#85867f, #858b97); color: inherit; background: transparent;
}
button { cursor: pointer; font-weight: 600; margin-top: .25rem; }
button:hover { background: light-dark(#efefeb, #272a31); }
:focus-visible { outline: 2px solid light-dark(#2b4edb, #93aeff); outline-offset: 2px; }
"""
_LOGO: Final = (
    '<svg width="40" height="40" viewBox="0 0 32 32" aria-hidden="true" stroke-width="3.2" stroke-linecap="round">'
    '<rect width="32" height="32" rx="8" fill="#2b4edb"/><path d="M9 10h14M9 22h9" stroke="#fff"/>'
    '<path d="M9 16h11" stroke="#ffe98f"/></svg>'
)
"""The look of the console: web/src/style/tokens.css and web/public/icon.svg."""


def _sign_in_page(title: str, *, asks_code: bool = False) -> HTMLResponse:
    """Return a page that posts to its own URL, or asks for the code of a device."""
    users = "".join(
        f'<p><button name="user" value="{name}">{name}</button><small>{", ".join(groups)}</small></p>'
        for name, groups in USERS.items()
    )
    form = (
        '<form><p><input name="user_code" aria-label="Code" autofocus></p><button>Continue</button></form>'
        if asks_code
        else f'<form method="post">{users}</form>'
    )
    return _page(
        title,
        f"<p>RAGStack's local issuer: example users, without passwords, for this machine only.</p>{form}",
    )


def _page(title: str, body: str) -> HTMLResponse:
    return HTMLResponse(
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{title}</title><link rel="icon" href="data:,"><style>{_STYLE}</style>'
        f"<main>{_LOGO}<h1>{title}</h1>{body}</main></html>"
    )


def key_id(key: rsa.RSAPrivateKey) -> str:
    """Return the name of a key: the end of its modulus."""
    return f"{key.public_key().public_numbers().n & 0xFFFFFFFF:08x}"


def kept_key(file: Path) -> rsa.RSAPrivateKey:
    """Read the key, or make it: tokens stay valid when the stack starts again."""
    try:
        found = serialization.load_pem_private_key(file.read_bytes(), None)
    except FileNotFoundError:
        found = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        pem, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
        file.touch(0o600)
        file.write_bytes(found.private_bytes(pem, form, serialization.NoEncryption()))
    assert isinstance(found, rsa.RSAPrivateKey)
    return found


def main() -> None:
    """Serve until asked to end."""
    port, key_file, *origins = sys.argv[1:]
    os.umask(PRIVATE_UMASK)
    end_with_parent()
    application = create_issuer(f"http://{LOCAL}:{port}", kept_key(Path(key_file)), origins=origins)
    uvicorn.run(application, host=LOCAL, port=int(port), ws="none", log_level="warning", access_log=False)


if __name__ == "__main__":
    main()
