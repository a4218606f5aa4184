"""Tokens that are kept: for whom, for how long, and what happens between processes."""

import json
import multiprocessing
import stat
from dataclasses import replace
from pathlib import Path
from time import time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragstack_local.connection.address import Address, user_logins
from ragstack_local.errors import ApiError, StackError
from ragstack_local.signin.logins import EARLY_SECONDS, Login, Logins
from ragstack_local.signin.provider import Provider, choose_bearer, read_claims
from ragstack_local.stack.issuer import CLIENT
from tests.ragstack_local.signin.conftest import APPLICATION, Clock
from tests.ragstack_local.support import NOWHERE, Api, ragstack, running_stack, stack_at

API = "https://api.example/prod"
LOGIN = Login(API, NOWHERE, CLIENT, (CLIENT,), (), "bearer", time() + 3600)

TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)


@pytest.fixture
def logins(tmp_path: Path) -> Logins:
    return Logins(tmp_path / "logins")


def signed_in(provider: Provider, issuer: str, name: str, **more: Any) -> Login:
    tokens = provider.silently(APPLICATION, name)
    made = replace(LOGIN, issuer=issuer, bearer=tokens.bearer, expires_at=tokens.expires_at, refresh=tokens.refresh)
    return replace(made, **more)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)
@given(written=st.lists(st.tuples(st.sampled_from([API, f"{API}2", "http://127.0.0.1:1/a"]), TEXTS), max_size=8))
def test_each_api_has_its_newest_login(tmp_path: Path, written: list[tuple[str, str]]) -> None:
    logins = Logins(tmp_path / "logins")
    for url, bearer in written:
        logins.write(replace(LOGIN, api_url=url, bearer=bearer))

    newest = dict(written)
    assert {url: logins.bearer(url) for url in newest} == newest
    assert {stat.S_IMODE(file.stat().st_mode) for file in (tmp_path / "logins").glob("*.json")} <= {0o600}
    for url in newest:
        assert logins.remove(url)
        assert logins.bearer(url) is None
        assert not logins.remove(url)


def test_only_the_owner_can_enter_the_folder(logins: Logins) -> None:
    logins.folder.mkdir(mode=0o755)

    logins.write(LOGIN)

    assert stat.S_IMODE(logins.folder.stat().st_mode) == 0o700
    assert not list(logins.folder.glob("*.tmp"))


def test_a_failed_write_keeps_the_earlier_login(logins: Logins) -> None:
    logins.write(LOGIN)

    with pytest.raises(TypeError):
        logins.write(replace(LOGIN, bearer=object()))  # type: ignore[arg-type] # JSON cannot write it

    assert logins.read(API) == LOGIN
    assert len(list(logins.folder.iterdir())) == 1


@pytest.mark.parametrize("content", ["", "[]", "{", '{"api_url": "x"}', json.dumps({"audiences": 1, "scopes": 2})])
def test_a_damaged_file_counts_as_signed_out(logins: Logins, content: str) -> None:
    logins.write(LOGIN)
    next(logins.folder.glob("*.json")).write_text(content)

    assert logins.bearer(API) is None


def test_a_login_shows_no_token() -> None:
    assert "bearer" not in repr(LOGIN)
    assert "bearer" not in repr(Address(API, token="bearer"))


def test_an_expired_token_is_renewed_once(logins: Logins, provider: Provider, issuer: str, clock: Clock) -> None:
    login = signed_in(provider, issuer, "bob")
    logins.write(login)
    later = login.expires_at - EARLY_SECONDS / 2
    clock.ahead = 1800.0

    renewed = logins.bearer(API, clock=lambda: later)

    assert renewed not in (None, login.bearer)
    assert read_claims(str(renewed))["sub"] == "bob"
    assert logins.bearer(API, clock=lambda: later) == renewed
    kept = logins.read(API)
    assert kept is not None
    assert kept.refresh != login.refresh


def _renew(folder: Path, later: float, found: Any) -> None:
    found.put(Logins(folder).bearer(API, clock=lambda: later))


def test_one_of_several_processes_renews(logins: Logins, provider: Provider, issuer: str, clock: Clock) -> None:
    """A refresh token counts once, so each of them would fail but the first."""
    login = signed_in(provider, issuer, "alice")
    logins.write(login)
    clock.ahead = 1800.0
    context = multiprocessing.get_context("fork")
    found = context.Queue()
    processes = [context.Process(target=_renew, args=(logins.folder, login.expires_at, found)) for _ in range(3)]

    for process in processes:
        process.start()
    tokens = {found.get(timeout=60) for _ in processes}
    for process in processes:
        process.join()

    kept = logins.read(API)
    assert kept is not None
    assert tokens == {kept.bearer}
    assert kept.bearer != login.bearer


