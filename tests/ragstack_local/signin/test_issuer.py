"""The local issuer, by its own protocol: what it issues to whom, and what it refuses."""

import stat
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from ragstack_common.access.tokens import TokenVerifier
from ragstack_local.errors import StackError
from ragstack_local.signin.provider import ClientRegistration, Provider
from ragstack_local.stack.issuer import CLIENT, USERS
from ragstack_local.stack.issuer_app import CODE_SECONDS, kept_key, key_id
from tests.ragstack_local.signin.conftest import APPLICATION, Clock
from tests.support.web_pages import send

CALLBACK = "http://localhost:8484/callback"


def posted(url: str, **form: str) -> httpx2.Response:
    return httpx2.post(url, data=form)


@pytest.mark.parametrize("user", USERS)
def test_the_api_accepts_the_tokens_of_a_user(provider: Provider, issuer: str, user: str) -> None:
    token = provider.silently(APPLICATION, user).bearer

    claims = TokenVerifier(issuer, [CLIENT]).verify(token)

    assert (claims["sub"], tuple(claims["groups"])) == (user, USERS[user])
    assert claims["scope"] == "openid email profile offline_access"


def test_another_user_does_not_exist(provider: Provider) -> None:
    with pytest.raises(StackError, match="no user mallory: its users are alice, bob and olga"):
        provider.silently(APPLICATION, "mallory")


def test_the_page_offers_the_users(provider: Provider) -> None:
    page = httpx2.get(provider.authorization(APPLICATION, CALLBACK).url)

    assert all(f'value="{user}"' in page.text for user in USERS)
    assert "location" not in page.headers


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"client_id": "other"}, "invalid_request"),
        ({"redirect_uri": "https://evil.example/callback"}, "invalid_request"),
        ({"redirect_uri": "http://localhost.evil.example/callback"}, "invalid_request"),
    ],
)
def test_no_code_goes_elsewhere(provider: Provider, change: dict[str, str], code: str) -> None:
    url = httpx2.URL(provider.authorization(APPLICATION, CALLBACK).url).copy_merge_params(change)

    answer = posted(str(url), user="alice")

    assert (answer.status_code, answer.json()["error"]) == (400, code)
    assert "location" not in answer.headers


def test_a_page_that_may_use_the_stack_gets_a_code(provider: Provider) -> None:
    answer = posted(provider.authorization(APPLICATION, "http://localhost:5173/back").url, user="alice")

    assert answer.headers["location"].startswith("http://localhost:5173/back?code=")


@pytest.mark.parametrize(("path", "status"), [("/authorize", 400), ("/logout", 400), ("/token", 403), ("/device", 403)])
def test_a_page_may_send_people_to_sign_in(issuer: str, path: str, status: int) -> None:
    """The console sends no referrer. Without parameters, the pages for signing in and out refuse the client."""
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}

    assert send(issuer, "GET", path, **link).status == status


@pytest.mark.parametrize("left_out", ["code_challenge", "response_type"])
def test_a_request_without_pkce_or_for_no_code_is_sent_back(provider: Provider, left_out: str) -> None:
    url = httpx2.URL(provider.authorization(APPLICATION, CALLBACK).url).copy_remove_param(left_out)

    location = posted(str(url), user="alice").headers["location"]

    assert "error" in parse_qs(urlsplit(location).query)
    assert "code" not in parse_qs(urlsplit(location).query)


def redeemed(provider: Provider, clock: Clock, *, verifier: str | None = None, late: float = 0.0) -> list[Any]:
    """Redeem a code twice; return the answers."""
    asked = provider.authorization(APPLICATION, CALLBACK)
    location = posted(asked.url, user="alice").headers["location"]
    clock.ahead += late
    form = {
        "grant_type": "authorization_code",
        "client_id": CLIENT,
        "code": parse_qs(urlsplit(location).query)["code"][0],
        "redirect_uri": CALLBACK,
        "code_verifier": verifier or asked.verifier,
    }
    return [posted(provider.metadata["token_endpoint"], **form) for _ in range(2)]


def test_a_code_counts_once(provider: Provider, clock: Clock) -> None:
    first, second = redeemed(provider, clock)

    assert (first.status_code, second.status_code) == (200, 400)
    assert second.json()["error"] == "invalid_grant"


def test_a_code_needs_its_verifier(provider: Provider, clock: Clock) -> None:
    first, _ = redeemed(provider, clock, verifier="a" * 64)

    assert first.json()["error"] == "invalid_grant"


def test_a_plain_challenge_is_not_accepted(provider: Provider) -> None:
    verifier = "a" * 64
    url = httpx2.URL(provider.authorization(APPLICATION, CALLBACK).url)
    plain = url.copy_merge_params({"code_challenge": verifier, "code_challenge_method": "plain"})
    code = parse_qs(urlsplit(posted(str(plain), user="alice").headers["location"]).query)["code"][0]

    form = {"grant_type": "authorization_code", "client_id": CLIENT, "code": code, "redirect_uri": CALLBACK}
    answer = posted(provider.metadata["token_endpoint"], **form, code_verifier=verifier)

    assert answer.json()["error"] == "invalid_grant"


def test_a_code_expires(provider: Provider, clock: Clock) -> None:
    first, _ = redeemed(provider, clock, late=CODE_SECONDS + 1)

    assert first.json()["error"] == "invalid_grant"


def test_a_refresh_token_counts_once(provider: Provider) -> None:
    first = provider.silently(APPLICATION, "bob")

    second = provider.refreshed(APPLICATION, str(first.refresh))

    assert second.refresh != first.refresh
    with pytest.raises(StackError, match="invalid_grant"):
        provider.refreshed(APPLICATION, str(first.refresh))


