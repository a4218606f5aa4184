"""Searches in an engine of the user's own, without a stack, by the query function's own code."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from ragstack_common.api.search import QueryService, engine_of
from ragstack_common.api.search_models import RetrieveRequest
from ragstack_common.config import KnowledgeSettings, QuerySettings
from ragstack_common.errors import ConfigurationError, InvalidRequestError, needs_extra
from ragstack_common.retrieval.factory import TYPE_KEY
from ragstack_common.retrieval.reranked import RerankedBackend
from ragstack_common.settings import json_object
from ragstack_common.telemetry import NO_METRICS

CHROMA: Final = "chroma"
CONFIG_SUFFIX: Final = ".json"


def search(
    engine: str,
    collection: str | None,
    db_path: Path | None,
    request: Mapping[str, Any],
    reranker: str | None,
    environment: Mapping[str, str],
) -> dict[str, Any]:
    """Search an engine as the query function does, and return the response of ``POST /api/retrieve``.

    Args:
        engine: chroma, or the path of a file with the configuration of a backend.
        collection: A Chroma collection.
        db_path: Its folder.
        request: The body.
        reranker: Wrapped around the engine; for rerankers that a request cannot choose.
        environment: The settings of the query function, such as MULTI_CORPUS_METADATA, and of the collection.

    Raises:
        ConfigurationError: There is no such engine, or its configuration is unusable.
        InvalidRequestError: A member of the request is invalid.
        RetrievalError: The search failed.
    """
    is_chroma = engine == CHROMA
    config = _chroma(collection, db_path, environment) if is_chroma else _from_file(engine, collection, db_path)
    name = str(config.pop(TYPE_KEY, ""))
    chosen = {"RETRIEVAL_ENGINE": name, "RETRIEVAL_ENGINE_CONFIG": json.dumps(config)}
    settings = QuerySettings.from_env({**environment, **chosen})
    try:
        body = RetrieveRequest.model_validate(request)
    except ValidationError as error:
        problem = error.errors()[0]
        raise InvalidRequestError(f"{problem['loc'][0]}: {problem['msg']}") from error
    backend = engine_of(settings, NO_METRICS)
    if reranker:
        backend = RerankedBackend(backend, reranker)
    service = QueryService(settings, backend)
    try:
        answer: dict[str, Any] = service.retrieve(body).model_dump()
    finally:
        service.close()
    return answer


def _chroma(collection: str | None, db_path: Path | None, environment: Mapping[str, str]) -> dict[str, Any]:
    """Describe the collection; defaults come from the variables of `ragstack build` and KnowledgeBase.

    Raises:
        ConfigurationError: The variables contradict how the collection was built.
    """
    settings = KnowledgeSettings.from_env(environment)
    name, folder = collection or settings.collection_name, (db_path or Path(settings.db_path)).expanduser()
    with needs_extra("chroma", "`ragstack query` on a Chroma collection"):
        from ragstack_common.retrieval.engines.chroma.manifest import check_settings  # noqa: PLC0415 - an extra
    check_settings(settings, name, folder)
    embedding = settings.embedding_with_pooling
    return {TYPE_KEY: CHROMA, "collection_name": name, "path": str(folder), "embedding": embedding}


def _from_file(engine: str, collection: str | None, db_path: Path | None) -> dict[str, Any]:
    if not engine.endswith(CONFIG_SUFFIX):
        raise ConfigurationError(
            f"--engine {engine} is unknown: write bedrock, {CHROMA}, or the name of a {CONFIG_SUFFIX} file that"
            ' describes an engine, such as {"type": "milvus", "uri": "milvus.db", "collection_name": "handbook"}'
        )
    if collection or db_path:
        raise ConfigurationError(f"--collection and --db-path are for --engine {CHROMA}: write them into {engine}")
    try:
        config = json_object(Path(engine).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ConfigurationError(f"{engine} is unusable: {error}") from error
    if not isinstance(config.get(TYPE_KEY), str):
        raise ConfigurationError(f"{engine} is unusable: it has no type: {json.dumps(config)[:200]}")
    return config
