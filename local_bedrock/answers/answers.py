"""The answer of a generator as a stream of pieces, and the transformations of that stream."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from ragstack_common.answers.markers import MARKERS, MarkerReader, numbers_in
from ragstack_common.answers.models import CHARACTERS_IN_TOKEN, estimated_tokens

StopReason = Literal["end_turn", "max_tokens", "stop_sequence", "content_filtered"]


@dataclass(frozen=True)
class Turn:
    """One message of a conversation."""

    role: Literal["system", "user", "assistant"]
    text: str


@dataclass(frozen=True)
class Settings:
    """Settings of the generation; None leaves the choice to the model.

    Attributes:
        max_tokens: Maximum length of the answer.
        stop_sequences: The answer ends before the first of them.
    """

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    stop_sequences: tuple[str, ...] = ()


@dataclass(frozen=True)
class Task:
    """A question, for generators with and without a model.

    Attributes:
        question: The question, for the extractive generator.
        passages: The passages to answer from, best first, for the extractive generator.
        turns: The messages for a model, which contain question and passages.
        numbered: Whether the model was told to cite its sources as [1] for the first passage.
        contexts: What stands above each passage, if known.
        numbers: The number of each passage in the prompt of a client that reads citation markers itself.
    """

    question: str
    passages: tuple[str, ...]
    turns: tuple[Turn, ...]
    numbered: bool = False
    contexts: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()


@dataclass(frozen=True)
class Text:
    """A piece of the answer."""

    text: str


@dataclass(frozen=True)
class Sources:
    """The sources of the text since the previous Sources, as positions of passages from 0."""

    passages: tuple[int, ...]


@dataclass(frozen=True)
class End:
    """The last piece of an answer.

    Attributes:
        reason: A stop reason of Converse.
        input_tokens: Counted by the model, or estimated.
        output_tokens: Counted by the model, or estimated.
    """

    reason: StopReason
    input_tokens: int
    output_tokens: int


Given = Text | Sources | End


class Generator(Protocol):
    """Writes answers.

    Attributes:
        name: A short name, for a response header.
        description: A few words for the user.
    """

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def description(self) -> str: ...  # noqa: D102

    def generate(self, task: Task, settings: Settings) -> Iterator[Given]:
        """Yield an answer piece by piece; callers close the iterator when the client disconnects.

        Raises:
            GenerationError: While iterating.
        """
        ...


def limited(given: Iterable[Text | Sources], task: Task, settings: Settings) -> Iterator[Given]:
    """Apply stop sequences and the maximum number of tokens (estimated) to an answer, and add its end."""
    pieces = list(given)
    whole = "".join(piece.text for piece in pieces if isinstance(piece, Text))
    end, reason = _end(whole, settings)
    left = end
    for piece in pieces:
        if isinstance(piece, Sources):
            yield piece
        elif left > 0:
            yield Text(piece.text[:left])
            left -= len(piece.text)
        else:
            break
    sent = "".join(turn.text for turn in task.turns)
    yield End(reason, estimated_tokens(sent), estimated_tokens(whole[:end]))


def _end(text: str, settings: Settings) -> tuple[int, StopReason]:
    end = len(text)
    reason: StopReason = "end_turn"
    for sequence in settings.stop_sequences:
        found = text.find(sequence, 0, end + len(sequence))
        if 0 <= found < end:
            end, reason = found, "stop_sequence"
    if settings.max_tokens is not None and end > settings.max_tokens * CHARACTERS_IN_TOKEN:
        return settings.max_tokens * CHARACTERS_IN_TOKEN, "max_tokens"
    return end, reason


@dataclass(frozen=True)
class Part:
    """A part of an answer with its sources.

    Attributes:
        start: Offset of its first character in the answer.
        end: Offset of its last character, inclusive as in Amazon Bedrock.
        passages: Positions of its sources; may be empty.
    """

    start: int
    end: int
    text: str
    passages: tuple[int, ...]


def with_parts(given: Iterable[Given]) -> Iterator[Text | Part | End]:
    """Pass text through, and add each part as soon as its sources are known; the parts cover all text."""
    answer, start = "", 0
    for piece in given:
        if isinstance(piece, Text):
            answer += piece.text
            yield piece
            continue
        text = answer[start:].strip()
        if text:
            first = answer.index(text, start)
            yield Part(first, first + len(text) - 1, text, piece.passages if isinstance(piece, Sources) else ())
        start = len(answer)
        if isinstance(piece, End):
            yield piece


_MARKED: Final = re.compile(rf"[ \t]*({MARKERS}(?:\s*{MARKERS})*)([.!?。]*)")
_PERHAPS_MARKED: Final = re.compile(rf"[ \t]*(?:{MARKERS}(?:\s|{MARKERS})*[.!?。]*)?\Z")


def without_numbers(given: Iterator[Given], passages: int) -> Iterator[Given]:
    """Replace each citation marker, such as [1], by its sources; numbers without a passage are dropped.

    A punctuation mark after a number belongs to the sentence before: "It is [1]." becomes "It is." with source 1.

    Args:
        given: The answer with numbers, in pieces of any size.
        passages: The number of passages.
    """
    reader, text = MarkerReader(range(1, passages + 1)), ""
    for piece in given:
        last = not isinstance(piece, Text)
        text += reader.feed(piece.text if isinstance(piece, Text) else "", last=last)
        undecided = None if last else _PERHAPS_MARKED.search(text)
        end = undecided.start() if undecided else len(text)
        start = 0
        for match in _MARKED.finditer(text, 0, end):
            if said := text[start : match.start()] + match[2]:
                yield Text(said)
            yield Sources(tuple(number - 1 for number in numbers_in(match[1])))
            start = match.end()
        if start < end:
            yield Text(text[start:end])
        text = text[end:]
        if last:
            yield piece
