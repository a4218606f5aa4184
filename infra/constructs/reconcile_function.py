"""The function that compares bucket, registry and knowledge base, and the rule that starts it."""

from typing import Final

from aws_cdk import Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from constructs import Construct

from infra.alarms import own_metric, raise_alarm
from infra.constructs.document_registry import DELETE, JOBS, PUT, UPDATE
from infra.constructs.ingestion_path import IngestionPath
from infra.constructs.python_function import PythonFunction
from infra.options import Options
from ragstack_common import config
from ragstack_common.registry.table import CATALOGUE, DOCUMENT, GATE, RATE

FOLDER: Final = "reconcile"

RECONCILE_MEMORY_MB: Final = 1769
"""One whole processor, which reading pages keeps busy. Source: Lambda developer guide, memory and computing power."""

RECONCILE_TIMEOUT_SECONDS: Final = 900
"""The longest that Lambda offers."""

DIFFERENCES_METRIC: Final = "ReconciliationDifferences"

WRITTEN_PARTITIONS: Final = (*JOBS, GATE, f"{RATE}#*", CATALOGUE, f"{DOCUMENT}#*")
"""Reports, the gate of a full synchronisation, turns to call, counts that it corrects, and records that nobody can
read, which it makes anew."""

READ_VARIABLES: Final = (config.INGESTION_CALLS_PER_SECOND, config.STATUS_GIVE_UP_SECONDS)
"""Settings of the other functions that this one has to know."""

NIGHTLY: Final = {"start": "reconcile", "by": "schedule"}


class ReconcileFunction(Construct):
    """Compares what should be with what is, page by page, and asks for what differs to be looked at again."""

    def __init__(self, scope: Construct, construct_id: str, *, path: IngestionPath, options: Options) -> None:
        super().__init__(scope, construct_id)
        function = PythonFunction(
            self,
            "Reconcile",
            consequence="`ragstack reconcile` starts it again.",
            description="Compares bucket, registry and knowledge base, and repairs what differs",
            environment={
                config.KNOWLEDGE_BASE_ID: path.knowledge_base.knowledge_base_id,
                config.DATA_SOURCE_ID: path.knowledge_base.data_source_id,
                config.REGISTRY_TABLE: path.registry.table.table_name,
                config.DOCUMENTS_BUCKET: path.documents.bucket.bucket_name,
                config.INGESTION_QUEUE_URL: path.changes.queue.queue_url,
                config.JOBS_QUEUE_URL: path.jobs.queue.queue_url,
                **{name: value for name, value in options.ingestion_variables.items() if name in READ_VARIABLES},
                **options.reconcile_variables,
            },
            folder=FOLDER,
            memory_mb=RECONCILE_MEMORY_MB,
            options=options,
            timeout_seconds=RECONCILE_TIMEOUT_SECONDS,
        ).function
        path.jobs.feed(function, messages=1)
        path.documents.grant_list(function)
        path.registry.grant_read(function)
        path.registry.grant_list(function)
        path.registry.grant_scan(function)
        path.registry.grant_write(function, [PUT, UPDATE, DELETE], WRITTEN_PARTITIONS)
        path.knowledge_base.grant_reconciliation(function, Stack.of(self))
        for receiver in (path.changes, path.jobs):
            receiver.queue.grant_send_messages(function)
        if options.reconcile_schedule:
            self._start_by(options.reconcile_schedule, path)
        raise_alarm(
            self,
            "JobAlarm",
            at_least=1,
            metric=own_metric(config.JOBS_NOT_COMPLETE, service=FOLDER, options=options, period=Duration.minutes(15)),
            what_to_do=(
                "A reconciliation or synchronisation ended FAILED or INCOMPLETE: `ragstack failures` and the job's"
                " reason (GET /api/ingestion-jobs) say why. Remove the cause, then `ragstack reconcile` starts another"
            ),
        )
        raise_alarm(
            self,
            "DifferenceAlarm",
            at_least=1,
            metric=own_metric(
                DIFFERENCES_METRIC,
                service=FOLDER,
                options=options,
                period=Duration.hours(1),
                statistic=cloudwatch.Stats.MAXIMUM,
            ),
            what_to_do=(
                "Bucket, registry and knowledge base differed, and what differed is being repaired: the job's report"
                " (GET /api/ingestion-jobs) names it. If it happens again, events are lost: look at the bucket's"
                " notifications and the log of the function ingestion"
            ),
        )

    def _start_by(self, schedule: str, path: IngestionPath) -> None:
        """Send by a rule; the queue takes it from this rule alone."""
        queue = targets.SqsQueue(path.jobs.queue, message=events.RuleTargetInput.from_object(NIGHTLY))
        events.Rule(
            self,
            "Schedule",
            description="Starts a reconciliation",
            schedule=events.Schedule.expression(schedule),
            targets=[queue],
        )
