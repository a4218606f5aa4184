"""People of a user pool: how the run creates them, and how they sign in on the page of Amazon Cognito."""

import json
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
import pytest

from ragstack_local.certify.check import Verdict
from ragstack_local.certify.deployed import people
from ragstack_local.certify.deployed.calls import Answer
from ragstack_local.certify.deployed.checks import CHECKS
from ragstack_local.certify.deployed.people import People
from ragstack_local.certify.runner import run_check
from ragstack_local.certify.site import Site
from ragstack_local.connection.address import Address
from ragstack_local.signin.provider import ClientRegistration
from tests.ragstack_local.certify.deployed.account import Account, Request
from tests.ragstack_local.certify.deployed.conftest import CLIENT, PEOPLE, TOKEN
from tests.ragstack_local.certify.deployed.test_aws_checks import error, json_answer
from tests.support.http_server import http_server

BY_NAME = {check.name: check for check in CHECKS}
POOL = "eu-west-1_abcdefghi"
RIGHTS = {f"operators@{TOKEN}.example.com": ["operate", "read", "write"], f"readers@{TOKEN}.example.com": ["read"]}
SECRET = "a secret of 32 bytes for the tests"


def token_of(user: str, client: str) -> str:
    return jwt.encode({"sub": user, "client_id": client}, SECRET, "HS256")


def api(request: Request) -> Answer:
    """An API that accepts the tokens of the client of the stacks, and of no other."""
    _, url, _, headers = request
    scheme, _, token = headers.get("authorization", "").partition(" ")
    metadata = f"{PEOPLE}/.well-known/oauth-protected-resource"
    refusal = error(401, "NotAuthenticated", **{"www-authenticate": f'Bearer resource_metadata="{metadata}"'})
    if scheme != "Bearer":
        return refusal
    try:
        claims = jwt.decode(token, SECRET, ["HS256"])
    except jwt.PyJWTError:
        return refusal
    if claims["client_id"] != CLIENT:
        return refusal
    return json_answer(200, {"rights": RIGHTS[claims["sub"]]} if url.endswith("/api/me") else {"corpora": []})


@pytest.fixture
def pool(account: Account) -> Account:
    """A pool whose client has the settings of the stacks."""
    user: dict[str, Any] = {"User": {}}
    other = "zyxwvutsrqponmlkjihgfedcba"
    client = {
        "UserPoolId": POOL,
        "ClientId": CLIENT,
        "ClientName": "client",
        "ExplicitAuthFlows": ["ALLOW_REFRESH_TOKEN_AUTH"],
        "CallbackURLs": [people.CALLBACK],
        "AllowedOAuthFlows": ["code"],
    }
    account.web[PEOPLE] = api
    account.replies |= {
        "cognito-idp.AdminCreateUser": user,
        "cognito-idp.AdminSetUserPassword": {},
        "cognito-idp.AdminAddUserToGroup": {},
        "cognito-idp.DescribeUserPoolClient": {"UserPoolClient": client},
        "cognito-idp.UpdateUserPoolClient": {"UserPoolClient": client},
        "cognito-idp.CreateUserPoolClient": {"UserPoolClient": {"ClientId": other}},
        "cognito-idp.AdminInitiateAuth": lambda given: {
            "AuthenticationResult": {"AccessToken": token_of(given["AuthParameters"]["USERNAME"], given["ClientId"])}
        },
    }
    return account


def test_the_run_creates_an_operator_and_a_reader(site: Site, pool: Account) -> None:
    found = site.shared(people.people)

    groups = {each["GroupName"]: each["Username"] for each in pool.asked("cognito-idp.AdminAddUserToGroup")}
    assert groups == {"operators": found.name, "readers": f"readers@{TOKEN}.example.com"}
    assert all(each["MessageAction"] == "SUPPRESS" for each in pool.asked("cognito-idp.AdminCreateUser"))


def test_the_client_keeps_its_settings(site: Site, pool: Account) -> None:
    site.shared(people.people)

    (changed,) = pool.asked("cognito-idp.UpdateUserPoolClient")
    assert changed["CallbackURLs"] == [people.CALLBACK]
    assert changed["AllowedOAuthFlows"] == ["code"]
    assert changed["ExplicitAuthFlows"] == ["ALLOW_ADMIN_USER_PASSWORD_AUTH", "ALLOW_REFRESH_TOKEN_AUTH"]


