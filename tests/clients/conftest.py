"""A local Bedrock in a process of its own with a small zoo in it; the clients come from the registry."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from local_bedrock.creation import create_knowledge_base
from ragstack_common.ingestion.requests import text_document
from tests.clients.support import CLIENTS, HOW_TO_INSTALL, LLAMA_INDEX, local_bedrock
from tests.local_bedrock.conftest import _credentials, s3, s3_url
from tests.local_bedrock.support import Bedrock, Source

__all__ = ["_credentials", "s3", "s3_url"]

ANIMALS: dict[str, tuple[str, dict[str, Any]]] = {
    "cheetah": (
        "The cheetah is the fastest animal on land and hunts gazelles.",
        {"class": "mammal", "legs": 4, "habitats": ["savanna"], "wild": True},
    ),
    "ostrich": (
        "The ostrich is a fast animal on land, and the fastest bird. It cannot fly.",
        {"class": "bird", "legs": 2, "habitats": ["savanna", "desert"], "wild": True},
    ),
    "whale": (
        "The blue whale is the largest animal of all. It eats krill.",
        {"class": "mammal", "legs": 0, "habitats": ["ocean"], "wild": True},
    ),
    "octopus": (
        "The octopus has three hearts and hides in a cloud of ink.",
        {"class": "mollusc", "legs": 8, "habitats": ["ocean"], "wild": True},
    ),
    "snail": (
        "The snail is a slow animal on land and carries its house on its back.",
        {"class": "mollusc", "legs": 0, "habitats": ["garden"], "wild": True},
    ),
}
PLANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "bamboo": ("Bamboo is the fastest plant: it grows a metre a day.", {"class": "grass", "legs": 0}),
    "baobab": ("The baobab stores water in its trunk.", {"class": "tree", "legs": 0, "habitats": ["savanna"]}),
}


@dataclass(frozen=True)
class Zoo:
    """A knowledge base of animals and plants, created as the command line creates its own, and a managed one."""

    bedrock: Bedrock
    animals: Source
    plants: Source
    managed: Source

    @property
    def url(self) -> str:
        return self.bedrock.url

    @property
    def knowledge_base_id(self) -> str:
        return self.animals.knowledge_base_id


@pytest.fixture(scope="session", autouse=True)
def _installed() -> None:
    if not all((programs / "python").exists() for programs in (CLIENTS, LLAMA_INDEX)):
        pytest.skip(HOW_TO_INSTALL)


@pytest.fixture(scope="session")
def zoo(_installed: None, tmp_path_factory: pytest.TempPathFactory, s3_url: str) -> Iterator[Zoo]:
    folder = tmp_path_factory.mktemp("clients")
    with local_bedrock(folder, "--s3-endpoint", s3_url) as url:
        bedrock = Bedrock.at(url)
        knowledge_base_id = create_knowledge_base(bedrock.agent, "zoo")
        bedrock.knowledge_base("without-a-tag")
        found = Zoo(
            bedrock,
            bedrock.custom_source(knowledge_base_id, "animals"),
            bedrock.custom_source(knowledge_base_id, "plants"),
            bedrock.connector(bedrock.managed_base("managed-zoo"), "CUSTOM"),
        )
        details = [
            *found.animals.ingested(*(text_document(name, *content) for name, content in ANIMALS.items())),
            *found.plants.ingested(*(text_document(name, *content) for name, content in PLANTS.items())),
            *found.managed.ingested(*(text_document(name, *content) for name, content in ANIMALS.items())),
        ]
        assert {detail["status"] for detail in details} == {"INDEXED"}, details
        yield found
