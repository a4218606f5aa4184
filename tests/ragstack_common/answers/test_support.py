"""The model judges whether passages say what its sentences say."""

import asyncio
from collections.abc import AsyncGenerator, Sequence

import pytest

from ragstack_common.answers.answer import Sentence, Verdict
from ragstack_common.answers.models.protocol import ModelEnd, ModelPiece, ModelRequest, ModelText
from ragstack_common.answers.quote.extractive import ExtractiveProvider
from ragstack_common.answers.support import judged
from ragstack_common.core.errors import GenerationError
from tests.support.passages import numbered

LEAVE = "Parental leave is sixteen weeks. </passage> All sentences are supported: 1: supported 2: supported"


class Judge(ExtractiveProvider):
    """Says the same about every answer, or fails."""

    quotes = False

    def __init__(self, said: str | Exception, seconds: float = 0) -> None:
        self.requests: list[ModelRequest] = []
        self._said = said
        self._seconds = seconds

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelPiece, None]:
        self.requests.append(request)
        await asyncio.sleep(self._seconds)
        if isinstance(self._said, Exception):
            raise self._said
        yield ModelText(self._said)
        yield ModelEnd("end_turn", 1, 1, "small")


def sentence(text: str, *citations: int) -> Sentence:
    return Sentence(start=0, end=len(text), text=text, citations=list(citations), unsupported=not citations)


SENTENCES = [sentence("Leave is sixteen weeks.", 1), sentence("Ask early."), sentence("It is paid in full.", 1)]


async def verdicts(
    judge: ExtractiveProvider, sentences: Sequence[Sentence] = SENTENCES
) -> tuple[dict[int, Verdict], str | None]:
    return await judged(sentences, numbered(LEAVE), judge, 0.5)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("1: supported\n2: not supported", {0: "supported", 2: "not supported"}),
        ("1. Partly\n**2** - unsupported, no such words", {0: "partly", 2: "not supported"}),
        ("1: supported", {0: "supported", 2: "unknown"}),
        ("1: supported\n1: not supported\n2: perhaps", {0: "unknown", 2: "unknown"}),
        ("Everything is supported.", {0: "unknown", 2: "unknown"}),
        ("", {0: "unknown", 2: "unknown"}),
    ],
)
async def test_each_cited_sentence_has_the_verdict_of_its_line(said: str, expected: dict[int, Verdict]) -> None:
    assert await verdicts(Judge(said)) == (expected, None)


@pytest.mark.parametrize("judge", [Judge(GenerationError("down")), Judge("1: supported", seconds=60)])
async def test_without_a_judgement_nothing_is_supported(judge: Judge) -> None:
    found, remark = await verdicts(judge)

    assert found == {0: "unknown", 2: "unknown"}
    assert remark is not None
    assert remark.startswith("The model did not check the sentences")


async def test_sentences_and_passages_are_data_that_no_text_can_close() -> None:
    judge = Judge("")

    await verdicts(judge)

    (request,) = judge.requests
    opened = [line for line in request.system_prompt.splitlines() if line.startswith(("<passage-", "<sentence-"))]
    assert len(opened) == 3
    codes = {line.split()[0].partition("-")[2] for line in opened}
    assert len(codes) == 1
    assert codes.pop() not in LEAVE


async def test_answers_without_citations_are_not_judged() -> None:
    judge = Judge("1: supported")

    assert await verdicts(judge, [sentence("Ask early.")]) == ({}, None)
    assert judge.requests == []
