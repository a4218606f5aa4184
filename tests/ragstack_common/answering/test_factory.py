import pytest

from ragstack_common.answering.bedrock import BedrockProvider
from ragstack_common.answering.extractive import ExtractiveProvider
from ragstack_common.answering.factory import provider_from
from ragstack_common.answering.models import ModelMessage, ModelRequest
from ragstack_common.config import AnswerSettings
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
