"""Lists page by page: complete, without repetition, by tokens that belong to one request."""

from typing import Any

import pytest

from tests.conformance import answers
from tests.conformance.cases import CASES
from tests.conformance.exchange import Wire
from tests.conformance.models import implemented, input_of
from tests.conformance.values import most
from tests.conformance.world import World

LISTS = sorted(name for name, operation in implemented().items() if "maxResults" in input_of(operation).members)
# tests/local_bedrock tests pages of results.
_SEARCHES = {"Retrieve", "Rerank", "QueryVectors", "AgenticRetrieveStream"}

every_list = pytest.mark.parametrize("name", LISTS)


def test_every_operation_with_pages_is_tested() -> None:
    with_pages = {name for name, operation in implemented().items() if "nextToken" in input_of(operation).members}

    assert with_pages - _SEARCHES == set(LISTS)


@every_list
def test_pages_of_one_hold_what_one_page_of_all_holds(name: str, wire: Wire, world: World) -> None:
    request = _request(name, world)
    at_once = _all(wire, name, {**request, "maxResults": most(input_of(implemented()[name]).members["maxResults"])})

    one_by_one = _all(wire, name, {**request, "maxResults": 1})

    assert len(at_once) > 1
    assert one_by_one == at_once


@every_list
def test_a_page_of_another_operation_is_refused(name: str, wire: Wire, world: World) -> None:
    other = LISTS[LISTS.index(name) - 1]
    token = _token(wire, other, _request(other, world))

    exchange = wire.send(implemented()[name], {**_request(name, world), "nextToken": token})

    assert (exchange.status, exchange.code) == (400, "ValidationException")
    assert answers.faults(exchange) == []


@pytest.mark.parametrize(
    "name", [name for name in LISTS if "knowledgeBaseId" in input_of(implemented()[name]).required_members]
)
def test_a_page_of_another_knowledge_base_is_refused(name: str, wire: Wire, world: World) -> None:
    request = _request(name, world)
    token = _token(wire, name, request)
    other = world.expendable_knowledge_base()
    elsewhere = {"knowledgeBaseId": other}
    if "dataSourceId" in request:
        elsewhere["dataSourceId"] = world.bedrock.custom_source(other).id

    exchange = wire.send(implemented()[name], {**elsewhere, "nextToken": token})

    assert (exchange.status, exchange.code) == (400, "ValidationException")


@pytest.mark.parametrize("token", ["x", "bnVsbA==", "eyJhZnRlciI6IHt9fQ==", "\u00e4"])
@every_list
def test_an_invented_page_token_is_refused(name: str, token: str, wire: Wire, world: World) -> None:
    exchange = wire.send(implemented()[name], {**_request(name, world), "nextToken": token})

    assert (exchange.status, exchange.code) == (400, "ValidationException")
    assert answers.faults(exchange) == []


def _request(name: str, world: World) -> dict[str, Any]:
    return {member: value for member, value in CASES[name][0](world).items() if member != "maxResults"}


def _token(wire: Wire, name: str, request: dict[str, Any]) -> str:
    return str(wire.send(implemented()[name], {**request, "maxResults": 1}).document["nextToken"])


def _all(wire: Wire, name: str, request: dict[str, Any]) -> list[Any]:
    """What the members of all pages are called, but for those that are going anyway."""
    found: list[Any] = []
    while True:
        exchange = wire.send(implemented()[name], request)
        assert answers.faults(exchange) == []
        page = next(value for value in exchange.document.values() if isinstance(value, list))
        assert len(page) <= request["maxResults"]
        found += [_identity(member) for member in page if member.get("status") != "DELETING"]
        if "nextToken" not in exchange.document:
            return found
        request = {**request, "nextToken": exchange.document["nextToken"]}


def _identity(member: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value for name, value in member.items() if name.endswith(("Id", "Arn")) or name in ("identifier", "key")
    }
