"""A whole document cut into passages to answer from, where no index has chunks of it."""

from collections.abc import Iterator, Sequence
from typing import Final

from local_bedrock.retrieval.reranking import score
from ragstack_common.embedding import Embedding

LONGEST_EXCERPT: Final = 1_500
"""Characters, about the 300 tokens of Bedrock's default chunks."""

MOST_EXCERPTS: Final = 20


def best(text: str, question: str, embedding: Embedding, most: int = MOST_EXCERPTS) -> list[str]:
    """Return the excerpts that answer a question best, best first."""
    excerpts = list(cut(text))
    scores = score(question, excerpts, embedding)
    order = sorted(range(len(excerpts)), key=lambda index: (-scores[index], index))
    return [excerpts[index] for index in order[:most]]


def cut(text: str) -> Iterator[str]:
    """Divide a text at empty lines, and at line breaks where a block is too long."""
    gathered = ""
    for block in _blocks(text):
        if gathered and len(gathered) + len(block) > LONGEST_EXCERPT:
            yield gathered.strip("\n")
            gathered = ""
        gathered += block + "\n\n"
    if gathered.strip():
        yield gathered.strip("\n")


def _blocks(text: str) -> Iterator[str]:
    for block in text.split("\n\n"):
        if len(block) <= LONGEST_EXCERPT:
            if block.strip():
                yield block
            continue
        yield from _lines(block.split("\n"))


def _lines(lines: Sequence[str]) -> Iterator[str]:
    gathered = ""
    for line in lines:
        if gathered and len(gathered) + len(line) > LONGEST_EXCERPT:
            yield gathered.rstrip("\n")
            gathered = ""
        gathered += line + "\n"
    if gathered.strip():
        yield gathered.rstrip("\n")
