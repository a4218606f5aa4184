"""What was called, how it ended and how long it took, counted while the local Bedrock runs."""

import threading
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any, Final

LATENCIES_KEPT: Final = 2048


@dataclass
class _Calls:
    calls: int = 0
    injected_faults: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    latencies_ms: deque[float] = field(default_factory=lambda: deque(maxlen=LATENCIES_KEPT))


class Metrics:
    """Counts by operation since the start; latencies of the last calls."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._operations: dict[str, _Calls] = {}

    def count(self, operation: str, *, milliseconds: float, error: str | None, is_injected: bool) -> None:
        """Count one call that has ended.

        Args:
            operation: Its name.
            milliseconds: From the request's last byte to the answer's.
            error: The code that it was answered with, if it failed.
            is_injected: Whether a fault was injected.
        """
        with self._lock:
            counted = self._operations.setdefault(operation, _Calls())
            counted.calls += 1
            counted.injected_faults += is_injected
            counted.latencies_ms.append(milliseconds)
            if error is not None:
                counted.errors[error] += 1

    def snapshot(self) -> dict[str, Any]:
        """Return, by operation: calls, errors by code, injected faults, and p50 and p99 of the latency."""
        with self._lock:
            return {name: _described(calls) for name, calls in sorted(self._operations.items())}


def _described(calls: _Calls) -> dict[str, Any]:
    ordered = sorted(calls.latencies_ms)
    return {
        "calls": calls.calls,
        "errors": dict(calls.errors),
        "injectedFaults": calls.injected_faults,
        "latencyMs": {"p50": round(_quantile(ordered, 0.50), 3), "p99": round(_quantile(ordered, 0.99), 3)},
    }


def _quantile(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
