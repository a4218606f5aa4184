"""An issuer of tokens with real keys on this machine, and the tokens that attackers make."""

import base64
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.support.http_server import http_server

AUDIENCE: Final = "ragstack"


@dataclass
class Issuer:
    """Signs tokens."""

    url: str = ""
    key: RSAPrivateKey = field(default_factory=lambda: generate_private_key(65537, 2048))

    @property
    def jwks(self) -> dict[str, Any]:
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key()))
        return {"keys": [{**public, "kid": "k", "use": "sig", "alg": "RS256"}]}

    def claims(self, **more: Any) -> dict[str, Any]:
        now = int(time.time())
        return {"iss": self.url, "aud": AUDIENCE, "sub": "eve", "iat": now, "exp": now + 600, **more}

    def token(self, key: Any = None, algorithm: str = "RS256", kid: str = "k", **more: Any) -> str:
        claims = {name: value for name, value in self.claims(**more).items() if value is not None}
        return jwt.encode(claims, self.key if key is None else key, algorithm, {"kid": kid})

    def forged(self, **more: Any) -> dict[str, str]:
        """Return tokens that nobody should accept, by what is wrong with them."""
        public = self.key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        valid = self.token(**more)
        head, body, signature = valid.split(".")
        everything = _encoded({**self.claims(**more), "groups": ["readers", "writers", "operators"]})
        now = int(time.time())
        return {
            "expired": self.token(exp=now - 60, **more),
            "not yet valid": self.token(nbf=now + 600, **more),
            "without an expiry": self.token(exp=None, **more),
            "another issuer": self.token(iss="https://evil.example", **more),
            "another audience": self.token(aud="other", **more),
            "no audience": self.token(aud=[], **more),
            "the client of another application": self.token(aud=None, client_id="other", **more),
            "another key": self.token(generate_private_key(65537, 2048), **more),
            "an unknown key": self.token(kid="unknown", **more),
            "algorithm none": f"{_encoded({'alg': 'none', 'typ': 'JWT', 'kid': 'k'})}.{body}.",
            "the public key as a secret": _signed_with(public, {"alg": "HS256", "kid": "k"}, body),
            "other claims": f"{head}.{everything}.{signature}",
            "no signature": f"{head}.{body}.",
            "nonsense": "a.b.c",
            "empty": "",
        }


def _encoded(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def _signed_with(secret: bytes, header: dict[str, str], body: str) -> str:
    """Sign as HS256 does; the package refuses to take a public key for a secret."""
    import hashlib  # noqa: PLC0415 - for this attack only
    import hmac  # noqa: PLC0415

    signed = f"{_encoded(header)}.{body}"
    signature = hmac.new(secret, signed.encode(), hashlib.sha256).digest()
    return f"{signed}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


@contextmanager
def issuing() -> Iterator[Issuer]:
    """Serve discovery and keys."""
    issuer = Issuer()

    class Discovery(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_keys = self.path == "/keys"
            found = issuer.jwks if is_keys else {"issuer": issuer.url, "jwks_uri": f"{issuer.url}/keys"}
            body = json.dumps(found).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Write nothing."""

    with http_server(Discovery) as issuer.url:
        yield issuer
