"""Answers without a model: quotations of the passages."""

from collections.abc import AsyncIterator, Iterator
from typing import Final

from ragstack_common.answering.models import (
    CHARACTERS_IN_TOKEN,
    NO_ANSWER,
    ModelEnd,
    ModelPiece,
    ModelRequest,
    ModelResponse,
    ModelText,
    estimated_tokens,
)
from ragstack_common.answering.quoting import Quoter
from ragstack_common.config import QUOTING_GENERATOR
from ragstack_common.deadline import in_thread

_MARKS: Final = (('"', '"'), ("“", "”"), ("«", "»"))


class ExtractiveProvider:
    """Quotes the sentences of the passages that answer the question, with citation markers.

    It reads the passages of a request and the last message, not the system prompt.
    """

    name = "extractive"
    model = QUOTING_GENERATOR
    quotes = True

    def __init__(self) -> None:
        self._quoter = Quoter()

    def generate(self, request: ModelRequest) -> ModelResponse:
        """Return the quotations, or that there is no answer."""
        text, end = self._answer(request)
        return ModelResponse(text, end)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelPiece]:
        """Yield the answer line by line."""
        text, end = await in_thread(lambda: self._answer(request))
        for line in text.splitlines(keepends=True):
            yield ModelText(line)
        yield end

    def _answer(self, request: ModelRequest) -> tuple[str, ModelEnd]:
        question = request.messages[-1].content
        lines = list(self._lines(question, request)) or [NO_ANSWER]
        text = "\n".join(lines)
        left = text if request.max_tokens is None else text[: request.max_tokens * CHARACTERS_IN_TOKEN]
        read = sum(estimated_tokens(passage.chunk.content) for passage in request.passages) + estimated_tokens(question)
        end = ModelEnd(
            "max_tokens" if len(left) < len(text) else "end_turn",
            read,
            estimated_tokens(left),
            self.model,
            estimated=True,
            quotes=True,
        )
        return left, end

    def _lines(self, question: str, request: ModelRequest) -> Iterator[str]:
        """Yield each line of each quotation in quotation marks, so that each can be checked."""
        passages = [passage.chunk.content for passage in request.passages]
        for quotation in self._quoter.quote(question, passages):
            markers = "".join(f"[{request.passages[position].number}]" for position in quotation.passages)
            for line in filter(str.strip, quotation.text.splitlines()):
                yield f"{_in_quotation_marks(line.strip())} {markers}"


def _in_quotation_marks(text: str) -> str:
    free = [marks for marks in _MARKS if not any(mark in text for mark in marks)]
    opening, closing = (free or _MARKS)[0]
    return f"{opening}{text}{closing}"
