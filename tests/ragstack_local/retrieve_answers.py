"""Answers of POST /api/retrieve, as JSON."""

from typing import Any

RANKING = {
    "base_score": 0.5,
    "boost": 1.0,
    "found_by": ["unfiltered"],
    "signals": {},
    "contributions": {},
    "ranks": {},
    "score": 0.5,
    "reason": "Ranked by its score",
}


def result(**more: Any) -> dict[str, Any]:
    return {
        "score": 0.5,
        "content": "Thirty days\nof leave.",
        "content_type": "TEXT",
        "location": {},
        "source": "s3://documents/leave.md",
        "metadata": {"topic": "leave", "year": 2026, "corpus": "people"},
        **more,
    }


def part(**more: Any) -> dict[str, Any]:
    report = {"corpus": None, "backend": None, "slice": "unfiltered", "status": "ok", "hits": 1, "error": None}
    return {**report, "milliseconds": 12.3, **more}


def answer(*found: dict[str, Any], **more: Any) -> dict[str, Any]:
    sums = {"slices": [part()], "corpora": [], "notes": [], "milliseconds": 20.0}
    return {"results": [*found], "complete": True, **sums, **more}
