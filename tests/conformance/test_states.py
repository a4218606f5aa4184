"""Requests that are well formed, at the wrong moment or about things that do not belong together."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from local_bedrock.options import Pace
from local_bedrock.server import running
from tests.conformance import answers
from tests.conformance.cases import CASES
from tests.conformance.exchange import Wire
from tests.conformance.models import implemented, input_of
from tests.conformance.world import UNKNOWN_ID, World, new_name
from tests.local_bedrock.support import Bedrock
from tests.support.waiting import eventually

AN_HOUR = 3600.0
REFUSALS = {"ValidationException", "ConflictException", "ResourceNotFoundException"}
# These look, or ask for what is happening anyway.
_MAY_SUCCEED = ("Get", "List", "DeleteKnowledgeBase", "DeleteDataSource", "Tag", "Untag", "StopIngestionJob")

of_knowledge_bases = pytest.mark.parametrize(
    "name",
    sorted(
        name
        for name in CASES
        if name not in ("Rerank", "Converse", "ConverseStream", "InvokeModel", "CreateKnowledgeBase")
        and implemented()[name].service_model.service_name != "s3vectors"
    ),
)
of_data_sources = pytest.mark.parametrize(
    "name", sorted(name for name, operation in implemented().items() if "dataSourceId" in input_of(operation).members)
)


@dataclass(frozen=True)
class Deleting:
    """A local Bedrock where a knowledge base is being deleted for an hour, and a good request for each operation."""

    wire: Wire
    requests: dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def deleting(tmp_path_factory: pytest.TempPathFactory, s3_url: str, s3: Any) -> Iterator[Deleting]:
    folder, bucket = tmp_path_factory.mktemp("deleting"), new_name()
    s3.create_bucket(Bucket=bucket)
    with running(folder, s3_endpoint=s3_url, pace=Pace(deletion_seconds=AN_HOUR)) as url:
        world = World.made(Bedrock.at(url), s3, bucket)
        requests = {name: _about(world, CASES[name][0](world)) for name in implemented()}
        for knowledge_base_id in (world.knowledge_base_id, world.managed.knowledge_base_id):
            world.bedrock.agent.delete_knowledge_base(knowledgeBaseId=knowledge_base_id)
        yield Deleting(Wire(url), requests)


@of_knowledge_bases
def test_no_work_starts_on_a_knowledge_base_that_is_being_deleted(name: str, deleting: Deleting) -> None:
    exchange = deleting.wire.send(implemented()[name], deleting.requests[name])

    assert answers.faults(exchange) == []
    if not name.startswith(_MAY_SUCCEED) or name.endswith("DeleteKnowledgeBaseDocuments"):
        assert exchange.code in REFUSALS, f"{name} answered {exchange.status}"


@of_data_sources
def test_a_data_source_of_another_knowledge_base_is_not_found(name: str, wire: Wire, world: World) -> None:
    request = CASES[name][0](world)
    is_managed = request["knowledgeBaseId"] == world.managed.knowledge_base_id
    request["knowledgeBaseId"] = (
        world.bedrock.managed_base(new_name()) if is_managed else world.expendable_knowledge_base()
    )

    exchange = wire.send(implemented()[name], request)

    assert (exchange.status, exchange.code) == (404, "ResourceNotFoundException"), exchange.message
    assert request["dataSourceId"] in exchange.message


@pytest.mark.parametrize("name", ["GetIngestionJob", "StopIngestionJob"])
def test_an_ingestion_job_of_another_data_source_is_not_found(name: str, wire: Wire, world: World) -> None:
    exchange = wire.send(implemented()[name], {**world.custom.ids, "ingestionJobId": world.job_id})

    assert (exchange.status, exchange.code) == (404, "ResourceNotFoundException")
    assert world.job_id in exchange.message


def test_a_deleted_knowledge_base_is_not_found_by_any_operation(wire: Wire, world: World) -> None:
    knowledge_base_id = world.expendable_knowledge_base()
    world.bedrock.agent.delete_knowledge_base(knowledgeBaseId=knowledge_base_id)
    get = implemented()["GetKnowledgeBase"]
    eventually(lambda: not wire.send(get, {"knowledgeBaseId": knowledge_base_id}).succeeded)

    for name, operation in implemented().items():
        if "knowledgeBaseId" in input_of(operation).members:
            exchange = wire.send(operation, {**CASES[name][0](world), "knowledgeBaseId": knowledge_base_id})

            assert (exchange.status, exchange.code) == (404, "ResourceNotFoundException"), name


def test_a_knowledge_base_can_be_named_by_its_arn(wire: Wire, world: World) -> None:
    request = CASES["Retrieve"][0](world)
    unknown = world.knowledge_base_arn.replace(world.knowledge_base_id, UNKNOWN_ID)

    by_id = wire.send(implemented()["Retrieve"], request)
    by_arn = wire.send(implemented()["Retrieve"], {**request, "knowledgeBaseId": world.knowledge_base_arn})
    of_none = wire.send(implemented()["Retrieve"], {**request, "knowledgeBaseId": unknown})

    assert by_arn.document["retrievalResults"] == by_id.document["retrievalResults"]
    assert (of_none.status, of_none.code) == (404, "ResourceNotFoundException")


def test_a_model_may_be_named_in_every_form_of_the_service(wire: Wire, world: World) -> None:
    for name in ("Converse", "InvokeModel"):
        request = CASES[name][0](world)
        plain = request["modelId"].split("/")[-1]
        for model in (plain, f"arn:aws:bedrock:us-east-1::foundation-model/{plain}"):
            exchange = wire.send(implemented()[name], {**request, "modelId": model})

            assert exchange.succeeded, f"{name} with {model}: {exchange.message}"


def _about(world: World, request: dict[str, Any]) -> dict[str, Any]:
    """The same request about the world's own knowledge base and data sources."""
    changed = dict(request)
    if "knowledgeBaseId" in changed:
        changed["knowledgeBaseId"] = world.knowledge_base_id
    if "dataSourceId" in changed:
        changed["dataSourceId"] = world.s3.id if "ingestionJobId" in changed else world.custom.id
    if "ingestionJobId" in changed:
        changed["ingestionJobId"] = world.job_id
    return changed
