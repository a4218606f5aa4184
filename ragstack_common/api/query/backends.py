"""The backends that the settings ask for: the engine, and what is put around it."""

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from ragstack_common.config import BEDROCK_ENGINE, LEXICAL, OTHER_STORE, QuerySettings
from ragstack_common.retrieval import RetrievalBackend, create_retrieval_backend
from ragstack_common.telemetry import MetricSink

if TYPE_CHECKING:
    from ragstack_common.retrieval.balanced import BalancedBackend

RERANKED_CANDIDATES: Final = 50
"""What a plain search that is reranked asks for: one page of Bedrock's, and the reranker takes a millisecond for it."""


def engine_of(settings: QuerySettings, metrics: MetricSink) -> RetrievalBackend:
    """Make the engine, which takes a metadata filter whatever its kind.

    Raises:
        ConfigurationError: There is no such engine, its package is missing, or its configuration is unusable.
    """
    given = {**(settings.retrieval_engine_config or {}), "type": settings.retrieval_engine}
    config: dict[str, Any] = _with_vector_store(given, settings)
    if settings.retrieval_engine == BEDROCK_ENGINE:
        return create_retrieval_backend({**_bedrock(settings, metrics), **config})
    from ragstack_common.retrieval.multislice import MultiSliceBackend  # noqa: PLC0415 - Bedrock does without

    return MultiSliceBackend(
        create_retrieval_backend(config),
        filtered_score_boost=settings.filtered_score_boost,
        timeout_seconds=settings.timeout_seconds,
        enabled=settings.multislice_enabled and settings.max_slices > 1,
    )


def _with_vector_store(config: Any, settings: QuerySettings) -> Any:
    """Add the function's vector store to every part of a configuration that searches the function's knowledge base.

    The store of another knowledge base is unknown unless the configuration names it.
    """
    if isinstance(config, list):
        return [_with_vector_store(part, settings) for part in config]
    if not isinstance(config, dict):
        return config
    parts = {name: _with_vector_store(part, settings) for name, part in config.items()}
    if parts.get("type") != BEDROCK_ENGINE:
        return parts
    searched, own = (
        str(name).rpartition("/")[2]  # of an ARN, the id
        for name in (parts.get("knowledge_base_id", settings.knowledge_base_id), settings.knowledge_base_id)
    )
    return {"vector_store": settings.vector_store if searched == own else OTHER_STORE, **parts}


def _bedrock(settings: QuerySettings, metrics: MetricSink) -> dict[str, Any]:
    return {
        "knowledge_base_id": settings.knowledge_base_id,
        "data_source_id": settings.data_source_id,
        "timeout_seconds": settings.timeout_seconds,
        "max_slices": settings.max_slices,
        "enabled": settings.multislice_enabled,
        "filtered_score_boost": settings.filtered_score_boost,
        "search_type": settings.search_type,
        "metrics": metrics,
    }


class Backends:
    """What searches go through, made when first asked for. All of it shares the engine."""

    def __init__(self, settings: QuerySettings, engine: RetrievalBackend) -> None:
        """Keep the engine."""
        self.engine = engine
        self._settings = settings
        self._over_corpora = cache(self._make_balanced)
        self._reranked = cache(self._make_reranked)

    def over_corpora(self, *, rerank: bool) -> "BalancedBackend":
        """Return what balances a search over the corpora of the settings, or searches one of them."""
        return self._over_corpora(rerank)

    def over_everything(self, *, rerank: bool) -> RetrievalBackend:
        """Return what searches without regard to corpora."""
        return self._reranked() if rerank else self.engine

    def _make_balanced(self, rerank: bool) -> "BalancedBackend":
        from ragstack_common.retrieval.balanced import BalancedBackend  # noqa: PLC0415 - few ask for it

        return BalancedBackend(
            self.engine,
            self._settings.corpora,
            per_corpus=self._settings.per_corpus,
            single_corpus=self._settings.single_corpus,
            search_k=self._settings.search_k,
            reranker=LEXICAL if rerank else None,
            timeout_seconds=self._settings.timeout_seconds,
        )

    def _make_reranked(self) -> RetrievalBackend:
        from ragstack_common.retrieval.reranked import RerankedBackend  # noqa: PLC0415 - few ask for it

        return RerankedBackend(self.engine, LEXICAL, RERANKED_CANDIDATES)
