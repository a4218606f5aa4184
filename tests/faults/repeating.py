"""Repeats an action during the workload, in its own thread."""

import itertools
import random
import threading
from abc import ABC, abstractmethod
from typing import Self


class Repeating(ABC):
    """Acts every few seconds on average until its context ends, *least* times in any case.

    An error ends it, and is raised at the end of the context.
    """

    def __init__(self, seconds_between: float, seed: int, least: int = 0) -> None:
        self.chance = random.Random(seed)
        self.is_over = threading.Event()
        self._seconds = seconds_between
        self._least = least
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.is_over.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    @abstractmethod
    def act(self) -> bool:
        """Act once; return whether to continue."""

    def _run(self) -> None:
        try:
            for acts in itertools.count():
                if self.is_over.wait(self.chance.uniform(0.5, 1.5) * self._seconds) and acts >= self._least:
                    return
                if not self.act():
                    return
        except Exception as failure:  # noqa: BLE001 - the caller of close raises it
            self._failure = failure
