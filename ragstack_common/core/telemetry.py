"""Where the layer's logs and metrics go: standard loggers, and a sink that the function hands in."""

import logging
from typing import Final, Protocol

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

    def flush_metrics(self) -> None:
        """Do nothing."""


NO_METRICS: Final = NoMetrics()
