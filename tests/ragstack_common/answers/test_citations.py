"""Verified citations: whatever a model writes, in pieces of any size."""

# ruff: noqa: RUF001 - answers and documents contain look-alikes of brackets, digits and dashes

import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ragstack_common.answers.answer import CitationEvent, Sentence, TokenEvent
from ragstack_common.answers.phrases import NO_ANSWER
from ragstack_common.answers.verify.citations import AnswerVerifier
from tests.support.passages import numbered

LEAVE = "Parental leave is **sixteen weeks** at full pay.\nYou may carry over “ten\ndays” – no more – see § 4 [12]."
TRAVEL = "Book trains early, and second class. A journey of over four hours is an exception."
CODE = "Run `make test`:\n\nfor each in range(3):\n    print(each[0])"

FRAGMENTS = st.sampled_from([
    *"[]【】［］(){}`\"'“”„«»‘’>|#*_-. \n\t1237,;:†^。！a…", "[1]", "[2]", "[9]", "[1, 2]", "[1-3]", "[0]", "[-1]",
    "[007]", "[１]", "【2†a】", "[[1]]", "[^2]", "[no answer]", "[Source 1]", "[9, p. 1]", "[2024]",
    "[99999999999999999999]", "[1](https://a.b/c)", "](#", "```", "\n```py\n", "~~~", "\n\n",
    "sixteen weeks at full pay", '"sixteen weeks at full pay"', "“Book trains never, not at all”", "Dr. ",
    "am 3. Mai", "\n- ", "\nwrapped ", "\na) ", "\n1. ", "\n| a | b |", "\n|---|---|", "\n> ", "\n## Title",
    "**Title**", "Employees. They ", "你好。", "z.B. ", "e\u0301", "\U000f0001", "...", "\r\n", "\u2028",
    "x" * 90, "word " * 90, ",,", "''", "<<", ">>", "&#8220;", "&#x201d;", '"fast lane"', "„slow“", "(1)", "¹",
    "max. 5 EUR",
])  # fmt: skip
ANSWERS = st.lists(FRAGMENTS, max_size=40).map("".join)


def verified(answer: str, *contents: str, sizes: list[int] | None = None) -> tuple[AnswerVerifier, list[Any]]:
    """Feed an answer in pieces of these sizes, repeated; whole without sizes."""
    verifier = AnswerVerifier(numbered(*(contents or (LEAVE, TRAVEL, CODE))))
    events: list[Any] = []
    at, turn = 0, 0
    while at < len(answer):
        size = sizes[turn % len(sizes)] if sizes else len(answer)
        events += verifier.feed(answer[at : at + size])
        at, turn = at + size, turn + 1
    return verifier, [*events, *verifier.finish()]


def sentences(answer: str, *contents: str) -> list[Sentence]:
    return verified(answer, *contents)[0].sentences


def markers_in(answer: str) -> list[str]:
    return re.findall(r"\[\d+\]", answer)


def cited(answer: str, *contents: str) -> list[tuple[str, list[int]]]:
    return [(sentence.text, sentence.citations) for sentence in sentences(answer, *contents)]


def unsupported(answer: str, *contents: str) -> list[bool]:
    return [sentence.unsupported for sentence in sentences(answer, *contents)]


@given(ANSWERS, st.lists(st.integers(1, 9), min_size=1, max_size=5))
@example("[[9]](https://a.b) x", [1])
@example("[7[9]] and [1[0]]", [2])
@example("\n| a | b |\n\n\n|---|---|", [1])
@example("。“Book trains never, not at all”]", [1])
def test_pieces_of_any_size_give_the_same_answer(answer: str, sizes: list[int]) -> None:
    whole, events = verified(answer)

    pieces, later = verified(answer, sizes=sizes)

    assert pieces.answer == whole.answer
    assert pieces.sentences == whole.sentences
    assert (pieces.removed, pieces.no_answer, pieces.quoted) == (whole.removed, whole.no_answer, whole.quoted)
    assert [each for each in later if isinstance(each, CitationEvent)] == [
        each for each in events if isinstance(each, CitationEvent)
    ]
    assert "".join(each.text for each in later if isinstance(each, TokenEvent)) == whole.answer


@given(ANSWERS)
@example("[[[1]]] [7[9]]")
@example("\t```\n```py\n[9]")
@example("`[9]`[0]`")
def test_what_the_caller_receives_cites_known_sources_only(answer: str) -> None:
    verifier, events = verified(answer)

    again, _ = verified(verifier.answer)

    assert again.removed == 0
    assert markers_in(again.answer) == markers_in(verifier.answer)
    assert {number for sentence in verifier.sentences for number in sentence.citations} <= {1, 2, 3}
    assert again.no_answer == (verifier.answer.strip() == NO_ANSWER)
    for sentence in verifier.sentences:
        shown = verifier.answer[sentence.start : sentence.end]
        assert shown == shown.strip()
        assert sentence.text[:1] == shown[:1] or shown.startswith("[")
    for event in events:
        if isinstance(event, CitationEvent):
            sentence = verifier.sentences[event.sentence]
            assert (event.start, event.end, event.citations) == (sentence.start, sentence.end, sentence.citations)