@pytest.mark.parametrize(
    "name", [f"sign_in.{name}" for name in ("token", "no_token", "malformed_token", "forged_token", "other_client")]
)
def test_tokens_of_the_pool_are_tried(site: Site, pool: Account, name: str) -> None:
    outcome = run_check(site, BY_NAME[name])

    assert (outcome.observed, outcome.reason) == (BY_NAME[name].expected, "")


def test_people_without_the_expected_rights_are_not_tried(
    site: Site, pool: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RIGHTS, f"readers@{TOKEN}.example.com", ["operate", "read"])

    outcome = run_check(site, BY_NAME["labels.hidden"])

    assert outcome.verdict is Verdict.NOT_TRIED


class HostedPage(BaseHTTPRequestHandler):
    """The sign-in page of Amazon Cognito, with its cookie and its form."""

    url: ClassVar[str]
    password: ClassVar[str] = "correct"
    has_form: ClassVar[bool] = True
    nonce: ClassVar[str] = ""

    def do_GET(self) -> None:
        path, query = urlsplit(self.path).path, urlsplit(self.path).query
        if path == "/.well-known/openid-configuration":
            endpoints = {name: f"{self.url}/{name}" for name in ("authorization_endpoint", "token_endpoint")}
            self.respond(200, json.dumps({"issuer": self.url, **endpoints}).encode())
        elif path == "/authorization_endpoint":
            type(self).nonce = parse_qs(query)["nonce"][0]
            self.respond(302, b"", {"Location": f"/login?{query}", "Set-Cookie": "XSRF-TOKEN=abc; Path=/"})
        else:
            form = f'<form name="cognitoSignInForm" action="/login?{query.replace("&", "&amp;")}" method="post">'
            hidden = '<input type="hidden" name="_csrf" value="abc"/></form>'
            self.respond(200, (form + hidden if self.has_form else "<div id=app></div>").encode())

    def do_POST(self) -> None:
        body = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        if self.path == "/token_endpoint":
            user = next(iter(RIGHTS))
            identity = jwt.encode({"nonce": self.nonce}, SECRET, "HS256")
            tokens = {"access_token": token_of(user, CLIENT), "id_token": identity, "expires_in": 3600}
            self.respond(200, json.dumps(tokens).encode())
            return
        query = parse_qs(urlsplit(self.path).query)
        is_right = body["password"] == [self.password] and body["_csrf"] == ["abc"]
        if is_right and "XSRF-TOKEN=abc" in self.headers.get("Cookie", ""):
            answer = {"code": "1", "state": query["state"][0]}
            self.respond(302, b"", {"Location": f"{query['redirect_uri'][0]}?{urlencode(answer)}"})
        else:
            self.respond(200, b"Incorrect username or password.")

    def respond(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def hosted(site: Site, pool: Account, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[HostedPage]]:
    class Page(HostedPage):
        """Of this test alone."""

    page: type[HostedPage] = Page
    with http_server(page) as url:
        page.url = url
        name, client = next(iter(RIGHTS)), ClientRegistration(CLIENT, (CLIENT,))
        operator, nobody = Address(PEOPLE, token=token_of(name, CLIENT)), Address(PEOPLE)
        found = People(PEOPLE, url, operator, nobody, nobody, client, name, "correct")
        monkeypatch.setattr(people, "people", lambda _: found)
        yield page


def test_a_person_signs_in_on_the_page_of_cognito(site: Site, hosted: type[HostedPage]) -> None:
    outcome = run_check(site, BY_NAME["sign_in.page"])

    assert (outcome.observed, outcome.reason) == ({"the API accepts the token": True}, "")


def test_a_page_that_sends_nobody_back_differs(site: Site, hosted: type[HostedPage]) -> None:
    hosted.password = "another"

    outcome = run_check(site, BY_NAME["sign_in.page"])

    assert outcome.verdict is Verdict.DIFFERS


def test_a_page_of_another_form_is_not_tried(site: Site, hosted: type[HostedPage]) -> None:
    hosted.has_form = False

    outcome = run_check(site, BY_NAME["sign_in.page"])

    assert (outcome.verdict, outcome.reason) == (
        Verdict.NOT_TRIED,
        "the sign-in page has another form than that of the hosted interface",
    )
