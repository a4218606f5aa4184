"""What counts as a verified quotation: cases written by hand, and generated ones in several languages."""

# ruff: noqa: E501, RUF001 - quotation marks and letters of other languages

import json
import random
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from ragstack_common.answers.answer import Sentence
from ragstack_common.answers.verify.citations import AnswerVerifier
from ragstack_common.answers.verify.marks import quotations_in
from ragstack_common.answers.verify.tokens import Tokens
from ragstack_common.answers.verify.visible import literal, readings
from ragstack_common.text.characters import DIVIDER, folded
from tests.support import quotation_attacks
from tests.support.passages import LINE_SEPARATORS, numbered
from tests.support.quotation_attacks import attacks
from tests.support.quotation_cases import FALSE, MARKS, TRUE, Generated, generated
from tests.support.soak import examples

TEXTS = {
    "en": "Leave is 20 weeks at full pay, and 12.5 weeks at 50% of it. It isn't paid in the first 3 months of work. "
    "Guests may not park in the yard before 10 o'clock without a permit. The fee is 1,500 euros for each of 12 places.",
    "de": "Der Urlaub beträgt 30 Tage, davon 5 im ersten Quartal des Jahres. Er darf nicht ohne Antrag verschoben werden. "
    "Die Gebühr beträgt 1.500 Euro, ab 2026 sind es 12,5 % mehr für alle Gäste des Hauses.",
    "ru": "Отпуск составляет 28 дней в году, из них 14 дней подряд. Он не переносится на следующий год без заявления. "
    "Плата составляет 1 500 рублей за каждое из 12 мест на стоянке.",
    "hi": "हर कर्मचारी को साल में 27 दिन की छुट्टी मिलती है। पहले 3 महीने में छुट्टी नहीं मिलती है। "
    "शुल्क 1,500 रुपये है और यह हर महीने की 15 तारीख तक देना होता है।",
    "zh": "每位员工每年有27天年假，另有12天病假。试用期的前3个月不能休年假。停车费为每月1500元，提前支付可优惠20%。",
    "ar": "يحصل كل موظف على 27 يوما من الإجازة في السنة. لا تمنح الإجازة في أول 3 أشهر من العمل. "
    "تبلغ الرسوم 1500 دينار في الشهر لكل مكان من الأماكن البالغ عددها 12 مكانا.",
}


SAMPLES = [
    json.loads(line)["text"] for line in Path("samples/judged/corpus.jsonl").read_text(encoding="utf-8").splitlines()
]


def sentences(answer: str, *sources: str) -> list[Sentence]:
    verifier = AnswerVerifier(numbered(*sources))
    verifier.feed(answer)
    verifier.finish()
    return verifier.sentences


def is_found(quotation: str, source: str) -> bool:
    found = [one for sentence in sentences(f"It says {quotation} [1].", source) for one in sentence.quotations]
    return bool(found) and all(one.source == 1 for one in found)


def is_marked(quotation: str, source: str) -> bool:
    return any(sentence.unsupported for sentence in sentences(f"It says {quotation} [1].", source))


@pytest.mark.parametrize(("source", "quotation"), FALSE + quotation_attacks.FALSE)
def test_a_false_quotation_is_marked(source: str, quotation: str) -> None:
    assert is_marked(quotation, source)


@pytest.mark.parametrize(("source", "quotation"), TRUE + quotation_attacks.TRUE)
def test_a_true_quotation_is_found(source: str, quotation: str) -> None:
    assert is_found(quotation, source)
    assert not is_marked(quotation, source)


