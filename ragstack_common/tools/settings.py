"""Which collections the retriever may search, and how, from environment variables."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ragstack_common.config import (
    DATA_SOURCE_ID,
    KNOWLEDGE_BASE_ID,
    RETRIEVAL_TIMEOUT_SECONDS,
    RETRIEVER_TOOL_COLLECTIONS,
    RETRIEVER_TOOL_EMBEDDING,
    RETRIEVER_TOOL_ENGINE,
    RETRIEVER_TOOL_ENGINE_CONFIG,
    SEARCH_TYPE,
)
from ragstack_common.environment import optional, positive
from ragstack_common.errors import ConfigurationError
from ragstack_common.tools.schemas import is_name

MILVUS_ADDRESS: Final = "MILVUS_ADDRESS"
MILVUS_USERNAME: Final = "MILVUS_USERNAME"
MILVUS_PASSWORD: Final = "MILVUS_PASSWORD"  # noqa: S105 - the name of the variable
MILVUS_DATABASE: Final = "MILVUS_DATABASE"

DEFAULT_ADDRESS: Final = "localhost:19530"
"""Source: Milvus, the port of a server that was started as its guide says."""

PARTITION_KEY: Final = "corpus"
"""The attribute that stands for a partition where the engine has none."""

EVERY_COLLECTION: Final = "*"

_NAME_OPTION: Final = {
    "milvus": "collection_name",
    "chroma": "collection_name",
    "s3_vectors": "index_name",
    "bedrock": "knowledge_base_id",
}
"""What each engine calls the thing that a collection is."""

_EMBEDS: Final = frozenset({"milvus", "chroma", "s3_vectors"})


@dataclass(frozen=True)
class MilvusConfig:
    """Where Milvus is.

    Attributes:
        address: ``host:port``, a URL, or the path of a Milvus Lite file, which ends in ``.db``.
        username: None where the server asks for none.
        password: Belongs to *username*; alone, it is an API key.
        database: None is the server's default.
    """

    address: str = DEFAULT_ADDRESS
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    database: str | None = None

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> "MilvusConfig":
        """Read MILVUS_ADDRESS, MILVUS_USERNAME, MILVUS_PASSWORD and MILVUS_DATABASE."""
        return cls(
            address=optional(env, MILVUS_ADDRESS, str, cls.address),
            username=optional(env, MILVUS_USERNAME, str, None),
            password=env.get(MILVUS_PASSWORD) or None,
            database=optional(env, MILVUS_DATABASE, str, None),
        )

    @property
    def uri(self) -> str:
        """The address as Milvus's client takes it."""
        known = "://" in self.address or self.address.endswith(".db") or self.address.startswith("unix:")
        return self.address if known else f"http://{self.address}"

    @property
    def token(self) -> str | None:
        """User name and password in one, as Milvus's client takes them; None of none."""
        return ":".join(part for part in (self.username, self.password) if part) or None

    def options(self) -> dict[str, Any]:
        """Return what the Milvus engine takes."""
        return {"uri": self.uri, "token": self.token, "database": self.database}


@dataclass(frozen=True)
class SearchedCollection:
    """What a collection's name stands for.

    Attributes:
        backend: Configuration for the factory.
        partition_key: Attribute that a chunk of a partition has the partition's name in; None asks the engine for
            partitions of its own, under its option ``partition_names``.
    """

    backend: Mapping[str, Any]
    partition_key: str | None = None


