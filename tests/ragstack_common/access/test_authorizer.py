"""The authorizer, through its handler, against an issuer with real keys behind a real socket."""

from ragstack_common.function import metrics

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from lambdas.authorizer import handler as authorizer
from ragstack_common.access.authorizer import Authorizer
from ragstack_common.access.identity import Identity
from ragstack_common.core.errors import ConfigurationError, NotAllowedError
from ragstack_common.settings.access import AccessSettings, AuthKind
from tests.support.events import Context
from tests.support.http_server import http_server

ARN = "arn:aws:execute-api:eu-west-1:123456789012:abc123/prod/POST/api/retrieve"
AUDIENCE = "ragstack"


@pytest.fixture(scope="module")
def key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


@pytest.fixture(scope="module")
def strange_key() -> rsa.RSAPrivateKey:
    """Another key than the issuer's."""
    return rsa.generate_private_key(65537, 2048)


@dataclass
class Issuer:
    """An issuer: its address, its keys by their ids, and the number of times that they were fetched."""

    key: rsa.RSAPrivateKey
    url: str = ""
    keys: dict[str | None, Any] = field(default_factory=dict)
    fetched: int = 0
    is_up: bool = True

    def token(self, key: Any = None, kid: str | None = "first", algorithm: str = "RS256", **claims: Any) -> str:
        """Sign a token that is valid but for what a test changes; None leaves a claim out."""
        all_claims = {"iss": self.url, "aud": AUDIENCE, "sub": "alice", "exp": int(time.time()) + 600, **claims}
        kept = {name: value for name, value in all_claims.items() if value is not None}
        return jwt.encode(kept, key or self.key, algorithm, headers={} if kid is None else {"kid": kid})


