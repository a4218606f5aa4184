"""What all models in ONNX form need: a session, a tokenizer, and the names of the inputs."""

from pathlib import Path
from typing import Any, Final

import onnxruntime
from tokenizers import Tokenizer

from ragstack_common.core.errors import EmbeddingError
from ragstack_common.embedding.model_folder import ModelFolder

INPUTS: Final = frozenset({"input_ids", "attention_mask", "token_type_ids"})

CHARACTERS_PER_TOKEN: Final = 64
"""Characters read for each token that the model takes; hardly any token is longer."""


def open_tokenizer(model: ModelFolder) -> Tokenizer:
    """Read a model's tokenizer, which truncates at the model's number of tokens."""
    try:
        tokenizer = Tokenizer.from_file(str(model.tokenizer))
    except Exception as error:  # noqa: BLE001 - the library raises bare exceptions
        raise EmbeddingError(
            f"The tokenizer {model.tokenizer} cannot be read ({first_line(error)}): download it again"
        ) from None
    tokenizer.enable_truncation(model.max_tokens)
    tokenizer.no_padding()
    return tokenizer


def open_session(model: Path, changed: bytes | None = None) -> Any:
    """Load a model that uses one core for each call.

    *changed* replaces the content of the file; weights in separate files stay.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3  # errors only
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(model.parent))
    try:
        return onnxruntime.InferenceSession(changed or str(model), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # noqa: BLE001 - the library has an exception for every code of its own
        raise EmbeddingError(f"The model {model} cannot be loaded ({first_line(error)}): download it again") from None


def model_inputs(session: Any) -> list[str]:
    """Return the names of a text model's inputs."""
    names = [str(node.name) for node in session.get_inputs()]
    unknown = sorted(set(names) - INPUTS)
    if unknown:
        raise EmbeddingError(
            f"The ONNX model needs {', '.join(unknown)}, which no text model has: choose one with"
            f" {', '.join(sorted(INPUTS))}"
        )
    return names


def first_line(error: Exception) -> str:
    """Return the first line of an error's text, or its type."""
    return next(iter(str(error).splitlines()), type(error).__name__)