def test_a_person_signs_in_for_a_device(provider: Provider, issuer: str) -> None:
    shown: list[Any] = []

    def sign_in(_: float) -> None:
        # Between the first look and the second.
        if len(shown) == 1:
            shown.append(posted(shown[0]["verification_uri_complete"], user="olga"))

    tokens = provider.from_device(APPLICATION, shown.append, sleep=sign_in)
    again = posted(shown[0]["verification_uri_complete"], user="alice")

    assert TokenVerifier(issuer, [CLIENT]).verify(tokens.bearer)["sub"] == "olga"
    assert "signed in on the device" in shown[1].text
    assert "unknown, or was used" in again.text


def test_a_device_gets_no_token_until_a_person_signs_in(provider: Provider, clock: Clock) -> None:
    def wait(_: float) -> None:
        clock.ahead += CODE_SECONDS / 2

    with pytest.raises(StackError, match="expired"):
        provider.from_device(APPLICATION, lambda _: None, sleep=wait)


@pytest.mark.parametrize("grant", ["password", "client_credentials"])
def test_other_grants_are_refused(provider: Provider, grant: str) -> None:
    answer = posted(provider.metadata["token_endpoint"], grant_type=grant, client_id=CLIENT, username="alice")

    assert answer.status_code == 400


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "issuer.evil.example"},
        {"Origin": "https://evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
def test_web_pages_and_other_hosts_are_refused(provider: Provider, headers: dict[str, str]) -> None:
    answer = httpx2.post(provider.authorization(APPLICATION, CALLBACK).url, data={"user": "olga"}, headers=headers)

    assert answer.status_code == 403


def test_an_unsupported_scope_is_refused(provider: Provider) -> None:
    with pytest.raises(StackError, match="Signing in failed"):
        provider.silently(ClientRegistration(CLIENT, (CLIENT,), ("openid", "admin")), "alice")


@pytest.mark.parametrize("path", ["/token", "/device_authorization", "/authorize", "/device?user_code=ABCD"])
@pytest.mark.parametrize(
    "body", [b"\xff\xfe", b"grant_type=\xff", b"user=\xc3", b"%ff=%ff", b"a\x00=b", b"grant_type=%", b"[" * 9000]
)
def test_a_body_that_is_not_a_form_is_refused(provider: Provider, issuer: str, path: str, body: bytes) -> None:
    url = issuer + path
    if path == "/authorize":
        url = provider.authorization(APPLICATION, CALLBACK).url
    form = {"Content-Type": "application/x-www-form-urlencoded"}

    answer = httpx2.post(url, content=body, headers=form)

    # The pages for people ask again.
    assert answer.status_code == (200 if path.startswith(("/authorize", "/device?")) else 400)
    assert "location" not in answer.headers


@pytest.mark.parametrize("query", ["client_id=%ff", "client_id=a%00b", "a=%", "client_id=ragstack&client_id=ragstack"])
def test_a_query_that_is_not_a_form_is_refused(issuer: str, query: str) -> None:
    assert httpx2.get(f"{issuer}/authorize?{query}").status_code == 400


@pytest.mark.parametrize("path", ["/token", "/device_authorization", "/authorize", "/device"])
def test_a_body_that_is_too_long_is_refused_before_it_comes(issuer: str, path: str) -> None:
    assert send(issuer, "POST", path, Content_Length="400000000").status == 413


def test_the_key_is_kept_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "data" / "key.pem"

    first, second = kept_key(file), kept_key(file)

    assert key_id(first) == key_id(second)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def signed_in(provider: Provider) -> dict[str, Any]:
    """All tokens of a user who signed in on the page."""
    asked = provider.authorization(APPLICATION, CALLBACK)
    back = posted(asked.url, user="alice").headers["location"]
    form = {
        "grant_type": "authorization_code",
        "code": parse_qs(urlsplit(back).query)["code"][0],
        "redirect_uri": CALLBACK,
        "client_id": CLIENT,
        "code_verifier": asked.verifier,
    }
    found: dict[str, Any] = posted(provider.metadata["token_endpoint"], **form).json()
    return found


def left(provider: Provider, **query: str) -> httpx2.Response:
    return httpx2.get(provider.metadata["end_session_endpoint"], params=query)


def test_who_signs_out_goes_back_and_cannot_renew(provider: Provider, clock: Clock) -> None:
    tokens = signed_in(provider)
    clock.ahead = 7200  # the ID token has expired, which is no reason to stay signed in

    answer = left(
        provider, id_token_hint=tokens["id_token"], post_logout_redirect_uri="http://localhost:5173/?a=1", state="x y"
    )

    assert (answer.status_code, answer.headers["location"]) == (302, "http://localhost:5173/?a=1&state=x+y")
    with pytest.raises(StackError, match="refused"):
        provider.refreshed(APPLICATION, tokens["refresh_token"])


def test_signing_out_leads_to_registered_pages_alone(provider: Provider) -> None:
    tokens = signed_in(provider)

    answer = left(provider, id_token_hint=tokens["id_token"], post_logout_redirect_uri="https://evil.example/")

    assert (answer.status_code, "location" in answer.headers) == (400, False)


@pytest.mark.parametrize("hint", ["", "opaque", "a.b.c"])
def test_signing_out_needs_a_token_of_the_issuer(provider: Provider, hint: str) -> None:
    assert left(provider, id_token_hint=hint, post_logout_redirect_uri=CALLBACK).status_code == 400


def test_without_an_address_signing_out_says_that_it_is_done(provider: Provider) -> None:
    answer = left(provider, id_token_hint=signed_in(provider)["id_token"])

    assert (answer.status_code, "You are signed out" in answer.text) == (200, True)
