"""What callers, documents and models write is read in time proportional to its length."""

import json
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, cast

import pytest
from pydantic import ValidationError

from local_bedrock.operations import converse, generate
from local_bedrock.reading import chunking
from ragstack_common.answers import followup, prompt
from ragstack_common.answers.models.protocol import ModelMessage, NumberedPassage
from ragstack_common.answers.quote import apparatus, figures, kinds, questions, quotable, quoting
from ragstack_common.answers.verify import markers
from ragstack_common.answers.verify.citations import AnswerVerifier
from ragstack_common.core import errors, reporting
from ragstack_common.core.errors import InvalidRequestError
from ragstack_common.filters import parse, to_mongo
from ragstack_common.http import bodies
from ragstack_common.ingestion.sidecars import parse_sidecar
from ragstack_common.search import RetrievedChunk
from ragstack_common.search.inference import Vocabulary
from ragstack_common.search.naming import QuestionTerms
from ragstack_common.search.rerank.attributes import AttributeMatches
from ragstack_common.search.rerank.lexical import LexicalReranker
from ragstack_common.search.trust import estimate_trust
from ragstack_common.services.ask_models import AskRequest
from ragstack_common.text import positions, sections, words
from tests.support.soak import SOAK

KIND: Final = cast("kinds.Expected", kinds.expected("When does it open?", "en"))
LENGTH: Final = kinds.expected("How long is it?", "en")
PRICE: Final = kinds.expected("What does it cost?", "en")

SHORT, FACTOR = 2_000, 4
MAX_GROWTH: Final = 3 * FACTOR
"""Quadratic work grows by 16."""

LEAST_SECONDS: Final = 0.002
"""Less is noise."""

UNITS: Final = [
    "`",
    "```\n",
    "[",
    '"a b" ',
    "“",
    "a-",
    "aa.",
    "\n",
    "how much ",
    "AAaaaa ",
    "w{0} ",
    ". ",
    "|-",
    "? ",
    "5 days ",
    "€5 ",
    "1\u00a0",
    "5",
    "| a ",
    "[1, ",
]
MORE_UNITS: Final = [
    *["a", "[1] ", "]", "(", "<", "</", "<document>", "<|", "|", "| a |\n", "- a\n", "1. ", "> ", "# a\n", "#\n", "**"],
    *[
        "_",
        "\\",
        "'a ",
        "„a",
        "«",
        "...",
        "… ",
        "a. ",
        "1,1",
        "a://",
        "AB ",
        "é",
        "a&",
        "Q1of ",
        "FY",
        "![",
        "](",
        "\t",
    ],
    *["* a", "**a ", "_a* ", "<b ", "a, ", "1 -1 ", "\n[1]", "word "],
    *["\r\n", "\u200b", "0", "Context:\n", "Question: ", "you ", "日", "。", '{"a":', "• ", "a\u0301", "'s ", "~", " "],
    *["W{0}. ", '"q{0} b" ', "# h{0}\n", "- i{0}\n", "<document>{0}</document>", "```{0}\nx\n", "Ww{0}Yy ", "w{0}&x "],
]


def verify(text: str) -> None:
    verifier = AnswerVerifier(passages("One two three four. " + text))
    for start in range(0, len(text), 100):
        verifier.feed(text[start : start + 100])
    verifier.finish()


def look_up(source: str) -> None:
    verifier = AnswerVerifier(passages(source))
    verifier.feed(f'"{source[:900]} ... and five more words here" and "five more words here" [1]')
    verifier.finish()


def passages(text: str) -> list[NumberedPassage]:
    return [NumberedPassage(1, RetrievedChunk(content=text, source="s3://b/a.md", score=1.0))]


def without_numbers(text: str) -> None:
    pieces = (text[start : start + 50] for start in range(0, len(text), 50))
    for _ in generate.with_parts(generate.without_markers(pieces, 3)):
        pass


def body(text: str) -> None:
    with suppress(InvalidRequestError):
        bodies.read_json(text)
    with suppress(InvalidRequestError):
        bodies.check_content_type(f"application/json; {text}")


