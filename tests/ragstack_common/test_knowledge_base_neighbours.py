from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ragstack_common.knowledge_base import KnowledgeBase

pytest.importorskip("chromadb")

LINES = [f"Line {word} tells of the {thing}." for word, thing in zip(
    ["one", "two", "three", "four", "five"], ["aardvark", "badger", "cheetah", "dolphin", "elephant"], strict=True
)]  # fmt: skip
TEXT = "\n".join(LINES)
OVERLAP = 10


def pieces() -> list[tuple[str, dict[str, Any]]]:
    """Split the text into lines, each with the end of the previous one."""
    cut, start = [], 0
    for number, line in enumerate(LINES):
        begin = max(0, start - OVERLAP)
        cut.append((TEXT[begin : start + len(line)], {"source": "zoo.md", "chunk_index": number, "start_index": begin}))
        start += len(line) + 1
    return cut


@pytest.fixture
def base(tmp_path: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase("zoo", tmp_path, environment={}) as made:
        cut = pieces()
        ids = [str(number) for number in range(len(cut))]
        made.collection.add(ids=ids, documents=[text for text, _ in cut], metadatas=[data for _, data in cut])
        made.collection.add(
            ids=["other", "plain"],
            documents=["Line three of another document.", "A cheetah without a number."],
            metadatas=[{"source": "other.md", "chunk_index": 1}, {"source": "plain.md"}],
        )
        yield made


def test_neighbours_are_merged_without_their_overlap(base: KnowledgeBase) -> None:
    (document,) = base.retrieve("elephant", 1, neighbours=10)

    assert document["content"] == TEXT


def test_the_window_has_at_most_the_requested_neighbours(base: KnowledgeBase) -> None:
    document = base.retrieve("cheetah three", 1, filters={"source": "zoo.md"}, neighbours=1)[0]

    first, last = document["metadata"]["chunk_indexes"]
    assert last - first <= 2
    assert document["content"] in TEXT


def test_a_chunk_in_the_window_of_a_better_one_is_dropped(base: KnowledgeBase) -> None:
    documents = base.retrieve("line", 10, filters={"source": "zoo.md"}, neighbours=10)

    assert len(documents) == 1


def test_a_chunk_without_an_index_is_unchanged(base: KnowledgeBase) -> None:
    (document,) = base.retrieve("a cheetah without a number", 1, neighbours=2)

    assert document["content"] == "A cheetah without a number."
    assert document["metadata"] == {"source": "plain.md"}
