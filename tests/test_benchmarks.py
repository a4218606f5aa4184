"""The benchmarks run as scripts, as their docstrings and ``make bench`` say."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
ONE_AFTER_ANOTHER = """
import contextlib, pathlib, runpy, sys
_, *scripts = sys.argv
for script in scripts:
    sys.argv, sys.path[0] = [script, "--help"], str(pathlib.Path(script).parent)
    with contextlib.suppress(SystemExit):
        runpy.run_path(script, run_name="__main__")
"""
"""Runs scripts as Python does, in one process, because each imports the same for a second."""


def test_every_benchmark_explains_itself() -> None:
    scripts = sorted((ROOT / "benchmarks").glob("*.py"))

    done = subprocess.run(
        [sys.executable, "-c", ONE_AFTER_ANOTHER, *scripts], capture_output=True, text=True, cwd=ROOT, check=False
    )

    assert (done.returncode, done.stdout.count("usage:")) == (0, len(scripts)), done.stderr
