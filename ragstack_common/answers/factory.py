"""The provider that the settings choose."""

from typing import TYPE_CHECKING

from ragstack_common.answers.models.protocol import ModelProvider
from ragstack_common.core.errors import needs_extra
from ragstack_common.settings.answers import AnswerSettings

if TYPE_CHECKING:
    from mypy_boto3_bedrock_runtime import BedrockRuntimeClient


def provider_from(settings: AnswerSettings, client: "BedrockRuntimeClient | None" = None) -> ModelProvider:
    """Create the provider of answers: Amazon Bedrock if there is a model, otherwise quotations.

    Raises:
        MissingPackageError: A package for quotations is not installed.
    """
    return _provider(settings, settings.answer_model, client)


def judge_from(settings: AnswerSettings, provider: ModelProvider) -> ModelProvider:
    """Return what judges the sentences of a provider's answers: the provider itself, or SUPPORT_MODEL."""
    return provider if settings.support_model is None else _provider(settings, settings.support_model, None)


def _provider(settings: AnswerSettings, model: str | None, client: "BedrockRuntimeClient | None") -> ModelProvider:
    if model is None:
        with needs_extra("answers", "An answer without a model"):
            from ragstack_common.answers.quote.extractive import ExtractiveProvider  # noqa: PLC0415

        return ExtractiveProvider()
    from ragstack_common.answers.models.bedrock import BedrockProvider  # noqa: PLC0415

    return BedrockProvider(
        model,
        fallback_model=settings.answer_fallback_model,
        temperature=settings.answer_temperature,
        guardrail=settings.answer_guardrail,
        timeout_seconds=settings.answer_timeout_seconds,
        client=client,
    )
