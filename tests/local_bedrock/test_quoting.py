from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from local_bedrock.answers.answers import (
    End,
    Given,
    Part,
    Sources,
    Text,
    with_parts,
    without_numbers,
)
from local_bedrock.answers.prompts import cut_excerpts

END = End("end_turn", 0, 0)


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
