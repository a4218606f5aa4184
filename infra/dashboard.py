"""CloudWatch dashboards: what the alarms of a stack watch, and what explains it."""

from collections.abc import Mapping, Sequence
from typing import Final

from aws_cdk import Stack
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.alarms import PERIOD, own_metric
from infra.options import Options
from ragstack_common.core.metrics import (
    ANSWERS_FAILED,
    DEPLOYMENT_FAULTS,
    MCP_FAILURES,
    SLICE_FAILURES,
    UPSTREAM_THROTTLES,
)
from ragstack_common.settings.ingestion import JOBS_NOT_COMPLETE

WIDGETS_IN_ROW: Final = 3
GRID_COLUMNS: Final = 24
"""Source: CloudWatch, dashboard body structure."""

Graphs = Mapping[str, Sequence[cloudwatch.IMetric]]


def add_dashboard(scope: Construct, construct_id: str, *, name: str, graphs: Graphs) -> None:
    """Add a dashboard with the states of the stack's alarms and some graphs, by their titles.

    A stack's dashboard shows its own resources: one for all stacks would import names from them, and CloudFormation
    replaces nothing whose name another stack imports. All Regions of an account share the *name*.
    """
    alarms = [each for each in Stack.of(scope).node.find_all() if isinstance(each, cloudwatch.Alarm)]
    states = cloudwatch.AlarmStatusWidget(
        alarms=alarms, height=1 + (len(alarms) + 3) // 4, title="Alarms", width=GRID_COLUMNS
    )
    widgets = [
        cloudwatch.GraphWidget(left=[*metrics], title=title, width=GRID_COLUMNS // WIDGETS_IN_ROW)
        for title, metrics in graphs.items()
    ]
    rows = [widgets[start : start + WIDGETS_IN_ROW] for start in range(0, len(widgets), WIDGETS_IN_ROW)]
    cloudwatch.Dashboard(scope, construct_id, dashboard_name=name, widgets=[[states], *rows])


def api_graphs(
    stage: apigateway.Stage, functions: Mapping[str, lambda_.IFunction], options: Options
) -> dict[str, list[cloudwatch.IMetric]]:
    """Return the graphs of the API: its requests, and the functions that answer them."""
    return {
        "Requests": [stage.metric_count(period=PERIOD), stage.metric_client_error(period=PERIOD)],
        "Server errors": [stage.metric_server_error(period=PERIOD)],
        "Latency": [stage.metric_latency(period=PERIOD, statistic=each) for each in ("p50", "p95", "p99")],
        **_function_graphs(functions),
        "Refused by own resources": [
            _counted(DEPLOYMENT_FAULTS, service=name, options=options) for name in sorted(functions)
        ],
        **{
            title: [_counted(metric, service=service, options=options) for service in services]
            for title, metric, services in (
                ("Throttled by AWS or a store", UPSTREAM_THROTTLES, ("query", "answers")),
                ("Failed parts of searches", SLICE_FAILURES, ("query", "answers")),
                ("Failed answers", ANSWERS_FAILED, ("answers",)),
                ("Failed calls of tools (MCP)", MCP_FAILURES, ("answers",)),
            )
        },
    }


def ingestion_graphs(
    queues: Mapping[str, sqs.IQueue], functions: Mapping[str, lambda_.IFunction], options: Options
) -> dict[str, list[cloudwatch.IMetric]]:
    """Return the graphs of the ingestion path: documents, queues, functions and jobs."""
    return {
        "Waiting messages": [
            queue.metric_approximate_number_of_messages_visible(label=name, period=PERIOD)
            for name, queue in queues.items()
        ],
        "Age of the oldest message": [
            queue.metric_approximate_age_of_oldest_message(label=name, period=PERIOD) for name, queue in queues.items()
        ],
        "Documents": [
            own_metric(metric, service=service, options=options)
            for metric, service in (
                ("DocumentsSubmitted", "ingestion"),
                ("DocumentsConverted", "converter"),
                ("DocumentsIndexed", "receipts"),
                ("PagesNotRead", "receipts"),
                ("DocumentsFailed", "ingestion_status"),
                ("MessagesRetried", "ingestion"),
                ("MessagesDeadLettered", "ingestion"),
            )
        ],
        "Seconds of a call to the knowledge base": [
            own_metric("SecondsPerCall", service=service, options=options, statistic=cloudwatch.Stats.AVERAGE).with_(
                label=service
            )
            for service in ("ingestion", "ingestion_status")
        ],
        **_function_graphs(functions),
        "Reconciliation": [
            own_metric(metric, service="reconcile", options=options)
            for metric in (JOBS_NOT_COMPLETE, "ReconciliationDifferences")
        ],
    }


def _function_graphs(functions: Mapping[str, lambda_.IFunction]) -> dict[str, list[cloudwatch.IMetric]]:
    return {
        "Failed invocations": [each.metric_errors(label=name, period=PERIOD) for name, each in functions.items()],
        "Refused invocations": [each.metric_throttles(label=name, period=PERIOD) for name, each in functions.items()],
        "Duration (p95)": [
            each.metric_duration(label=name, period=PERIOD, statistic="p95") for name, each in functions.items()
        ],
    }


def _counted(metric: str, *, service: str, options: Options) -> cloudwatch.Metric:
    return own_metric(metric, service=service, options=options).with_(label=service)
