"""One way to search, as options say it."""

import pytest

from evaluation.dataset import EvaluationError
from evaluation.searching import Setup


def test_changes_are_those_of_the_first_setup() -> None:
    first = Setup(embedding="onnx:/models/small", filter="right")

    changed = first.changed("search=SEMANTIC, boost=1.5,headers=no")

    assert changed == Setup("SEMANTIC", "onnx:/models/small", headers=False, filter="right", boost=1.5)
    assert changed.label == "SEMANTIC, small, no headers, right filter, boost 1.5"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ("sort=up", "'sort=up' is not a change: use one of boost, embedding, engine"),
        ("search", "'search' is not a change"),
        ("search=VECTOR", "search must be one of HYBRID, SEMANTIC, KEYWORD, not 'VECTOR'"),
        ("rerank=best", "rerank must be one of none, lexical, not 'best'"),
        ("filter=some", "filter must be one of none, right, wrong"),
        ("slices=3", "slices must be one of multislice, filtered"),
        ("headers=1", "headers must be yes or no, not '1'"),
        ("boost=high", "boost must be a number, not 'high'"),
        ("boost=0", "boost must be over 0 and finite"),
        ("boost=inf", "boost must be over 0 and finite"),
        ("boost=nan", "boost must be over 0 and finite"),
        ("search=KEYWORD,rerank=lexical", "BM25 alone: without reranker and slices"),
        ("engine=bm25s,rerank=lexical", "A backend's configuration decides how it reranks"),
    ],
)
def test_an_impossible_setup_is_rejected(changes: str, message: str) -> None:
    with pytest.raises(EvaluationError) as refused:
        Setup().changed(changes)

    assert message in str(refused.value)
