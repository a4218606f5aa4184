"""Images, addresses, contents and references are not quoted."""

import pytest

from ragstack_common.answers.models.protocol import ModelMessage, ModelRequest
from ragstack_common.answers.quote.apparatus import contents_in, readable
from ragstack_common.answers.quote.extractive import ExtractiveProvider
from ragstack_common.answers.quote.quotable import quotes
from ragstack_common.answers.verify.citations import AnswerVerifier
from tests.support.passages import numbered


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("![level 2 algebra](/assets/level2.png)", ""),
        ('![](data:image/gif;base64,R0l "A title") ', ""),
        ("https://www.example.org/a/b?c=d", ""),
        ('The [canteen](https://example.org/c_(1) "Menu") opens at noon.', "The canteen opens at noon."),
        ("![Logo](a.png) The canteen opens at noon.", "The canteen opens at noon."),
        ("The canteen opens at noon.[12][13]", "The canteen opens at noon."),
        ("Paid in 2 parts (12) and [3].", "Paid in 2 parts (12) and [3]."),
        ('**^** "The canteen". *The Times*.', ""),
        ("[^1]: The canteen opens at noon.", ""),
        ('Tim (2014). "The canteen". The Times. Retrieved 24 April 2018.', ""),
        ("Müller, T. Handbuch. Berlin 2014, ISBN 978-3-16-148410-0.", ""),
        ("Tim: The canteen. In: Food 3 (2014), doi:10.1000/182 (Accessed 3 May 2020).", ""),
        ("Archived from the original on 3 May 2014. Retrieved 2018-04-24.", ""),
        ("Die Kantine. Abgerufen am 3. Mai 2020.", ""),
        ("ISSN 1234-5678", ""),
        *(
            (sentence, sentence)
            for sentence in (
                "The money was retrieved on Friday.",
                "The handbook has the ISBN 978-3-16-148410-0.",
                "ISBN 978-3-16-148410-0 is the second edition.",
                "Archived on 3 May, the plan was changed in June 2020.",
                "Accessed from Germany, the page has no prices.",
                "The model of arXiv:2005.11401 has two parts.",
            )
        ),
    ],
)
def test_what_a_reader_sees_is_quoted(written: str, shown: str) -> None:
    assert readable(written) == shown


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("What is the ISBN of the handbook?", "The handbook, second edition, ISBN 978-3-16-148410-0."),
        ("Under which doi is the handbook found?", "The handbook. doi:10.1000/182"),
        ("When was the plan archived?", "The plan. Archived on 3 May 2014."),
        ("Wann wurde der Plan abgerufen?", "Der Plan. Abgerufen am 3. Mai 2014."),
    ],
)
def test_a_citation_is_quoted_for_a_question_about_citations(question: str, text: str) -> None:
    request = ModelRequest([ModelMessage.user(question)], passages=numbered(text))

    content = ExtractiveProvider().generate(request).content

    assert readable(text) == ""
    assert content.endswith("[1]")
    assert text[-8:] in content


@pytest.mark.parametrize(
    "text",
    [
        "parental leave lasts twelve weeks.",
        "parental leave lasts twelve weeks. the canteen is closed. nobody works.",
        "parental leave lasts twelve weeks. HR knows more.",
    ],
)
def test_a_text_without_capital_letters_is_quoted_from_its_beginning(text: str) -> None:
    assert quotes(text)[0].text.startswith("parental leave lasts twelve weeks.")


def test_a_table_of_contents_is_not_quoted_but_a_price_list_with_leaders_is() -> None:
    contents = ["Introduction ........ 1", "Canteen ............ 4", "Parking .......... 12"]
    prices = ["Coffee ........ 3", "Cake ............ 4.50", "Tea .......... 2"]

    assert contents_in(["Contents", "", *contents, "", "More text."]) == {2, 3, 4}
    assert contents_in(prices) == frozenset()
    assert not quotes("\n".join(contents))
    assert next(quote.text for quote in quotes("\n".join(prices))) == "Coffee ........ 3"


def test_a_line_of_ten_thousand_leaders_is_read() -> None:
    leaders = ". " * 10_000

    assert contents_in([f"Canteen {leaders}closed"] * 3) == frozenset()
    assert contents_in([f"Canteen {leaders}{page}" for page in (1, 2, 3)]) == {0, 1, 2}


@pytest.mark.parametrize(
    "text",
    [
        "See [the canteen](https://example.org/a) at noon. The [canteen](b.md) of Rome opens at noon.[4] It is warm.",
        "![Canteen](canteen.png) The canteen of Rome opens at noon.(232) In 2015, it was warm.",
        "it was closed at noon. The canteen of Rome opens at noon.",
    ],
)
def test_a_quotation_is_one_sentence_without_markup_and_is_verified(text: str) -> None:
    passages = numbered(text)
    request = ModelRequest([ModelMessage.user("When does the canteen of Rome open?")], passages=passages)

    content = ExtractiveProvider().generate(request).content
    verifier = AnswerVerifier(passages)
    verifier.feed(content)
    verifier.finish()

    assert '"The canteen of Rome opens at noon." [1]' in content.splitlines()
    assert not any(mark in content for mark in ("](", "![", "In 2015", "it was closed"))
    assert not any(sentence.unsupported for sentence in verifier.sentences)
