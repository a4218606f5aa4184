"""The settings of answers: the model, its limits, and how it is asked."""

from typing import Annotated, Final, Self

from pydantic import BeforeValidator, Field, model_validator

from ragstack_common.settings.base import (
    Allowed,
    Settings,
)
from ragstack_common.settings.limits import (
    MAX_ANSWER_SECONDS,
)

MODELS_OWN: Final = "model"
Temperature = Annotated[
    Annotated[float, Field(ge=0, le=1)] | None,
    BeforeValidator(lambda value: None if value == MODELS_OWN else value),
    Allowed(f"a number from 0 to 1, or {MODELS_OWN}"),
]
"""None leaves the temperature to the model."""

Guardrail = Annotated[
    str,
    Field(pattern=r"^[^:]+(:[^:]+)*:(DRAFT|[1-9]\d*)$"),
    Allowed("the id or ARN of a guardrail with a version, such as abc123:1"),
]


class AnswerSettings(Settings):
    """How the function `answers` answers questions; it searches with the settings of `query`."""

    answer_model: str | None = Field(
        None,
        description="model, or inference profile, of Amazon Bedrock; by default, answers quote the documents",
    )
    answer_fallback_model: str | None = Field(
        None, description="model that answers while `ANSWER_MODEL` is throttled or unavailable"
    )
    answer_temperature: Temperature = Field(
        0.0, description=f"temperature of the model; `{MODELS_OWN}` for models that accept none"
    )
    answer_max_tokens: int = Field(1024, ge=1, le=64_000, description="longest answer, in tokens")
    answer_context_tokens: int = Field(
        6000, ge=200, le=200_000, description="passages that the model receives, in tokens (estimated)"
    )
    answer_guardrail: Guardrail | None = Field(None, description="guardrail of the model calls, as `ID:VERSION`")
    support_model: str | None = Field(
        None,
        description="model of Amazon Bedrock that judges sentences for `check_support`; by default, `ANSWER_MODEL`",
    )
    answer_timeout_seconds: float = Field(
        60.0, ge=1, le=MAX_ANSWER_SECONDS, description="deadline of an answer, from the request to its last token"
    )
    chat_history_max_tokens: int = Field(
        3000,
        ge=0,
        le=100_000,
        description="the last turns that the model receives, in tokens (estimated)",
    )

    @model_validator(mode="after")
    def _has_model(self) -> Self:
        if not self.answer_model and (self.answer_guardrail or self.answer_fallback_model or self.support_model):
            raise ValueError(
                "ANSWER_GUARDRAIL, ANSWER_FALLBACK_MODEL and SUPPORT_MODEL need ANSWER_MODEL: set it, or leave them out"
            )
        return self
