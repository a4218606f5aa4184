"""The logger of the layer, and the sink of its metrics, which functions pass in."""

import logging
from typing import Final, Protocol

LOGGER: Final = logging.getLogger("ragstack")
"""Parent of the layer's loggers; functions add the handler of their structured logger."""


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
