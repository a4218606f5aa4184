"""Measure how many documents a second are ingested with MiniLM, next to fastembed, Chroma and LanceDB.

Documents are texts of a data set in BEIR's form, numbered so that no two are equal. "the local Bedrock" is its whole
ingestion path: submitting over HTTP, parsing, chunking, embedding, storing vectors and words, and statuses, with all
that a kill would need. "Embedding" only embeds the documents, as many tokens of each as the model takes. fastembed
cannot download its own model of MiniLM without its hub, so it gets ours; it computes our vectors then.

"Our chunks and vectors into" stores what the local Bedrock makes of the documents, and does not embed. Chroma and
LanceDB have no queue, no statuses and no order of submissions: a caller has to repeat what a kill interrupts. They
replace no older chunks of a document, and read no files. LanceDB indexes the words once, at the end, and the vectors
not at all.

Processor time changes less than that of the clock where other programs run, so that ratios are of it.

Run after ``ragstack model add minilm``: ``python benchmarks/embedding.py [--documents 1000] [--data FOLDER]``.
LanceDB is not a requirement of the project: ``python -m venv FOLDER && FOLDER/bin/pip install lancedb``, then
``--peer-python FOLDER/bin/python``; it is skipped without that.
Reach: the local Bedrock takes at most as much processor time as fastembed takes to embed.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from fastembed import TextEmbedding
from fastembed.common.model_description import ModelSource, PoolingType
from parts.ingestion_peers import CHUNKS, VECTORS
from parts.measuring import indexed, local_bedrock, new_knowledge_base, passages, processor_seconds, table
from rich.console import Console
from tokenizers import Tokenizer

from local_bedrock.reading import chunking
from ragstack_common.embedding.onnx import OnnxEmbedding
from ragstack_common.embedding.protocol import cores
from ragstack_common.ingestion.requests import text_document
from ragstack_common.settings.model_cache import KNOWN, MINILM, added_folder

DOCUMENTS_IN_CALL = 10
POLL_SECONDS = 1.0
BEDROCK = "the local Bedrock, whole ingestion"


@dataclass(frozen=True)
class Cost:
    """Seconds of the clock and of the processor."""

    elapsed: float
    processor: float

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(self.elapsed + other.elapsed, self.processor + other.processor)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--documents", type=int, default=1000)
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[1] / "samples" / "judged")
    parser.add_argument("--peer-python", default=sys.executable, help="Python that has LanceDB")
    arguments = parser.parse_args()
    texts = passages(arguments.data, arguments.documents)
    folder = added_folder(MINILM)
    measured = {BEDROCK: ingestion_cost(texts)}
    ours = OnnxEmbedding(folder)
    measured["embedding: ours"] = cost(lambda: ours.embed(texts))
    with tempfile.TemporaryDirectory() as temporary:
        peer = fastembed_model(folder, Path(temporary))
        for name, options in (
            ("one by one", {"batch_size": 1}),
            ("batches of 16", {"batch_size": 16}),
            ("batches of 256 (its default)", {}),
        ):
            found: list[Any] = []

            def embed(options: dict[str, Any] = options, found: list[Any] = found) -> None:
                found.extend(peer.passage_embed(texts, **options))

            measured[f"embedding: fastembed, {name}"] = cost(embed)
            lowest = np.einsum("ij,ij->i", np.array(found), ours.embed(texts)).min()
            assert lowest > 0.999, f"fastembed computes other vectors: cosine {lowest}"
    cut = [chunk.whole for text in texts for chunk in chunking.strategy(None).cut(text, ours.embed).chunks]
    measured["embedding: ours, of our chunks"] = cost(lambda: ours.embed(cut))
    for store, python in (("Chroma", sys.executable), ("LanceDB", arguments.peer_python)):
        if stored := stored_cost(store, python, cut, ours):
            measured[f"our chunks and vectors into {store}"] = stored
            measured[f"embedding our chunks, and {store}"] = stored + measured["embedding: ours, of our chunks"]
    characters = sum(map(len, texts)) / len(texts)
    Console(width=120).print(
        table(
            f"{len(texts):,} documents of {characters:.0f} characters on average, {len(cut):,} chunks, {cores()} cores",
            ("", "documents a second", "processor ms a document", "of the local Bedrock"),
            [
                (
                    name,
                    f"{len(texts) / each.elapsed:.1f}",
                    f"{each.processor / len(texts) * 1000:.1f}",
                    f"{each.processor / measured[BEDROCK].processor:.2f}",
                )
                for name, each in measured.items()
            ],
        )
    )


def cost(work: Callable[[], object]) -> Cost:
    start, processor = time.perf_counter(), time.process_time()
    work()
    return Cost(time.perf_counter() - start, time.process_time() - processor)


def stored_cost(store: str, python: str, chunks: list[str], embedding: OnnxEmbedding) -> Cost | None:
    """Return what adding chunks to a store takes in a process of its own; None if it is not installed."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / CHUNKS).write_text(json.dumps(chunks))
        embedding.embed(chunks).tofile(Path(folder) / VECTORS)
        command = [python, "-m", "parts.ingestion_peers", store, folder]
        done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"{store} is skipped: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        return None
    return Cost(*json.loads(done.stdout))


def ingestion_cost(texts: list[str]) -> Cost:
    """Return what the server takes from the first submission until every document is INDEXED."""
    with tempfile.TemporaryDirectory() as folder, local_bedrock(folder, "--embedding", MINILM) as (url, pid):
        agent, base = new_knowledge_base(url)
        source = agent.create_data_source(
            knowledgeBaseId=base, name="texts", dataSourceConfiguration={"type": "CUSTOM"}
        )["dataSource"]["dataSourceId"]
        ids = {"knowledgeBaseId": base, "dataSourceId": source}
        start, processor = time.perf_counter(), processor_seconds(pid)
        for first in range(0, len(texts), DOCUMENTS_IN_CALL):
            batch = enumerate(texts[first : first + DOCUMENTS_IN_CALL], first)
            documents = [text_document(f"d{number}", text) for number, text in batch]
            agent.ingest_knowledge_base_documents(**ids, documents=documents)
        assert set(indexed(agent, ids, POLL_SECONDS)) == {"INDEXED"}
        return Cost(time.perf_counter() - start, processor_seconds(pid) - processor)


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