def test_an_example_user_is_signed_in_again(logins: Logins, provider: Provider, issuer: str, clock: Clock) -> None:
    """Also after the issuer started again, when it knows no refresh token."""
    login = signed_in(provider, issuer, "olga", user="olga")
    logins.write(replace(login, refresh="forgotten"))
    clock.ahead = 1800.0

    renewed = logins.bearer(API, clock=lambda: login.expires_at)

    assert read_claims(str(renewed))["sub"] == "olga"
    assert renewed != login.bearer


@pytest.mark.parametrize("refresh", [None, "unknown"])
def test_a_login_that_ends_says_what_to_do(logins: Logins, issuer: str, refresh: str | None) -> None:
    logins.write(replace(LOGIN, issuer=issuer, refresh=refresh))

    with pytest.raises(StackError, match="run `ragstack login`"):
        logins.bearer(API, clock=lambda: LOGIN.expires_at)
    logins.write(replace(LOGIN, issuer=issuer, refresh=refresh, expires_at=0.0))
    with pytest.raises(ApiError, match="run `ragstack login`"):
        Address(API, logins=logins).headers("GET", API, None)


def _token(**claims: Any) -> str:
    import jwt  # noqa: PLC0415

    return jwt.encode(claims, "secret" * 8)


BEARER_CASES = json.loads(Path(__file__).with_name("bearer_cases.json").read_text())
"""Shared with the console: web/src/bearer.test.ts."""


@pytest.mark.parametrize("case", BEARER_CASES, ids=[case["name"] for case in BEARER_CASES])
def test_the_token_for_the_api_is_chosen_by_its_audience(case: dict[str, Any]) -> None:
    tokens = {
        f"{name}_token": _token(**case[name]) if isinstance(case[name], dict) else case[name]
        for name in ("access", "id")
        if case[name] is not None
    }

    if case["chosen"] is None:
        with pytest.raises(StackError, match="no token for api or second"):
            choose_bearer(tokens, ["api", "second"])
    else:
        assert choose_bearer(tokens, ["api", "second"]) == tokens[f"{case['chosen']}_token"]


def test_a_stack_has_an_api_for_people_who_signed_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGSTACK_DATA", str(tmp_path))
    stack = stack_at(api_url="http://127.0.0.1:1/programs", people_url=API, aws_endpoint=None)

    before = Address.for_stack(stack)
    user_logins().write(LOGIN)
    after, with_key, with_token = (
        Address.for_stack(stack),
        Address.for_stack(stack, api_key="k"),
        Address.for_stack(stack, token="t"),
    )
    by_url = Address.for_url(API)

    assert (before.api_url, before.sign, before.logins) == (stack.api_url, True, None)
    assert (after.api_url, after.sign) == (API, False)
    assert after.headers("GET", API, None)["Authorization"] == f"Bearer {LOGIN.bearer}"
    assert by_url.headers("GET", API, None)["Authorization"] == f"Bearer {LOGIN.bearer}"
    assert (with_key.api_url, with_key.logins) == (stack.api_url, None)
    assert (with_token.api_url, with_token.headers("GET", API, None)["Authorization"]) == (API, "Bearer t")


def test_a_refused_call_says_how_to_sign_in(api: Api, tmp_path: Path) -> None:
    error = {"code": "NotAuthenticated", "message": "Sign in: the request has no valid token"}
    api.will_answer(401, {"error": error})

    done = ragstack("corpora", "--api-url", api.url, data=tmp_path)

    assert done.stderr.endswith(f"Error: NotAuthenticated: {error['message']}; run `ragstack login`\n")


def test_signing_in_needs_a_stack_with_people(tmp_path: Path) -> None:
    with running_stack(tmp_path, stack_at()):
        done = ragstack("login", "--user", "alice", data=tmp_path)

    assert done.returncode == 3
    assert "Nobody can sign in to this stack: start it with `ragstack up --auth none,oidc`" in done.stderr


@pytest.mark.parametrize("issuer", ["http://login.example", "ftp://login.example"])
def test_an_issuer_is_read_only_over_https(issuer: str) -> None:
    with pytest.raises(StackError, match="is not encrypted: use https"):
        Provider.discover(issuer)


def test_signing_in_needs_an_encrypted_api(tmp_path: Path) -> None:
    done = ragstack("login", "--api-url", "http://search.example/prod", "--client-id", "ragstack", data=tmp_path)

    assert done.returncode == 2
    assert "http://search.example/prod is not encrypted: use https" in done.stderr
