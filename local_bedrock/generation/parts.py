"""The parts of an answer that have sources, and where they stand in it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from local_bedrock.generation.types import End, Given, Sources, Text


@dataclass(frozen=True)
class Part:
    """A part of an answer.

    Attributes:
        start: Of its first character in the answer.
        end: Of its last character: a text of three characters from 0 ends at 2, as Amazon Bedrock counts.
        passages: Its sources, by position; none where the answer names none.
    """

    start: int
    end: int
    text: str
    passages: tuple[int, ...]


def with_parts(given: Iterable[Given]) -> Iterator[Text | Part | End]:
    """Pass the text on and give each part when its sources are known; all text belongs to some part."""
    answer, start = "", 0
    for piece in given:
        match piece:
            case Text(text):
                answer += text
                yield piece
            case Sources(passages):
                yield from _part(answer, start, passages)
                start = len(answer)
            case End():
                yield from _part(answer, start, ())
                yield piece


def _part(answer: str, start: int, passages: tuple[int, ...]) -> Iterator[Part]:
    text = answer[start:].strip()
    if text:
        first = answer.index(text, start)
        yield Part(first, first + len(text) - 1, text, passages)
