"""The benchmarks run as scripts, as their docstrings and ``make bench`` say."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_every_benchmark_explains_itself() -> None:
    started = {
        script.name: subprocess.Popen(
            [sys.executable, str(script), "--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
        )
        for script in sorted((ROOT / "benchmarks").glob("*.py"))
    }

    failed = {}
    for name, process in started.items():
        printed, errors = process.communicate(timeout=120)
        if process.returncode or "usage:" not in printed:
            failed[name] = errors
    assert failed == {}
