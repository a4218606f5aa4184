"""Language models that answer or judge, on Amazon Bedrock or an OpenAI-compatible server."""

import os
from collections.abc import Mapping
from typing import Final

from ragstack_common.answers.factory import provider_from
from ragstack_common.answers.models import ModelProvider
from ragstack_common.config import AnswerSettings

RETRIES: Final = 2
"""After transient errors: one of them must not end a measurement of hours."""


def chosen_model(model: str | None, settings: Mapping[str, str]) -> tuple[AnswerSettings, ModelProvider]:
    """Return a provider with its settings.

    Args:
        model: A model of the server at RAGSTACK_LLM_URL; without such a server, a model of Amazon Bedrock. None quotes
            the passages.
        settings: Further variables of :class:`AnswerSettings`.

    Raises:
        GenerationError: RAGSTACK_LLM_URL is not a URL.
    """
    url = os.environ.get("RAGSTACK_LLM_URL")
    if model is None or not url:
        read = AnswerSettings.from_env({**settings, **({} if model is None else {"ANSWER_MODEL": model})})
        return read, provider_from(read)
    from ragstack_common.answers.openai import OpenAIProvider  # noqa: PLC0415 - takes a second to import

    read = AnswerSettings.from_env(settings)
    key = os.environ.get("RAGSTACK_LLM_API_KEY")
    return read, OpenAIProvider(url, model, key, temperature=read.answer_temperature, retries=RETRIES)
