"""How far an evaluation is."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import Progress as Bars
from rich.progress import TaskID


class Progress:
    """Bars on the terminal: one for each setup, and one for each ingestion.

    Args:
        bars: Shown by the caller.
    """

    def __init__(self, bars: Bars) -> None:
        self._bars = bars
        self._indexing: TaskID | None = None

    @contextmanager
    def bar(self, name: str, total: int) -> Iterator[Callable[[], None]]:
        """Show a bar, which what is yielded advances by one."""
        task = self._bars.add_task(name, total=total, detail="")
        yield lambda: self._bars.advance(task)

    def indexing(self, done: int, total: int) -> None:
        """Show how many documents are searchable."""
        if self._indexing is None or self._bars.tasks[self._indexing].finished:
            if done == total:
                return  # all of it was there
            self._indexing = self._bars.add_task("ingestion", total=total, detail="kept for the next run")
        self._bars.update(self._indexing, completed=done)
