"""The knowledge base as a node of a graph."""

import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from ragstack_common.deadline import in_thread
from ragstack_common.errors import loggable
from ragstack_common.knowledge_base.knowledge import KnowledgeBase, as_documents, log
from ragstack_common.knowledge_base.settings import KnowledgeSettings

CONTEXT: Final = "context"
DOCUMENTS: Final = "documents"
ERROR: Final = "retrieval_error"
"""In the context, beside the documents, where there are none because the search failed."""

BASES_KEPT: Final = 8
"""Knowledge bases that stay open between questions."""

ASKERS: Final = ("user", "human")


def retrieve_knowledge(
    state: Mapping[str, Any],
    query: str | None = None,
    collection_name: str | None = None,
    db_path: str | None = None,
) -> dict[str, Any]:
    """Put what answers the question into the state.

    Args:
        state: Of the graph; its ``messages`` are dicts, pairs of role and text, or LangChain's message objects.
        query: The question; None takes the last message of the user.
        collection_name: As in :class:`KnowledgeBase`.
        db_path: As in :class:`KnowledgeBase`.

    Returns:
        The whole state, with the documents in ``["context"]["documents"]``; what else the context held is kept. Where
        the search failed there are no documents and ``["context"]["retrieval_error"]`` says why.
    """
    return {**state, **retrieve_context(state, query, collection_name, db_path)}


def retrieve_context(
    state: Mapping[str, Any],
    query: str | None = None,
    collection_name: str | None = None,
    db_path: str | None = None,
) -> dict[str, Any]:
    """Return the ``context`` of :func:`retrieve_knowledge` alone: for graphs whose other channels add what they get."""
    context = {name: value for name, value in (state.get(CONTEXT) or {}).items() if name != ERROR}
    question = query or _last_question(state.get("messages") or ())
    if not question:
        log.warning("There is no question in the state: give a query, or a message of the user")
        return {CONTEXT: {**context, DOCUMENTS: []}}
    try:
        base = _opened(collection_name, db_path)
        documents = as_documents(base.search(question))
        problem: Exception | None = base.fallback
    except Exception as error:  # noqa: BLE001 - a graph goes on without knowledge, and can see why
        log.error("Retrieving for the graph failed: %s", loggable(error))
        documents, problem = [], error
    return {CONTEXT: {**context, DOCUMENTS: documents, **({ERROR: str(problem)} if problem else {})}}


async def aretrieve_knowledge(
    state: Mapping[str, Any],
    query: str | None = None,
    collection_name: str | None = None,
    db_path: str | None = None,
) -> dict[str, Any]:
    """Do what :func:`retrieve_knowledge` does, without holding up the event loop."""
    return await in_thread(lambda: retrieve_knowledge(state, query, collection_name, db_path))


def _opened(collection_name: str | None, db_path: str | None) -> KnowledgeBase:
    settings = KnowledgeSettings.from_env(os.environ)
    place = (collection_name or settings.collection_name, db_path or settings.db_path, settings.embedding)
    base = _kept(*place)
    if base.in_memory:
        # The folder may be had at the next question.
        _kept.cache_clear()
    return base


@lru_cache(maxsize=BASES_KEPT)
def _kept(collection_name: str, db_path: str, embedding: str | None) -> KnowledgeBase:
    return KnowledgeBase(collection_name, db_path, embedding=embedding)


def _last_question(messages: Sequence[Any]) -> str | None:
    for message in reversed(messages):
        role, content = _parts(message)
        if role in ASKERS and (text := _text(content)):
            return text
    return None


def _parts(message: Any) -> tuple[Any, Any]:
    """Return role and content of a message, in whatever form it is."""
    if isinstance(message, Mapping):
        return message.get("role", message.get("type")), message.get("content")
    if isinstance(message, tuple) and len(message) == 2:  # noqa: PLR2004 - role and text
        return message
    return getattr(message, "type", None), getattr(message, "content", None)


def _text(content: Any) -> str:
    """Return the text of a content, which may be a list of blocks some of which are images."""
    if isinstance(content, str):
        return content.strip()
    blocks = content if isinstance(content, list | tuple) else ()
    texts = [
        block if isinstance(block, str) else block.get("text", "")
        for block in blocks
        if isinstance(block, str | Mapping)
    ]
    return "\n".join(text for text in texts if isinstance(text, str)).strip()
