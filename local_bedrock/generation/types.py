"""What is asked of a generator, and what it gives."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, Protocol

CHARACTERS_IN_TOKEN: Final = 4
"""Of English text, about; for counts where no model counts."""

StopReason = Literal["end_turn", "max_tokens", "stop_sequence", "content_filtered"]


class GenerationError(Exception):
    """No answer could be made; the message says why and what to do."""


@dataclass(frozen=True)
class Turn:
    """One message of a conversation."""

    role: Literal["system", "user", "assistant"]
    text: str


@dataclass(frozen=True)
class Settings:
    """How an answer is to be written; None leaves it to the model.

    Attributes:
        max_tokens: Of the answer.
        stop_sequences: The answer ends before the first of them.
    """

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    stop_sequences: tuple[str, ...] = ()


@dataclass(frozen=True)
class Task:
    """What is to be answered, both ways.

    Attributes:
        question: What an answer without a model is looked for with.
        passages: Where it is looked for, best first.
        turns: What a model is sent, with question and passages in it.
        numbered: The model was asked to number its sources, [1] for the first passage.
    """

    question: str
    passages: tuple[str, ...]
    turns: tuple[Turn, ...]
    numbered: bool = False


@dataclass(frozen=True)
class Text:
    """A piece of the answer."""

    text: str


@dataclass(frozen=True)
class Sources:
    """The text since the last of these comes from these passages, by their position from 0."""

    passages: tuple[int, ...]


@dataclass(frozen=True)
class End:
    """How the answer ended; the last of what a generator gives.

    Attributes:
        reason: As Converse names it.
        input_tokens: As the model counted, or estimated.
        output_tokens: Likewise.
    """

    reason: StopReason
    input_tokens: int
    output_tokens: int


Given = Text | Sources | End


class Generator(Protocol):
    """Writes answers.

    Attributes:
        name: Short, for a response header.
        description: For a person, in a few words.
    """

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def description(self) -> str: ...  # noqa: D102

    def generate(self, task: Task, settings: Settings) -> Iterator[Given]:
        """Write an answer piece by piece; to be closed when nobody listens any more.

        Raises:
            GenerationError: While iterating.
        """
        ...


def estimated_tokens(text: str) -> int:
    """Estimate how many tokens a model would count."""
    return math.ceil(len(text) / CHARACTERS_IN_TOKEN)
