import pytest

from ragstack_common.answers.factory import judge_from, provider_from
from ragstack_common.answers.models.bedrock import BedrockProvider
from ragstack_common.answers.models.protocol import ModelMessage, ModelRequest
from ragstack_common.answers.quote.extractive import ExtractiveProvider
from ragstack_common.core.errors import ConfigurationError
from ragstack_common.settings.answers import AnswerSettings
from tests.support.aws_service import aws_service


def test_without_a_model_answers_quote_the_documents() -> None:
    provider = provider_from(AnswerSettings.from_env({}))

    assert isinstance(provider, ExtractiveProvider)
    assert (provider.name, provider.quotes) == ("extractive", True)


def test_a_model_is_one_of_bedrock() -> None:
    profile = "arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.amazon.nova-lite-v1:0"

    provider = provider_from(AnswerSettings.from_env({"ANSWER_MODEL": profile}))

    assert isinstance(provider, BedrockProvider)
    assert (provider.name, provider.model, provider.quotes) == ("bedrock", profile, False)


@pytest.mark.parametrize(("setting", "sent"), [("", 0.0), ("0.3", 0.3), ("model", None)])
def test_the_temperature_can_be_left_to_the_model(setting: str, sent: float | None) -> None:
    settings = AnswerSettings.from_env({"ANSWER_MODEL": "amazon.nova-lite-v1:0", "ANSWER_TEMPERATURE": setting})

    with aws_service("bedrock-runtime") as models, pytest.raises(Exception, match="programmed nothing"):
        provider_from(settings, models.client()).generate(ModelRequest([ModelMessage.user("When?")]))

    assert models.asked("ConverseStream")[0]["inferenceConfig"].get("temperature") == sent


def test_another_model_can_judge() -> None:
    env = {"ANSWER_MODEL": "amazon.nova-pro-v1:0", "SUPPORT_MODEL": "amazon.nova-micro-v1:0"}
    settings = AnswerSettings.from_env(env)

    own, other = (judge_from(each, provider_from(each)) for each in (AnswerSettings(answer_model="a.b"), settings))

    assert (own.model, other.model) == ("a.b", "amazon.nova-micro-v1:0")


def test_a_guardrail_is_never_ignored_for_want_of_a_model() -> None:
    with pytest.raises(ConfigurationError, match=r"ANSWER_GUARDRAIL.* need ANSWER_MODEL: set it, or leave them out"):
        AnswerSettings.from_env({"ANSWER_GUARDRAIL": "abc123:1"})
