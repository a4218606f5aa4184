"""A folder with a sentence-embedding model in ONNX form and its configuration, as on a model hub."""

import hashlib
import json
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, get_args

from ragstack_common.core.errors import EmbeddingError, needs_extra
from ragstack_common.settings.model_cache import MANIFEST, TAKES_BATCHES

T = TypeVar("T")

MODEL_FILES: Final = ("model.onnx", "onnx/model.onnx")
CONVERTED_MODULES: Final = frozenset({"Transformer", "Pooling", "Normalize"})
"""Kinds in modules.json of a transformer with pooling and nothing else; a cross-encoder has no such file."""

DEFAULT_MAX_TOKENS: Final = 256
"""Used if only the number of positions is stated: sentence models are trained on shorter texts."""

MAX_STATED_TOKENS: Final = 1_000_000
"""Tokenizers without a limit state 10**30."""

Pooling = Literal["mean", "max", "cls", "lasttoken", "mean+max"]
"""How token vectors become one: mean, maximum of each component, first, last, or mean followed by maximum."""

POOLINGS: Final[tuple[Pooling, ...]] = get_args(Pooling)

_POOLINGS: Final[Mapping[str, Pooling]] = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_lasttoken": "lasttoken",
}
_CONFIGURATIONS: Final = (
    "config.json",
    "tokenizer_config.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "1_Pooling/config.json",
)

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ModelFolder:
    """A model and its configuration.

    Attributes:
        name: The folder's name, and a hash of all files that affect a vector.
        max_tokens: Longer texts are truncated.
        pooling: Used if the model does not pool itself.
        stated_poolings: What the configuration says; ``mean`` if it says nothing.
        takes_batches: Whether a text's vector does not depend on the other texts of its batch.
    """

    name: str
    model: Path
    tokenizer: Path
    max_tokens: int
    pooling: Pooling
    stated_poolings: frozenset[str]
    query_prefix: str
    passage_prefix: str
    takes_batches: bool


def read(folder: Path, pooling: Pooling | None = None) -> ModelFolder:
    """Read a model's configuration; *pooling* replaces the model's own.

    A BERT model as sentence-transformers saves it is converted first, once.
    """
    if not folder.is_dir():
        raise EmbeddingError(f"There is no folder {folder}: name one with model.onnx and tokenizer.json")
    tokenizer = folder / "tokenizer.json"
    model = next((folder / name for name in MODEL_FILES if (folder / name).is_file()), None) or _converted(folder)
    if model is None or not tokenizer.is_file():
        raise EmbeddingError(_missing(folder, "tokenizer.json" if model is not None else "model.onnx"))
    configurations = {name: _json(folder / name, dict[str, Any]) for name in _CONFIGURATIONS}
    prompts = configurations["config_sentence_transformers.json"].get("prompts") or {}
    # Weights over 2 GB are in separate files.
    external = sorted(path for path in model.parent.glob("*.onnx?data*") if path.is_file())
    decisive = [model, *external, tokenizer, *(folder / name for name in _CONFIGURATIONS if configurations[name])]
    stated = configurations["1_Pooling/config.json"]
    return ModelFolder(
        name=f"{folder.resolve().name}@{_hash(decisive)}",
        model=model,
        tokenizer=tokenizer,
        max_tokens=_max_tokens(configurations),
        pooling=pooling or _stated_pooling(stated, folder),
        stated_poolings=frozenset(_poolings(stated)),
        query_prefix=prompts.get("query", ""),
        passage_prefix=prompts.get("document", prompts.get("passage", "")),
        takes_batches=_json(folder / MANIFEST, dict[str, Any]).get(TAKES_BATCHES) is True,
    )


def _converted(folder: Path) -> Path | None:
    """Convert the weights of a BERT model into ``onnx/model.onnx``; None if they are missing or of another kind."""
    files = ("model.safetensors", "config.json", "tokenizer.json")
    modules = _json(folder / "modules.json", list[Any])
    kinds = {str(module.get("type")).rpartition(".")[2] for module in modules if isinstance(module, Mapping)}
    if not all((folder / name).is_file() for name in files) or not kinds or not kinds <= CONVERTED_MODULES:
        return None
    with needs_extra("local", "A model of sentence-transformers"):
        from ragstack_common.embedding import bert  # noqa: PLC0415 - slow to import, and most folders have a model

    file = folder / MODEL_FILES[-1]
    try:
        bert.convert(folder, file)
    except (EmbeddingError, OSError, ValueError) as error:
        log.warning("The model in %s cannot be converted: %s", folder, error)
        return None
    return file


def _missing(folder: Path, file: str) -> str:
    """Explain where to get a file that a model's folder lacks."""
    weights = ("model.safetensors", "pytorch_model.bin", "modules.json")  # for PyTorch
    if file == "model.onnx" and any((folder / name).is_file() for name in weights):
        return (
            f"The folder {folder} has the weights of a model, but no model.onnx. Export it: `pip install"
            " optimum-onnx[onnxruntime]`, then `optimum-cli export onnx --library transformers --task"
            f" feature-extraction --model {folder} {folder / 'onnx'}`"
        )
    return f"The folder {folder} has no {file}: download it from the source of the model"


def _json(path: Path, kind: Callable[[], T]) -> T:
    """Read a JSON file; a missing one, or one of another kind, counts as empty."""
    empty = kind()
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        return empty
    except (OSError, ValueError) as error:
        raise EmbeddingError(f"The file {path} cannot be read ({error}): download it again") from None
    return found if isinstance(found, type(empty)) else empty


def _max_tokens(configurations: Mapping[str, Mapping[str, Any]]) -> int:
    stated = (
        configurations["sentence_bert_config.json"].get("max_seq_length"),
        configurations["tokenizer_config.json"].get("model_max_length"),
    )
    positions = configurations["config.json"].get("max_position_embeddings") or MAX_STATED_TOKENS
    limit = next((int(value) for value in stated if value and value < MAX_STATED_TOKENS), DEFAULT_MAX_TOKENS)
    return min(limit, int(positions))


def _poolings(config: Mapping[str, Any]) -> set[Pooling | str]:
    """Return a model's poolings; an unknown one has the configuration's name."""
    modes = {mode for mode, on in config.items() if mode.startswith("pooling_mode_") and on}
    found: set[Pooling | str] = {_POOLINGS.get(mode, mode) for mode in modes} or {"mean"}
    return {"mean+max"} if found == {"mean", "max"} else found


def _stated_pooling(config: Mapping[str, Any], folder: Path) -> Pooling:
    found = _poolings(config)
    for pooling in POOLINGS:
        if found == {pooling}:
            return pooling
    raise EmbeddingError(
        f"The model in {folder} pools by {' and '.join(sorted(found))}, which is not supported: choose a model that"
        f" pools by {', '.join(POOLINGS)} or pools itself, or choose a pooling, as in onnx:FOLDER#mean"
    )


def _hash(paths: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        digest.update(f"{path.name}\0{path.stat().st_size}\0".encode())
        with path.open("rb") as file:
            while block := file.read(1024 * 1024):
                digest.update(block)
    return digest.hexdigest()[:12]
