"""Search and ask in one line, without asyncio; ``AskService`` streams answers.

>>> search("How long is parental leave?", engine="chroma:chroma#handbook").results[0].content
>>> ask("How long is parental leave?").answer
"""

import os
from collections.abc import Mapping
from contextlib import closing
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from ragstack_common.access.callers import OPERATOR
from ragstack_common.answers.answer import TokenEvent
from ragstack_common.answers.models.protocol import ModelProvider
from ragstack_common.core.deadline import wait_for
from ragstack_common.core.errors import InvalidRequestError
from ragstack_common.core.reporting import invalid_members
from ragstack_common.search.factory import engine_variables
from ragstack_common.search.vector_store import engine_config
from ragstack_common.services.ask import AskService
from ragstack_common.services.ask_models import AskRequest, AskResponse
from ragstack_common.services.search import QueryService
from ragstack_common.services.search_models import RetrieveRequest, RetrieveResponse

__all__ = [
    "OPERATOR",
    "AskRequest",
    "AskResponse",
    "AskService",
    "ModelProvider",
    "RetrieveRequest",
    "RetrieveResponse",
    "TokenEvent",
    "ask",
    "search",
]

_Request = TypeVar("_Request", bound=BaseModel)


def search(query: str, *, engine: str | Mapping[str, Any] | None = None, **options: Any) -> RetrieveResponse:
    """Search once, as ``POST /api/retrieve`` does.

    Each call opens and closes the engine. A program with many searches keeps a
    :class:`~ragstack_common.multislice_retriever.MultiSliceRetriever` or a backend.

    Args:
        query: What to look for.
        engine: A connection string (see :mod:`ragstack_common.search.vector_store`), or the configuration of a
            backend. By default, the engine that the environment describes: the knowledge base KNOWLEDGE_BASE_ID.
        options: Further members of :class:`~ragstack_common.services.search_models.RetrieveRequest`. Other settings of
            the query function, such as RERANK, come from the environment.

    Raises:
        InvalidRequestError: The query or an option is invalid.
        ConfigurationError: The environment or the engine's configuration is unusable.
        RetrievalError: The search failed.
    """
    request = _validated(RetrieveRequest, {"query": query, **options})
    with closing(QueryService.from_env(_environment(engine))) as service:
        return service.retrieve(request, OPERATOR)


def ask(question: str, *, engine: str | Mapping[str, Any] | None = None, **options: Any) -> AskResponse:
    """Answer a question once, as ``POST /api/ask`` does: by ANSWER_MODEL, or with quotations if it is not set.

    Args:
        question: The question.
        engine: As for :func:`search`.
        options: Further members of :class:`~ragstack_common.services.ask_models.AskRequest`.

    Raises:
        InvalidRequestError: The question or an option is invalid.
        ConfigurationError: The environment or the engine's configuration is unusable.
        RetrievalError: The search failed.
        GenerationError: The model failed, or did not answer before the deadline.
    """
    request = _validated(AskRequest, {"question": question, **options})
    with closing(AskService.from_env(_environment(engine))) as service:
        return wait_for(service.ask(request, OPERATOR))


def _environment(engine: str | Mapping[str, Any] | None) -> Mapping[str, str]:
    if engine is None:
        return os.environ
    return {**os.environ, **engine_variables(engine_config(engine) if isinstance(engine, str) else engine)}


def _validated(model: type[_Request], members: Mapping[str, Any]) -> _Request:
    try:
        return model.model_validate(members)
    except ValidationError as error:
        message, _ = invalid_members(error.errors(include_url=False, include_context=False, include_input=False))
        raise InvalidRequestError(message) from None