READERS: Final[dict[str, Callable[[str], object]]] = {
    "history": lambda text: prompt.model_request("?", [], [ModelMessage.user(text)]),
    "passage": lambda text: prompt.selected_passages([passages(text)[0].chunk], 100_000),
    "markers": markers.in_parentheses,
    "answer": verify,
    "source": look_up,
    "local answer": without_numbers,
    "quotes": quotable.quotes,
    "quotations": lambda text: quoting.best_quotations("How much is paid for the trains?", [text], [text]),
    "contents": lambda text: apparatus.contents_in([f"{text} x", f"{text} 1"]),
    "question": questions.parse_question,
    "follow-up": lambda text: followup.with_subject("And in 2025?", [ModelMessage.user(f"How{text}long?")]),
    "kinds": KIND.misfit,
    "figures": lambda text: (figures.figure_in(LENGTH, text), figures.figure_in(PRICE, text)),
    "local prompt": lambda text: (converse._tagged(text), converse._untagged(text)),
    "words": lambda text: (words.terms(text), words.query_terms(text)),
    "chunks": lambda text: chunking.FixedSize().cut(text),
    "sections": sections.outline,
    "heading": lambda text: positions.section_of([text]),
    "reranker": lambda text: LexicalReranker().score(text, [text]),
    "attributes": lambda text: AttributeMatches(text).names({"a": text, "b": text.split()}),
    "vocabulary": lambda text: Vocabulary({"a": dict.fromkeys(text.split(), 3)}, 10**6).infer(QuestionTerms(text)),
    "body": body,
    "redaction": reporting.redacted,
    "log": lambda text: errors.loggable(errors.InvalidFilterError(text)),
}


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS)
def test_a_text_takes_time_in_proportion_to_its_length(reader: str) -> None:
    slow = {unit: growth for unit in (*UNITS, *(MORE_UNITS if SOAK else ())) if (growth := _growth(reader, unit)) > 1}

    assert slow == {}


def _growth(reader: str, unit: str) -> float:
    read = READERS[reader]
    return _excess(lambda length: lambda: read(_repeated(unit, length)), SHORT)


def _repeated(unit: str, length: int) -> str:
    return "".join(unit.format(number) if "{0}" in unit else unit for number in range(length // len(unit)))[:length]


def in_lists(value: str) -> Callable[[int], dict[str, Any]]:
    return lambda size: {key: {"$in": [value.format(number) for number in range(size)]} for key in "abc"}


def _trust(size: int, question: str, filters: dict[str, Any]) -> Callable[[], object]:
    asked = " ".join(question.format(number) for number in range(4 * size))
    hits = [{"a": [f"v{number}" for number in range(size)]}] * 3
    return lambda: estimate_trust(asked, parse(filters), hits, hits)


def _validated(members: dict[str, Any]) -> Callable[[], object]:
    def validate() -> None:
        with suppress(ValidationError, InvalidRequestError):
            AskRequest.model_validate(bodies.read_json(json.dumps(members)))

    return validate


def _quoted(question: str, size: int) -> Callable[[], object]:
    passage = " ".join(f"The door {number} was red{number}." for number in range(size))
    return lambda: quoting.best_quotations(question, [passage])


MATCHERS: Final[dict[str, Callable[[int], Callable[[], object]]]] = {
    "blends": lambda size: _trust(size, "AAaaaa{0}", in_lists("aaaaaa{0} aaaaaa{0}")(size)),
    "the same blend": lambda size: _trust(size, "AAaaaaaaaaaaaa", in_lists("aaaaaaaa{0} aaaaaaaa{0}")(size)),
    "initials": lambda size: _trust(size, "AB", in_lists("alpha{0} beta{0}")(size)),
    "names": lambda size: _trust(size, "v{0}", in_lists("v{0}")(size)),
    "parts": lambda size: _trust(size, "x y z", in_lists("x{0} y z{0} x y")(size)),
    "a long value": lambda size: _trust(size, "x y z", {"a": "x y w z " * size}),
    "attributes": lambda size: _trust(size, "v{0} w", {f"a{number}": f"v{number} w" for number in range(size)}),
    "alternatives": lambda size: _trust(size, "v{0}", {"$or": [{"a": f"v{number}"} for number in range(size)]}),
    "lists": lambda size: _trust(size, "v{0}", {"$and": [in_lists("v{0}")(size)] * 3}),
    "a filter": lambda size: lambda: to_mongo(parse({"$and": [{"a": {"$in": ["x"] * 50}}] * size})),
    "unknown members": lambda size: _validated({"question": "?", **{f"m{number}": 1 for number in range(size)}}),
    "unknown members of turns": lambda size: _validated(
        {"question": "?", "chat_history": [{"role": "user", "content": "", **{f"m{n}": 1 for n in range(size)}}]}
    ),
    "names and numbers in sentences": lambda size: _quoted("What did Rome pay for 12 trains?", 2 * size),
    "a sidecar": lambda size: (
        lambda: parse_sidecar(
            json.dumps({"metadataAttributes": {f"m{number}": "x" for number in range(size // 4)}}).encode()
        )
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("matcher", MATCHERS)
def test_a_match_takes_time_in_proportion_to_both_sides(matcher: str) -> None:
    assert _excess(MATCHERS[matcher], 200) <= 1


def _excess(work: Callable[[int], Callable[[], object]], size: int) -> float:
    """Return how far the growth of processor time exceeds what is allowed; over 1 only if it does so repeatedly."""
    least = float("inf")
    for _ in range(3):
        short, long = (_seconds(work(length)) for length in (size, FACTOR * size))
        least = min(least, long / (MAX_GROWTH * max(short, LEAST_SECONDS)))
        if least <= 1:
            break
    return least


def _seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started
