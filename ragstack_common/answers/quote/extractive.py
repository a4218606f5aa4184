"""Answers without a model: quotations of the passages."""

import textwrap
from collections.abc import AsyncGenerator, Sequence
from typing import Final

from ragstack_common.answers.agent import passages_in
from ragstack_common.answers.models.protocol import (
    BYTES_PER_TOKEN,
    ConflictingFigure,
    ModelEnd,
    ModelPiece,
    ModelRequest,
    ModelResponse,
    ModelText,
    NumberedPassage,
    StopReason,
    estimated_tokens,
)
from ragstack_common.answers.phrases import closest_passages, conflicting, no_answer
from ragstack_common.answers.quote.figures import contradicting
from ragstack_common.answers.quote.quoting import ChosenQuote, best_quotations
from ragstack_common.answers.verify.visible import LINE_BREAK
from ragstack_common.core.deadline import in_thread
from ragstack_common.core.uris import file_name
from ragstack_common.search import RetrievedChunk
from ragstack_common.search.naming import attributes
from ragstack_common.settings.names import QUOTING_GENERATOR
from ragstack_common.text.words import detect_language

LONGEST_QUOTATION: Final = 800
"""Characters of a quotation; the rest of a longer one is left out."""

OMISSION: Final = " ... "
_FENCE: Final = ("```", "~~~")
_MARKS: Final = (('"', '"'), ("“", "”"), ("«", "»"))


class ExtractiveProvider:
    """Quotes the sentences of the passages that answer the question, with citation markers.

    It reads the last message, and the passages of a request, or those in its system prompt as
    :func:`ragstack_common.answers.agent.format_knowledge_context` writes them.
    """

    name = "extractive"
    model = QUOTING_GENERATOR
    quotes = True

    def generate(self, request: ModelRequest) -> ModelResponse:
        """Return the quotations, or that there is no answer."""
        text, end = self._answer(request)
        return ModelResponse(text, end)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelPiece, None]:
        """Yield the answer line by line."""
        text, end = await in_thread(lambda: self._answer(request))
        for line in text.splitlines(keepends=True):
            yield ModelText(line)
        yield end

    def _answer(self, request: ModelRequest) -> tuple[str, ModelEnd]:
        question = request.messages[-1].content
        passages = request.passages or passages_in(request.system_prompt)
        chunks = [passage.chunk for passage in passages]
        texts = [chunk.content for chunk in chunks]
        contexts, relevances = map(_description, chunks), [chunk.relevance for chunk in chunks]
        quotations = best_quotations(question, texts, [*contexts], relevances, [chunk.source for chunk in chunks])
        confidence = max((quotation.evidence.confidence for quotation in quotations), default=0.0)
        text = quoted_answer(quotations, [passage.number for passage in passages])
        language = detect_language(question)
        conflicts: tuple[ConflictingFigure, ...] = ()
        if not quotations:
            text = no_answer(language)
        elif confidence < request.min_confidence:
            text = f"{closest_passages(language)}\n{text}"
        elif conflicts := _conflicts(quotations, passages):
            text = f"{text}\n{conflicting(language, ', '.join(map(_cited, conflicts)))}"
        reason: StopReason = "end_turn"
        if stops := [at for sequence in request.stop_sequences if (at := text.find(sequence)) >= 0]:
            text, reason = text[: min(stops)], "stop_sequence"
        if request.max_tokens is not None and len(text) > request.max_tokens * BYTES_PER_TOKEN:
            text, reason = text[: request.max_tokens * BYTES_PER_TOKEN], "max_tokens"
        read = sum(map(estimated_tokens, texts)) + estimated_tokens(question)
        written = estimated_tokens(text)
        end = ModelEnd(
            reason,
            read,
            written,
            self.model,
            estimated=True,
            quotes=True,
            confidence=round(confidence, 4),
            conflicts=conflicts,
        )
        return text, end


def _description(chunk: RetrievedChunk) -> str:
    """Return what a document says about itself outside of the passage: its name, attributes, title and headings."""
    told = (f"{key} {' '.join(values)}" for key, values in attributes(chunk.public_metadata))
    name = file_name(chunk.source).rpartition(".")
    return "\n".join(filter(None, (name[0] or name[2], *told, chunk.context)))


def _conflicts(quotations: Sequence[ChosenQuote], passages: Sequence[NumberedPassage]) -> tuple[ConflictingFigure, ...]:
    """Compare the figures of the documents, of each that of its best quotation."""
    documents = [passages[quotation.passages[0]].chunk.source for quotation in quotations]
    best: dict[str, ChosenQuote] = {}
    for quotation, document in zip(quotations, documents, strict=True):
        if document not in best or quotation.evidence.confidence > best[document].evidence.confidence:
            best[document] = quotation
    figures = [
        (quotation.figure if quotation is best[document] else None, document)
        for quotation, document in zip(quotations, documents, strict=True)
    ]
    return tuple(
        ConflictingFigure(
            " ".join(figure.text.split()).lower(),
            tuple(passages[place].number for place in quotations[position].passages),
        )
        for position in contradicting(figures)
        if (figure := figures[position][0])
    )


def _cited(conflict: ConflictingFigure) -> str:
    return f"{conflict.figure} {''.join(f'[{number}]' for number in conflict.passages)}"


def quoted_answer(quotations: Sequence[ChosenQuote], numbers: Sequence[int]) -> str:
    """Write quotations with quotation marks and citation markers, each in a line.

    Args:
        quotations: What to quote.
        numbers: The number of each passage.
    """
    lines = []
    for quotation in quotations:
        markers = "".join(f"[{number}]" for number in dict.fromkeys(numbers[index] for index in quotation.passages))
        if quotation.text.lstrip().startswith(_FENCE):
            lines += [_code_block(quotation.text), markers]
        else:
            lines.append(f"{_in_quotation_marks(_one_line(quotation))} {markers}")
    return "\n".join(lines)


def _code_block(text: str) -> str:
    """Return a block of code of any indentation; if the passage ends within it, add the line that closes it."""
    text = textwrap.dedent(text).strip()
    fence = text[: len(text) - len(text.lstrip(text[0]))]
    _, line_break, last = text.rpartition("\n")
    return text if line_break and last.lstrip().startswith(fence) else f"{text}\n{fence}"


def _one_line(quotation: ChosenQuote) -> str:
    """Return the words of a quotation; those of a table row follow the names of the columns."""
    head = LINE_BREAK.split(quotation.head)[0]
    parts = [head, quotation.text] if head else [quotation.text]
    text = OMISSION.join(" ".join(part.split()).strip("| ") for part in parts)
    if len(text) <= LONGEST_QUOTATION:
        return text
    cut = text[:LONGEST_QUOTATION]
    return (cut.rpartition(" ")[0] or cut) + OMISSION.rstrip()


def _in_quotation_marks(text: str) -> str:
    free = [marks for marks in _MARKS if not any(mark in text for mark in marks)]
    opening, closing = (free or _MARKS)[0]
    return f"{opening}{text}{closing}"
