"""A cross-encoder in a folder puts chunks in the order of its logits."""

import asyncio
import math
from pathlib import Path

import pytest

from ragstack_common.core.errors import EmbeddingError
from ragstack_common.search import RetrievedChunk
from ragstack_common.search.rerank.chunks import ChunkReranker
from ragstack_common.search.rerank.factory import load_reranker
from tests.support.cross_encoder_models import BIAS, make_cross_encoder_folder
from tests.support.embedding_models import make_model_folder

QUERY = "heron bridge"


def chunks(*texts: str) -> list[RetrievedChunk]:
    return [RetrievedChunk(content=text, score=0.9 - n / 10, source=f"{n}") for n, text in enumerate(texts)]


def rerank(reranker: ChunkReranker, *texts: str, query: str = QUERY) -> list[RetrievedChunk]:
    async def reranked() -> list[RetrievedChunk]:
        try:
            return await reranker.rerank(query, chunks(*texts))
        finally:
            await reranker.close()

    return asyncio.run(reranked())


def sigmoid(pairs: int) -> float:
    return 1 / (1 + math.exp(BIAS - pairs))


@pytest.mark.parametrize("classes", [1, 2])
def test_the_model_orders_texts_by_their_logits(tmp_path: Path, classes: int) -> None:
    folder = make_cross_encoder_folder(tmp_path / "model", classes=classes)

    reranked = rerank(load_reranker(f"cross_encoder:{folder}"), "river bank", "bridge", "bridge of the heron bridge")

    assert [found.content for found in reranked] == ["bridge of the heron bridge", "bridge", "river bank"]
    assert [found.score for found in reranked] == pytest.approx([sigmoid(3), sigmoid(1), sigmoid(0)], abs=1e-6)
    assert reranked[0].ranking is not None
    assert reranked[0].ranking.base_score == 0.7
    assert reranked[0].ranking.contributions == {"cross_encoder": reranked[0].score}


def test_a_long_text_is_cut_and_the_query_is_not(tmp_path: Path) -> None:
    folder = make_cross_encoder_folder(tmp_path / "model", max_tokens=8)

    reranked = rerank(load_reranker(f"cross_encoder:{folder}"), "river river river heron bridge", "heron " * 1000)

    assert reranked[0].score == pytest.approx(sigmoid(3), abs=1e-6)
    assert reranked[1].score == pytest.approx(sigmoid(0), abs=1e-6)


def test_a_query_that_is_longer_than_the_model_takes_is_an_error(tmp_path: Path) -> None:
    folder = make_cross_encoder_folder(tmp_path / "model", max_tokens=8)

    with pytest.raises(EmbeddingError, match="model"):
        rerank(load_reranker(f"cross_encoder:{folder}"), "heron", query="heron " * 50)


def test_a_model_that_returns_no_relevance_is_refused(tmp_path: Path) -> None:
    several = make_cross_encoder_folder(tmp_path / "several", classes=3)
    embedding = make_model_folder(tmp_path / "embedding")

    for folder in (several, embedding):
        with pytest.raises(EmbeddingError, match="a cross-encoder returns logits"):
            load_reranker(f"cross_encoder:{folder}")


def test_a_folder_without_a_model_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(EmbeddingError, match=r"has no model\.onnx"):
        load_reranker({"type": "cross_encoder", "folder": str(tmp_path)})