@pytest.mark.parametrize(
    ("written", "shown", "removed"),
    [
        ("A [1]. B [2, 3].", "A [1]. B [2][3].", 0),
        ("A [1][2]; [1-3]", "A [1][2]; [1][2][3]", 0),
        ("A [Source 1], [sources 1 and 2], [Quelle 2]", "A [1], [1][2], [2]", 0),
        ("A 【1】 and 【2†handbook.md】 and [^3].", "A [1] and [2] and [3].", 0),
        ("A [1, p. 3; 2, pages 4-9], [passage number 2], [cite: 3].", "A [1][2], [2], [3].", 0),
        ("A [9, p. 1].", "A.", 1),
        ("A [1: Leave policy]. B [9: a note].", "A [1]. B [9: a note].", 0),
        ("A [１] and ［2］ and [[3]].", "A [1] and [2] and [3].", 0),
        ("A [1](https://example.com/a) and [7](#seven).", "A [1] and.", 1),
        ("A [4]. B [0]. C [-1]. D [1, 9].", "A. B. C. D [1].", 4),
        ("A [99999999999999999999].", "A.", 1),
        ("[9] A.\n[9] B.", "A.\nB.", 2),
        (
            "Smith [2024] and [2019-2021] and [sic] and a[i] and [ ].",
            "Smith [2024] and [2019-2021] and [sic] and a[i] and [ ].",
            0,
        ),
        ("The year [3000].", "The year.", 1),
        ("Use `a[9]` or ``b`[8]`` here [1].", "Use `a[9]` or ``b`[8]`` here [1].", 0),
        ("So:\n```py\na[9] = b[1]\n```\nDone [9].", "So:\n```py\na[9] = b[1]\n```\nDone.", 1),
        ("An open ` tick [9].\nNext.", "An open ` tick.\nNext.", 1),
        ("Nested [7[9]] and [1[9]].", "Nested [7…] and [1…].", 2),
        ("[1]" * 1000, "[1]" * 1000, 0),
        ("[8]" * 1000, "", 1000),
        ("Half \ud83d a pair", "Half  a pair", 0),
        ("", "", 0),
    ],
)
def test_markers_get_one_form_and_unknown_ones_are_removed(written: str, shown: str, removed: int) -> None:
    verifier, _ = verified(written)

    assert (verifier.answer, verifier.removed) == (shown, removed)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("One [1]. Two. [2] Three [3]", [("One.", [1]), ("Two.", [2]), ("Three", [3])]),
        ("One.\n[1] [2]\n\nTwo.", [("One.", [1, 2]), ("Two.", [])]),
        ("- One [1]\n- Two\n  1. Three.[3]", [("One", [1]), ("Two", []), ("Three.", [3])]),
        ("Dr. Smith, e.g. on 3. Mai 2025, paid 3.5 Mio. Euro [1]. Yes!", [
            ("Dr. Smith, e.g. on 3. Mai 2025, paid 3.5 Mio. Euro.", [1]), ("Yes!", []),
        ]),
        ("Wer fragt? Нет. Да [2]. «Oui. Non.» Fin.", [
            ("Wer fragt?", []), ("Нет.", []), ("Да.", [2]), ("«Oui. Non.»", []), ("Fin.", []),
        ]),
        ("年次休暇は十日です[1]。翌年に繰り越せます。[2]終わり", [
            ("年次休暇は十日です。", [1]), ("翌年に繰り越せます。", [2]), ("終わり", []),
        ]),
        ("# Leave\n**Weeks**\nSixteen [1].", [("# Leave", []), ("**Weeks**", []), ("Sixteen.", [1])]),
        ("| a | b |\n|---|---|\n| 1 | 2 [2] |", [("| a | b |", []), ("| 1 | 2 |", [2])]),
        ("One is\nwrapped [1]. Two [2]\nis not.\nThree:\na) four", [
            ("One is\nwrapped.", [1]), ("Two", [2]), ("is not.", []), ("Three:", []), ("a) four", []),
        ]),
        ("A night costs max. 180 EUR [1]. It is ca. 3 km away [2].", [
            ("A night costs max. 180 EUR.", [1]), ("It is ca. 3 km away.", [2]),
        ]),
        ('It costs 9 euros. "call the hotline" [1]', [("It costs 9 euros.", []), ('"call the hotline"', [1])]),
        ("It costs 9 euros [1]. iPhones are free.", [("It costs 9 euros.", [1]), ("iPhones are free.", [])]),
        ("[1] [2]", []),
        ("...", []),
    ],
)  # fmt: skip
def test_sentences_have_the_citations_within_and_right_after_them(
    answer: str, expected: list[tuple[str, list[int]]]
) -> None:
    assert cited(answer) == expected


