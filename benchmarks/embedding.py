"""Measure how many documents a second MiniLM embeds, next to fastembed with the same weights on the same cores.

Documents are passages of a data set in BEIR's form, numbered so that no two are equal. "the local Bedrock" is its whole
ingestion path: submitting, parsing, chunking, embedding, and storing vectors and words. The other rows only embed.
fastembed cannot download its own model of MiniLM without its hub, so it gets ours.

Run after ``ragstack model add minilm``: ``python benchmarks/embedding.py [--documents 1000] [--data FOLDER]``.
Reach: the local Bedrock ingests at least as many documents a second as fastembed embeds.
"""

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import numpy as np
from fastembed import TextEmbedding
from fastembed.common.model_description import ModelSource, PoolingType
from parts.measuring import CREDENTIALS, local_bedrock, passages, table
from rich.console import Console
from tokenizers import Tokenizer

from local_bedrock.creation import await_active, create_knowledge_base
from ragstack_common.embedding.onnx import OnnxEmbedding
from ragstack_common.embedding.protocol import cores
from ragstack_common.ingestion.requests import text_document
from ragstack_common.settings.model_cache import KNOWN, MINILM, added_folder

DOCUMENTS_IN_CALL = 10
POLL_SECONDS = 0.1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=1000)
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[1] / "samples" / "judged")
    arguments = parser.parse_args()
    texts = passages(arguments.data, arguments.documents)
    folder = added_folder(MINILM)
    measured = {"the local Bedrock, whole ingestion": len(texts) / ingestion_seconds(texts)}
    ours = OnnxEmbedding(folder)
    measured["embedding only: ours"] = rate(texts, lambda: ours.embed(texts))
    with tempfile.TemporaryDirectory() as temporary:
        peer = fastembed_model(folder, Path(temporary))
        for name, options in (
            ("one by one", {"batch_size": 1}),
            ("batches of 16", {"batch_size": 16}),
            ("batches of 256 (its default)", {}),
            (f"batches of 16 in {cores()} processes", {"batch_size": 16, "parallel": cores()}),
        ):
            found: list[Any] = []
            measured[f"embedding only: fastembed, {name}"] = rate(
                texts, lambda options=options, found=found: found.extend(peer.passage_embed(texts, **options))
            )
            lowest = np.einsum("ij,ij->i", np.array(found), ours.embed(texts)).min()
            assert lowest > 0.999, f"fastembed computes other vectors: cosine {lowest}"
    characters = sum(map(len, texts)) / len(texts)
    Console(width=100).print(
        table(
            f"{len(texts):,} documents of {characters:.0f} characters on average, {cores()} cores",
            ("", "documents a second"),
            [(name, f"{value:.0f}") for name, value in measured.items()],
        )
    )


def rate(texts: list[str], embed: Callable[[], object]) -> float:
    start = time.perf_counter()
    embed()
    return len(texts) / (time.perf_counter() - start)


def ingestion_seconds(texts: list[str]) -> float:
    """Return the time from the first submission until every document is INDEXED."""
    with tempfile.TemporaryDirectory() as folder, local_bedrock(folder, "--embedding", MINILM) as (url, _):
        agent = boto3.client(
            "bedrock-agent",
            endpoint_url=url,
            region_name=CREDENTIALS["AWS_REGION"],
            aws_access_key_id="local",
            aws_secret_access_key="local",
        )
        base = create_knowledge_base(agent, "benchmark")
        await_active(agent, base)
        source = agent.create_data_source(
            knowledgeBaseId=base, name="texts", dataSourceConfiguration={"type": "CUSTOM"}
        )["dataSource"]["dataSourceId"]
        ids = {"knowledgeBaseId": base, "dataSourceId": source}
        start = time.perf_counter()
        for first in range(0, len(texts), DOCUMENTS_IN_CALL):
            batch = enumerate(texts[first : first + DOCUMENTS_IN_CALL], first)
            documents = [text_document(f"d{number}", text) for number, text in batch]
            agent.ingest_knowledge_base_documents(**ids, documents=documents)
        while set(found := statuses(agent, ids)) != {"INDEXED"}:
            assert "FAILED" not in found
            time.sleep(POLL_SECONDS)
        return time.perf_counter() - start


def statuses(agent: Any, ids: dict[str, str]) -> list[str]:
    paginator = agent.get_paginator("list_knowledge_base_documents")
    return [detail["status"] for page in paginator.paginate(**ids) for detail in page["documentDetails"]]


def fastembed_model(folder: Path, copy: Path) -> TextEmbedding:
    """Load our model with fastembed, which needs two more files, and would fill every text up to 128 tokens."""
    shutil.copytree(folder, copy, dirs_exist_ok=True)
    tokenizer = Tokenizer.from_file(str(copy / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.save(str(copy / "tokenizer.json"))
    tokens = KNOWN[MINILM].max_tokens
    (copy / "tokenizer_config.json").write_text(json.dumps({"model_max_length": tokens, "pad_token": "[PAD]"}))
    (copy / "special_tokens_map.json").write_text(json.dumps({"pad_token": "[PAD]", "unk_token": "[UNK]"}))
    TextEmbedding.add_custom_model(
        model=MINILM,
        pooling=PoolingType.DISABLED,
        normalization=False,
        sources=ModelSource(url="https://example.invalid"),
        dim=KNOWN[MINILM].dimension,
        model_file="model.onnx",
    )
    return TextEmbedding(MINILM, specific_model_path=str(copy))


if __name__ == "__main__":
    main()
