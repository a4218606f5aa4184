"""The collections of the retriever, from environment variables."""

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
"""Milvus's default port."""

PARTITION_KEY: Final = "corpus"
"""Attribute that replaces partitions if the engine has none."""

EVERY_COLLECTION: Final = "*"

_NAME_OPTION: Final = {
    "milvus": "collection_name",
    "chroma": "collection_name",
    "s3_vectors": "index_name",
    "bedrock": "knowledge_base_id",
}
"""The option of each engine that names a collection."""

_EMBEDS: Final = frozenset({"milvus", "chroma", "s3_vectors"})


@dataclass(frozen=True)
class MilvusConfig:
    """Address and login of Milvus.

    Attributes:
        address: ``host:port``, a URL, or the path of a Milvus Lite file, which ends in ``.db``.
        username: None without authentication.
        password: The password of *username*; without a name, an API key.
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
        """The address for Milvus's client."""
        known = "://" in self.address or self.address.endswith(".db") or self.address.startswith("unix:")
        return self.address if known else f"http://{self.address}"

    @property
    def token(self) -> str | None:
        """User name and password for Milvus's client; None without authentication."""
        return ":".join(part for part in (self.username, self.password) if part) or None

    def options(self) -> dict[str, Any]:
        """Return the options of the Milvus engine."""
        return {"uri": self.uri, "token": self.token, "database": self.database}


@dataclass(frozen=True)
class SearchedCollection:
    """A collection of the retriever.

    Attributes:
        backend: Configuration for the factory.
        partition_key: Attribute that holds the name of a chunk's partition; None uses the engine's own partitions,
            with its option ``partition_names``.
    """

    backend: Mapping[str, Any]
    partition_key: str | None = None


@dataclass(frozen=True)
class RetrieverSettings:
    """The collections of the retriever. Callers cannot reach any other.

    Attributes:
        collections: By the name that callers use.
        every: Template for all other names, which replace its engine's option for names; None allows no others.
    """

    collections: Mapping[str, SearchedCollection] = field(default_factory=dict)
    every: SearchedCollection | None = None

    def __post_init__(self) -> None:
        """Check the names, and that the engine of *every* has names."""
        for name in self.collections:
            if not is_name(name):
                raise ConfigurationError(f"{name!r:.80} cannot be a collection's name: use letters, digits, _, - and .")
        if self.every is not None and self.every.backend.get("type") not in _NAME_OPTION:
            raise ConfigurationError(f"Every collection can be searched only with {', '.join(sorted(_NAME_OPTION))}")

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> "RetrieverSettings":
        """Read the settings. By default, the function's knowledge base is the only collection.

        Raises:
            ConfigurationError: A variable is missing or invalid; the message names it.
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
        """The names of the collections; None if any name is allowed."""
        return tuple(self.collections) if self.every is None else None

    def find(self, name: str) -> SearchedCollection | None:
        """Return a collection by its name, or None."""
        if name in self.collections or self.every is None:
            return self.collections.get(name)
        backend = {**self.every.backend, _NAME_OPTION[self.every.backend["type"]]: name}
        return SearchedCollection(backend, self.every.partition_key)


def _shared(engine: str, env: Mapping[str, str]) -> dict[str, Any]:
    """Return the options shared by all collections of an engine."""
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
        raise ValueError("each collection needs an object: the options of its engine, or {}")
    return entries


def _collection(shared: Mapping[str, Any], options: Mapping[str, Any], name: str | None = None) -> SearchedCollection:
    """Add the shared options to those of a collection, unless it names its own type."""
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
