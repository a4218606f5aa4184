"""Whether this is the long run: `make soak` takes all of what a short run takes a part of."""

import os
from collections.abc import Iterable
from typing import Final, TypeVar

T = TypeVar("T")

SOAK: Final = os.environ.get("RAGSTACK_SOAK") == "1"


def examples(count: int, share: int = 16) -> int:
    """How many examples a property test draws: all of them in the long run, a share in the short one."""
    return count if SOAK else count // share


def part(cases: Iterable[T], share: int) -> list[T]:
    """Return the cases of a sweep: all of them in the long run, in the short one the first and each *share*-th."""
    return [*cases][:: 1 if SOAK else share]
