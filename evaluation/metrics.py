"""How good rankings are, by ir-measures."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from evaluation.bootstrap import Values
from evaluation.dataset import Judgments
from ragstack_common.errors import needs_extra

with needs_extra("evaluation", "The evaluation"):
    import ir_measures

PRIMARY: Final = "nDCG@10"
MEASURES: Final = (PRIMARY, "R@10", "RR@10")
DEEP_MEASURE: Final = "R@100"
TITLES: Final = {PRIMARY: "nDCG@10", "R@10": "recall@10", "RR@10": "MRR@10", DEEP_MEASURE: "recall@100"}

Rankings = Mapping[str, Sequence[str]]
"""Documents, best first, by query."""


def by_query(judgments: Judgments, rankings: Rankings, names: Sequence[str] = MEASURES) -> dict[str, Values]:
    """Work out measures for every query.

    Args:
        judgments: Of the queries that count; one that has no ranking counts 0.
        rankings: May have further queries, which are left out.
        names: As ir-measures writes them.

    Returns:
        For each measure an array in the order of the judgments.
    """
    parsed = {ir_measures.parse_measure(name): name for name in names}
    place = {query: number for number, query in enumerate(judgments)}
    values = {name: np.zeros(len(place)) for name in names}
    qrels = [
        ir_measures.Qrel(query, document, grade)
        for query, grades in judgments.items()
        for document, grade in grades.items()
    ]
    # Evaluators order by score: these scores keep the order.
    run = [
        ir_measures.ScoredDoc(query, document, -float(rank))
        for query in judgments
        for rank, document in enumerate(rankings.get(query, ()))
    ]
    for found in ir_measures.iter_calc(list(parsed), qrels, run):
        values[parsed[found.measure]][place[found.query_id]] = found.value
    return values
