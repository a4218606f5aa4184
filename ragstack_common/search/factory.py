"""Backends by configuration; only the named ones are imported."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from ragstack_common.core.errors import ConfigurationError, UnknownEngineError
from ragstack_common.core.plugins import imported, third_parties
from ragstack_common.search.base import RetrievalBackend

ENTRY_POINTS: Final = "ragstack.engines"
"""Entry points of other packages' backends: ``elastic = "package.module:ElasticBackend"``."""

BackendMaker = Callable[..., RetrievalBackend]

_BUILT_IN: Final = {
    "bedrock": "ragstack_common.search.engines.bedrock:BedrockBackend",
    "chroma": "ragstack_common.search.engines.chroma.backend:ChromaBackend",
    "milvus": "ragstack_common.search.engines.milvus.backend:MilvusBackend",
    "vector_store": "ragstack_common.search.vector_store:VectorStoreBackend",
    "cached": "ragstack_common.search.wrappers.cached:CachedRetrievalBackend",
    "reranked": "ragstack_common.search.wrappers.reranked:RerankedBackend",
    "balanced": "ragstack_common.search.wrappers.balanced:BalancedBackend",
    "federated": "ragstack_common.search.wrappers.federated:FederatedBackend",
    "multislice": "ragstack_common.search.wrappers.multislice:MultiSliceBackend",
    "metered": "ragstack_common.search.wrappers.metered:MeteredBackend",
}
_registered: Final[dict[str, BackendMaker]] = {}


def register_backend(name: str, maker: BackendMaker) -> None:
    """Register a backend.

    Args:
        name: The ``type`` in a configuration; replaces a backend of the same name.
        maker: A class or function that accepts the rest of the configuration as keyword arguments.
    """
    _registered[name] = maker


def known_backends() -> list[str]:
    """Return the types that :func:`create_retrieval_backend` knows, installed or not."""
    return sorted({*_BUILT_IN, *third_parties(ENTRY_POINTS), *_registered})


def create_retrieval_backend(config: Mapping[str, Any]) -> RetrievalBackend:
    """Create the backend that a configuration describes.

    Args:
        config: ``type`` and the arguments of its class, as JSON. A wrapper has the configuration of its backend under
            ``backend``, a federation a list or an object of configurations under ``backends``::

                {"type": "cached", "ttl_seconds": 60, "backend": {"type": "chroma", "path": "chroma"}}

    Raises:
        UnknownEngineError: The type is unknown; a ValueError.
        MissingPackageError: Its package is not installed.
        ConfigurationError: An argument is missing, unknown or out of range; the message names the type.
    """
    options = dict(config)
    name = options.pop("type", None)
    maker = _maker(name)
    if "backend" in options:
        options["backend"] = _made(options["backend"])
    match options.get("backends"):
        case Mapping() as several:
            options["backends"] = {key: _made(each) for key, each in several.items()}
        case list() as several:
            options["backends"] = [_made(each) for each in several]
    try:
        return maker(**options)
    except (TypeError, ValueError) as error:
        if isinstance(error, ConfigurationError):
            raise
        raise ConfigurationError(f"The backend {name} cannot be created from this configuration: {error}") from error


def engine_variables(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the environment variables that make the query function search the backend of a configuration.

    Raises:
        ConfigurationError: The configuration has no type.
    """
    options = dict(config)
    name = options.pop("type", None)
    if not isinstance(name, str) or not name:
        raise ConfigurationError('The configuration of the engine has no "type": add one, such as chroma')
    return {"RETRIEVAL_ENGINE": name, "RETRIEVAL_ENGINE_CONFIG": json.dumps(options)}


def _made(config: Any) -> Any:
    return create_retrieval_backend(config) if isinstance(config, Mapping) else config


def _maker(name: Any) -> BackendMaker:
    if not isinstance(name, str):
        raise UnknownEngineError(name, known_backends())
    if name in _registered:
        return _registered[name]
    place = _BUILT_IN.get(name) or third_parties(ENTRY_POINTS).get(name)
    if place is None:
        raise UnknownEngineError(name, known_backends())
    maker: BackendMaker = imported(place, name if name in _BUILT_IN else None, f"The engine {name}")
    return maker
