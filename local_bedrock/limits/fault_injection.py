"""Fault injection: rules for which calls fail, how, and how often."""

import difflib
import json
import random
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any, Final

DEFAULT_LATENCY_MS: Final = 1000.0
DEFAULT_TRUNCATED_AFTER_BYTES: Final = 16


class FaultError(ValueError):
    """A rule is invalid."""


class Kind(StrEnum):
    """What happens to a call."""

    THROTTLING = "throttling"
    """ThrottlingException."""
    INTERNAL = "internal"
    """InternalServerException."""
    UNAVAILABLE = "unavailable"
    """ServiceUnavailableException."""
    CONFLICT = "conflict"
    """ConflictException; ServiceUnavailableException if the operation's model has no conflict."""
    CONTENTION = "contention"
    """The ValidationException with which direct ingestion reports concurrent work."""
    LATENCY = "latency"
    """The call succeeds after a delay."""
    DROP = "drop"
    """The connection is closed without a response."""
    TRUNCATE = "truncate"
    """The connection is closed in the middle of the response body."""


class When(StrEnum):
    """Whether a failing call does its work."""

    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True)
class FaultRule:
    """Which calls fail, and how.

    Attributes:
        operation: Pattern of operation names: ``Retrieve``, ``*Documents``, ``*``.
        rate: Share of the calls, above 0 and at most 1.
        count: Maximum number of faults; None for no maximum.
        when: ``after`` does the work and then loses the acknowledgement. Truncated calls always do the work.
        milliseconds: Delay for ``latency``.
        after_bytes: Bytes of the body that ``truncate`` lets through.
        seed: The same seed fails the same calls of a sequence.

    Raises:
        FaultError: A value is out of range.
    """

    kind: Kind
    operation: str = "*"
    rate: float = 1.0
    count: int | None = None
    when: When = When.BEFORE
    milliseconds: float = DEFAULT_LATENCY_MS
    after_bytes: int = DEFAULT_TRUNCATED_AFTER_BYTES
    seed: int = 0

    def __str__(self) -> str:
        """Return the rule as written on the command line, without default values."""
        others = [field for field in fields(self) if field.name != "operation"]
        changed = [field.name for field in others if getattr(self, field.name) != field.default]
        return ",".join(f"{name}={getattr(self, name)}" for name in ["operation", *changed])

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise FaultError(f"The rate of a fault must be above 0 and at most 1, not {self.rate:g}")
        if self.count is not None and self.count < 1:
            raise FaultError(f"The count of a fault must be at least 1, not {self.count}")
        if not 0 <= self.milliseconds < float("inf"):
            raise FaultError(f"The milliseconds of a fault must be at least 0, not {self.milliseconds:g}")
        if self.after_bytes < 0:
            raise FaultError(f"The after_bytes of a fault must be at least 0, not {self.after_bytes}")

    @classmethod
    def of_text(cls, text: str) -> "FaultRule":
        """Parse a rule such as ``operation=Retrieve,kind=throttling,rate=0.1``.

        Raises:
            FaultError: The rule is invalid; the message says what to write.
        """
        values: dict[str, Any] = {}
        for part in filter(None, (part.strip() for part in text.split(","))):
            name, equals, value = (piece.strip() for piece in part.partition("="))
            if not equals:
                raise FaultError(f"Write a fault as operation=Retrieve,kind=throttling,rate=0.1, not {part!r}")
            if name in values:
                raise FaultError(f"The fault {text!r} sets {name} twice")
            values[name] = value
        return cls.of_mapping(values)

    @classmethod
    def of_mapping(cls, values: Mapping[str, Any]) -> "FaultRule":
        """Make a rule from its attributes, which may be texts.

        Raises:
            FaultError: The rule is invalid; the message says what to write.
        """
        unknown = set(values) - set(_READERS)
        if unknown:
            raise FaultError(f"A fault has no {min(unknown)!r}: choose from {', '.join(_READERS)}")
        if "kind" not in values:
            raise FaultError(f"A fault needs a kind: choose from {', '.join(Kind)}")
        return cls(**{name: _READERS[name](name, value) for name, value in values.items() if value is not None})


