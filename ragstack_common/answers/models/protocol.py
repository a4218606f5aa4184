"""What goes to a language model and what comes back: the only types between the answers and the providers."""

import math
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final, Literal, Protocol, Self

from ragstack_common.core.deadline import wait_for
from ragstack_common.search import RetrievedChunk

Role = Literal["user", "assistant"]

BYTES_PER_TOKEN: Final = 4
"""Average for English text, for estimates where no model counts the tokens."""

MAX_BYTES_PER_TOKEN: Final = 8
"""Bytes per token at which a model that ignores its maximum of tokens is stopped. English has 4 to 5, so a model that
obeys its maximum is not cut off."""

MIN_CONFIDENCE: Final = 0.6
"""Quotations with a lower confidence are shown as the closest passages, not as an answer."""

NO_ANSWER_MARK: Final = "[no answer]"
"""A model writes it if the passages contain no answer, as its instructions say; the caller never receives it."""

StopReason = Literal["end_turn", "max_tokens", "stop_sequence", "guardrail_intervened", "content_filtered"]


@dataclass(frozen=True)
class ModelMessage:
    """One message of a conversation."""

    role: Role | Literal["system"]
    content: str

    @classmethod
    def user(cls, content: str) -> Self:
        """Create a message of the user."""
        return cls("user", content)

    @classmethod
    def assistant(cls, content: str) -> Self:
        """Create a message of the model."""
        return cls("assistant", content)


@dataclass(frozen=True)
class NumberedPassage:
    """A retrieved chunk with the number by which answers cite it, from 1."""

    number: int
    chunk: RetrievedChunk


@dataclass(frozen=True)
class ModelRequest:
    """A request to a model.

    Attributes:
        messages: Oldest first; the last one is the user's question.
        system_prompt: Instructions, with the passages and the history.
        max_tokens: Maximum length of the answer; None leaves the choice to the model.
        passages: The passages in the prompt, for providers that quote instead of calling a model.
        temperature: None leaves the choice to the provider.
        top_p: None leaves the choice to the model.
        stop_sequences: The answer ends before the first of them.
        min_confidence: Confidence below which a provider that quotes says that the passages may not be an answer.
    """

    messages: Sequence[ModelMessage]
    system_prompt: str = ""
    max_tokens: int | None = None
    passages: Sequence[NumberedPassage] = ()
    temperature: float | None = None
    top_p: float | None = None
    stop_sequences: Sequence[str] = ()
    min_confidence: float = MIN_CONFIDENCE

    @property
    def estimated_tokens(self) -> int:
        """Estimated number of tokens that the model reads."""
        return estimated_tokens(self.system_prompt + "".join(message.content for message in self.messages))


@dataclass(frozen=True)
class ModelText:
    """A piece of a model's answer, in the order of the text; it may end within a word or a citation marker."""

    text: str


@dataclass(frozen=True)
class ConflictingFigure:
    """One of the figures in which documents contradict each other.

    Attributes:
        figure: As the documents write it, such as "twenty weeks".
        passages: Numbers of the passages that state it.
    """

    figure: str
    passages: tuple[int, ...]


@dataclass(frozen=True)
class ModelEnd:
    """The last piece of a model's answer.

    Attributes:
        stop_reason: Why the model stopped; ``max_tokens`` means that the answer is cut off.
        model: The model that answered, which may be the fallback model.
        estimated: Whether the numbers of tokens are estimates, because the model does not count them.
        quotes: Whether the answer consists of quotations, as from a local Bedrock without a model.
        confidence: The probability, 0 to 1, that the quotations answer the question; None if it is not known.
        conflicts: The figures in which the quoted documents contradict each other; empty if they don't.
    """

    stop_reason: StopReason
    input_tokens: int
    output_tokens: int
    model: str
    estimated: bool = False
    quotes: bool = False
    confidence: float | None = None
    conflicts: tuple[ConflictingFigure, ...] = ()


ModelPiece = ModelText | ModelEnd


@dataclass(frozen=True)
class ModelResponse:
    """A whole answer of a model."""

    content: str
    end: ModelEnd

    async def pieces(self) -> AsyncGenerator[ModelPiece, None]:
        """Yield the answer line by line."""
        for line in self.content.splitlines(keepends=True):
            yield ModelText(line)
        yield self.end


class ModelProvider(Protocol):
    """Writes answers. Any thread may use it, on any event loop.

    Attributes:
        name: bedrock, openai, extractive, or the name of your own.
        model: The model id; for the extractive provider, its name.
        quotes: Whether answers consist of quotations, without a model.
    """

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def model(self) -> str: ...  # noqa: D102
    @property
    def quotes(self) -> bool: ...  # noqa: D102

    def generate(self, request: ModelRequest) -> ModelResponse:
        """Return a whole answer; not for a thread with a running event loop.

        Raises:
            GenerationError: No answer could be generated.
        """
        ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelPiece, None]:
        """Yield an answer piece by piece; the last piece is a ModelEnd.

        Closing the generator (``aclose``) or cancelling its task ends the call of the model. An earlier deadline around
        it (``ragstack_common.core.deadline``) counts.

        Raises:
            GenerationError: While iterating.
        """
        ...


async def text_up_to(characters: int, pieces: AsyncGenerator[ModelPiece, None]) -> str:
    """Return the text of a stream, which is closed as soon as there are more characters."""
    text = ""
    async with aclosing(pieces):
        async for piece in pieces:
            text += piece.text if isinstance(piece, ModelText) else ""
            if len(text) > characters:
                break
    return text


class StreamingProvider(ABC):
    """A :class:`ModelProvider` whose model only streams."""

    quotes = False

    @abstractmethod
    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelPiece, None]:
        """Yield an answer piece by piece."""

    def generate(self, request: ModelRequest) -> ModelResponse:
        """Return a whole answer.

        Raises:
            GenerationError: No answer could be generated.
        """
        return wait_for(self._collected(request))

    async def _collected(self, request: ModelRequest) -> ModelResponse:
        *texts, end = [piece async for piece in self.stream(request)]
        assert isinstance(end, ModelEnd)
        return ModelResponse("".join(piece.text for piece in texts if isinstance(piece, ModelText)), end)


class Allowance:
    """The text that a model may still write, for models that do not stop at the maximum number of tokens."""

    def __init__(self, max_tokens: int) -> None:
        self._left = max_tokens * MAX_BYTES_PER_TOKEN

    @property
    def is_used_up(self) -> bool:
        """Whether the model must be stopped."""
        return self._left < 0

    def take(self, text: str) -> str:
        """Return as much of the next piece as is allowed."""
        encoded = text.encode(errors="replace")
        taken = encoded[: self._left + 1]  # one more shows that the model did not stop
        self._left -= len(taken)
        return text if len(taken) == len(encoded) else taken.decode(errors="ignore")


def estimated_tokens(text: str) -> int:
    """Estimate the number of tokens, from the length in UTF-8."""
    return math.ceil(len(text.encode(errors="replace")) / BYTES_PER_TOKEN)