@dataclass(frozen=True)
class RetrieverSettings:
    """What the retriever may search. A name that is not here does not exist for its callers.

    Attributes:
        collections: By the name that a caller gives.
        every: Stands for any other name, which fills its engine's option for names; None for none.
    """

    collections: Mapping[str, SearchedCollection] = field(default_factory=dict)
    every: SearchedCollection | None = None

    def __post_init__(self) -> None:
        """Refuse a name that no caller could give, and an engine whose collections have no names."""
        for name in self.collections:
            if not is_name(name):
                raise ConfigurationError(f"{name!r:.80} cannot be a collection's name: use letters, digits, _, - and .")
        if self.every is not None and self.every.backend.get("type") not in _NAME_OPTION:
            raise ConfigurationError(f"Every collection can be searched of these engines only: {_names()}")

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> "RetrieverSettings":
        """Read the settings. Without a variable, the function's own knowledge base is the one collection.

        Raises:
            ConfigurationError: A variable is missing or unusable; the message names it.
        """
        default_engine = "milvus" if env.get(MILVUS_ADDRESS, "").strip() else "bedrock"
        engine = optional(env, RETRIEVER_TOOL_ENGINE, str, default_engine)
        shared = _shared(engine, env)
        if env.get(RETRIEVER_TOOL_COLLECTIONS, "").strip() == EVERY_COLLECTION:
            return cls(every=_collection(shared, {}))
        own = env.get(KNOWLEDGE_BASE_ID, "").strip().rpartition("/")[2] if engine == "bedrock" else ""
        default: dict[str, dict[str, Any]] = {own: {}} if own else {}
        chosen = optional(env, RETRIEVER_TOOL_COLLECTIONS, _collections, default)
        return cls({name: _collection(shared, options, name) for name, options in chosen.items()})

    @property
    def names(self) -> tuple[str, ...] | None:
        """The collections that there are; None if any name may be one."""
        return tuple(self.collections) if self.every is None else None

    def find(self, name: str) -> SearchedCollection | None:
        """Return what a name stands for, or None."""
        if name in self.collections or self.every is None:
            return self.collections.get(name)
        backend = {**self.every.backend, _NAME_OPTION[self.every.backend["type"]]: name}
        return SearchedCollection(backend, self.every.partition_key)


def _shared(engine: str, env: Mapping[str, str]) -> dict[str, Any]:
    """Return what all collections of an engine have in common."""
    options: dict[str, Any] = {"type": engine}
    if engine == "milvus":
        options |= MilvusConfig.from_env(env).options()
    if engine == "bedrock":
        own = {
            "data_source_id": optional(env, DATA_SOURCE_ID, str, None),
            "search_type": optional(env, SEARCH_TYPE, str.upper, None),
        }
        options |= {option: value for option, value in own.items() if value is not None}
    embedding = optional(env, RETRIEVER_TOOL_EMBEDDING, str, None)
    if engine in _EMBEDS and embedding is not None:
        options["embedding"] = embedding
    seconds = optional(env, RETRIEVAL_TIMEOUT_SECONDS, positive(float), None)
    if seconds is not None:
        options["timeout_seconds"] = seconds
    given: dict[str, Any] = {}
    return options | optional(env, RETRIEVER_TOOL_ENGINE_CONFIG, _object, given)


def _collections(text: str) -> dict[str, dict[str, Any]]:
    if not text.startswith("{"):
        return {name.strip(): {} for name in text.split(",") if name.strip()}
    entries = _object(text)
    if not all(isinstance(options, dict) for options in entries.values()):
        raise ValueError("each collection has an object: the options of its engine, or {}")
    return entries


def _collection(shared: Mapping[str, Any], options: Mapping[str, Any], name: str | None = None) -> SearchedCollection:
    """Join the options of one collection with the shared ones; one that names its type stands for itself."""
    backend = {**options} if "type" in options else {**shared, **options}
    own_partitions = backend["type"] == "milvus"
    partition_key = backend.pop("partition_key", None if own_partitions else PARTITION_KEY)
    option = _NAME_OPTION.get(backend["type"])
    if name is not None and option is not None:
        backend.setdefault(option, name)
    return SearchedCollection(backend, partition_key)


def _object(text: str) -> dict[str, Any]:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError("write a JSON object")  # noqa: TRY004 - what a variable's parser raises
    return value


def _names() -> str:
    return ", ".join(sorted(_NAME_OPTION))
