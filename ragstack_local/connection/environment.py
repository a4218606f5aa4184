"""The environment variables of the command line, and the files of the current folder that add to them.

A file may come with a folder from elsewhere, such as an unpacked archive. So it sets only the variables in
:data:`SETTINGS`, and no credential is sent to an address that it names.
"""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import typer

from ragstack_common.core.addresses import EMBEDDING_KEY_VARIABLE
from ragstack_common.core.errors import ConfigurationError

DATA_VARIABLE: Final = "RAGSTACK_DATA"
"""Replaces the folder .ragstack, for a second local stack next to the first."""

API_URL_VARIABLE: Final = "RAGSTACK_API_URL"
API_KEY_VARIABLE: Final = "RAGSTACK_API_KEY"
TOKEN_VARIABLE: Final = "RAGSTACK_TOKEN"  # noqa: S105 - its name, not a token
LLM_KEY_VARIABLE: Final = "RAGSTACK_LLM_API_KEY"

FILE: Final = ".env"
NAME_VARIABLE: Final = "RAGSTACK_ENV"
"""Names one more file: ``.env.NAME``."""

EXAMPLES: Final = frozenset({"dist", "example", "sample", "template"})
"""Suffixes of files that show which variables there are."""

SETTINGS: Final = frozenset(
    {
        # Source: specification 002, sections 3 and 8.
        "MULTI_CORPUS_METADATA",
        "LARGE_RETRIEVAL_SIZE_ALL_CORPUS",
        "LARGE_RETRIEVAL_SIZE_SINGLE_CORPUS",
        "SEARCH_K",
        "CHROMA_PERSIST_DIRECTORY",
        "CHROMA_COLLECTION_NAME",
        "EMBEDDING_MODEL",
        "POOLING",
        # Other names of these, and what belongs to them.
        "ATLAS_COLLECTION_NAME",
        "ATLAS_DB_PATH",
        "CHUNK_SIZE",
        "CHUNK_OVERLAP",
        "RERANKING_WEIGHTS",
        # Of the command line.
        API_URL_VARIABLE,
        "RAGSTACK_COSINE_SHARE",
        "RAGSTACK_EMBEDDING",
        "RAGSTACK_LLM_MODEL",
        "RAGSTACK_LLM_URL",
    }
)
"""What a file may set: neither credentials, nor what starts or changes programs."""

_SERVERS: Final = {
    "RAGSTACK_LLM_URL": ("", LLM_KEY_VARIABLE),
    "RAGSTACK_EMBEDDING": ("openai:", EMBEDDING_KEY_VARIABLE),
    "EMBEDDING_MODEL": ("openai:", EMBEDDING_KEY_VARIABLE),
}
"""Settings whose values with a beginning name a server, and the variable with the key that would be sent to it."""

_files: dict[str, Path] = {}
"""The file of each variable that one has set in this process."""


def user_folder() -> Path:
    """Return the folder of what the command line keeps for this user, about stacks elsewhere too."""
    return Path(os.environ.get(DATA_VARIABLE) or typer.get_app_dir("ragstack"))


def source_file(variable: str) -> Path | None:
    """Return the file that has set a variable; None if the environment has it, or nothing."""
    return _files.get(variable)


@dataclass
class FilesRead:
    """Messages about the files of the current folder: which one sets what, and details for ``--verbose``."""

    lines: list[str] = field(default_factory=list)
    details: list[str] = field(default_factory=list)


def read_files() -> FilesRead:
    """Set the variables of the current folder's files that the environment does not have.

    A file named by :data:`NAME_VARIABLE` has precedence over ``.env.local``, and that over ``.env``. Functions never
    read these files: they have the settings of their deployment.

    Raises:
        ConfigurationError: A file is not a text of variables, or the named one is missing.
    """
    _files.clear()
    read, before, folder = FilesRead(), frozenset(os.environ), Path().absolute()
    name = os.environ.get(NAME_VARIABLE)
    for path in _paths(folder, name):
        if path.is_file():
            _set(path, _variables(path), before, read)
        else:
            read.details.append(f"There is no {path}")
    if name is None:
        others = (path for path in folder.glob(f"{FILE}.*") if path.suffix[1:] not in {"local", *EXAMPLES})
        for path in sorted(path for path in others if path.is_file() and _is_name(path.suffix[1:])):
            with suppress(ConfigurationError):  # a file that is not read breaks nothing
                if SETTINGS & _variables(path).keys():
                    read.lines.append(f"{path} is not read: set {NAME_VARIABLE}={path.suffix[1:]} to use it")
    _withhold_keys(read)
    return read


def _paths(folder: Path, name: str | None) -> list[Path]:
    """Return the files in the order of their precedence.

    Raises:
        ConfigurationError: The named file is missing, or the name is a path.
    """
    paths = [folder / f"{FILE}.local", folder / FILE]
    if not name:
        return paths
    if not _is_name(name):
        raise ConfigurationError(f"{NAME_VARIABLE}={name} names no file: use letters, digits, _ and -")
    if not (named := folder / f"{FILE}.{name}").is_file():
        raise ConfigurationError(f"{NAME_VARIABLE}={name} names {named}, which does not exist")
    return [named, *paths]


def _is_name(name: str) -> bool:
    return re.fullmatch(r"[\w-]+", name) is not None


def _variables(path: Path) -> Mapping[str, str]:
    from dotenv import dotenv_values  # noqa: PLC0415 - most folders have no such file

    try:
        # Without ${NAME}, which would put a secret of the environment into an address.
        found = dotenv_values(path, interpolate=False)
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}") from error
    if bad := sorted(name for name, value in found.items() if "\0" in f"{name}{value}"):
        raise ConfigurationError(f"{path} cannot be read: {bad[0]!r:.80} has a null character")
    return {name: value for name, value in found.items() if value is not None}


def _set(path: Path, found: Mapping[str, str], before: frozenset[str], read: FilesRead) -> None:
    known = SETTINGS & found.keys()
    added = sorted(known - os.environ.keys())
    os.environ.update({name: found[name] for name in added})
    _files.update(dict.fromkeys(added, path))
    ignored = sorted(name for name in found.keys() - SETTINGS if name.startswith("RAGSTACK_"))
    said = [f"sets {', '.join(added)}"] if added else []
    if ignored:
        said.append(f"a file cannot set {', '.join(ignored)}")
    if said:
        read.lines.append(f"{path} {'; '.join(said)}" if added else f"{path}: {said[0]}")
    elif not known:
        read.details.append(f"{path} sets nothing")
    if kept := sorted(known & before):
        read.details.append(f"{path}: the environment has precedence for {', '.join(kept)}")


def _withhold_keys(read: FilesRead) -> None:
    """Remove the keys that would be sent to a server that a file names."""
    for variable, (beginning, key) in _SERVERS.items():
        path = _files.get(variable)
        if path is not None and os.environ[variable].startswith(beginning) and os.environ.pop(key, None) is not None:
            read.lines.append(f"{key} is not used, because {path} names the server: set {variable} in the environment")
