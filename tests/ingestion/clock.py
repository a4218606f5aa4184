"""A clock that tests set."""

from dataclasses import dataclass


@dataclass
class Clock:
    """Seconds since 1970, which pass only when a test says so."""

    now: float = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds >= 0
        self.now += seconds
