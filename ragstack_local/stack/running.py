"""The file that tells where the running local stack is.

Its process keeps it locked, so that after a crash neither the file nor a process id that is used again can say that a
stack runs when none does.
"""

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

from ragstack_local.stack.errors import StackError

READING_SECONDS: Final = 0.01


@contextmanager
def announcing(file: Path) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Be the one running stack for as long as the context lasts; yields what tells the others where it is.

    Raises:
        StackError: Another one runs.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a+") as held:
        while not _lock(held, fcntl.LOCK_EX):
            if not _lock(held, fcntl.LOCK_SH):
                raise StackError(
                    "A local stack is running already: `ragstack status` shows it, `ragstack down` ends it"
                )
            # Whoever reads holds it too, but only while it reads.
            fcntl.flock(held, fcntl.LOCK_UN)
            time.sleep(READING_SECONDS)

        def announce(fields: Mapping[str, Any]) -> None:
            held.truncate(0)
            held.write(json.dumps({"process_id": os.getpid(), **fields}, indent=2))
            held.flush()

        announce({})
        try:
            yield announce
        finally:
            held.truncate(0)


def read(file: Path) -> dict[str, Any] | None:
    """Read what the running stack tells: nothing but its process while it starts; None when no stack runs."""
    try:
        with file.open() as text:
            return None if _lock(text, fcntl.LOCK_SH) else dict(json.load(text))
    except OSError:
        return None
    except ValueError:
        return {}  # it is being written


def _lock(file: IO[str], how: int) -> bool:
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
