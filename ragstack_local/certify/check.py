"""A check: one belief about AWS, what is expected if it is true, and how to observe it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from ragstack_local.certify.site import Site

Json: TypeAlias = Any
"""What JSON can hold."""

Observe: TypeAlias = Callable[["Site"], Json]

CHECK_SECONDS: Final = 300.0
"""How long a check may wait for something by default, without the time of what it shares with others."""

INVALID: Final = {"error": "ValidationException"}
"""What is expected of requests that AWS refuses."""


class NotTried(Exception):  # noqa: N818 - an outcome, not an error
    """The check cannot be tried here; the message says why."""


class Source(StrEnum):
    """Where a belief comes from, the weakest last."""

    MODEL = "service model"
    DOCUMENTATION = "documentation"
    THIRD_PARTY = "third parties"
    GUESS = "guess"


@dataclass(frozen=True, kw_only=True)
class Check:
    """One belief about AWS.

    Attributes:
        name: Its identity, with dots: ``filters.vectors.starts_with``. It never changes its meaning.
        topic: The checks of a topic run one after the other; topics run at the same time.
        belief: One sentence.
        source: Where the belief comes from.
        used_by: What in the project relies on it.
        held_in: The module of the local Bedrock that has the same fact; empty if none has.
        expected: What *observe* returns if the belief is true. It has no ids, names, times or content, so that
            it is the same in every account.
        observe: Tries it. An error of AWS that it lets through is observed as ``{"error": CODE}``.
        aws_only: Why it can only be tried on AWS; empty for the others.
        seconds: How long it may wait for something.
    """

    name: str
    topic: str
    belief: str
    source: Source
    used_by: str
    held_in: str = ""
    expected: Json
    observe: Observe
    aws_only: str = ""
    seconds: float = CHECK_SECONDS


@dataclass(frozen=True)
class Topic:
    """Checks of one subject, which have their function below them."""

    name: str
    used_by: str
    held_in: str
    checks: list[Check] = field(default_factory=list)

    def check(
        self,
        name: str,
        belief: str,
        source: Source,
        expected: Json,
        *,
        used_by: str = "",
        held_in: str = "",
        aws_only: str = "",
        seconds: float = CHECK_SECONDS,
    ) -> Callable[[Observe], Observe]:
        """Return a decorator that adds a function as the check ``TOPIC.NAME``."""

        def add(observe: Observe) -> Observe:
            self.checks.append(
                Check(
                    name=f"{self.name}.{name}",
                    topic=self.name,
                    belief=belief,
                    source=source,
                    used_by=used_by or self.used_by,
                    held_in=held_in or self.held_in,
                    expected=expected,
                    observe=observe,
                    aws_only=aws_only,
                    seconds=seconds,
                )
            )
            return observe

        return add


class Verdict(StrEnum):
    """How a check ended."""

    MATCHES = "matches"
    DIFFERS = "differs"
    NOT_TRIED = "not tried"


@dataclass(frozen=True)
class Outcome:
    """How a check ended, and what was observed, or why it was not tried."""

    check: Check
    verdict: Verdict
    observed: Json = None
    reason: str = ""
    seconds: float = 0.0
