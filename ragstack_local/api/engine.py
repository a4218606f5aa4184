"""Searches and answers in an engine of the user's own, without a stack, by the functions' own code."""

import json
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from ragstack_common.access.callers import OPERATOR
from ragstack_common.answers.factory import judge_from, provider_from
from ragstack_common.core.errors import ConfigurationError, needs_extra
from ragstack_common.core.telemetry import NO_METRICS
from ragstack_common.search.engines.found_store import store_of
from ragstack_common.search.factory import engine_variables
from ragstack_common.search.wrappers.reranked import RerankedBackend
from ragstack_common.services.ask import AskService
from ragstack_common.services.operations import ServiceOperations
from ragstack_common.services.search import QueryService, make_engine
from ragstack_common.settings.answers import AnswerSettings
from ragstack_common.settings.base import json_object
from ragstack_common.settings.knowledge import KnowledgeSettings
from ragstack_common.settings.names import CHROMA_ENGINE
from ragstack_common.settings.search import QuerySettings


@contextmanager
def engine_operations(
    engine: str,
    collection: str | None,
    db_path: Path | None,
    environment: Mapping[str, str],
    reranker: str | None = None,
) -> Iterator[ServiceOperations]:
    """Open an engine of the user's own; documents and tools need a stack.

    Args:
        engine: chroma, or the path of a file with the configuration of a backend.
        collection: A Chroma collection.
        db_path: Its folder.
        environment: The settings of the functions, such as MULTI_CORPUS_METADATA, and of the collection.
        reranker: Wrapped around the engine; for rerankers that a request cannot choose.

    Raises:
        ConfigurationError: There is no such engine, or its configuration is unusable.
    """
    is_chroma = engine == CHROMA_ENGINE
    config = _chroma(collection, db_path, environment) if is_chroma else _from_file(engine, collection, db_path)
    settings = QuerySettings.from_env({**environment, **engine_variables(config)})
    answering = AnswerSettings.from_env(environment)
    backend = make_engine(settings, NO_METRICS, environment, find_store=store_of)
    with closing(QueryService(settings, RerankedBackend(backend, reranker) if reranker else backend)) as searches:

        @cache
        def answers() -> AskService:
            provider = provider_from(answering)
            return AskService(answering, searches, provider, judge=judge_from(answering, provider))

        yield ServiceOperations(OPERATOR, lambda: searches, answers)


def _chroma(collection: str | None, db_path: Path | None, environment: Mapping[str, str]) -> dict[str, Any]:
    """Describe the collection; defaults come from the variables of `ragstack build` and KnowledgeBase.

    Raises:
        ConfigurationError: The variables contradict how the collection was built.
    """
    settings = KnowledgeSettings.from_env(environment)
    name, folder = collection or settings.collection_name, (db_path or Path(settings.db_path)).expanduser()
    with needs_extra("chroma", "Searching a Chroma collection"):
        from ragstack_common.search.engines.chroma import manifest  # noqa: PLC0415 - an extra
    embedding = manifest.chosen_embedding(settings, manifest.checked_manifest(settings, name, folder))
    return {"type": CHROMA_ENGINE, "collection_name": name, "path": str(folder), "embedding": embedding}


def _from_file(engine: str, collection: str | None, db_path: Path | None) -> dict[str, Any]:
    if not engine.endswith(".json"):
        raise ConfigurationError(
            f"--engine {engine} is unknown: write bedrock, {CHROMA_ENGINE}, or the name of a .json file that"
            ' describes an engine, such as {"type": "milvus", "uri": "milvus.db", "collection_name": "handbook"}'
        )
    if collection or db_path:
        raise ConfigurationError(
            f"--collection and --db-path are for --engine {CHROMA_ENGINE}: write them into {engine}"
        )
    try:
        config = json_object(Path(engine).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ConfigurationError(f"{engine} is unusable: {error}") from error
    if not isinstance(config.get("type"), str):
        raise ConfigurationError(f"{engine} is unusable: it has no type: {json.dumps(config)[:200]}")
    return config
