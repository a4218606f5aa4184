"""Kinds of questions in twelve languages, with a right and a wrong answer for each."""

# ruff: noqa: RUF001 - letters of other scripts

import pytest

from ragstack_common.answers.quote.questions import parse_question
from ragstack_common.text.sentences import sentence_spans

SAMPLES = [
    ("How many days of leave are there?", "There are 27 days.", "There are days of leave."),
    ("Who approves the budget?", "It is approved by the director.", "The budget was set."),
    ("Wann öffnet die Kantine?", "Sie öffnet um 11:30.", "Die Kantine ist offen."),
    ("Wie viele Tage Urlaub gibt es?", "Es gibt siebenundzwanzig Tage.", "Es gibt Urlaub."),
    ("Warum wurde das Gerät ersetzt?", "Es wurde ersetzt, weil es brannte.", "Das Gerät wurde ersetzt."),
    ("Quand ouvre la cantine ?", "Elle ouvre en janvier.", "La cantine est ouverte."),
    ("Combien de jours de congé y a-t-il ?", "Il y a vingt jours.", "Il y a des congés."),
    ("¿Cuándo abre el comedor?", "Abre el lunes.", "El comedor está abierto."),
    ("¿Cuántos sensores hay?", "Hay sesenta sensores.", "Hay sensores."),
    ("Quem aprova o orçamento?", "É aprovado por Maria Silva.", "O orçamento foi aprovado."),
    ("Quantos dias de férias há?", "Há 27 dias.", "Há férias."),
    ("Quando apre la mensa?", "Apre a gennaio.", "La mensa è aperta."),
    ("Quanti sensori ci sono?", "Ci sono sessanta sensori.", "Ci sono sensori."),
    ("Wanneer gaat de kantine open?", "In maart.", "De kantine is open."),
    ("Hoeveel dagen verlof zijn er?", "Er zijn twintig dagen.", "Er is verlof."),
    ("Когда открывается столовая?", "Она открывается в январе.", "Столовая открыта."),
    ("Сколько дней отпуска?", "Отпуск длится двадцать дней.", "Отпуск есть."),
    ("Почему устройство заменили?", "Его заменили, потому что оно сломалось.", "Устройство заменили."),
    ("متى يفتح المطعم؟", "يفتح في يناير.", "المطعم مفتوح."),
    ("كم عدد أيام الإجازة؟", "عددها 27.", "هناك إجازة."),
    ("लाइब्रेरी कब खुलती है?", "वह सोमवार को खुलती है।", "लाइब्रेरी खुली है।"),
    ("कितने दिन की छुट्टी है?", "बीस दिन की छुट्टी है।", "छुट्टी है।"),
    ("食堂什么时候开门？", "食堂上午十一点开门。", "食堂开门。"),
    ("员工有多少天年假？", "员工有二十七天年假。", "员工有年假。"),
    ("食堂はいつ開きますか", "食堂は11時に開きます。", "食堂は開きます。"),
    ("有給休暇は何日ありますか", "27日あります。", "あります。"),
]


@pytest.mark.parametrize(("question", "right", "wrong"), SAMPLES)
def test_an_answer_has_the_kind_of_value_in_question(question: str, right: str, wrong: str) -> None:
    expected = parse_question(question).expected

    assert expected is not None
    assert expected.misfit(right) < 1
    assert expected.misfit(wrong) == 1


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("When do I pay?", "moment"),
        ("Who pays the fee?", "person"),
        ("Who decides how many days there are?", "person"),
        ("How much do I pay when I leave?", "money"),
        ("When I leave, how many days are paid?", "number"),
        ("What is the reason for it when it fails?", "reason"),
        ("Wann muss ich die Gebühr bezahlen?", "moment"),
        ("Quand le contrat prend fin, combien de temps ai-je ?", "duration"),
        ("Quelle est la durée du préavis ?", "duration"),
        ("¿Cada cuánto se limpia la oficina?", "duration"),
        ("¿Quién paga los gastos?", "person"),
        ("Con quale frequenza si pulisce l'ufficio?", "duration"),
        ("Hoelang duurt het verlof?", "duration"),
        ("Wie betaalt de kosten?", "person"),
        ("С какой периодичностью проводится уборка?", "duration"),
        ("Кто платит за ремонт?", "person"),
    ],
)
def test_the_first_question_word_of_a_clause_decides(question: str, kind: str) -> None:
    expected = parse_question(question).expected

    assert expected is not None
    assert expected.kind == kind