@given(
    st.lists(st.sampled_from(LINE_SEPARATORS), min_size=3, max_size=3), st.lists(st.booleans(), min_size=3, max_size=3)
)
def test_line_separators_inside_a_quotation_are_white_space(separators: list[str], kept: list[bool]) -> None:
    words = ["Every employee has", "27 days of annual", "leave in a year, and", "books it early."]
    source = "".join(f"{part}{separator}" for part, separator in zip(words, [*separators, ""], strict=True))
    shown = [separator if keeps else " " for separator, keeps in zip(separators, kept, strict=True)]
    quotation = "".join(f"{part}{separator}" for part, separator in zip(words, [*shown, ""], strict=True))

    assert is_found(f'"{quotation}"', source)
    assert is_found(f'"{source}"', quotation)
    assert is_marked(f'"{quotation.replace("27", "28")}"', source)


def problems(cases: list[Generated]) -> list[Generated]:
    return [case for case in cases if is_marked(case.quotation, case.source) == case.is_true]


@pytest.mark.parametrize("language", TEXTS)
@given(st.integers(0, 2**32))
def test_a_changed_quotation_is_marked_and_a_true_one_found(language: str, seed: int) -> None:
    assert problems(list(generated([TEXTS[language]], language, seed, 1))) == []


@pytest.mark.parametrize("language", TEXTS)
def test_other_changes_are_marked_and_other_ways_to_write_found(language: str) -> None:
    assert problems(list(attacks([TEXTS[language]], language, 17, examples(80)))) == []


def test_changes_of_the_sample_documents_are_marked() -> None:
    assert problems(list(attacks(SAMPLES, "en", 17, examples(400)))) == []


def test_the_generated_cases_have_every_kind_of_change() -> None:
    changes = {case.change for language, text in TEXTS.items() for case in generated([text], language, 1, 30)}

    assert len(changes) == 15


@given(st.sampled_from(MARKS), st.sampled_from(sorted(TEXTS)), st.integers(1, 20), st.randoms(use_true_random=False))
def test_a_quotation_is_read_from_pieces_as_from_the_whole(
    marks: str, language: str, size: int, chance: random.Random
) -> None:
    text = f"{TEXTS[language][: chance.randrange(60)]} {marks.format(TEXTS[language])} {chance.choice(MARKS)}"
    whole, _ = quotations_in(text)

    seen = []
    for end in range(0, len(text), size):
        found, undecided = quotations_in(text[:end], complete=False)
        assert found == [one for one in whole if one.end <= undecided]
        seen.append(undecided)

    assert seen == sorted(seen)


@pytest.mark.parametrize(
    "answer",
    [
        'The “fast” lane is 5" wide and 6\'2" long [1].',
        'The "fast" lane [1].',
        "It's the employees' choice, not their bosses' [1].",
        "In the '90s it was 40′ 30″ long, rock ’n’ roll [1].",
        'A 5" pipe, a 6" pipe [1].',
        "See « Titre » and 《书名》 and „Wort“ [1].",
    ],
)
def test_terms_apostrophes_inches_and_primes_are_not_quotations(answer: str) -> None:
    (sentence,) = sentences(answer, "The Fast lane of Titre has a pipe and a Wort.")

    assert (sentence.quotations, sentence.unsupported) == ([], False)


def test_a_term_that_no_source_mentions_is_marked() -> None:
    (sentence,) = sentences('The "slow" lane has “no” end, see the "1.md" file [1].', "A fast lane.")

    assert [(each.text, each.source) for each in sentence.quotations] == [("slow", None), ("no", None)]
    assert sentence.unsupported


@pytest.mark.parametrize("answer", ["» Leave is as long as that [1]", "Leave is << 5 and no more than that [1]."])
def test_bullets_and_signs_open_no_quotation(answer: str) -> None:
    assert [each.quotations for each in sentences(answer, "Leave.")] == [[]]


@pytest.mark.parametrize("rule", ["=======", "= = =", "-------", "******", "______", "+----+----+"])
def test_a_rule_ends_a_text_and_belongs_to_no_number(rule: str) -> None:
    receipt = f"{rule}\nTOTAL $821.14\n{rule}\nPaid by card"

    assert is_found('"TOTAL $821.14"', receipt)
    assert is_marked('"TOTAL $821.14 Paid by card"', receipt)


