import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local_bedrock.generation.answers import (
    End,
    Given,
    Part,
    Settings,
    Sources,
    Task,
    Text,
    with_parts,
    without_numbers,
)
from local_bedrock.generation.extractive import NO_ANSWER, ExtractiveGenerator
from local_bedrock.generation.prompts import cut_excerpts
from ragstack_common.answering.quotable import quotes
from ragstack_common.answering.quoting import MOST_QUOTES
from ragstack_common.embedding.hashed import HashedEmbedding

END = End("end_turn", 0, 0)
markdown = st.lists(
    st.sampled_from(
        [
            "# Heading",
            "A sentence. Another one!",
            "- an item",
            "2. second",
            "| a | b |",
            "| --- | --- |",
            "| 1 | 2 |",
            "",
            "```",
            "code()",
            "Lead-in:",
            "a,b,c",
            "e.g. this is",
            "   ",
        ]
    ),
    max_size=14,
).map("\n".join)


def texts(passage: str) -> list[str]:
    return [quote.text for quote in quotes(passage)]


def answered(question: str, *passages: str) -> tuple[str, list[tuple[int, ...]]]:
    generator = ExtractiveGenerator(HashedEmbedding())
    given = list(generator.generate(Task(question, passages, ()), Settings()))
    said = "".join(piece.text for piece in given if isinstance(piece, Text))
    return said, [piece.passages for piece in given if isinstance(piece, Sources)]


@settings(deadline=None)
@given(markdown | st.text(max_size=300))
def test_every_quote_is_in_the_passage_word_for_word(passage: str) -> None:
    words = re.sub(r"\s+", " ", passage)

    for quote in quotes(passage):
        assert 0 <= quote.start < quote.end <= len(passage)
        assert quote.text.strip()
        for line in [*quote.text.split("\n"), *quote.head.split("\n")]:
            assert re.sub(r"\s+", " ", line).strip() in words


def test_sentences_are_divided_and_abbreviations_are_not() -> None:
    assert texts("It opens at 9 a.m. on weekdays. Ask Dr. Miller, e.g. by e-mail! Really?") == [
        "It opens at 9 a.m. on weekdays.",
        "Ask Dr. Miller, e.g. by e-mail!",
        "Really?",
    ]


def test_a_sentence_over_two_lines_is_one() -> None:
    assert texts("The gateway must be mounted at a height of two metres, with the\nantennas up. Then go.") == [
        "The gateway must be mounted at a height of two metres, with the antennas up.",
        "Then go.",
    ]


def test_headings_are_context_and_no_quotes() -> None:
    first, second = quotes("# Leave\n\nAsk early.\n\n## Sick leave\n\nCall at once.")

    assert (first.text, first.context) == ("Ask early.", "Leave")
    assert (second.text, second.context) == ("Call at once.", "Leave / Sick leave")


def test_a_line_alone_over_others_is_a_heading_where_there_is_no_markdown() -> None:
    (only,) = quotes("Lost laptop\n\nCall the hotline within one hour.")

    assert (only.text, only.context) == ("Call the hotline within one hour.", "Lost laptop")


def test_a_short_list_is_quoted_with_what_introduces_it() -> None:
    first, *items = texts("To connect:\n\n1. Earth it.\n2. Plug it in.\n\nDone.")

    assert first == "To connect:\n1. Earth it.\n2. Plug it in."
    assert items == ["Earth it.", "Plug it in.", "Done."]


def test_a_table_row_has_the_first_line_of_its_table_over_it() -> None:
    first, second = quotes("| City | Limit |\n| --- | --- |\n| London | 210 |\n| Rome | 180 |")

    assert first.whole == "| City | Limit |\n| --- | --- |\n| London | 210 |"
    assert second.text == "| Rome | 180 |"


def test_a_row_of_a_csv_file_has_the_names_of_its_columns_over_it() -> None:
    first, _second = quotes('sku,name,price\nA1,"Gateway, small",489.00\nA2,Sensor,89.00')

    assert first.whole == 'sku,name,price\nA1,"Gateway, small",489.00'


def test_a_block_of_code_stays_whole() -> None:
    assert texts("Run this.\n\n```sh\nmake test\nmake run\n```") == ["Run this.", "```sh\nmake test\nmake run\n```"]


