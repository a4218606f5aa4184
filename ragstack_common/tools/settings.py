"""The collections of the retriever, from environment variables."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

from ragstack_common.config import BEDROCK_ENGINE, COLLECTION_OPTION, EVERY_COLLECTION, RetrieverToolSettings
from ragstack_common.errors import ConfigurationError
from ragstack_common.tools.schemas import is_name

DEFAULT_ADDRESS: Final = "localhost:19530"
"""Milvus's default port."""

PARTITION_KEY: Final = "corpus"
"""Attribute that replaces partitions if the engine has none."""


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
        given = {each.name: env.get(f"MILVUS_{each.name.upper()}", "").strip() for each in fields(cls)}
        return cls(**{name: text for name, text in given.items() if text})

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
        if self.every is not None and self.every.backend.get("type") not in COLLECTION_OPTION:
            raise ConfigurationError(
                f"Every collection can be searched only with {', '.join(sorted(COLLECTION_OPTION))}"
            )

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> "RetrieverSettings":
        """Read the settings. By default, the function's knowledge base is the only collection.

        Raises:
            ConfigurationError: A variable is missing or invalid; the message names it.
        """
        settings = RetrieverToolSettings.from_env(env)
        default_engine = "milvus" if env.get("MILVUS_ADDRESS", "").strip() else BEDROCK_ENGINE
        engine = settings.retriever_tool_engine or default_engine
        engine_options = MilvusConfig.from_env(env).options() if engine == "milvus" else {}
        backends = settings.backends(settings.shared_options(engine, **engine_options))
        collections = {name: _collection(backend) for name, backend in backends.items()}
        return cls(every=collections.pop(EVERY_COLLECTION, None), collections=collections)

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of the collections; None if any name is allowed."""
        return tuple(self.collections) if self.every is None else None

    def find(self, name: str) -> SearchedCollection | None:
        """Return a collection by its name, or None."""
        if name in self.collections or self.every is None:
            return self.collections.get(name)
        backend = {**self.every.backend, COLLECTION_OPTION[self.every.backend["type"]]: name}
        return SearchedCollection(backend, self.every.partition_key)


def _collection(backend: dict[str, Any]) -> SearchedCollection:
    """Take the option ``partition_key``, which engines with partitions of their own go without."""
    partition_key = backend.pop("partition_key", None if backend["type"] == "milvus" else PARTITION_KEY)
    return SearchedCollection(backend, partition_key)
