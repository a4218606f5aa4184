"""Whether searches find words as well as meanings, and if not, why."""

from collections.abc import Callable
from functools import partial
from time import monotonic
from typing import Any, Final

from cachetools import TTLCache
from pydantic import BaseModel, Field

from ragstack_common.core.errors import RetrievalError
from ragstack_common.core.reporting import redacted
from ragstack_common.filters.store_rules import STORE_RULES
from ragstack_common.search.engines.found_store import store_of
from ragstack_common.settings.ingestion import DocumentApiSettings
from ragstack_common.settings.names import MANAGED, OTHER_STORE, S3_VECTORS
from ragstack_common.settings.search import SearchType

REMEMBERED_SECONDS: Final = 300.0
"""Lifetime of an answer: a search by words costs as much as any other, and consoles ask for the status often."""

TIMEOUT_SECONDS: Final = 5.0


class WordSearch(BaseModel, defer_build=True):
    """How the deployment's knowledge base is searched."""

    search_type: SearchType | None = Field(
        description="HYBRID finds words too, SEMANTIC does not; null if it is not known"
    )
    reason: str | None = Field(default=None, description="Why words are not searched, or why it is not known")


WordSearchSource = Callable[[], WordSearch | None]
"""Returns how the knowledge base is searched; None for a deployment without one."""


def word_search_of(settings: DocumentApiSettings, *, clock: Callable[[], float] = monotonic) -> WordSearchSource:
    """Return a source for the knowledge base of the settings, which remembers its answer for some minutes."""
    answers: TTLCache[str, WordSearch] = TTLCache(1, REMEMBERED_SECONDS, clock)

    def read() -> WordSearch | None:
        if settings.knowledge_base_id is None:
            return None
        if (known := answers.get(settings.knowledge_base_id)) is None:
            known = answers[settings.knowledge_base_id] = _read(settings, settings.knowledge_base_id)
        return known

    return read


def _read(settings: DocumentApiSettings, knowledge_base_id: str) -> WordSearch:
    if settings.search_type == "SEMANTIC":
        return WordSearch(search_type="SEMANTIC", reason="SEARCH_TYPE is SEMANTIC")
    try:
        store = settings.vector_store if settings.vector_store != OTHER_STORE else store_of(knowledge_base_id)
    except RetrievalError as error:
        return WordSearch(search_type=None, reason=str(error))
    if store == S3_VECTORS:
        return _of_index(partial(_index_words, knowledge_base_id, settings.vector_index_arn))
    if store == MANAGED or (STORE_RULES[store].has_hybrid and settings.search_type == "HYBRID"):
        return WordSearch(search_type="HYBRID")
    return WordSearch(search_type=None, reason="SEARCH_TYPE is not set, so the knowledge base decides")


def _of_index(words: Callable[[], Any]) -> WordSearch:
    try:
        state = words().state()
    except RetrievalError as error:
        return WordSearch(search_type=None, reason=redacted(str(error)))
    return WordSearch(search_type=state.search_type, reason=None if state.reason is None else redacted(state.reason))


def _index_words(knowledge_base_id: str, index_arn: str | None) -> Any:
    from ragstack_common.search.engines.index_words import words_of  # noqa: PLC0415 - most requests do without

    return words_of(knowledge_base_id, index_arn, TIMEOUT_SECONDS)
