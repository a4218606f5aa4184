"""Every route with every kind of caller, from the table of routes."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from lambdas.documents import handler as documents_function
from lambdas.query import handler as query_function
from lambdas.viewer import handler as viewer_function
from ragstack_common.access.callers import Right
from ragstack_common.access.policy import AccessPolicy
from ragstack_common.access.tokens import TokenVerifier
from ragstack_common.http.route_table import ANSWERS, DOCUMENTS, ROUTES, VIEWER, ApiRoute
from tests.access.issuer import AUDIENCE, Issuer, issuing
from tests.access.world import World, deployed
from tests.support.events import Context, api_event

ROLE = "arn:aws:iam::123456789012:role/Search"
POLICY = AccessPolicy(
    rights={
        "read": ["group:readers", "group:all", f"role:{ROLE}", "key:search"],
        "write": ["group:writers", "group:all"],
        "operate": ["group:operators", "group:all"],
    },
    claims={"tenant": "org"},
    labels={"public": {"allow": ["everyone"]}},
    prefixes={"": {"default": "public"}},
)
KEYS = {"id-search": "search", "id-other": "other"}
PUBLIC = {"health", "mcp_metadata"}


@dataclass(frozen=True)
class Sender:
    """A kind of caller.

    Attributes:
        name: The caller in messages; None if the caller did not prove who they are.
        rights: What the caller may do.
        context: What API Gateway says of the caller.
        token: The bearer token.
    """

    name: str | None
    rights: frozenset[Right] = frozenset()
    context: Mapping[str, Any] = field(default_factory=dict)
    token: str | None = None


def senders(issuer: Issuer) -> dict[str, Sender]:
    """Return the kinds of callers."""

    def person(*groups: str, rights: tuple[Right, ...] = (), **more: Any) -> Sender:
        claims = issuer.claims(groups=[*groups], **more)
        token = issuer.token(groups=[*groups], **more)
        return Sender("user:eve", frozenset(rights), {"authorizer": {"claims": json.dumps(claims)}}, token)

    def program(name: str | None, *rights: Right, **identity: str) -> Sender:
        return Sender(name, frozenset(rights), {"identity": identity})

    session = "arn:aws:sts::123456789012:assumed-role"
    forged = {f"token: {why}": Sender(None, token=token) for why, token in issuer.forged(groups=["all"]).items()}
    stale = {"authorizer": {"claims": json.dumps(issuer.claims(groups=["all"], exp=1_700_000_000))}}
    return {
        "nobody": Sender(None),
        **forged,
        "claims that expired": Sender(None, context=stale),
        "claims without a user": Sender(None, context={"authorizer": {"claims": '{"groups": ["all"], "sub": ""}'}}),
        "reader": person("readers", rights=(Right.READ,)),
        "writer": person("writers", rights=(Right.WRITE,)),
        "operator": person("operators", rights=(Right.OPERATE,)),
        "all rights": person("all", rights=tuple(Right)),
        "no rights": person(),
        "another tenant": person(org="readers"),
        "role": program(f"role:{ROLE}", Right.READ, userArn=f"{session}/Search/s"),
        "another role": program(f"role:{ROLE}er", userArn=f"{session}/Searcher/s"),
        "key": program("key:search", Right.READ, apiKeyId="id-search"),
        "another key": program("key:other", apiKeyId="id-other"),
        "unknown key": program(None, apiKeyId="search"),
    }


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    with issuing() as made:
        yield made


@pytest.fixture(scope="module")
def world(issuer: Issuer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("matrix")
    settings = {"API_AUTH": "oidc,iam,api_key", "API_KEYS": json.dumps(KEYS), "OIDC_ISSUER": issuer.url}
    verifier = TokenVerifier(issuer.url, [AUDIENCE])
    with deployed(folder, POLICY, [], verifier=verifier, **settings) as made:
        yield made


def send(world: World, route: ApiRoute, sender: Sender) -> tuple[int, Any, Mapping[str, str]]:
    """Send a request as the caller's way to the API has it: signatures and keys pass through API Gateway."""
    path = route.path.replace("{id}", "x").replace("{name}", "retriever")
    body: dict[str, Any] | None = None if route.method in ("GET", "DELETE") else {}
    authorization = {} if sender.token is None else {"Authorization": f"Bearer {sender.token}"}
    if route.function == ANSWERS:
        context = {"requestId": "r", **({} if sender.token else sender.context)}
        headers = {**authorization, "x-amzn-request-context": json.dumps(context), "Accept": "*/*"}

        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(world.application(is_behind_gateway=True))
            async with httpx.AsyncClient(transport=transport, base_url="http://api") as client:
                return await client.request(route.method, path, json=body, headers=headers)

        answer = asyncio.run(ask())
        return answer.status_code, answer.json() if answer.content else None, answer.headers
    function = {DOCUMENTS: documents_function, VIEWER: viewer_function}.get(route.function, query_function)
    # These functions trust API Gateway's authorizer, and no header.
    event = api_event(route.method, path, body)
    event["headers"] = {**event["headers"], **authorization}
    event["requestContext"] |= {"requestId": "r", "identity": {}, **sender.context}
    found = function.handler(event, Context())
    headers = {name: values[0] for name, values in found["multiValueHeaders"].items()}
    return found["statusCode"], json.loads(found["body"]), headers


def test_every_route_but_two_takes_a_right() -> None:
    assert {name for name, route in ROUTES.items() if route.right is None} == PUBLIC


def test_every_route_that_is_served_is_in_the_table(world: World) -> None:
    served = {
        route.operation_id
        for function in (documents_function, query_function, viewer_function)
        for route in (*function.app._static_routes, *function.app._dynamic_routes)
    }
    paths = {route.path for route in world.application().routes}

    assert served == {name for name, route in ROUTES.items() if route.function != ANSWERS}
    assert paths == {route.path for route in ROUTES.values() if route.function == ANSWERS} | {"/health"}


@pytest.mark.parametrize("name", ROUTES)
def test_a_route_admits_only_those_who_have_its_right(world: World, issuer: Issuer, name: str) -> None:
    route = ROUTES[name]
    wrong = {}
    for kind, sender in senders(issuer).items():
        status, body, headers = send(world, route, sender)
        if route.right is None or route.right in sender.rights:
            is_right = status not in (401, 403)
        elif sender.name is None:
            is_right = status == 401 and message_of(body, route).startswith(("Sign in", "The token"))
            is_right &= headers.get("WWW-Authenticate", "").startswith("Bearer")
        else:
            is_right = status == 403 and message_of(body, route) == f"{sender.name} lacks the right {route.right}"
        if not is_right:
            wrong[kind] = status, body
    assert wrong == {}


def message_of(body: Any, route: ApiRoute) -> str:
    """Return the message of an error, which has the form that errors of its route have."""
    if route.path.startswith("/tools"):
        assert set(body) == {"success", "error"}
        return str(body["error"])
    assert set(body) == {"error"}
    assert set(body["error"]) == {"code", "message", "details", "requestId"}
    assert body["error"]["requestId"] == "r"
    assert body["error"]["details"] == []
    return str(body["error"]["message"])
