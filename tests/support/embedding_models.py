"""Embeddings that tests can see through: a tiny ONNX model with its tokenizer, and a server of OpenAI's protocol."""

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from ragstack_common.embedding import Embedding
from ragstack_common.embedding.model_folder import Pooling
from ragstack_common.embedding.onnx import OnnxEmbedding
from ragstack_common.embedding.protocol import Vectors
from ragstack_common.settings.model_cache import KNOWN, MANIFEST, MINILM
from tests.support.http_server import http_server

WORDS = ("[CLS]", "[SEP]", "[UNK]", "heron", "bridge", "question")
TABLE = np.eye(len(WORDS), dtype=np.float32)

_INT64, _FLOAT = 7, 1


def shared_sentence_model(pooling: Pooling | None = None) -> OnnxEmbedding:
    """Load a model of sentences that is too large for this repository; skip the test without it."""
    return OnnxEmbedding(_shared_folder(), pooling)


def add_minilm(cache: Path, folder: Path | None = None) -> None:
    """Put a model where `ragstack model add minilm` puts MiniLM; by default the shared one, as above."""
    added = cache / "ragstack" / "models" / KNOWN[MINILM].folder
    shutil.copytree(folder or _shared_folder(), added)
    (added / MANIFEST).write_text("{}")


def _shared_folder() -> Path:
    data = Path(os.environ.get("RAGSTACK_SHARED_DATA", Path(__file__).parents[3] / "shared" / "data"))
    folder = data.parent / "models" / "all-minilm-l6-v2-int8"
    if not folder.is_dir():
        pytest.skip("the sentence-embedding model is not on this machine (RAGSTACK_SHARED_DATA)")
    return folder


class CountingEmbedding(Embedding):
    """Another embedding that writes down what it was asked for."""

    def __init__(self, inner: Embedding) -> None:
        self.name, self.description = inner.name, inner.description
        self.dimension = inner.dimension
        self.cosine_share, self.fusion_weight = inner.cosine_share, inner.fusion_weight
        self.passages: list[str] = []
        self.queries: list[str] = []
        self._inner = inner

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.passages += texts
        return self._inner.embed(texts)

    def embed_query(self, text: str) -> Vectors:
        self.queries.append(text)
        return self._inner.embed_query(text)

    def close(self) -> None:
        self._inner.close()


def make_model_folder(
    folder: Path,
    *,
    inputs: Sequence[str] = ("input_ids", "attention_mask", "token_type_ids"),
    output: str = "last_hidden_state",
    configurations: Mapping[str, Any] | None = None,
) -> Path:
    """Write a model whose tokens are the unit vectors of WORDS, so that a text's vector tells what became of it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(_model(inputs, output))
    tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 0), ("[SEP]", 1)])
    # As some models are published: cut and filled up in a way that is not the model's own.
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=4)
    tokenizer.save(str(folder / "tokenizer.json"))
    for name, content in (configurations or {}).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(content))
    return folder


def _model(inputs: Sequence[str], output: str) -> bytes:
    """Encode an ONNX model of one Gather. Source of the field numbers: onnx.proto of the ONNX project."""
    node = _text(1, "table") + _text(1, "input_ids") + _text(2, output) + _text(4, "Gather")
    dimensions = b"".join(_number(1, size) for size in TABLE.shape)
    table = dimensions + _number(2, _FLOAT) + _text(8, "table") + _block(9, TABLE.tobytes())
    graph = _block(1, node) + _text(2, "graph") + _block(5, table)
    for name in inputs:
        graph += _block(11, _value(name, _INT64, ("b", "s")))
    graph += _block(12, _value(output, _FLOAT, ("b", "s", TABLE.shape[1])))
    return _number(1, 8) + _block(8, _text(1, "") + _number(2, 17)) + _block(7, graph)


def _value(name: str, kind: int, shape: Sequence[str | int]) -> bytes:
    dimensions = b"".join(_block(1, _text(2, size) if isinstance(size, str) else _number(1, size)) for size in shape)
    return _text(1, name) + _block(2, _block(1, _number(1, kind) + _block(2, dimensions)))


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    return bytes([*encoded, value])


def _number(member: int, value: int) -> bytes:
    return _varint(member << 3) + _varint(value)


def _block(member: int, content: bytes) -> bytes:
    return _varint(member << 3 | 2) + _varint(len(content)) + content


def _text(member: int, content: str) -> bytes:
    return _block(member, content.encode())


@dataclass
class EmbeddingServer:
    """What a server of OpenAI's protocol does, and what it was asked.

    Attributes:
        dimension: Of the vectors; the first component is the length of the text.
        failures: Statuses to answer with first.
        longest: Characters of a text that its model takes.
        key: Asked for in the header Authorization, where there is one.
        models: That it lists.
        calls: Texts of each call that was answered well.
    """

    url: str = ""
    dimension: int = 3
    failures: list[int] = field(default_factory=list)
    longest: int = 10_000
    key: str | None = None
    models: Sequence[str] = ("embedder",)
    calls: list[list[str]] = field(default_factory=list)

    def answer(self, path: str, body: Any, authorization: str) -> tuple[int, Any]:
        if self.key is not None and authorization != f"Bearer {self.key}":
            return 401, {"error": {"message": "no key"}}
        if path == "/v1/models":
            return 200, {"object": "list", "data": [{"id": name, "object": "model"} for name in self.models]}
        if self.failures:
            return self.failures.pop(0), {"error": {"message": "not now"}}
        if body["model"] not in self.models:
            return 404, {"error": {"message": f"model {body['model']} not found"}}
        if max(map(len, body["input"])) > self.longest:
            return 400, {"error": {"message": "This model's maximum context length is less than the input"}}
        self.calls.append(body["input"])
        rows = [
            {"object": "embedding", "index": index, "embedding": [float(len(text)), *[1.0] * (self.dimension - 1)]}
            for index, text in enumerate(body["input"])
        ]
        # In no order: the index decides.
        return 200, {"object": "list", "model": body["model"], "data": rows[::-1], "usage": {}}


@contextmanager
def embedding_server(**options: Any) -> Iterator[EmbeddingServer]:
    """Serve in a thread."""
    state = EmbeddingServer(**options)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            self._send(*state.answer(self.path, json.loads(body), self.headers.get("authorization", "")))

        def do_GET(self) -> None:
            self._send(*state.answer(self.path, None, self.headers.get("authorization", "")))

        def _send(self, status: int, answer: Any) -> None:
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.send_header("retry-after-ms", "1")
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    with http_server(Handler) as url:
        state.url = f"{url}/v1"
        yield state