@pytest.mark.parametrize(
    "question",
    [
        "What happens when the contract ends?",
        "Where do I pay the fee?",
        "Que se passe-t-il quand le contrat prend fin ?",
        "O que acontece quando o contrato termina?",
        "Wer bezahlt die Kosten?",
        "Wo ist der Drucker?",
        "Kto zatwierdza budżet?",
    ],
)
def test_what_no_table_knows_is_not_judged(question: str) -> None:
    assert parse_question(question).expected is None


@pytest.mark.parametrize(
    ("question", "language", "right"),
    [
        ("When does the canteen open?", "de", "Sie öffnet im Januar."),
        ("How often is the office cleaned?", "de", "Es wird wöchentlich gereinigt."),
        ("Wann öffnet die Kantine?", "en", "It opens in January."),
        ("Quando comincia?", "it", "Comincia a gennaio."),
    ],
)
def test_answers_are_judged_in_the_language_of_the_passages(question: str, language: str, right: str) -> None:
    expected = parse_question(question, language).expected

    assert expected is not None
    assert expected.misfit(right) < 1


@pytest.mark.parametrize(
    ("question", "language"), [("How many days are there?", "pl"), ("Wie oft wird das Büro gereinigt?", "en")]
)
def test_answers_in_a_language_without_a_table_are_not_judged(question: str, language: str) -> None:
    assert parse_question(question, language).expected is None


@pytest.mark.parametrize(
    ("question", "right"),
    [
        ("Combien y a-t-il d'employés ?", "Il y a 25 employés."),
        ("Combien pèse l'appareil ?", "Il fait 12 kg."),
        ("Wie viel wiegt das Gerät?", "Es wiegt 12 kg."),
    ],
)
def test_a_verb_after_how_many_is_not_counted(question: str, right: str) -> None:
    expected = parse_question(question).expected

    assert expected is not None
    assert expected.misfit(right) == 0


def test_a_number_from_the_question_does_not_answer_it() -> None:
    expected = parse_question("How many yards did Smith run in Game 50?").expected

    assert expected is not None
    assert expected.misfit("Smith ran in Game 50.") == 1
    assert expected.misfit("Smith ran 120 yards in Game 50.") < 1


@pytest.mark.parametrize(
    "sentences",
    [
        ["Команда набрала 308 очков.", "Защита была шестой."],
        ["टीम ने अंक बनाए।", "रक्षा छठी थी।"],
        ["كم عدد النقاط؟", "كان الدفاع السادس."],
        ["یہ پہلا جملہ ہے۔", "یہ دوسرا ہے۔"],
        ["東京は首都です。", "人口は多い。"],
        ["Ο πρώτος είναι εδώ.", "Ο δεύτερος λείπει."],
        ["Πόσο κοστίζει;", "Δέκα ευρώ; ίσως."],
        ["Am 3. Mai 2025 kam Dr. Schmidt.", "Der 2. Weltkrieg war vorbei."],
        ["Es kostet z. B. max. 180 EUR.", "Mehr nicht."],
        ["Он родился в 1950 г. в Москве.", "Т. е. давно."],
        ["ეს პირველია.", "ეს მეორეა."],
    ],
)
def test_sentences_end_in_every_script(sentences: list[str]) -> None:
    text = " ".join(sentences)

    assert [text[start:end] for start, end in sentence_spans(text)] == sentences


def test_long_texts_in_thai_are_divided_at_spaces() -> None:
    clause = "พนักงานทุกคนมีวันลาพักร้อนประจำปีจำนวนยี่สิบเจ็ดวันทำการต่อปีตามระเบียบของบริษัทที่ประกาศใช้"

    spans = list(sentence_spans(f"{clause} {clause}"))

    assert len(spans) == 2


def test_digits_of_other_scripts_are_numbers_and_years() -> None:
    expected = parse_question("متى تأسست الشركة؟").expected

    assert expected is not None
    assert expected.kind == "moment"
    assert expected.misfit("تأسست الشركة سنة ١٩٨٧.") < 1
    assert expected.misfit("في ١٢ أيار") < 1
    assert expected.misfit("تأسست الشركة هنا.") == 1
