"""Tiny BERT models with random weights: as files, and computed by numpy."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

WORDS = tuple(f"w{number}" for number in range(40))

Weights = dict[str, Any]


def config(*, layers: int = 2, heads: int = 2, size: int = 16) -> dict[str, Any]:
    return {
        "model_type": "bert",
        "hidden_act": "gelu",
        "hidden_size": size,
        "intermediate_size": 3 * size,
        "layer_norm_eps": 1e-12,
        "max_position_embeddings": 32,
        "num_attention_heads": heads,
        "num_hidden_layers": layers,
    }


def random_weights(config: dict[str, Any], seed: int) -> Weights:
    random = np.random.default_rng(seed)
    size, wide = config["hidden_size"], config["intermediate_size"]
    weights: Weights = {}

    def linear(name: str, rows: int, columns: int) -> None:
        weights[f"{name}.weight"] = random.normal(0, 0.3, (rows, columns)).astype(np.float32)
        weights[f"{name}.bias"] = random.normal(0, 0.3, rows).astype(np.float32)

    def norm(name: str) -> None:
        weights[f"{name}.weight"] = random.normal(1, 0.2, size).astype(np.float32)
        weights[f"{name}.bias"] = random.normal(0, 0.2, size).astype(np.float32)

    for name, rows in (("word", len(WORDS)), ("position", config["max_position_embeddings"]), ("token_type", 2)):
        table = random.normal(0, 1, (rows, size)).astype(np.float32)
        weights[f"embeddings.{name}_embeddings.weight"] = table
    norm("embeddings.LayerNorm")
    for number in range(config["num_hidden_layers"]):
        layer = f"encoder.layer.{number}"
        for name in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"):
            linear(f"{layer}.{name}", size, size)
        linear(f"{layer}.intermediate.dense", wide, size)
        linear(f"{layer}.output.dense", size, wide)
        norm(f"{layer}.attention.output.LayerNorm")
        norm(f"{layer}.output.LayerNorm")
    return weights


def embedded_by_numpy(weights: Weights, config: dict[str, Any], ids: list[int]) -> Any:
    """Embed one text without padding. Source: Devlin et al. 2018 and Vaswani et al. 2017."""
    heads = config["num_attention_heads"]
    erf = np.vectorize(math.erf)

    def linear(name: str, value: Any) -> Any:
        return value @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def norm(name: str, value: Any) -> Any:
        centred = value - value.mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + config["layer_norm_eps"])
        return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def attention(layer: str, hidden: Any) -> Any:
        parts = [
            np.split(linear(f"{layer}.attention.self.{name}", hidden), heads, axis=1)
            for name in ("query", "key", "value")
        ]
        contexts = []
        for query, key, value in zip(*parts, strict=True):
            scores = np.exp(query @ key.T / math.sqrt(query.shape[1]))
            contexts.append(scores / scores.sum(axis=1, keepdims=True) @ value)
        return linear(f"{layer}.attention.output.dense", np.concatenate(contexts, axis=1))

    tables = {name: weights[f"embeddings.{name}_embeddings.weight"] for name in ("word", "position", "token_type")}
    hidden = norm(
        "embeddings.LayerNorm", tables["word"][ids] + tables["position"][: len(ids)] + tables["token_type"][0]
    )
    for number in range(config["num_hidden_layers"]):
        layer = f"encoder.layer.{number}"
        hidden = norm(f"{layer}.attention.output.LayerNorm", hidden + attention(layer, hidden))
        wide = linear(f"{layer}.intermediate.dense", hidden)
        wide = wide * (1 + erf(wide / math.sqrt(2))) / 2
        hidden = norm(f"{layer}.output.LayerNorm", hidden + linear(f"{layer}.output.dense", wide))
    mean = hidden.mean(axis=0)
    return mean / np.linalg.norm(mean)


def write_model(folder: Path, config: dict[str, Any], weights: Weights) -> None:
    """Write the files that a package of a model has."""
    folder.mkdir(parents=True)
    header, data = {}, b""
    for name, value in weights.items():
        offsets = [len(data), len(data) + value.nbytes]
        header[name] = {"dtype": "F32", "shape": value.shape, "data_offsets": offsets}
        data += value.tobytes()
    encoded = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode()
    (folder / "model.safetensors").write_bytes(len(encoded).to_bytes(8, "little") + encoded + data)
    (folder / "config.json").write_text(json.dumps(config))
    tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token=WORDS[0]))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
