"""The names of metrics and of their dimension, which functions write and alarms watch."""

from typing import Final

STACK: Final = "RAGSTACK_STACK"
"""The prefix of the stacks' names, which metrics have as a dimension."""

STACKS: Final = ("Storage", "Ingestion", "Api")
"""Names of every deployment's stacks, after the prefix."""

STACK_DIMENSION: Final = "stack"
"""The metric dimension that tells copies of the stacks in one account apart."""

ANSWERS_FAILED: Final = "AnswersFailed"
"""Metric: questions that ended with an error of the service, also those whose stream had begun."""

DEPLOYMENT_FAULTS: Final = "DeploymentFaults"
"""Metric: requests that failed because the deployment's own role or resources refuse, until an operator acts."""

UPSTREAM_THROTTLES: Final = "UpstreamThrottles"
"""Metric: requests that failed because AWS, or another store or model, takes no more of them now."""

SLICE_FAILURES: Final = "SliceFailures"
"""Metric: failed or late parts of searches, which answer with what the others found."""

MCP_FAILURES: Final = "McpFailures"
"""Metric: calls of tools over MCP that failed by no fault of the caller; they have the HTTP status 200."""
