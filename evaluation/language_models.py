"""Language models that answer or judge, on Amazon Bedrock or an OpenAI-compatible server."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from evaluation.index import NO_SERVICE, client_of, running
from ragstack_common.answers.factory import provider_from
from ragstack_common.answers.models import ModelProvider
from ragstack_common.config import AnswerSettings
from ragstack_local.target.connection import local_environment

LLM_URL: Final = "RAGSTACK_LLM_URL"
LLM_MODEL: Final = "RAGSTACK_LLM_MODEL"
"""Variables of the local Bedrock: the OpenAI-compatible server, and its model."""

FORWARDED: Final = "local.model"
"""A model id that Converse accepts, unlike names such as qwen3:8b."""


@contextmanager
def provided(model: str | None, settings: Mapping[str, str]) -> Iterator[tuple[AnswerSettings, ModelProvider]]:
    """Yield a provider with its settings.

    Args:
        model: A model of the server at RAGSTACK_LLM_URL, reached through a local Bedrock of its own; without such a
            server, a model of Amazon Bedrock. None quotes the passages.
        settings: Further variables of :class:`AnswerSettings`.

    Raises:
        StackError: The local Bedrock does not start.
    """
    if model is None or not os.environ.get(LLM_URL):
        read = AnswerSettings.from_env({**settings, **({} if model is None else {"ANSWER_MODEL": model})})
        yield read, provider_from(read)
        return
    read = AnswerSettings.from_env({**settings, "ANSWER_MODEL": FORWARDED})
    environment = local_environment(NO_SERVICE, **{LLM_MODEL: model})
    with TemporaryDirectory(prefix="ragstack-model-") as folder, running(Path(folder), [], environment) as (_, url):
        yield read, provider_from(read, client_of(url, "bedrock-runtime"))
