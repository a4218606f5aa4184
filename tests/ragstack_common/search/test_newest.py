"""The newest of equally relevant versions of a document comes first."""

from typing import Any

import pytest

from ragstack_common.search.models import RetrievedChunk, SearchOutcome
from ragstack_common.search.newest import newest_first

QUESTION = "How long is parental leave?"


def chunk(source: str, score: float, **metadata: Any) -> RetrievedChunk:
    return RetrievedChunk(content="Text.", source=source, score=score, metadata=metadata)


OLD = chunk("s3://b/leave-2025.md", 0.9, year=2025)
NEW = chunk("s3://b/leave-2026.md", 0.85, year=2026)
OTHER = chunk("s3://b/travel.md", 0.95)


def sources(question: str, *chunks: RetrievedChunk) -> list[str]:
    outcome = newest_first(SearchOutcome(chunks=list(chunks), parts=(), milliseconds=1.0), question)
    return [found.source.removeprefix("s3://b/") for found in outcome.chunks]


def test_the_newest_version_takes_the_place_of_the_older_one() -> None:
    outcome = newest_first(SearchOutcome(chunks=[OTHER, OLD, NEW], parts=(), milliseconds=1.0), QUESTION)

    assert [found.source for found in outcome.chunks] == [OTHER.source, NEW.source, OLD.source]
    assert [found.score for found in outcome.chunks] == [0.95, 0.9, 0.9]
    assert [(note.kind, "leave-2026" in note.text) for note in outcome.notes] == [("version", True)]
    assert outcome.chunks[1].ranked_by.reason == "The newest version, before leave-2025.md"


@pytest.mark.parametrize(
    "question",
    [
        "How long was parental leave in 2025?",
        "How long was parental leave?",
        "What is the rate limit of v1?",
        "What did the previous policy say?",
    ],
)
def test_a_question_about_a_version_or_the_past_changes_nothing(question: str) -> None:
    assert sources(question, OLD, NEW) == ["leave-2025.md", "leave-2026.md"]


@pytest.mark.parametrize(
    "newer",
    [
        chunk("s3://b/leave-2026.md", 0.8, year=2026),
        chunk("s3://b/leave-2026.md", 0.9),
        chunk("s3://b/leave-rules-2026.md", 0.9, year=2026),
    ],
    ids=["less relevant", "without a year", "another document"],
)
def test_only_equally_relevant_versions_of_one_document_count(newer: RetrievedChunk) -> None:
    assert sources(QUESTION, OLD, newer)[0] == "leave-2025.md"


def test_versions_are_compared_as_numbers() -> None:
    nine, ten = chunk("s3://b/api-v9.md", 0.9, version="9"), chunk("s3://b/api-v10.md", 0.88, version="10")

    assert sources(QUESTION, nine, ten) == ["api-v10.md", "api-v9.md"]
