"""Libraries that read files, in an environment of their own: ``table_readers.py`` runs there."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

PACKAGES = {
    "docling-slim": "docling-slim[format-office,format-opendocument,format-web]==2.143.0",
    "docling-rs": "docling-rs==2.52.7",
    "pdf-inspector": "pdf-inspector==1.25.2",
    "liteparse": "liteparse==2.18.0",
    "markitdown": "markitdown[docx,xlsx,xls,pdf,pptx]==0.1.9",
    "python-calamine": "python-calamine==0.9.1",
    "openpyxl": "openpyxl==3.1.5",
    "python-docx": "python-docx==1.2.0",
    "python-pptx": "python-pptx==1.0.2",
}
RUNNER = Path(__file__).with_name("table_readers.py")
SECONDS = 600


def installed(environment: Path, console: Console) -> set[str]:
    """Install the libraries, and return those that could not be."""
    if not environment.exists():
        subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    missing = set()
    for library, package in PACKAGES.items():
        command = [str(environment / "bin" / "pip"), "install", "--quiet", package]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            missing.add(library)
            console.print(f"{library} could not be installed: {done.stderr.strip()[-200:]}", markup=False)
    return missing


def read(library: str, files: Sequence[Path], environment: Path, console: Console) -> dict[str, Any] | None:
    """Return the texts of files as a library reads them, with seconds and memory; None if it read no file."""
    python = sys.executable if library == "RAGStack" else str(environment / "bin" / "python")
    command = [python, str(RUNNER), library, *map(str, files)]
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=SECONDS)
        found: dict[str, Any] = json.loads(done.stdout.rstrip().rpartition("\n")[2])
    except (subprocess.TimeoutExpired, ValueError) as error:
        console.print(f"{library} did not end: {error!r:.200}", markup=False)
        return None
    if found["failure"]:
        console.print(f"{library}: {found['failure']}", markup=False)
    return found if any(found["texts"]) else None
