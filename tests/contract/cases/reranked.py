"""The lexical reranker, and a reranking model of Bedrock, over Chroma."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import boto3

from local_bedrock.server import running
from ragstack_common.retrieval import RetrievalBackend
from ragstack_common.retrieval.rerank.bedrock import BedrockReranker
from ragstack_common.retrieval.reranked import RerankedBackend
from tests.contract.case import PATIENCE_SECONDS, Case
from tests.contract.cases import chroma
from tests.contract.documents import Document

CHROMA = chroma.CASES[0]


@contextmanager
def _lexical(documents: Sequence[Document], folder: Path) -> Iterator[Callable[[], RetrievalBackend]]:
    with CHROMA.open(documents, folder) as make:
        yield lambda: RerankedBackend(make(), timeout_seconds=PATIENCE_SECONDS)


@contextmanager
def _by_bedrock(documents: Sequence[Document], folder: Path) -> Iterator[Callable[[], RetrievalBackend]]:
    with CHROMA.open(documents, folder / "chroma") as make, running(folder / "bedrock") as url:
        client = boto3.client(
            "bedrock-agent-runtime",
            endpoint_url=url,
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )
        yield lambda: RerankedBackend(make(), BedrockReranker(client=client), timeout_seconds=PATIENCE_SECONDS)


CASES = [
    Case("reranked", _lexical),
    Case("reranked_by_bedrock", _by_bedrock),
]
