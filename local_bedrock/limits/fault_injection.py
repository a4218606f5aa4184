"""Fault injection: rules for which calls fail, how, and how often."""

import random
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass as plain_dataclass
from dataclasses import fields
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass


class FaultError(ValueError):
    """A rule is invalid."""


class Kind(StrEnum):
    """Kinds of faults."""

    THROTTLING = "throttling"
    """ThrottlingException."""
    INTERNAL = "internal"
    """InternalServerException."""
    UNAVAILABLE = "unavailable"
    """ServiceUnavailableException."""
    CONFLICT = "conflict"
    """ConflictException; ServiceUnavailableException if the operation's model has no conflict."""
    DENIED = "denied"
    """AccessDeniedException; the message names the IAM action."""
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


@dataclass(frozen=True, config={"extra": "forbid"})
class FaultRule:
    """Which calls fail, and how.

    Attributes:
        operation: Pattern of operation names: ``Retrieve``, ``*Documents``, ``*``.
        rate: Share of the calls.
        count: Maximum number of faults; None for no maximum.
        when: ``after`` does the work and then loses the acknowledgement. Truncated calls always do the work.
        milliseconds: Delay for ``latency``.
        after_bytes: Bytes of the body that ``truncate`` lets through.
        seed: The same seed fails the same calls of a sequence.

    Raises:
        ValidationError: A value is out of range.
    """

    kind: Kind
    operation: Annotated[str, Field(min_length=1)] = "*"
    rate: Annotated[float, Field(gt=0, le=1)] = 1.0
    count: Annotated[int, Field(ge=1)] | None = None
    when: When = When.BEFORE
    milliseconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1000.0
    after_bytes: Annotated[int, Field(ge=0)] = 16
    seed: int = 0

    def __str__(self) -> str:
        """Return the rule as written on the command line, without default values."""
        others = [field for field in fields(self) if field.name != "operation"]
        changed = [field.name for field in others if getattr(self, field.name) != field.default]
        return ",".join(f"{name}={getattr(self, name)}" for name in ["operation", *changed])

    @classmethod
    def parse(cls, text: str) -> "FaultRule":
        """Parse a rule such as ``operation=Retrieve,kind=throttling,rate=0.1``.

        Raises:
            FaultError: The rule is invalid.
        """
        parts = (part.partition("=") for part in text.split(","))
        return cls.from_mapping({name.strip(): value.strip() for name, _, value in parts})

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> "FaultRule":
        """Make a rule from its attributes.

        Raises:
            FaultError: The rule is invalid.
        """
        try:
            return TypeAdapter(cls).validate_python(values)
        except ValidationError as error:
            reasons = "; ".join(f"{each['loc'][0]}: {each['msg']}" for each in error.errors())
            raise FaultError(f"{reasons}. Write a fault as operation=Retrieve,kind=throttling,rate=0.1") from error


@plain_dataclass(frozen=True)
class FaultPlan:
    """The faults of one call.

    Attributes:
        delay_seconds: Delay before the call.
        failure: The rule that makes it fail; None if it succeeds.
    """

    delay_seconds: float = 0.0
    failure: FaultRule | None = None


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
        for pattern in (each.rule.operation for each in active):
            if not any(fnmatchcase(operation, pattern) for operation in self._operations):
                raise FaultError(f"No operation matches {pattern!r}: write it as Retrieve, *Documents or *")
        with self._lock:
            self._active = active

    def rules(self) -> list[tuple[FaultRule, int]]:
        """List the active rules, each with the number of faults so far."""
        with self._lock:
            return [(active.rule, active.happened) for active in self._active]

    def plan(self, operation: str) -> FaultPlan:
        """Decide about one call: delays add up, and the first failure applies."""
        delay_ms = 0.0
        with self._lock:
            for active in self._active:
                if not active.strikes(operation):
                    continue
                if active.rule.kind is not Kind.LATENCY:
                    return FaultPlan(delay_ms / 1000, active.rule)
                delay_ms += active.rule.milliseconds
        return FaultPlan(delay_ms / 1000)


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
