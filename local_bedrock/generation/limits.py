"""An answer that is not a model's held to the settings that a model would keep."""

from collections.abc import Iterable, Iterator

from local_bedrock.generation.types import (
    CHARACTERS_IN_TOKEN,
    End,
    Given,
    Settings,
    Sources,
    StopReason,
    Task,
    Text,
    estimated_tokens,
)


def limited(given: Iterable[Text | Sources], task: Task, settings: Settings) -> Iterator[Given]:
    """Cut an answer at its first stop sequence and at its most tokens, and say how it ended; tokens are estimates."""
    pieces = list(given)
    whole = "".join(piece.text for piece in pieces if isinstance(piece, Text))
    end, reason = _end(whole, settings)
    position = 0
    for piece in pieces:
        if isinstance(piece, Sources):
            yield piece
        elif position < end:
            yield Text(piece.text[: end - position])
            position += len(piece.text)
        if position >= end and isinstance(piece, Sources):
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