def test_a_short_line_of_a_block_quotation_is_looked_up() -> None:
    found = sentences("> Fast lane [1]\n\n> Never free [1]", "The fast lane is free.")

    assert [each.unsupported for each in found] == [False, True]


def test_each_sentence_of_a_quotation_over_two_lines_is_checked() -> None:
    source = "Leave is ten weeks at full pay. Guests get it too, all year."

    found = sentences('It says "Leave is ten weeks at full pay.\nGuests get nothing of it all year" [1].', source)

    assert [each.unsupported for each in found][1:] == [True]
    assert [each.source for sentence in found for each in sentence.quotations] == [1, None]


def test_a_heading_with_a_false_quotation_is_unsupported() -> None:
    (heading, _) = sentences('## "Free beer for all of us"\nLeave is long [1].', "Leave is long.")

    assert heading.unsupported


def test_other_words_in_a_block_quotation_are_checked() -> None:
    source = "Leave is ten weeks at full pay."

    (false,) = sentences('> "Leave is ten weeks at full pay" and free beer for all [1]', source)
    (true,) = sentences('> "Leave is ten weeks at full pay" (Handbook) [1]', source)

    assert (false.unsupported, true.unsupported) == (True, False)


WORDS = st.sampled_from(["leave", "ten", "5", "1,500", "Über", "語", "(see", "it)", "a.b", "snake_case", "-3", "50%"])
MARKUP = st.sampled_from(
    [
        "{}",
        "{}",
        "*{}*",
        "**{}**",
        "_{}_",
        "***{}***",
        "`{}`",
        "[{}](https://a.b/c_d)",
        "~~{}~~",
        "![{}](x.png)",
        "<b>{}</b>",
        "\\*{}",
        "&amp; {}",
        "2 * {}",
        "[{}]",
        "* {}",
        "<https://a.b/{}>",
    ]
)
MARKDOWN = st.lists(st.builds(str.format, MARKUP, WORDS), min_size=1, max_size=8).map(" ".join)


def shown_by(parser: MarkdownIt, text: str) -> str:
    """Return the text that a Markdown parser shows."""

    def shown(token: Token) -> str:
        if token.type in ("text", "code_inline", "text_special"):
            return token.content
        return "".join(map(shown, token.children or ())) or (" " if token.type == "softbreak" else "")

    return "\n\n".join(shown(token) for token in parser.parse(text) if token.type == "inline")


@given(MARKDOWN)
@example("*a **b* c**")
@example("**「語」**is*")
@example("_a_b_ __c__d")
def test_a_text_reads_as_a_markdown_parser_renders_it(text: str) -> None:
    expected = shown_by(MarkdownIt("commonmark").enable("strikethrough"), text)

    found = readings(text)[-1]

    assert found.text.replace(DIVIDER, "").split() == expected.split()


@given(MARKDOWN, st.lists(MARKDOWN, max_size=2))
def test_each_reading_keeps_the_places_of_its_characters(text: str, more: list[str]) -> None:
    whole = "\n\n- ".join([text, *more])

    for reading in readings(whole):
        tokens = Tokens.of(reading)
        assert len(reading.text) == len(reading.starts) == len(reading.ends)
        assert list(tokens.starts) == sorted(tokens.starts)
        for kind, said, start, end in zip(tokens.kinds, tokens.texts, tokens.starts, tokens.ends, strict=True):
            assert kind not in "WD" or said == folded(whole[start:end])


@given(st.text(max_size=60))
@example("\u0301\u200d'1'\ufdd0")
def test_any_text_can_be_divided(text: str) -> None:
    for reading in [*readings(text), literal(text)]:
        tokens = Tokens.of(reading)
        assert tokens.joined().count("\x1f") + tokens.joined().count(" ") >= len(tokens.texts) - 1
