"""Where the layer's logs and metrics go: standard loggers, and a sink that the function hands in."""

import logging
from collections.abc import Mapping
from typing import Final, Protocol

from ragstack_common.config import STACK, STACK_DIMENSION

LOGGER: Final = logging.getLogger("ragstack")
"""Parent of the layer's loggers; a function lends it the handler of its structured logger."""


class MetricSink(Protocol):
    """Takes measurements; ``aws_lambda_powertools.Metrics`` is one."""

    def add_metric(self, name: str, unit: str, value: float) -> None:
        """Record one value; *unit* is a CloudWatch unit such as Count or Milliseconds."""


class NoMetrics:
    """Drops every measurement."""

    def add_metric(self, name: str, unit: str, value: float) -> None:
        """Do nothing."""


NO_METRICS: Final = NoMetrics()


def stack_dimension(env: Mapping[str, str]) -> dict[str, str]:
    """Return the metric dimension that tells copies of the stacks in one account apart; empty outside of a stack."""
    name = env.get(STACK, "").strip()
    return {STACK_DIMENSION: name} if name else {}
