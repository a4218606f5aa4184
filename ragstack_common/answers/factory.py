"""The provider that the settings choose."""

from typing import TYPE_CHECKING

from ragstack_common.answers.models import ModelProvider
from ragstack_common.config import AnswerSettings
from ragstack_common.core.errors import needs_extra

if TYPE_CHECKING:
    from mypy_boto3_bedrock_runtime import BedrockRuntimeClient


def provider_from(settings: AnswerSettings, client: "BedrockRuntimeClient | None" = None) -> ModelProvider:
    """Create the provider of answers: Amazon Bedrock if there is a model, otherwise quotations.

    Raises:
        MissingPackageError: A package for quotations is not installed.
    """
    if settings.answer_model is None:
        with needs_extra("answers", "An answer without a model"):
            from ragstack_common.answers.extractive import ExtractiveProvider  # noqa: PLC0415

        return ExtractiveProvider()
    from ragstack_common.answers.bedrock import BedrockProvider  # noqa: PLC0415

    return BedrockProvider(
        settings.answer_model,
        fallback_model=settings.answer_fallback_model,
        temperature=settings.answer_temperature,
        guardrail=settings.answer_guardrail,
        timeout_seconds=settings.answer_timeout_seconds,
        client=client,
    )
