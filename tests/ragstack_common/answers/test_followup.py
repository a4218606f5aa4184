"""Follow-up questions that are made self-contained."""

# ruff: noqa: RUF001 - questions in several languages

import pytest

from ragstack_common.answers.followup import MAX_QUESTION, self_contained, with_subject
from ragstack_common.answers.models.protocol import ModelMessage
from ragstack_common.answers.quote.extractive import ExtractiveProvider
from ragstack_common.core.errors import GenerationError
from tests.support.scripted_model import ScriptedModel

HISTORY = [ModelMessage.user("How long is parental leave?"), ModelMessage.assistant("Twenty weeks [1].")]


async def rewritten(
    model: ExtractiveProvider, question: str = "And in Germany?", seconds: float = 10
) -> tuple[str | None, str | None]:
    return await self_contained(question, HISTORY, model, seconds)


async def test_the_model_rewrites_the_question_from_the_conversation() -> None:
    model = ScriptedModel('"How long is parental leave in Germany?"\n')

    assert await rewritten(model) == ("How long is parental leave in Germany?", None)
    (request,) = model.requests
    assert "How long is parental leave?" in request.system_prompt
    assert request.messages[-1].content == "And in Germany?"


@pytest.mark.parametrize("said", ["", "  \n", "And in Germany?", "x" * (MAX_QUESTION + 1)])
async def test_nothing_useful_leaves_the_question_as_it_is(said: str) -> None:
    assert await rewritten(ScriptedModel(said)) == (None, None)


@pytest.mark.parametrize(
    "model", [ScriptedModel(GenerationError("the model is down")), ScriptedModel("late", seconds=60)]
)
async def test_a_failing_model_is_replaced_by_the_words_before(model: ScriptedModel) -> None:
    question, remark = await rewritten(model, seconds=0.2)

    assert question == "How long is parental leave in Germany?"
    assert remark is not None
    assert remark.startswith("The model did not rewrite the question")


@pytest.mark.parametrize(
    ("question", "searched"),
    [
        ("And in Germany?", "How long is parental leave in Germany?"),
        ("How soon?", "How soon? parental leave"),
        ("Who pays for it?", "Who pays for it? parental leave"),
        ("What may a hotel night in London cost?", None),
        ("How long is parental leave?", None),
    ],
)
async def test_without_a_model_a_short_question_gets_the_subject(question: str, searched: str | None) -> None:
    assert await rewritten(ExtractiveProvider(), question) == (searched, None)


def test_a_number_replaces_those_before() -> None:
    history = [ModelMessage.user("How large may an upload be in version 2?")]

    assert with_subject("And in version 1?", history) == "How large may an upload be in version 1?"


async def test_without_a_conversation_nothing_changes() -> None:
    assert await self_contained("And in Germany?", [], ScriptedModel("x"), 10) == (None, None)
    assert with_subject("And in Germany?", [ModelMessage.assistant("Hello.")]) is None


def test_a_conversation_keeps_its_subject() -> None:
    history: list[ModelMessage] = []
    searched = []
    for asked in ("How long is parental leave?", "And in 2025?", "And for managers?", "What about Germany?"):
        searched.append(with_subject(asked, history))
        history += [ModelMessage.user(asked), ModelMessage.assistant("Sixteen weeks [1].")]

    assert searched == [
        None,
        "How long is parental leave in 2025?",
        "How long is parental leave in 2025 for managers?",
        "How long is parental leave in 2025 Germany?",
    ]
    assert with_subject("How long is the warranty?", history) is None


@pytest.mark.parametrize(
    ("before", "question", "searched"),
    [
        ("What may a hotel night in London cost?", "And in Lisbon?", "What may a hotel night in Lisbon cost?"),
        ("Wie lange dauert der Elternurlaub?", "Und in 2025?", "Wie lange dauert der Elternurlaub in 2025?"),
        ("¿Cuánto cuesta un hotel en Londres?", "¿Y en Lisboa?", "¿Cuánto cuesta un hotel en Lisboa?"),
        ("Combien coûte un hôtel à Londres ?", "Et à Lisbonne ?", "Combien coûte un hôtel à Lisbonne?"),
        ("Сколько дней отпуска?", "А в 2025 году?", "Сколько дней отпуска в 2025 году?"),
        ("员工有多少天年假？", "那2025年呢？", "员工有多少天年假 2025年呢？"),
    ],
)
def test_a_follow_up_changes_the_question_before_in_every_language(before: str, question: str, searched: str) -> None:
    assert with_subject(question, [ModelMessage.user(before)]) == searched


