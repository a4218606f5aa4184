"""Bytecode for the functions: a layer and a function's code are read-only, so each cold start would compile again.

Bytecode depends on Python's minor version and not on the processor. If this interpreter has another version than
Lambda's, Pyodide compiles: CPython of that version as WebAssembly, which node runs, from the registry of the CDK's
command line.
"""

import compileall
import hashlib
import os
import platform
import py_compile
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
BUILD: Final = ROOT / "build"

PYODIDE: Final = "314.0.7"
PYODIDE_PYTHON: Final = (3, 14)
"""The first part of Pyodide's version names Python's."""

_COMPILE: Final = """\
const [pyodide, root] = process.argv.slice(1);
const { loadPyodide } = await import(pyodide);
const python = await loadPyodide();
python.FS.mkdir("/sources");
python.FS.mount(python.FS.filesystems.NODEFS, { root }, "/sources");
python.runPython(`
import compileall, py_compile
mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
compileall.compile_dir("/sources", quiet=2, stripdir="/sources", invalidation_mode=mode)
`);
"""
"""Unchecked hashes, because a zip file of a layer has no times of its own."""


def compiles(python: tuple[int, int]) -> bool:
    """Return whether bytecode of this version of CPython can be made here; a line on stderr says so if not."""
    return _is_own(python) or (python == PYODIDE_PYTHON and _pyodide() is not None)


def compile_folder(folder: Path, *, python: tuple[int, int]) -> None:
    """Put bytecode next to the sources in a folder, if it can be made here.

    Imports correct the paths in it, which are relative here so that equal sources give equal bytes.

    Args:
        folder: The sources.
        python: The version of the interpreter that will run them.
    """
    if _is_own(python):
        compileall.compile_dir(
            folder,
            quiet=2,
            stripdir=str(folder),
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        )
    elif python == PYODIDE_PYTHON and (pyodide := _pyodide()):
        command = [_tool("node"), "--input-type=module", "-e", _COMPILE, "--", pyodide.as_uri(), str(folder)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603  our own arguments


def compiled_copy(
    source: Path,
    *,
    python: tuple[int, int],
    inside: str = "",
    left_out: Iterable[str] = (),
    added: Mapping[str, bytes] | None = None,
) -> Path:
    """Return a folder with a copy of some sources and their bytecode, made again only when they change.

    Args:
        source: The sources.
        python: The version of the interpreter that will run them.
        inside: Where in the folder the copy is.
        left_out: Names of files that the copy lacks.
        added: Files that only the copy has, by their paths in it.
    """
    added = added or {}
    ignored = {"__pycache__", *left_out}
    files = sorted(path for path in source.rglob("*") if path.is_file() and ignored.isdisjoint(path.parts))
    digest = hashlib.sha256(repr((python, compiles(python), inside, PYODIDE, sorted(added.items()))).encode())
    for file in files:
        digest.update(f"{file.relative_to(source)} {file.stat().st_mode}\0".encode() + file.read_bytes())
    folder = BUILD / "sources"
    ready = folder / f"{source.name}-{digest.hexdigest()[:16]}"
    if not ready.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".") as temporary:
            made = Path(temporary, "made")
            shutil.copytree(source, made / inside, ignore=shutil.ignore_patterns(*ignored))
            compile_folder(made, python=python)
            for name, content in added.items():
                (made / inside / name).write_bytes(content)
            try:
                made.rename(ready)
            except OSError:  # another process was faster
                if not ready.is_dir():
                    raise
        for other in folder.glob(f"{source.name}-*"):
            # After a day, no synthesis reads an older copy.
            if other != ready and other.stat().st_mtime < time.time() - 24 * 3600:
                shutil.rmtree(other, ignore_errors=True)
    return ready


def _is_own(python: tuple[int, int]) -> bool:
    return sys.version_info[:2] == python and platform.python_implementation() == "CPython"


@cache
def _pyodide() -> Path | None:
    """Return Pyodide's module, which is installed when it is first needed; None if it cannot be had."""
    folder = BUILD / f"pyodide-{PYODIDE}"
    module = folder / "node_modules" / "pyodide" / "pyodide.mjs"
    if module.is_file():
        return module
    try:
        _install(folder)
    except (OSError, subprocess.CalledProcessError) as error:
        sys.stderr.write(
            f"The functions have no bytecode, so each cold start takes longer (docs/CONFIGURATION.md): Pyodide"
            f" {PYODIDE}, which compiles for Lambda's Python, cannot be installed ({type(error).__name__}). Connect to"
            f" the npm registry, or run the CDK with Python {'.'.join(map(str, PYODIDE_PYTHON))}\n"
        )
        return None
    return module


def _install(folder: Path) -> None:
    BUILD.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BUILD, prefix=".pyodide-") as temporary:
        command = [_tool("npm"), "install", "--silent", "--no-fund", "--no-audit", "--prefix", temporary]
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
        subprocess.run(  # noqa: S603  our own arguments
            [*command, f"pyodide@{PYODIDE}"],
            capture_output=True,
            check=True,
            env={**os.environ, "PATH": path},
        )
        try:
            Path(temporary).rename(folder)
        except OSError:  # another process was faster
            if not folder.is_dir():
                raise
        Path(temporary).mkdir(exist_ok=True)  # which the context manager removes


def _tool(name: str) -> str:
    """Return a command of this environment, or of the machine."""
    own = Path(sys.executable).parent / name
    return str(own) if own.is_file() else name
