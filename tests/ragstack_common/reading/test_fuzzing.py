"""Minutes of files that are damaged where it leads to lines of the readers that none reached before.

Part of `make soak`, which installs atheris. RAGSTACK_FUZZ_SECONDS is the time for each format (60), and files of
the folder RAGSTACK_FUZZ_FILES are damaged, too.
"""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.damaged_files import READERS, SEEDS
from tests.support.soak import SOAK

SECONDS = int(os.environ.get("RAGSTACK_FUZZ_SECONDS", "60"))
FOLDER = os.environ.get("RAGSTACK_FUZZ_FILES")
MAX_BYTES = 200_000
SLOW_SECONDS = 30
"""A file that takes longer is found, too."""


@pytest.mark.skipif(not SOAK, reason="part of the long run")
@pytest.mark.skipif(find_spec("atheris") is None, reason="`make soak` installs atheris where it has a wheel")
@pytest.mark.parametrize("file_format", sorted(READERS))
@pytest.mark.timeout(SECONDS + 120)
def test_no_file_makes_a_reader_fail(file_format: str, tmp_path: Path) -> None:
    corpus = tmp_path / "files"
    corpus.mkdir()
    (corpus / "seed").write_bytes(SEEDS[file_format])
    found = sorted(Path(FOLDER).rglob(f"*.{file_format}")) if FOLDER else []
    for number, file in enumerate(each for each in found if each.stat().st_size < MAX_BYTES):
        (corpus / str(number)).write_bytes(file.read_bytes())

    options = [f"-max_total_time={SECONDS}", f"-timeout={SLOW_SECONDS}", "-rss_limit_mb=3000", f"-max_len={MAX_BYTES}"]
    command = [sys.executable, "-m", "tests.support.fuzz_readers", file_format, str(corpus), *options]
    ended = subprocess.run([*command, f"-artifact_prefix={tmp_path}/"], capture_output=True, text=True, check=False)

    assert ended.returncode == 0, ended.stderr[-4_000:]