@pytest.mark.parametrize(
    "answer",
    [
        "There are two ways. (1) Go home. (2) Stay.",
        "The notice is long, see § 4 (1).",
        "Leave is twenty weeks. (1)",
        "Leave is twenty weeks.¹",
        "Leave is twenty¹ weeks.",
    ],
)
def test_numbers_in_parentheses_and_superscripts_are_not_markers(answer: str) -> None:
    """They count ways and paragraphs, and passages and earlier turns have them: prompts write [1] in these as (1)."""
    verifier, _ = verified(answer, "Leave is twenty weeks. [1]\n\n1 Only in London.", TRAVEL)

    assert verifier.answer == answer
    assert verifier.cited == set()


def test_sentence_offsets_refer_to_the_answer() -> None:
    verifier, _ = verified("- One [1][2].\n- Two. [3] Three")

    shown = [verifier.answer[sentence.start : sentence.end] for sentence in verifier.sentences]

    assert shown == ["One [1][2].", "Two. [3]", "Three"]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Leave is long.", [True]),
        ("# Title\nLeave is long [1].", [False, False]),
        ("## All is free.\n# A question?\nLeave is long [1].", [True, False, False]),
        ("You may:\n- go [1]\n- stay", [False, False, True]),
        ("You may:\n- stay", [True, True]),
        ("# Leave lasts 30 weeks\nLeave is long [1].", [True, False]),
        ("# 2. See § 4 and [12]\nLeave is long [1].", [False, False]),
        ("In 30 weeks you may:\n- go [1]", [True, False]),
        (
            "## Leave is never paid\n**Leave isn't paid**\n# Leave without pay\nLeave is long [1].",
            [True, True, True, False],
        ),
        ("## What is paid\n# Who may not go?\n# Is leave paid?\nLeave is long [1].", [False] * 4),
        ("# A journey of over four hours is an exception\nLeave is long [1].", [False, False]),
        ("You must not:\n- go [1]", [True, False]),
        ("You have 2 options:\n- go [1]", [False, False]),
        ("**Leave**\n**Leave is long.**", [False, True]),
        ("It costs 5 euros [1]: nothing.", [False]),
        ("[no answer] The documents don't say. It is Paris.", [False, True]),
        ("| a | b |\n|---|---|\n| 1 | 2 |", [False, True]),
    ],
)
def test_only_claims_without_citations_are_unsupported(answer: str, expected: list[bool]) -> None:
    assert unsupported(answer) == expected


def test_a_quotation_has_the_characters_of_its_source() -> None:
    verifier, _ = verified('"You may carry over ten days" [1]. "second class. A journey" [2]. "sixteen … carry" [1].')

    characters = {number: [(one.start, one.end) for one in spans] for number, spans in verifier.quoted.items()}

    contents = {1: LEAVE, 2: TRAVEL}
    assert {number: [contents[number][start:end] for start, end in spans] for number, spans in characters.items()} == {
        1: ["You may carry over “ten\ndays"],
        2: ["second class. A journey"],
    }


@pytest.mark.parametrize(
    "answer",
    [
        'It says "sixteen weeks at half pay" [1].',
        'It says "full pay … sixteen weeks at" [1].',
        'It says "at full pay. Book trains early" [1][2].',
        "> Sixteen weeks at full pay, of course [1]",
        "```\nfor each in range(4):\n    print(each[0])\n```",
    ],
)
def test_a_quotation_that_no_source_contains_is_unsupported(answer: str) -> None:
    (sentence,) = sentences(answer)

    assert [quotation.source for quotation in sentence.quotations] == [None]
    assert sentence.unsupported


def test_a_quotation_cites_its_source_too() -> None:
    (sentence,) = sentences('They "book trains early, and second class" [1].'.replace("book", "Book"))

    assert (sentence.citations, sentence.unsupported) == ([1, 2], False)


def test_a_block_of_code_is_supported_if_a_source_contains_it() -> None:
    (introduction, code) = sentences("Run:\n```py\nfor each in range(3):\n    print(each[0])\n```\n")

    assert (code.citations, code.unsupported, introduction.unsupported) == ([3], False, False)


def test_a_quotation_of_several_sentences_is_one_sentence() -> None:
    assert cited('It says "Book trains early, and second class. A journey of over four hours" [2]. Yes.') == [
        ('It says "Book trains early, and second class. A journey of over four hours".', [2]),
        ("Yes.", []),
    ]
