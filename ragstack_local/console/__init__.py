"""The console: the files that `make setup` builds from ``web/``."""

from pathlib import Path
from typing import Final

STATIC: Final = Path(__file__).with_name("static")
"""The built files; empty or missing before the first build."""
