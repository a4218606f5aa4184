# ruff: noqa: RUF001 - letters of other scripts

import pytest

from ragstack_common.answers.quote.quoting import best_quotations
from ragstack_common.text.spelling import arabic_roots
from ragstack_common.text.words import query_terms, terms


@pytest.mark.parametrize(
    ("language", "forms"),
    [
        ("ar", "مدرسة المدرسة والمدرسة مدرسه بالمدرسة للمدرسة"),
        ("ar", "اعتراضات الاعتراضات اعتراض اعتراضاً اعتراضا"),
        ("ar", "كِتَاب كتـــاب الكتاب كتابه"),
        ("ar", "إنجلترا انجلترا أنجلترا"),
        ("ar", "٢٠١٥ 2015"),
        ("hi", "फ़िल्म फिल्म फिल्में"),
        ("hi", "पाँच पांच"),
        ("hi", "सम्बन्ध संबंध"),
        ("hi", "भाषा भाषाएँ भाषाओं भाषाएं"),
        ("hi", "२०१५ 2015"),
        ("tr", "ISPARTA ısparta Isparta"),
        ("tr", "İSTANBUL İstanbul istanbul"),
        ("el", "ΛΟΓΟΣ λόγος Λόγος"),
        ("ro", "ştiinţă știință"),
        ("vi", "Việt VIỆT Vie\u0323\u0302t"),
    ],
)
def test_every_spelling_of_a_word_is_one_term(language: str, forms: str) -> None:
    assert len(set(terms(forms, language))) == 1


def test_broken_plurals_and_verbs_share_the_root_of_a_stem() -> None:
    assert [arabic_roots(stem) for stem in terms("مدرس مدارس", "ar")] == [{"درس"}] * 2
    assert [arabic_roots(stem) for stem in terms("سجل يسجل تسجيل", "ar")] == [{"سجل"}] * 3
    assert all("سجل" in arabic_roots(stem) for stem in terms("بتسجيل لتسجيل", "ar"))
    assert not arabic_roots("من")


def test_stop_words_have_conjunctions_and_other_spellings() -> None:
    assert query_terms("وكانت المدرسة التي في انها", "ar").keys() == query_terms("المدرسة", "ar").keys()


@pytest.mark.parametrize(
    ("question", "answer", "other"),
    [
        ("วันลาพักร้อนมีกี่วัน", "พนักงานทุกคนมีวันลาพักร้อน 27 วันต่อปี", "โรงอาหารเปิดตอนเที่ยงทุกวันทำงาน"),
        ("Yıllık izin kaç gündür?", "Her çalışanın 27 gün yıllık izni vardır.", "Yemekhane öğlen açılır."),
        (
            "Πόσες ημέρες άδειας υπάρχουν;",
            "Κάθε υπάλληλος έχει 27 ημέρες άδεια.",
            "Πότε ανοίγει η καντίνα; Το μεσημέρι.",
        ),
        ("Có bao nhiêu ngày nghỉ phép?", "Mỗi nhân viên có 27 ngày nghỉ phép.", "Nhà ăn mở cửa vào buổi trưa."),
        (
            "¿Cuántos días de vacaciones hay?",
            "Cada empleado tiene 27 días de vacaciones.",
            "El comedor abre a mediodía.",
        ),
        (
            "Câte zile de concediu există?",
            "Fiecare angajat are 27 de zile de concediu.",
            "Cantina se deschide la prânz.",
        ),
        ("كم يوماً مدة الإجازة السنوية؟", "لكل موظف ٢٧ يوماً من الإجازة السنوية.", "متى يفتح المطعم؟ عند الظهر."),
        ("वार्षिक छुट्टी कितने दिन की है?", "हर कर्मचारी को २७ दिन की वार्षिक छुट्टी मिलती है।", "कैंटीन दोपहर में खुलती है।"),
    ],
)
def test_a_question_in_any_language_finds_its_sentence(question: str, answer: str, other: str) -> None:
    found = best_quotations(question, [other, f"{other}\n\n{answer}"])

    assert [quotation.text for quotation in found] == [answer]
