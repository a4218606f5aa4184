"""How one thread tells others that there is work."""

import threading


class Bell:
    """Wakes whoever waits; what is rung between a look and the wait after it is not lost."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._rings = 0
        self._closed = False

    @property
    def rings(self) -> int:
        """How often it was rung."""
        return self._rings

    @property
    def closed(self) -> bool:
        """Whether everybody is to end."""
        return self._closed

    def ring(self) -> None:
        """Wake all that wait."""
        with self._condition:
            self._rings += 1
            self._condition.notify_all()

    def close(self) -> None:
        """Wake all for the last time."""
        self._closed = True
        self.ring()

    def wait(self, heard: int, seconds: float | None = None) -> None:
        """Wait until it is rung more often than ``heard``, at most ``seconds``."""
        with self._condition:
            self._condition.wait_for(lambda: self._closed or self._rings != heard, timeout=seconds)
