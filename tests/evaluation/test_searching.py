"""One way to search, as options say it."""

import pytest

from evaluation.dataset import EvaluationError
from evaluation.searching import Normalized, Setup


def test_changes_are_those_of_the_first_setup() -> None:
    first = Setup(embedding="onnx:/models/small", filter="right")

    changed = first.changed("search=SEMANTIC, merge=boost, boost=1.5,headers=no")

    assert changed == Setup(
        search="SEMANTIC", embedding="onnx:/models/small", headers=False, filter="right", merge="boost", boost=1.5
    )
    assert changed.label == "SEMANTIC, small, no headers, right filter, boost 1.5"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ("sort=up", "sort: Extra inputs are not permitted"),
        ("search", "search: Input should be 'HYBRID', 'SEMANTIC' or 'KEYWORD'"),
        ("headers=x", "headers: Input should be a valid boolean"),
        ("boost=high", "boost: Input should be a valid number"),
        ("boost=0", "boost: Input should be greater than 0"),
        ("boost=inf", "boost: Input should be a finite number"),
        ("search=KEYWORD,rerank=lexical", "BM25 alone: without reranker and slices"),
        ("engine=bm25s,rerank=lexical", "a backend's configuration decides how it reranks"),
        ("engine=bm25s,infer=yes", "a backend's configuration has no document registry: write infer=hits"),
    ],
)
def test_an_impossible_setup_is_rejected(changes: str, message: str) -> None:
    with pytest.raises(EvaluationError) as refused:
        Setup().changed(changes)

    assert message in str(refused.value)


def test_normalized_scores_are_spread_over_0_to_1_and_keep_their_order() -> None:
    class Client:
        def retrieve(self, **_: object) -> dict[str, object]:
            return {"retrievalResults": [{"score": score} for score in (0.9, 0.6, 0.5)]}

    answer = Normalized(Client()).retrieve(knowledgeBaseId="KB")

    assert [result["score"] for result in answer["retrievalResults"]] == pytest.approx([1, 0.25, 0])
