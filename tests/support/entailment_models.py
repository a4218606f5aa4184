"""A tiny model for natural language inference: real ONNX and a real tokenizer, and a rule to see through."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

SPECIAL = ("[CLS]", "[SEP]", "[UNK]")
SENTENCE = "leave is ten twenty weeks at full pay guests get lunch and tea every day ."
WORDS = (*SPECIAL, "not", *SENTENCE.split())
LABELS = ("CONTRADICTION", "NEUTRAL", "ENTAILMENT")


def make_entailment_folder(folder: Path, *, max_tokens: int = 32, labels: Sequence[str] = LABELS) -> Path:
    """Write a model that finds entailment if the premise has all words of the hypothesis.

    If only one of both has the word "not", they contradict each other; otherwise they are neutral.
    """
    folder.mkdir(parents=True)
    table = np.eye(len(WORDS), dtype=np.float32)
    table[: len(SPECIAL)] = 0
    negation = np.zeros((len(WORDS), 1), dtype=np.float32)
    negation[WORDS.index("not")] = 1
    constants = {
        "table": table,
        "negation": negation,
        "one": np.array(1.0, dtype=np.float32),
        "half": np.array(0.5, dtype=np.float32),
        "hundred": np.array(100.0, dtype=np.float32),
        "words": np.ones((len(WORDS), 1), dtype=np.float32),
        "last": np.array([2]),
        "tokens_axis": np.array([1]),
    }
    steps = [
        ("Gather", ["table", "input_ids"], "tokens", {}),
        ("Cast", ["token_type_ids"], "types", {"to": TensorProto.FLOAT}),
        ("Unsqueeze", ["types", "last"], "mask", {}),
        ("Mul", ["tokens", "mask"], "second", {}),
        ("Sub", ["tokens", "second"], "first", {}),
        ("ReduceMax", ["first", "tokens_axis"], "premise", {"keepdims": 0}),
        ("ReduceMax", ["second", "tokens_axis"], "hypothesis", {"keepdims": 0}),
        ("Sub", ["one", "premise"], "absent", {}),
        ("Mul", ["hypothesis", "absent"], "missing", {}),
        ("MatMul", ["missing", "words"], "missing_words", {}),
        ("Sub", ["half", "missing_words"], "entailment", {}),
        ("Sub", ["premise", "hypothesis"], "difference", {}),
        ("Abs", ["difference"], "differences", {}),
        ("MatMul", ["differences", "negation"], "negated", {}),
        ("Mul", ["negated", "hundred"], "much", {}),
        ("Sub", ["much", "half"], "contradiction", {}),
        ("Sub", ["half", "half"], "zero", {}),
        ("Mul", ["negated", "zero"], "neutral", {}),
        ("Concat", ["contradiction", "neutral", "entailment"], "logits", {"axis": 1}),
    ]
    inputs = ("input_ids", "attention_mask", "token_type_ids")
    graph = helper.make_graph(
        [helper.make_node(kind, names, [result], **options) for kind, names, result, options in steps],
        "entailment",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["b", "s"]) for name in inputs],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["b", len(LABELS)])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.checker.check_model(model)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.normalizer = Lowercase()
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 0), ("[SEP]", 1)],
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": max_tokens}))
    (folder / "config.json").write_text(json.dumps({"id2label": dict(enumerate(labels))}))
    return folder
