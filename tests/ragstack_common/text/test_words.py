"""The words of any language, and the terms by which they are found."""

# ruff: noqa: RUF001 - letters of other scripts

import pytest

from ragstack_common.text.languages import detect
from ragstack_common.text.words import (
    MAX_REPEATS,
    MAX_TERMS,
    detect_language,
    detect_languages,
    query_terms,
    search_terms,
    terms,
    words,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Don't use x_y, e.g. 3.14 m²", ["don", "t", "use", "x", "y", "e", "g", "3.14", "m2"]),
        ("डिफेंस में कितने", ["डिफेंस", "में", "कितने"]),
        ("ที่นี่", ["ที่", "นี่"]),
        ("東京のAI", ["東", "京", "の", "ai"]),
        ("한국 사람", ["한", "국", "사", "람"]),
        ("cafe\u0301 nai\u0308ve", ["café", "naïve"]),
        ("an\u00adnual می\u200cخواهم", ["annual", "میخواهم"]),
        ("?! — ☎\ufe0f", []),
    ],
)
def test_words_are_those_of_every_script(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Herons were waiting at the lake", "Is the heron waiting?"),
        ("Die Städte und die Häuser der Stadt", "Wie viele Häuser hat die Stadt?"),
        ("Les oiseaux sont dans les maisons", "Combien d'oiseaux y a-t-il dans la maison ?"),
        ("Las casas de la costa y los pájaros", "¿Cuántos pájaros hay en la casa?"),
        ("As cidades da costa e os pássaros", "Quantos pássaros há na cidade?"),
        ("Gli uccelli della città e le case", "Quanti uccelli ci sono nella casa?"),
        ("De vogels in de huizen van de stad", "Hoeveel vogels zijn er in het huis?"),
        ("Команды набрали много очков", "Сколько очков набрала команда?"),
        ("عدد الدول الأعضاء في المنظمة", "كم عدد أعضاء المنظمة؟"),
        ("टीमों ने कई अंक बनाए", "टीम ने कितने अंक बनाए?"),
        ("機械学習の研究所は東京にある", "東京の研究所"),
        ("税金は高い", "税"),
    ],
)
def test_a_query_finds_inflected_words(text: str, query: str) -> None:
    asked = query_terms(query, detect_language(text))

    assert len(asked.keys() & terms(text)) >= min(2, len(asked))


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("How many days of leave are there?", "en"),
        ("Wie viele Tage Urlaub gibt es?", "de"),
        ("Combien de jours de congé y a-t-il ?", "fr"),
        ("¿Cuántos días de vacaciones hay?", "es"),
        ("Quantos dias de férias há?", "pt"),
        ("Quanti giorni di ferie ci sono?", "it"),
        ("Hoeveel vakantiedagen zijn er?", "nl"),
        ("A card costs ten crowns a year.", "en"),
        ("Refunds take ten days", "en"),
        ("bezahlt die Firma", "de"),
        ("10-K of K. Smith", "en"),
        ("invoice 4711", "en"),
        ("東京都", "zh"),
    ],
)
def test_the_stop_words_tell_the_language(text: str, language: str) -> None:
    assert detect(words(text)) == language


@pytest.mark.parametrize(
    "text",
    [
        "Heron 4 gateway, LTE non ATEX, 3 ed. CI 95",
        "95% CI 1.2-3.4, p < .05",
        "COVID-19 ad libitum diet, in vivo",
        "ad hoc committee, non-profit, vs. de facto rules",
        "NPs vs. RNs in ED settings",
        "expenses per diem, et al.",
        "odds ratio 2.1 ci 1.3 cohort ed visits copd exacerbation non smokers hazard ratio ci mortality statin",
    ],
)
def test_abbreviations_do_not_make_an_english_text_foreign(text: str) -> None:
    assert detect_language(text) == "en"


def test_a_part_of_a_document_has_its_language_unless_its_own_is_clear() -> None:
    english = "The warranty of the pump is two years, and it does not cover the filters of the pump."
    german = "Die Garantie der Pumpe beträgt zwei Jahre, und sie gilt nicht für die Filter der Pumpe."

    assert detect_languages([english, english, "Pump 4, filter ci"]) == ["en"] * 3
    assert detect_languages([german, german, "Pumpe 4, Filter"]) == ["de"] * 3
    assert detect_languages([german, german, english]) == ["de", "de", "en"]


def test_a_query_is_searched_with_the_stems_of_the_texts() -> None:
    assert search_terms("Häusern", {"de": 90, "en": 10}).keys() >= {*terms("Häuser", "de")}
    assert search_terms("Orsted", {"en": 60, "de": 3}).keys() >= {*terms("Ørsted", "de")}
    assert search_terms("How are the houses?", {"de": 90, "en": 10}).keys() == {"hous"}
    assert search_terms("Wie viele Häuser?", {"en": 10}) == query_terms("Wie viele Häuser?", "en")
    assert search_terms("houses", {}) == query_terms("houses")


def test_accents_and_case_do_not_matter() -> None:
    assert terms("Le café FERMÉ des Œuvres", "fr") == terms("le cafe ferme des œuvres", "fr")
    assert terms("Straße", "de") == terms("STRASSE", "de")


@pytest.mark.parametrize(
    ("written", "plain"),
    [("Łódź", "Lodz"), ("œufs", "oeufs"), ("Ærø", "Aero"), ("Đông", "Dong"), ("Þórður", "Thordur"), ("Ħaż", "Haz")],
)
def test_a_letter_without_a_decomposition_is_found_by_plain_letters(written: str, plain: str) -> None:
    assert terms(written, "") == terms(plain, "")


def test_a_word_that_a_query_repeats_counts_as_often_up_to_a_limit() -> None:
    assert query_terms("Herons, the heron and ospreys") == {"heron": 2, "osprey": 1}
    assert query_terms("bird " * 50) == {"bird": MAX_REPEATS}


def test_different_terms_come_before_repeats() -> None:
    found = [f"w{number}" for number in range(MAX_TERMS - 1)]

    assert query_terms(" ".join([*found, *found])) == {**dict.fromkeys(found, 1), found[0]: 2}


def test_stop_words_are_searched_if_there_is_nothing_else() -> None:
    assert query_terms("to be or not to be") == {"to": 2, "be": 2, "or": 1, "not": 1}
    assert query_terms("?!") == {}