@pytest.fixture
def issuer(key: rsa.RSAPrivateKey, monkeypatch: pytest.MonkeyPatch) -> Iterator[Issuer]:
    """The issuer that the function trusts."""
    made = Issuer(key, keys={"first": key})

    class Provider(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/keys":
                made.fetched += 1
                body: Any = {"keys": [_jwk(name, each) for name, each in made.keys.items()]}
            else:
                body = {"issuer": made.url, "jwks_uri": f"{made.url}/keys"}
            encoded = json.dumps(body).encode()
            self.send_response(200 if made.is_up else 503)
            self.send_header("Content-Length", str(len(encoded)))
            self.end_headers()
            self.wfile.write(encoded)

        def log_message(self, *_: Any) -> None:
            """Write nothing."""

    with http_server(Provider) as made.url:
        for name, value in {"API_AUTH": "oidc,iam", "OIDC_ISSUER": made.url, "OIDC_AUDIENCE": AUDIENCE}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(metrics, "namespace", "RAGStack")
        monkeypatch.setattr(metrics, "service", "authorizer")
        authorizer.service.cache_clear()
        yield made
        authorizer.service.cache_clear()


def _jwk(name: str | None, key: Any) -> dict[str, Any]:
    kind = jwt.algorithms.RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else jwt.algorithms.ECAlgorithm
    described: dict[str, Any] = {**kind.to_jwk(key.public_key(), as_dict=True), "use": "sig"}
    return described if name is None else {**described, "kid": name}


def authorize(token: str, scheme: str = "Bearer") -> dict[str, Any]:
    event = {"type": "TOKEN", "methodArn": ARN, "authorizationToken": f"{scheme} {token}"}
    return authorizer.handler(event, Context())


def is_refused(token: str) -> bool:
    """API Gateway answers with 401 for this message alone."""
    with pytest.raises(RuntimeError, match=r"^Unauthorized$"):
        authorize(token)
    return True


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_a_token_that_is_nested_too_deeply_is_refused(issuer: Issuer, opening: str) -> None:
    deep = base64.urlsafe_b64encode((opening * 2000).encode()).decode().rstrip("=")
    header, claims, signature = issuer.token().split(".")

    assert is_refused(f"{deep}.{claims}.{signature}")
    assert is_refused(f"{header}.{deep}.{signature}")


def test_a_valid_token_permits_the_whole_stage(issuer: Issuer) -> None:
    answer = authorize(issuer.token())

    assert answer["principalId"] == "user:alice"
    assert answer["policyDocument"]["Statement"] == [
        {
            "Action": "execute-api:Invoke",
            "Effect": "Allow",
            "Resource": "arn:aws:execute-api:eu-west-1:123456789012:abc123/prod/*",
        }
    ]


@pytest.mark.parametrize("scheme", ["bearer", "BEARER"])
def test_the_scheme_has_no_case(issuer: Issuer, scheme: str) -> None:
    assert authorize(issuer.token(), scheme)["principalId"] == "user:alice"


def test_functions_get_the_claims_that_the_access_file_maps(
    issuer: Issuer, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    file = tmp_path / "access.json"
    file.write_text('{"claims": {"user": "name", "group": "roles", "tenant": "company"}}')
    monkeypatch.setenv("ACCESS_FILE", str(file))
    token = issuer.token(name="Jürgen", roles=["people"], company="acme", picture="x" * 1000, groups=["other"])

    answer = authorize(token)
    claims = json.loads(answer["context"]["claims"])

    assert claims.keys() == {"name", "roles", "company", "sub", "exp"}
    assert (claims["name"], claims["roles"], claims["company"]) == ("Jürgen", ["people"], "acme")
    assert json.dumps(answer, ensure_ascii=False).isascii()


def test_a_function_knows_the_caller_from_the_context(issuer: Issuer) -> None:
    context = {"authorizer": authorize(issuer.token(groups=["people"]))["context"], "identity": {}}
    identity = Identity(AccessSettings(api_auth=(AuthKind.OIDC, AuthKind.IAM)))

    caller = identity.caller(context)

    assert (caller.name, "group:people" in caller.principals) == ("user:alice", True)
    assert caller.expires_at is not None


def test_a_function_gets_only_the_claim_at_the_end_of_a_path(
    issuer: Issuer, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    file = tmp_path / "access.json"
    file.write_text('{"claims": {"group": "realm_access.roles"}}')
    monkeypatch.setenv("ACCESS_FILE", str(file))
    token = issuer.token(realm_access={"roles": ["people"], "other": "x"})

    claims = json.loads(authorize(token)["context"]["claims"])

    assert claims.keys() == {"sub", "exp", "realm_access.roles"}


def test_a_function_says_why_a_token_without_its_groups_is_refused(issuer: Issuer) -> None:
    """API Gateway would answer with 401 and no reason."""
    token = issuer.token(_claim_names={"groups": "src1"}, _claim_sources={"src1": {"endpoint": "https://x.example"}})
    context = {"authorizer": authorize(token)["context"], "identity": {}}

    with pytest.raises(NotAllowedError, match="leaves out the claim groups"):
        Identity(AccessSettings(api_auth=(AuthKind.OIDC,))).caller(context)


@pytest.mark.parametrize(
    "changes",
    [
        {"iss": "https://evil.example.com"},
        {"iss": None},
        {"aud": "another"},
        {"aud": ["another", "third"]},
        {"aud": None},
        {"aud": None, "client_id": "another"},
        {"exp": 1},
        {"exp": None},
        {"nbf": 4_102_444_800},  # in the year 2100
        {"sub": None},
        {"sub": "x" * 20_000},
    ],
    ids=lambda changes: str(changes)[:40],
)
def test_claims_of_other_tokens_are_refused(issuer: Issuer, changes: dict[str, Any]) -> None:
    assert is_refused(issuer.token(**changes))


def test_a_client_id_replaces_a_missing_audience(issuer: Issuer) -> None:
    """So access tokens of Amazon Cognito are."""
    assert authorize(issuer.token(aud=None, client_id=AUDIENCE))


def test_a_token_without_signature_is_refused(issuer: Issuer) -> None:
    head, body, _ = issuer.token().split(".")
    none = base64.urlsafe_b64encode(b'{"alg":"none","kid":"first"}').rstrip(b"=").decode()

    assert is_refused(f"{none}.{body}.")
    assert is_refused(f"{head}.{body}.")


def test_a_signature_with_the_public_key_is_refused(issuer: Issuer, key: rsa.RSAPrivateKey) -> None:
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    head = base64.urlsafe_b64encode(b'{"alg":"HS256","kid":"first"}').rstrip(b"=").decode()
    signed = f"{head}.{issuer.token().split('.')[1]}"
    signature = hmac.new(public, signed.encode(), hashlib.sha256).digest()

    assert is_refused(f"{signed}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}")


def test_a_changed_token_is_refused(issuer: Issuer) -> None:
    head, body, signature = issuer.token().split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    changed = base64.urlsafe_b64encode(json.dumps({**claims, "sub": "root"}).encode()).rstrip(b"=").decode()

    assert is_refused(f"{head}.{changed}.{signature}")
    assert is_refused(f"{head}.{body}.{'A' if signature[0] != 'A' else 'B'}{signature[1:]}")


@pytest.mark.parametrize("kid", ["first", "unknown", "../keys", ""])
def test_an_unknown_key_is_refused_under_any_id(issuer: Issuer, strange_key: rsa.RSAPrivateKey, kid: str) -> None:
    assert is_refused(issuer.token(strange_key, kid))


def test_a_token_does_not_bring_its_own_key(issuer: Issuer, strange_key: rsa.RSAPrivateKey) -> None:
    claims = {"iss": issuer.url, "aud": AUDIENCE, "sub": "alice", "exp": int(time.time()) + 600}
    own = {"kid": "first", "jwk": _jwk("first", strange_key), "jku": "http://127.0.0.1:9/keys"}

    assert is_refused(jwt.encode(claims, strange_key, "RS256", headers=own))


def test_unknown_keys_cause_few_requests(issuer: Issuer) -> None:
    for number in range(5):
        is_refused(issuer.token(kid=f"unknown-{number}"))

    assert issuer.fetched <= 2


def test_a_new_key_of_the_issuer_is_found(
    issuer: Issuer, strange_key: rsa.RSAPrivateKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragstack_common.access.tokens.COOLDOWN_SECONDS", 0)
    authorize(issuer.token())

    issuer.keys["second"] = strange_key

    assert authorize(issuer.token(strange_key, "second"))


def test_a_token_without_key_id_needs_an_issuer_with_one_key(issuer: Issuer, strange_key: rsa.RSAPrivateKey) -> None:
    assert authorize(issuer.token(kid=None))

    issuer.keys["second"] = strange_key
    authorizer.service.cache_clear()

    assert is_refused(issuer.token(kid=None))


def test_an_issuer_may_not_name_its_one_key(issuer: Issuer, key: rsa.RSAPrivateKey) -> None:
    issuer.keys = {None: key}

    assert authorize(issuer.token(kid=None))
    assert is_refused(issuer.token(kid="first"))


def test_other_signatures_with_a_private_key_are_verified(issuer: Issuer) -> None:
    issuer.keys["curve"] = curve = ec.generate_private_key(ec.SECP256R1())

    assert authorize(issuer.token(curve, "curve", "ES256"))


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer ", "Basic YTpi", "Bearer a.b.c", "Bearer \x00", "Token x", "Bearer a b"]
)
def test_other_headers_are_refused(issuer: Issuer, header: str | None) -> None:
    with pytest.raises(RuntimeError, match=r"^Unauthorized$"):
        authorizer.handler({"methodArn": ARN, "authorizationToken": header}, Context())


def test_an_unreachable_issuer_is_not_401(issuer: Issuer, capsys: pytest.CaptureFixture[str]) -> None:
    """API Gateway answers other errors with 500, and the alarm about faults is raised."""
    issuer.is_up = False

    with pytest.raises(Exception, match=r"The issuer .* does not answer|cannot be fetched"):
        authorize(issuer.token())

    assert '"DeploymentFaults":[1.0]' in capsys.readouterr().out.replace(" ", "")


def test_the_log_has_the_reason_and_not_the_token(issuer: Issuer, caplog: pytest.LogCaptureFixture) -> None:
    token = issuer.token(exp=1)

    assert is_refused(token)

    assert "expired" in caplog.text
    assert token not in caplog.text


def test_a_deployment_without_tokens_has_no_authorizer() -> None:
    with pytest.raises(ConfigurationError, match="API_AUTH"):
        Authorizer.from_env({"API_AUTH": "iam"})
