"""Measures of a ranking, given the grades of documents: nDCG, recall and the reciprocal rank of the first relevant one.

The console shows what this computes, and ``ragstack eval`` computes its figures with it.

Source: Järvelin and Kekäläinen 2002 for nDCG; the gain of a document is its grade, as in trec_eval's ``ndcg_cut``.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Final

from pydantic import BaseModel, Field, StringConstraints

from ragstack_common.settings.limits import MAX_RESULTS

DEPTH: Final = 10
"""Documents of a ranking that count, unless a measure says otherwise."""

MAX_GRADE: Final = 3
"""Source: the usual scale of judgments at TREC, 0 (irrelevant) to 3 (perfectly relevant)."""

MAX_GRADES: Final = 5000
"""As many judgments as a caller makes in a year."""

# Files in BEIR's form have tabs between members.
DocumentName = Annotated[str, StringConstraints(min_length=1, max_length=2048, pattern=r"^[^\x00-\x1f\x7f]*$")]
Grade = Annotated[int, Field(ge=0, le=MAX_GRADE, strict=True)]


class JudgedRanking(BaseModel, extra="forbid", frozen=True, defer_build=True):
    """A ranking with the grades of documents. Unknown names are rejected."""

    documents: list[DocumentName] = Field(
        max_length=MAX_RESULTS, description="What was found, best first; a document counts once, at its best rank"
    )
    grades: dict[DocumentName, Grade] = Field(
        max_length=MAX_GRADES, description="How relevant documents are, 0 for not at all; others count as irrelevant"
    )


class Measures(BaseModel, defer_build=True):
    """Measures of the first ten documents, each 0 to 1; 0 without a relevant document."""

    ndcg: float
    recall: float
    reciprocal_rank: float
    judged: int = Field(description="How many of the first ten documents have a grade")
    shown: int = Field(description="How many documents there are, of the first ten")


def measure(ranking: JudgedRanking) -> Measures:
    """Measure the first ten documents of a ranking."""
    documents, grades = ranking.documents, ranking.grades
    first = _first(documents, DEPTH)
    return Measures(
        ndcg=ndcg(documents, grades),
        recall=recall(documents, grades),
        reciprocal_rank=reciprocal_rank(documents, grades),
        judged=sum(document in grades for document in first),
        shown=len(first),
    )


def ndcg(documents: Sequence[str], grades: Mapping[str, int], depth: int = DEPTH) -> float:
    """Return the discounted gain of the first documents as a share of the largest possible one."""
    best = _discounted(sorted(grades.values(), reverse=True)[:depth])
    return _discounted(grades.get(document, 0) for document in _first(documents, depth)) / best if best else 0.0


def recall(documents: Sequence[str], grades: Mapping[str, int], depth: int = DEPTH) -> float:
    """Return the share of the relevant documents that is among the first documents."""
    relevant = {document for document, grade in grades.items() if grade > 0}
    return len(relevant.intersection(_first(documents, depth))) / len(relevant) if relevant else 0.0


def reciprocal_rank(documents: Sequence[str], grades: Mapping[str, int], depth: int = DEPTH) -> float:
    """Return 1 / rank of the first relevant document; 0 if none is among the first documents."""
    ranks = (rank for rank, each in enumerate(_first(documents, depth), start=1) if grades.get(each, 0) > 0)
    return 1 / next(ranks, math.inf)


def _first(documents: Sequence[str], depth: int) -> list[str]:
    return list(dict.fromkeys(documents))[:depth]


def _discounted(gains: Iterable[int]) -> float:
    return sum(max(gain, 0) / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))
