"""The settings of the retriever tool."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from ragstack_common.core.uris import resource_id
from ragstack_common.settings.base import (
    Allowed,
    JsonObject,
    json_object,
)
from ragstack_common.settings.milvus import MilvusSettings
from ragstack_common.settings.names import (
    BEDROCK_ENGINE,
    COLLECTION_OPTION,
    EVERY_COLLECTION,
    MILVUS_ENGINE,
)
from ragstack_common.settings.search import EngineName, SearchSettings


def _collections(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if value == EVERY_COLLECTION:
        return {EVERY_COLLECTION: {}}
    if not value.startswith("{"):
        collections: dict[str, Any] = {name.strip(): {} for name in value.split(",") if name.strip()}
    else:
        collections = json_object(value)
    if not collections:
        raise ValueError("it must name a collection")
    if not all(isinstance(options, dict) for options in collections.values()):
        raise ValueError("each collection needs an object: the options of its engine, or {}")
    return collections


Collections = Annotated[
    dict[str, dict[str, Any]],
    BeforeValidator(_collections),
    Allowed("names separated by commas, or a JSON object with the options of each"),
]


class RetrieverToolSettings(MilvusSettings, SearchSettings):
    """What the tool `retriever` searches."""

    retriever_tool_engine: EngineName | None = Field(
        None, description="default engine of collections; `milvus` if `MILVUS_ADDRESS` is set"
    )
    retriever_tool_engine_config: JsonObject = Field(
        {}, repr=False, description="arguments of that engine for all of its collections"
    )
    retriever_tool_collections: Collections = Field(
        {}, repr=False, description="collections to search; by default the function's knowledge base"
    )
    retriever_tool_embedding: str | None = Field(
        None, description="embedding of queries, for engines that need one; by default what the collection records"
    )

    @property
    def engine(self) -> str:
        """The engine of collections that name none."""
        return self.retriever_tool_engine or (MILVUS_ENGINE if self.milvus_address else BEDROCK_ENGINE)

    def shared_options(self) -> dict[str, Any]:
        """Return the options of collections that name no engine."""
        engine = self.engine
        options: dict[str, Any] = {"type": engine}
        if engine == BEDROCK_ENGINE:
            options |= {"data_source_id": self.data_source_id, "search_type": self.search_type}
        elif engine in COLLECTION_OPTION:
            options["embedding"] = self.retriever_tool_embedding
        if "timeout_seconds" in self.model_fields_set:
            options["timeout_seconds"] = self.timeout_seconds
        return {name: value for name, value in options.items() if value is not None} | self.retriever_tool_engine_config

    def backends(self, shared_options: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Return the configuration of an engine for each collection; :data:`EVERY_COLLECTION` stands for any name."""
        collections = self.retriever_tool_collections
        own = resource_id(self.knowledge_base_id)
        if not collections and own and shared_options["type"] == BEDROCK_ENGINE:
            collections = {own: {}}
        found = {}
        for name, options in collections.items():
            backend = {**options} if "type" in options else {**shared_options, **options}
            option = COLLECTION_OPTION.get(backend["type"])
            if option is not None and name != EVERY_COLLECTION:
                backend.setdefault(option, name)
            found[name] = backend
        return found
