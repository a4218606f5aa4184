"""One way to search, as options say it."""

import pytest

from evaluation.dataset import EvaluationError
from evaluation.setups import AnswerSetup, Setup
from ragstack_common.settings import model_cache


def test_changes_are_relative_to_the_first_setup() -> None:
    first = Setup(embedding="onnx:/models/small", filter="right")

    changed = first.changed("search=SEMANTIC, merge=boost, boost=1.5,headers=no")

    assert changed == Setup(
        search="SEMANTIC", embedding="onnx:/models/small", headers=False, filter="right", merge="boost", boost=1.5
    )
    assert changed.label == "SEMANTIC, small, headers=no, filter=right, merge=boost, boost=1.5"


def test_the_default_embedding_equals_ragstack_bedrocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_cache, "is_added", lambda name: name == "minilm")
    by_variable = Setup()
    monkeypatch.delenv("RAGSTACK_EMBEDDING")

    assert (by_variable.label, Setup().label) == ("HYBRID, hashed", "HYBRID, minilm")
    assert (Setup.of("embedding=hashed").label, Setup.of("embedding=auto").label) == (
        "HYBRID, hashed",
        "HYBRID, minilm",
    )


def test_every_option_is_in_the_help() -> None:
    assert {part.partition(" (")[0] for part in AnswerSetup.help().split("; ")} >= AnswerSetup.model_fields.keys()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ("sort=up", "sort: Extra inputs are not permitted"),
        ("search", "search: Input should be 'HYBRID' or 'SEMANTIC'"),
        ("headers=x", "headers: Input should be a valid boolean"),
        ("boost=high", "boost: Input should be a valid number"),
        ("boost=0", "boost: Input should be greater than 0"),
        ("boost=inf", "boost: Input should be a finite number"),
        ("vector=-1", "vector: Input should be greater than or equal to 0"),
        ("store=s3_vectors,cosine_share=0.5", "store=s3_vectors belongs to engine=private, without a cosine_share"),
        ("cosine_share=0.5,search=SEMANTIC", "cosine_share belongs to a HYBRID search of engine=private"),
        ("engine=acme.json,rerank=lexical", "a backend's configuration decides how it reranks"),
    ],
)
def test_an_impossible_setup_is_rejected(changes: str, message: str) -> None:
    with pytest.raises(EvaluationError) as refused:
        Setup.of(changes)

    assert message in str(refused.value)
