"""Every operation: good requests, bad requests, unknown resources; each answer held against the model."""

from itertools import islice
from typing import Any

import pytest
from botocore.model import OperationModel
from hypothesis import given
from hypothesis import strategies as st

from tests.conformance import answers, raw
from tests.conformance.cases import CASES
from tests.conformance.exchange import Exchange, Wire
from tests.conformance.models import implemented, input_of, sharing_a_route, unsupported
from tests.conformance.mutations import Mutation, mutations
from tests.conformance.settings import SETTINGS
from tests.conformance.values import example, values, variations
from tests.conformance.vectors import UNKNOWN_NAME
from tests.conformance.world import UNKNOWN_ID, USER, World
from tests.support.soak import SOAK

# A made-up one of these is rightly refused.
_ONLY_THE_SERVICE_MAKES = ("nextToken", "sessionId")
_IDS = ("knowledgeBaseId", "dataSourceId", "ingestionJobId", "resourceArn")
_VECTOR_NAMES = ("vectorBucketName", "vectorBucketArn", "indexName", "indexArn", "resourceArn")
_MAKE_WHAT_THEY_NAME = {"CreateVectorBucket": ("vectorBucketName",), "CreateIndex": ("indexName",)}

# One validator reads all models, so a short run sends some of the thousands of bad requests.
ONE_OF_THE_BAD_REQUESTS_IN = 1 if SOAK else 4

every_operation = pytest.mark.parametrize("name", sorted(implemented()))


def test_every_operation_has_a_case() -> None:
    assert set(CASES) == set(implemented()), "write a case in tests/conformance/cases.py"


@every_operation
def test_an_operation_answers_as_its_model_says(name: str, wire: Wire, world: World) -> None:
    for case in CASES[name]:
        exchange = wire.send(implemented()[name], case(world))

        assert exchange.succeeded, f"{exchange.code}: {exchange.message}"
        assert answers.faults(exchange) == []


@every_operation
@given(data=st.data())
@SETTINGS
def test_any_good_request_gets_a_modelled_answer(name: str, wire: Wire, world: World, data: st.DataObject) -> None:
    operation = implemented()[name]
    request = data.draw(values(input_of(operation), _known(world, name)), "request")

    exchange = wire.send(operation, _first_page(operation, request))

    assert answers.faults(exchange) == []
    assert "validation error" not in (exchange.message if not exchange.succeeded else "")


@every_operation
@given(data=st.data())
@SETTINGS
def test_any_variation_of_what_works_gets_a_modelled_answer(
    name: str, wire: Wire, world: World, data: st.DataObject
) -> None:
    operation = implemented()[name]
    request = data.draw(st.sampled_from(CASES[name]))(world)
    varied = data.draw(variations(input_of(operation), request, _known(world, name)), "request")

    exchange = wire.send(operation, _first_page(operation, varied))

    assert answers.faults(exchange) == []
    assert "validation error" not in (exchange.message if not exchange.succeeded else "")


@every_operation
def test_an_invalid_request_is_rejected_by_the_members_name(name: str, wire: Wire, world: World) -> None:
    operation = implemented()[name]
    known = _known(world, name)
    wrong: list[str] = []

    for mutation in islice(mutations(input_of(operation), known), None, None, ONE_OF_THE_BAD_REQUESTS_IN):
        exchange = _sent(wire, operation, mutation)
        if exchange is not None:
            wrong += [f"{mutation}: {problem}" for problem in _not_refused(exchange, mutation)]

    assert wrong == []


@every_operation
def test_an_unknown_id_is_a_resource_that_was_not_found(name: str, wire: Wire, world: World) -> None:
    operation = implemented()[name]
    request = CASES[name][0](world)
    if not any(shape.name == "ResourceNotFoundException" for shape in operation.error_shapes):
        return

    for member in _IDS:
        if member in request:
            unknown = request[member].replace(world.knowledge_base_id, UNKNOWN_ID) if "Arn" in member else UNKNOWN_ID
            exchange = wire.send(operation, {**request, member: unknown})

            assert (exchange.status, exchange.code) == (404, "ResourceNotFoundException"), f"{member}: {exchange}"
            assert answers.faults(exchange) == []
            assert UNKNOWN_ID in exchange.message


