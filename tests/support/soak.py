"""Whether this is the long run: `make soak` takes all of what a short run takes a part of."""

import os
from typing import Final

SOAK: Final = os.environ.get("RAGSTACK_SOAK") == "1"


def examples(count: int) -> int:
    """How many examples a property test draws: all of them in the long run, a sixteenth in the short one."""
    return count if SOAK else count // 16