CONTRACT = "What is the notice period of the Northwind contract of 2024?"


@pytest.mark.parametrize(
    ("before", "question", "searched"),
    [
        (CONTRACT, "And in 2025?", "What is the notice period of the Northwind contract of 2025?"),
        (CONTRACT, "And in the year 2025?", "What is the notice period of the Northwind contract of 2025?"),
        (
            CONTRACT,
            "And for resellers in 2025?",
            "What is the notice period of the Northwind contract of 2025 for resellers?",
        ),
        ("Was galt vor 2024 für Reisen?", "Und im Jahr 2025?", "Was galt vor 2025 für Reisen?"),
        ("Was steht im Vertrag von 2024?", "Und 2025?", "Was steht im Vertrag von 2025?"),
        ("Que dit le contrat de 2024 ?", "Et en 2025 ?", "Que dit le contrat de 2025?"),
        ("¿Qué dice el contrato de 2024?", "¿Y en el año 2025?", "¿Qué dice el contrato de 2025?"),
        ("O que diz o contrato de 2024?", "E no ano de 2025?", "O que diz o contrato de 2025?"),
        ("Che cosa dice il contratto del 2024?", "E nel 2025?", "Che cosa dice il contratto del 2025?"),
        ("Wat staat er in het contract van 2024?", "En in 2025?", "Wat staat er in het contract van 2025?"),
        ("Vad står det i avtalet från 2024?", "Och år 2025?", "Vad står det i avtalet från 2025?"),
        ("Что сказано в договоре от 2024 года?", "А в 2025 году?", "Что сказано в договоре от 2025 года?"),
        ("2024年的合同写了什么？", "那2025年呢？", "2025年的合同写了什么？"),
        (
            "What does a room for 20 people cost in 2024?",
            "And with 30?",
            "What does a room for 30 people cost in 2024?",
        ),
        ("How large is an upload in version 2?", "And in 2025?", "How large is an upload in version 2 in 2025?"),
        ("What does section 4 of the 2024 policy say?", "And in 2025?", "What does section 4 of the 2025 policy say?"),
        ("Which rules were valid in 2024?", "And before 2020?", "Which rules were valid before 2020?"),
        ("Was galt im Jahr 2024 für Reisen?", "Und seit 2025?", "Was galt für Reisen seit 2025?"),
        ("What does ISO-9001 cost?", "And in 2025?", "What does ISO-9001 cost in 2025?"),
    ],
)
def test_a_number_replaces_one_of_its_kind_and_keeps_the_words_around_it(
    before: str, question: str, searched: str
) -> None:
    assert with_subject(question, [ModelMessage.user(before)]) == searched


@pytest.mark.parametrize(
    "question",
    [
        "En quelle année a-t-elle été fondée par Quillmere ?",
        "En quel mois commence le congé ?",
        "Faut-il une autorisation ?",
        "¿En qué mes empieza el permiso?",
        "¿Cuánto es la tarifa?",
        "O que é o Wren?",
        "O prazo é de quantos dias?",
        "Quanto dura il congedo?",
        "Wat kost het apparaat?",
        "Hoeveel werknemers zijn er?",
        "Wann öffnet das Büro?",
        "Wo steht das neue Gerät?",
        "Wie viele Tage Urlaub gibt es?",
        "Wie beantragen Sie Urlaub?",
    ],
)
def test_a_word_that_refers_back_in_another_language_makes_no_follow_up(question: str) -> None:
    assert with_subject(question, HISTORY) is None


@pytest.mark.parametrize(
    "question",
    [
        *["Combien coûte-t-il ?", "¿Quién paga eso?", "Was kostet das?", "Wann endet es?", "Wann beginnt sie?"],
        *["Gilt das auch für Manager?", "Quem paga isso?", "Chi paga questo?", "Wat kost het?", "Wie betaalt dat?"],
        *["En in 2025?", "Of in Duitsland?", "O in Germania?", "¿O en Alemania?", "Кто за это платит?"],
    ],
)
def test_a_pronoun_or_a_conjunction_refers_back_in_its_own_language(question: str) -> None:
    assert with_subject(question, HISTORY) is not None


async def test_rules_complete_a_follow_up_without_calling_the_model() -> None:
    model = ScriptedModel("never called")

    question, remark = await self_contained("And in Germany?", HISTORY, model, 10, by_model=False)

    assert (question, remark) == ("How long is parental leave in Germany?", None)
    assert model.requests == []
