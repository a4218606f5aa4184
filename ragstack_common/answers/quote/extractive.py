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
    NumberedPassage,
    StopReason,
    estimated_tokens,
)
from ragstack_common.answers.phrases import closest_passages, conflicting, no_answer
from ragstack_common.answers.quote.figures import contradicting
from ragstack_common.answers.quote.quotable import FENCES, RULE_OF_TABLE
from ragstack_common.answers.quote.quoting import ChosenQuote, best_quotations
from ragstack_common.answers.verify.visible import LINE_BREAK
from ragstack_common.core.deadline import in_thread
from ragstack_common.core.uris import file_name
from ragstack_common.search import RetrievedChunk
from ragstack_common.search.naming import attributes
from ragstack_common.settings.names import QUOTING_GENERATOR
from ragstack_common.text.positions import Position
from ragstack_common.text.sections import outline
from ragstack_common.text.words import detect_language

MAX_QUOTATION: Final = 800
"""Characters of a quotation; the rest of a longer one is left out."""

OMISSION: Final = " ... "


class ExtractiveProvider:
    """Quotes the sentences of the passages that answer the question, with citation markers.

    It reads the last message, and the passages of a request, or those in its system prompt as
    :func:`ragstack_common.answers.agent.format_knowledge_context` writes them.
    """

    name = "extractive"
    model = QUOTING_GENERATOR
    quotes = True

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelPiece, None]:
        """Yield the answer line by line."""
        response = await in_thread(lambda: self.generate(request))
        async for piece in response.pieces():
            yield piece

    def generate(self, request: ModelRequest) -> ModelResponse:
        """Return the quotations, or that there is no answer."""
        question = request.messages[-1].content
        passages = request.passages or passages_in(request.system_prompt)
        chunks = [passage.chunk for passage in passages]
        texts = [chunk.content for chunk in chunks]
        descriptions, relevances = [*map(_description, chunks)], [chunk.relevance for chunk in chunks]
        quotations = best_quotations(question, texts, descriptions, relevances, [chunk.source for chunk in chunks])
        confidence = max((quotation.evidence.confidence for quotation in quotations), default=0.0)
        text = quoted_answer(quotations, [passage.number for passage in passages])
        language = detect_language(question)
        conflicts: tuple[ConflictingFigure, ...] = ()
        if not quotations:
            text = no_answer(language)
        elif confidence < request.min_confidence:
            text = f"{closest_passages(language)}\n{text}"
        elif conflicts := _conflicts(quotations, passages):
            figures = (f"{each.figure} {''.join(f'[{number}]' for number in each.passages)}" for each in conflicts)
            text = f"{text}\n{conflicting(language, ', '.join(figures))}"
        reason: StopReason = "end_turn"
        if stops := [at for sequence in request.stop_sequences if (at := text.find(sequence)) >= 0]:
            text, reason = text[: min(stops)], "stop_sequence"
        if request.max_tokens is not None and len(text) > request.max_tokens * BYTES_PER_TOKEN:
            text, reason = text[: request.max_tokens * BYTES_PER_TOKEN], "max_tokens"
        end = ModelEnd(
            reason,
            sum(map(estimated_tokens, [*texts, question])),
            estimated_tokens(text),
            self.model,
            estimated=True,
            quotes=True,
            confidence=round(confidence, 4),
            conflicts=conflicts,
        )
        return ModelResponse(text, end)


def _description(chunk: RetrievedChunk) -> str:
    """Return the name, attributes, title and headings of a document."""
    described = (f"{key} {' '.join(values)}" for key, values in attributes(chunk.public_metadata))
    name = file_name(chunk.source).rpartition(".")
    position = Position.of(chunk.metadata)
    # Headings within the chunk are above a part of it only.
    section = None if outline(chunk.content).starts else position.section
    above = [chunk.context] if chunk.context else [position.sheet, section]
    return "\n".join(filter(None, (name[0] or name[2], *described, *above)))


def _conflicts(quotations: Sequence[ChosenQuote], passages: Sequence[NumberedPassage]) -> tuple[ConflictingFigure, ...]:
    """Return the figures that contradict each other; that of a document is in its best quotation."""
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


def quoted_answer(quotations: Sequence[ChosenQuote], numbers: Sequence[int]) -> str:
    """Write quotations with quotation marks and the numbers of their passages, each in a line."""
    lines = []
    for quotation in quotations:
        markers = "".join(f"[{number}]" for number in dict.fromkeys(numbers[index] for index in quotation.passages))
        if quotation.text.lstrip().startswith(FENCES):
            lines += [_code_block(quotation.text), markers]
        else:
            lines.append(f"{_in_quotation_marks(_one_line(quotation))} {markers}")
    return "\n".join(lines)


def _code_block(text: str) -> str:
    """Return an indented block of code without its indentation, and with the line that closes it."""
    text = textwrap.dedent(text).strip()
    fence = text[: len(text) - len(text.lstrip(text[0]))]
    _, line_break, last = text.rpartition("\n")
    return text if line_break and last.lstrip().startswith(fence) else f"{text}\n{fence}"


def _one_line(quotation: ChosenQuote) -> str:
    """Return the words of a quotation in one line, a table row after the names of its columns."""
    head = [line for line in LINE_BREAK.split(quotation.head) if line and not RULE_OF_TABLE.match(line)]
    parts = [*head, quotation.text]
    text = OMISSION.join(" ".join(part.split()).strip("| ") for part in parts)
    if len(text) <= MAX_QUOTATION:
        return text
    cut = text[:MAX_QUOTATION]
    return (cut.rpartition(" ")[0] or cut) + OMISSION.rstrip()


def _in_quotation_marks(text: str) -> str:
    """Enclose a text in the first quotation marks that it does not contain."""
    pairs = (('"', '"'), ("“", "”"), ("«", "»"))
    opening, closing = next((pair for pair in pairs if not any(mark in text for mark in pair)), pairs[0])
    return f"{opening}{text}{closing}"