@dataclass(frozen=True)
class Plan:
    """The faults of one call.

    Attributes:
        delay_seconds: Delay before the call.
        failure: The rule that makes it fail; None if it succeeds.
    """

    delay_seconds: float = 0.0
    failure: FaultRule | None = None

    @property
    def is_harmless(self) -> bool:
        """Whether no fault is injected."""
        return self.failure is None and not self.delay_seconds


class FaultInjection:
    """The active rules, each with its own random sequence.

    Raises:
        FaultError: A pattern matches no operation.
    """

    def __init__(self, rules: Iterable[FaultRule], operations: Sequence[str]) -> None:
        self._operations = operations
        self._lock = threading.Lock()
        self.replace(rules)

    def replace(self, rules: Iterable[FaultRule]) -> None:
        """Replace the rules, and reset counts and random sequences.

        Raises:
            FaultError: A pattern matches no operation; the old rules stay active.
        """
        active = [_Active(rule) for rule in rules]
        for one in active:
            self._check_pattern(one.rule.operation)
        with self._lock:
            self._active = active

    def rules(self) -> list[tuple[FaultRule, int]]:
        """List the active rules, each with the number of faults so far."""
        with self._lock:
            return [(active.rule, active.happened) for active in self._active]

    def plan(self, operation: str) -> Plan:
        """Decide about one call: delays add up, and the first failure applies."""
        delay_ms = 0.0
        with self._lock:
            for active in self._active:
                if not active.strikes(operation):
                    continue
                if active.rule.kind is not Kind.LATENCY:
                    return Plan(delay_ms / 1000, active.rule)
                delay_ms += active.rule.milliseconds
        return Plan(delay_ms / 1000)

    def _check_pattern(self, pattern: str) -> None:
        if not any(fnmatchcase(operation, pattern) for operation in self._operations):
            near = difflib.get_close_matches(pattern, self._operations)
            advice = f"did you mean {' or '.join(near)}?" if near else "write it as Retrieve, *Documents or *"
            raise FaultError(f"No operation matches {pattern!r}: {advice}")


class _Active:
    """A rule with its number of faults."""

    def __init__(self, rule: FaultRule) -> None:
        self.rule = rule
        self.happened = 0
        self._chance = random.Random(rule.seed)  # noqa: S311 - not a secret; every run fails the same calls

    def strikes(self, operation: str) -> bool:
        rule = self.rule
        if not fnmatchcase(operation, rule.operation) or self.happened == rule.count:
            return False
        if self._chance.random() >= rule.rate:
            return False
        self.happened += 1
        return True


def _choice(kind: type[StrEnum]) -> Any:
    def read(name: str, value: Any) -> StrEnum:
        try:
            return kind(value)
        except ValueError:
            raise FaultError(f"The {name} of a fault must be one of {', '.join(kind)}, not {value!r}") from None

    return read


def _number(kind: type[int] | type[float]) -> Any:
    def read(name: str, value: Any) -> float:
        try:
            number = json.loads(value) if isinstance(value, str) else value
        except ValueError:
            number = None
        if isinstance(number, bool) or not isinstance(number, int if kind is int else int | float):
            wanted = "a whole number" if kind is int else "a number"
            raise FaultError(f"The {name} of a fault must be {wanted}, not {value!r}")
        return number

    return read


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise FaultError(f"The {name} of a fault must be a name such as Retrieve, not {value!r}")
    return value


_READERS: Final[dict[str, Any]] = {
    "kind": _choice(Kind),
    "operation": _text,
    "rate": _number(float),
    "count": _number(int),
    "when": _choice(When),
    "milliseconds": _number(float),
    "after_bytes": _number(int),
    "seed": _number(int),
}
