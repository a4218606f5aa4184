"""Sentences of texts in any script."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from ragstack_common.text.sentences import sentence_spans
from tests.support.soak import examples


@settings(max_examples=examples(1600), deadline=None)
@example("ภาษาไทย ")
@given(st.text(st.sampled_from("aB1 .!?\n\u2028กลນ中。”(*\u0301"), max_size=200))
def test_sentences_have_every_character_but_the_white_space_between_them(text: str) -> None:
    sentences = [text[start:end] for start, end in sentence_spans(text)]

    assert all(sentence.strip() == sentence != "" for sentence in sentences)
    assert "".join("".join(sentences).split()) == "".join(text.split())
