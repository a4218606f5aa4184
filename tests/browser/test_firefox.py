"""The main tasks of the console in Firefox, as it is installed: in a browser that is not the one of the other tests."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("console")]

FOLDER = Path(__file__).with_name("firefox")
FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")
NODE = Path(sys.executable).with_name("node")
TASKS = (
    "ask and open the original",
    "search and open a result with its words marked",
    "upload, delete and undo",
    "German",
    "the width of a phone",
)


@pytest.fixture(scope="module")
def failures(console_url: str) -> dict[str, str]:
    """Why each task failed; empty if it did not. A test that fails takes all of them again."""
    if FIREFOX is None:
        pytest.skip("Firefox is missing: apt install firefox-esr")
    if not (FOLDER / "node_modules").exists():
        pytest.skip(f"what drives Firefox is missing: npm --prefix {FOLDER} ci")
    done = subprocess.run(
        [NODE, FOLDER / "tasks.mjs", console_url, FIREFOX], capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return {line["name"]: line["failure"] for line in map(json.loads, done.stdout.splitlines())}


@pytest.mark.parametrize("task", TASKS)
def test_firefox_does_what_people_do(failures: dict[str, str], task: str) -> None:
    assert failures[task] == ""
