"""Tokens that are certain to be refused start no process of MiniStack."""

import asyncio
import base64
import json
from typing import Any

import pytest

from ragstack_local.stack.refused_tokens import MAX_REMEMBERED, RefusedTokens, is_hopeless

NOW = 1_800_000_000.0
STAGE = "/_aws/execute-api/b4e4899f/prod"
CHALLENGE = [(b"www-authenticate", b"Bearer"), (b"content-length", b"99")]


def token(claims: Any, header: Any = None) -> str:
    parts = [json.dumps(part).encode() for part in (header or {"alg": "RS256"}, claims)]
    encoded = [base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts]
    return ".".join([*encoded, "c2lnbmF0dXJl"])


GOOD = token({"exp": NOW + 600})
FORGED = [token({"exp": NOW + 600, "sub": str(number)}) for number in range(MAX_REMEMBERED + 2)]
HOPELESS = ["", "x", "a.b.c", "a.b", token([]), token({}), token({"exp": "soon"}), token({"exp": NOW - 60})]
HOPELESS += [token({"exp": each}) for each in (-(10**400), None, float("inf"), "9" * 5000)]
HOPELESS += [token({"exp": NOW + 600}, []) + ".", token({"exp": NOW + 600}, ["RS256"]), "[" * 9000]


class Api:
    """Answers 401 to every token but one, like the people's API behind MiniStack; its health is public."""

    def __init__(self) -> None:
        self.tokens: list[str] = []
        self.clock = NOW
        self.application = RefusedTokens(self, lambda: self.clock)

    async def __call__(self, scope: Any, _receive: Any, send: Any) -> None:
        found = dict(scope["headers"])[b"authorization"].decode().removeprefix("Bearer ")
        self.tokens.append(found)
        is_good = found == GOOD or scope["path"].endswith("/health")
        error = {"error": {"code": "NotAuthenticated", "requestId": "first"}}
        body = json.dumps({} if is_good else error).encode()
        await send({"type": "http.response.start", "status": 200 if is_good else 401, "headers": CHALLENGE})
        await send({"type": "http.response.body", "body": body[:9], "more_body": True})
        await send({"type": "http.response.body", "body": body[9:]})

    def send(self, sent: str, path: str = f"{STAGE}/api/documents", scheme: str = "Bearer") -> tuple[int, Any, Any]:
        messages: list[Any] = []

        async def keep(message: Any) -> None:
            messages.append(message)

        scope = {"type": "http", "path": path, "headers": [(b"authorization", f"{scheme} {sent}".encode())]}
        asyncio.run(self.application(scope, None, keep))  # type: ignore[arg-type] # nothing is received
        body = json.loads(b"".join(message["body"] for message in messages[1:]))
        return messages[0]["status"], dict(messages[0]["headers"]), body


def test_a_refused_token_is_refused_for_a_minute() -> None:
    api = Api()

    first, second = api.send(FORGED[0]), api.send(FORGED[0])
    api.clock += 61
    third = api.send(FORGED[0])

    assert api.tokens == [FORGED[0]] * 2
    assert [answer[0] for answer in (first, second, third)] == [401] * 3
    assert second[1][b"www-authenticate"] == b"Bearer"
    assert second[2]["error"]["code"] == "NotAuthenticated"
    assert second[2]["error"]["requestId"] != first[2]["error"]["requestId"] == "first"


def test_tokens_that_no_issuer_signed_start_one_process() -> None:
    api = Api()

    answers = [api.send(each) for each in HOPELESS]

    assert {status for status, _, _ in answers} == {401}
    assert len(api.tokens) == 1


def test_what_no_issuer_signed_is_refused_for_a_minute_and_on_a_bounded_number_of_routes() -> None:
    api = Api()
    routes = [f"{STAGE}/api/{number}" for number in range(MAX_REMEMBERED + 1)]
    api.send("x", routes[0])
    api.clock += 61
    for route in routes:
        api.send("x", route)
    asked = len(api.tokens)

    api.send("y", routes[-1])
    api.send("y", routes[0])

    assert (asked, len(api.tokens)) == (len(routes) + 1, len(routes) + 2)


def test_other_tokens_and_other_routes_are_not_affected() -> None:
    api = Api()
    for each in ("x", FORGED[0]):
        api.send(each)

    assert api.send(GOOD)[0] == 200
    assert api.send("x", f"{STAGE}/health")[0] == 200
    assert api.send("x", "/_aws/execute-api/other/prod/api/documents")[0] == 401
    assert len(api.tokens) == 5


def test_a_bounded_number_of_tokens_is_remembered() -> None:
    api = Api()
    for each in FORGED:
        api.send(each)

    api.send(FORGED[-1])
    api.send(FORGED[0])

    assert len(api.tokens) == len(FORGED) + 1


@pytest.mark.parametrize("each", HOPELESS)
def test_a_token_that_can_be_valid_is_passed_on(each: str) -> None:
    assert is_hopeless(f"Bearer {each}".encode(), NOW)
    assert is_hopeless(f"Basic {GOOD}".encode(), NOW)
    assert not is_hopeless(f"bearer  {GOOD} ".encode(), NOW)
    assert not is_hopeless(f"Bearer {token({'exp': NOW - 5})}".encode(), NOW)
    assert not is_hopeless(f"Bearer {token({'exp': 10**400})}".encode(), NOW)