def test_the_sentence_that_answers_is_quoted() -> None:
    said, sources = answered("When does the canteen open?", "Trains leave hourly.", "The canteen opens at noon. Eat.")

    assert said == "The canteen opens at noon."
    assert sources == [(1,)]


def test_a_sentence_that_two_passages_share_is_said_once_and_cites_both() -> None:
    shared = "The canteen opens at noon."

    said, sources = answered("When does the canteen open?", f"{shared} Fish.", f"Rice. {shared}")

    assert said == shared
    assert sources == [(0, 1)]


def test_sources_that_differ_in_a_figure_are_both_quoted() -> None:
    said, sources = answered(
        "How many requests may a key make?", "A key may make 60 requests.", "A key may make 600 requests."
    )

    assert said == "A key may make 60 requests. A key may make 600 requests."
    assert sources == [(0,), (1,)]


def test_rows_of_one_table_stand_under_one_first_line() -> None:
    table = "| City | Hotel limit |\n| --- | --- |\n| London | 210 euros |\n| Rome | 180 euros |"

    said, _sources = answered("What is the hotel limit in London and Rome?", table)

    assert said == table


@pytest.mark.parametrize("passages", [(), ("",), ("Trains leave hourly.",), ("\n\n#\n",)])
def test_nothing_is_invented(passages: tuple[str, ...]) -> None:
    assert answered("Who discovered penicillin?", *passages) == (NO_ANSWER, [])


@settings(deadline=None)
@given(st.text(max_size=60), st.lists(markdown | st.text(max_size=200), max_size=4))
def test_an_answer_is_quotes_or_no_answer(question: str, passages: list[str]) -> None:
    generator = ExtractiveGenerator(HashedEmbedding())

    given = list(generator.generate(Task(question, tuple(passages), ()), Settings()))

    said = [piece.text for piece in given if isinstance(piece, Text)]
    sources = [piece.passages for piece in given if isinstance(piece, Sources)]
    everything = _spaced("\n".join(passages))
    assert len(sources) <= MOST_QUOTES
    assert len(said) == len(sources) or said == [NO_ANSWER]
    assert all(0 <= index < len(passages) for cited in sources for index in cited)
    for line in "\n".join(said).split("\n") if sources else ():
        assert _spaced(line) in everything


def _spaced(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


@settings(deadline=None)
@given(st.lists(st.sampled_from(["a ", "[1]", " [2", "]", ".", "[", "3, 1]", " b", "[9]", "\n"]), max_size=12))
def test_numbers_are_found_however_the_answer_is_cut(pieces: list[str]) -> None:
    whole = _normal(without_numbers(iter([Text("".join(pieces)), END]), 3))

    cut_up = _normal(without_numbers(iter([*map(Text, pieces), END]), 3))

    assert cut_up == whole


def _normal(given: Any) -> list[Given]:
    """Join texts that follow each other."""
    joined: list[Given] = []
    for piece in given:
        if isinstance(piece, Text) and joined and isinstance(joined[-1], Text):
            joined[-1] = Text(joined[-1].text + piece.text)
        elif piece != Text(""):
            joined.append(piece)
    return joined


@settings(deadline=None)
@given(st.lists(st.builds(Text, st.text(max_size=8)) | st.builds(Sources, st.tuples(st.integers(0, 3))), max_size=8))
def test_the_parts_of_an_answer_are_where_their_spans_say(given: list[Given]) -> None:
    found = list(with_parts([*given, END]))

    answer = "".join(piece.text for piece in found if isinstance(piece, Text))
    parts = [piece for piece in found if isinstance(piece, Part)]
    assert [answer[part.start : part.end + 1] for part in parts] == [part.text for part in parts]
    ends = [-1, *(part.end for part in parts)]
    assert all(part.start > before for part, before in zip(parts, ends, strict=False))
    assert "".join(answer.split()) == "".join("".join(part.text.split()) for part in parts)


@settings(deadline=None)
@given(st.text(alphabet="ab \n", max_size=6_000))
def test_excerpts_lose_no_word(text: str) -> None:
    assert "".join("".join(cut_excerpts(text)).split()) == "".join(text.split())
