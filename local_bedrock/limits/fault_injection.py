"""Faults on purpose: rules that say which calls fail, how, and how often."""

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
    """A rule says something that cannot be done."""


class Kind(StrEnum):
    """What happens to a call."""

    THROTTLING = "throttling"
    """ThrottlingException."""
    INTERNAL = "internal"
    """InternalServerException."""
    UNAVAILABLE = "unavailable"
    """ServiceUnavailableException."""
    CONFLICT = "conflict"
    """ConflictException; ServiceUnavailableException where the operation's model has no conflict."""
    CONTENTION = "contention"
    """The ValidationException by which direct ingestion reports that other work is going on."""
    LATENCY = "latency"
    """The call succeeds, later."""
    DROP = "drop"
    """The connection is closed without an answer."""
    TRUNCATE = "truncate"
    """The connection is closed in the middle of the answer's body."""


class When(StrEnum):
    """Whether the work of a call that fails is done."""

    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True)
class FaultRule:
    """Which calls fail, and how.

    Attributes:
        kind: What happens.
        operation: A pattern for names of operations: ``Retrieve``, ``*Documents``, ``*``.
        rate: Share of those calls that it happens to, over 0 up to 1.
        count: How many times it happens at most; None for ever.
        when: ``after`` does the work and then loses the acknowledgement. A truncated call is always worked on.
        milliseconds: How long ``latency`` lasts.
        after_bytes: How much of the body ``truncate`` lets through.
        seed: The same seed fails the same calls of a sequence.

    Raises:
        FaultError: A value is out of its range.
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
        """Return it as it is written on the command line, without what is as by default."""
        values = {field.name: (getattr(self, field.name), field.default) for field in fields(self)}
        told = [f"{name}={value}" for name, (value, default) in values.items() if value != default]
        return ",".join([f"operation={self.operation}", *(part for part in told if not part.startswith("operation="))])

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise FaultError(f"The rate of a fault is over 0 and at most 1, not {self.rate:g}")
        if self.count is not None and self.count < 1:
            raise FaultError(f"The count of a fault is 1 or more, not {self.count}")
        if not 0 <= self.milliseconds < float("inf"):
            raise FaultError(f"The milliseconds of a fault are 0 or more, not {self.milliseconds:g}")
        if self.after_bytes < 0:
            raise FaultError(f"The after_bytes of a fault are 0 or more, not {self.after_bytes}")

    @classmethod
    def of_text(cls, text: str) -> "FaultRule":
        """Read a rule such as ``operation=Retrieve,kind=throttling,rate=0.1``.

        Raises:
            FaultError: It cannot be read; the message says what to write.
        """
        values: dict[str, Any] = {}
        for part in filter(None, (part.strip() for part in text.split(","))):
            name, equals, value = (piece.strip() for piece in part.partition("="))
            if not equals:
                raise FaultError(f"A fault is written as operation=Retrieve,kind=throttling,rate=0.1: not {part!r}")
            if name in values:
                raise FaultError(f"The fault {text!r} gives {name} twice")
            values[name] = value
        return cls.of_mapping(values)

    @classmethod
    def of_mapping(cls, values: Mapping[str, Any]) -> "FaultRule":
        """Read a rule from its attributes, as text or as JSON has them.

        Raises:
            FaultError: It cannot be read; the message says what to write.
        """
        unknown = set(values) - set(_READERS)
        if unknown:
            raise FaultError(f"A fault has no {_first(unknown)}: choose from {', '.join(_READERS)}")
        if "kind" not in values:
            raise FaultError(f"A fault needs a kind: choose from {', '.join(Kind)}")
        return cls(**{name: _READERS[name](name, value) for name, value in values.items() if value is not None})


@dataclass(frozen=True)
class Plan:
    """What happens to one call.

    Attributes:
        delay_seconds: Before anything else.
        failure: The rule that it fails by; None lets it succeed.
    """

    delay_seconds: float = 0.0
    failure: FaultRule | None = None

    @property
    def is_harmless(self) -> bool:
        """Whether nothing was injected."""
        return self.failure is None and not self.delay_seconds


class FaultInjection:
    """The rules in force, each with its own sequence of chances.

    Args:
        rules: To begin with.
        operations: Names that the patterns are checked against.

    Raises:
        FaultError: A pattern fits no operation.
    """

    def __init__(self, rules: Iterable[FaultRule], operations: Sequence[str]) -> None:
        self._operations = operations
        self._lock = threading.Lock()
        self.replace(rules)

    def replace(self, rules: Iterable[FaultRule]) -> None:
        """Put other rules in force; counts and chances begin anew.

        Raises:
            FaultError: A pattern fits no operation; nothing has changed then.
        """
        active = [_Active(rule) for rule in rules]
        for one in active:
            self._check_pattern(one.rule.operation)
        with self._lock:
            self._active = active

    def rules(self) -> list[tuple[FaultRule, int]]:
        """List the rules in force, each with how many times it has happened."""
        with self._lock:
            return [(active.rule, active.happened) for active in self._active]

    def plan(self, operation: str) -> Plan:
        """Decide about one call: delays add up, and the first rule that makes it fail does."""
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
            raise FaultError(f"No operation fits {pattern!r}: {advice}")


class _Active:
    """A rule and what it has done."""

    def __init__(self, rule: FaultRule) -> None:
        self.rule = rule
        self.happened = 0
        self._chance = random.Random(rule.seed)  # noqa: S311 - no secret; the same calls fail at every run

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
            raise FaultError(f"The {name} of a fault is one of {', '.join(kind)}, not {value!r}") from None

    return read


def _number(kind: type[int] | type[float]) -> Any:
    def read(name: str, value: Any) -> float:
        try:
            number = json.loads(value) if isinstance(value, str) else value
        except ValueError:
            number = None
        if isinstance(number, bool) or not isinstance(number, int if kind is int else int | float):
            wanted = "a whole number" if kind is int else "a number"
            raise FaultError(f"The {name} of a fault is {wanted}, not {value!r}")
        return number

    return read


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise FaultError(f"The {name} of a fault is a name such as Retrieve, not {value!r}")
    return value


def _first(names: set[str]) -> str:
    return repr(min(names))


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
assert list(_READERS) == [field.name for field in fields(FaultRule)]