@pytest.mark.parametrize(
    "name", sorted(name for name, model in implemented().items() if model.service_model.service_name == "s3vectors")
)
def test_an_unknown_bucket_or_index_could_not_be_found(name: str, wire: Wire, world: World) -> None:
    operation, made = implemented()[name], _MAKE_WHAT_THEY_NAME.get(name, ())

    for case in CASES[name]:
        request = case(world)
        for member in set(_VECTOR_NAMES) & set(request) - set(made):
            unknown = request[member].replace(request[member].rpartition("/")[2], UNKNOWN_NAME)
            exchange = wire.send(operation, {**request, member: unknown})

            assert (exchange.status, exchange.code) == (404, "NotFoundException"), f"{member}: {exchange}"
            assert answers.faults(exchange) == []


@pytest.mark.parametrize("name", sorted(unsupported()))
def test_an_unsupported_operation_is_named(name: str, wire: Wire, world: World) -> None:
    operation = unsupported()[name]
    if operation.has_event_stream_input:
        path = operation.http["requestUri"].replace("{modelId}", "amazon.nova-sonic-v1:0")
        answer = raw.send(wire.url, operation.http["method"], path, b"{}")
        status, code, message = answer.status, answer.code, answer.message
    else:
        exchange = wire.send(operation, example(input_of(operation), _known(world, operation.name)))
        status, code, message = exchange.status, exchange.code, exchange.message

    assert (status, code) == (501, "NotImplementedException"), message
    assert any(other in message for other in sharing_a_route(operation))


def _known(world: World, name: str) -> dict[str, Any]:
    """What is there; for deletions something that may go."""
    known = dict(world.known)
    if "Tag" in name:
        known["resourceArn"] = world.knowledge_base_arn
    known.update(world.vectors.known_to(name))
    if name in ("AgenticRetrieveStream", "GetDocumentContent") or "Acl" in name:
        known.update(world.managed.ids, documentId="cheetah", userId=USER)
    if name == "DeleteKnowledgeBase":
        known["knowledgeBaseId"] = world.expendable_knowledge_base()
    if name == "DeleteDataSource":
        known.update(world.expendable_source().ids)
    if name in ("IngestKnowledgeBaseDocuments", "DeleteKnowledgeBaseDocuments"):
        known.update(world.expendable_source().ids)  # the others list and search what the world's sources hold
    if name == "StartIngestionJob":
        known.update(world.expendable_s3_source().ids)
    elif "IngestionJob" in name:
        known["dataSourceId"] = world.s3.id
    return known


def _first_page(operation: OperationModel, request: dict[str, Any]) -> dict[str, Any]:
    made_up = set(_ONLY_THE_SERVICE_MAKES) - set(input_of(operation).required_members)
    return {name: value for name, value in request.items() if name not in made_up}


def _sent(wire: Wire, operation: OperationModel, mutation: Mutation) -> Exchange | None:
    """Send a bad request; None where HTTP itself leaves no way to write it."""
    member = input_of(operation).members[mutation.member]
    location = member.serialization.get("location")
    if location is None:
        if input_of(operation).serialization.get("payload"):
            return None
        return wire.send(operation, mutation.request, change=mutation.applied)
    if len(mutation.trail) > 1 or mutation.kind in ("missing", "null"):
        return None
    text = isinstance(mutation.bad, str)
    if not text and (mutation.kind == "type" or not isinstance(mutation.bad, int)):
        return None
    if location == "uri" and (not str(mutation.bad).strip() or "\n" in str(mutation.bad)):
        return None
    return wire.send(operation, {**mutation.request, mutation.member: mutation.bad})


def _not_refused(exchange: Exchange, mutation: Mutation) -> list[str]:
    if (exchange.status, exchange.code) != (400, "ValidationException"):
        return [f"answered {exchange.status} {exchange.code or 'with success'}"]
    found = answers.faults(exchange)
    if "validation error" not in exchange.message or f"'{mutation.path}'" not in exchange.message:
        found.append(f"{mutation.path} is not named in: {exchange.message[:300]}")
    return found
