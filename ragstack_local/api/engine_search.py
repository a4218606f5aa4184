"""Searches and answers in an engine of the user's own, without a stack, by the functions' own code."""

import asyncio
import json
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from ragstack_common.answers.factory import provider_from
from ragstack_common.api.ask import AskService
from ragstack_common.api.ask_models import EVENTS, AskRequest, StreamEvent
from ragstack_common.api.search import QueryService, engine_of
from ragstack_common.api.search_models import RetrieveRequest
from ragstack_common.config import CHROMA_ENGINE, AnswerSettings, KnowledgeSettings, MilvusSettings, QuerySettings
from ragstack_common.core.errors import ConfigurationError, InvalidRequestError, needs_extra
from ragstack_common.core.settings import json_object
from ragstack_common.core.telemetry import NO_METRICS
from ragstack_common.search.factory import TYPE_KEY
from ragstack_common.search.wrappers.reranked import RerankedBackend
from ragstack_local.api.api_client import last_of

CONFIG_SUFFIX: Final = ".json"


class EngineClient:
    """Searches and answers in this process, with an engine of the user's own.

    Its methods are those of :class:`~ragstack_local.api.api_client.ApiClient` that need no documents bucket.

    Args:
        engine: chroma, or the path of a file with the configuration of a backend.
        collection: A Chroma collection.
        db_path: Its folder.
        environment: The settings of the functions, such as MULTI_CORPUS_METADATA, and of the collection.
        reranker: Wrapped around the engine; for rerankers that a request cannot choose.

    Raises:
        ConfigurationError: There is no such engine, or its configuration is unusable.
    """

    def __init__(
        self,
        engine: str,
        collection: str | None,
        db_path: Path | None,
        environment: Mapping[str, str],
        reranker: str | None = None,
    ) -> None:
        is_chroma = engine == CHROMA_ENGINE
        config = _chroma(collection, db_path, environment) if is_chroma else _from_file(engine, collection, db_path)
        name = str(config.pop(TYPE_KEY, ""))
        chosen = {"RETRIEVAL_ENGINE": name, "RETRIEVAL_ENGINE_CONFIG": json.dumps(config)}
        settings = QuerySettings.from_env({**environment, **chosen})
        self._answering = AnswerSettings.from_env(environment)
        backend = engine_of(settings, NO_METRICS, MilvusSettings.from_env(environment))
        self._service = QueryService(settings, RerankedBackend(backend, reranker) if reranker else backend)

    def retrieve(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the response of ``POST /api/retrieve``.

        Raises:
            InvalidRequestError: A member of the request is invalid.
            RetrievalError: The search failed.
        """
        return self._service.retrieve(_validated(RetrieveRequest, body)).model_dump()

    def look_up(self, name: str) -> dict[str, Any]:
        """Return the response of ``GET /api/corpora`` or ``GET /api/versions``."""
        found = self._service.corpora() if name == "corpora" else self._service.versions()
        return found.model_dump(mode="json")

    def ask(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the response of ``POST /api/ask``. Errors are those of :meth:`ask_stream`."""
        return last_of(self.ask_stream(body))

    def ask_stream(self, body: Mapping[str, Any]) -> Generator[tuple[str, dict[str, Any]], None, None]:
        """Yield the events of an answer, as the API streams them. Closing the iterator ends the call of the model.

        Raises:
            InvalidRequestError: A member of the request is invalid.
            RetrievalError: The search failed.
            GenerationError: No answer could be generated.
        """
        service = AskService(self._answering, self._service, provider_from(self._answering))
        events = service.stream(_validated(AskRequest, body))

        async def next_event() -> StreamEvent | None:
            return await anext(events, None)

        with asyncio.Runner() as runner:
            try:
                while (event := runner.run(next_event())) is not None:
                    yield _NAMES[type(event)], event.model_dump(mode="json")
            finally:
                runner.run(events.aclose())

    def close(self) -> None:
        """Close the engine."""
        self._service.close()


_Body = TypeVar("_Body", bound=BaseModel)
_NAMES: Final = {model: name for name, model in EVENTS.items()}


def _validated(model: type[_Body], body: Mapping[str, Any]) -> _Body:
    try:
        return model.model_validate(body)
    except ValidationError as error:
        problem = error.errors()[0]
        raise InvalidRequestError(f"{problem['loc'][0]}: {problem['msg']}") from error


def _chroma(collection: str | None, db_path: Path | None, environment: Mapping[str, str]) -> dict[str, Any]:
    """Describe the collection; defaults come from the variables of `ragstack build` and KnowledgeBase.

    Raises:
        ConfigurationError: The variables contradict how the collection was built.
    """
    settings = KnowledgeSettings.from_env(environment)
    name, folder = collection or settings.collection_name, (db_path or Path(settings.db_path)).expanduser()
    with needs_extra("chroma", "Searching a Chroma collection"):
        from ragstack_common.search.engines.chroma import manifest  # noqa: PLC0415 - an extra
    embedding = manifest.embedding_of(settings, manifest.checked_manifest(settings, name, folder))
    return {TYPE_KEY: CHROMA_ENGINE, "collection_name": name, "path": str(folder), "embedding": embedding}


def _from_file(engine: str, collection: str | None, db_path: Path | None) -> dict[str, Any]:
    if not engine.endswith(CONFIG_SUFFIX):
        raise ConfigurationError(
            f"--engine {engine} is unknown: write bedrock, {CHROMA_ENGINE}, or the name of a {CONFIG_SUFFIX} file that"
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
    if not isinstance(config.get(TYPE_KEY), str):
        raise ConfigurationError(f"{engine} is unusable: it has no type: {json.dumps(config)[:200]}")
    return config
