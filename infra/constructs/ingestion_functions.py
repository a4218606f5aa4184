"""The functions of the ingestion path: from the documents bucket to the knowledge base."""

from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.acknowledgements import acknowledge
from infra.alarms import own_metric, raise_alarm
from infra.constructs.ingestion_path import IngestionPath
from infra.constructs.knowledge_base import FOLLOW, INGEST, RECONCILE, REMOVE, SEARCH
from infra.constructs.python_function import PythonFunction, reading_layer
from infra.constructs.queues import (
    CONVERTER_TIMEOUT_SECONDS,
    INGESTION_TIMEOUT_SECONDS,
    RECEIPTS_TIMEOUT_SECONDS,
    RECONCILE_TIMEOUT_SECONDS,
)
from infra.constructs.storage import DELETE, JOBS, LIST, PUT, READ, SCAN, UPDATE
from infra.context_types import OFF
from infra.options import Options
from ragstack_common.core.artefacts import MARK, TEXT_SUFFIX
from ragstack_common.core.uris import SIDECAR_SUFFIX
from ragstack_common.registry.table import CATALOGUE, GATE, RATE, SNAPSHOT
from ragstack_common.settings.ingestion import JOBS_NOT_COMPLETE, TEXTRACT, IngestionSettings, ReconcileSettings

MADE: Final = f"*{MARK}*"
"""Keys of what is made of documents."""


def receipts_function(scope: Construct, path: IngestionPath, options: Options) -> lambda_.Function:
    """Create the function that compares indexed documents with their files, and gives them their final status."""
    own = Construct(scope, "Receipts")
    function = PythonFunction(
        own,
        "Receipts",
        consequence="Documents stay INDEXING until it succeeds; searches find them, and none is lost.",
        description="Compares indexed documents with their files",
        environment=path.environment(IngestionSettings),
        folder="receipts",
        layers=[reading_layer(own, options)],
        # One whole processor, and room for what the largest files unpack to.
        memory_mb=1769,
        options=options,
        reads_access=True,
        settings=[IngestionSettings],
        timeout_seconds=RECEIPTS_TIMEOUT_SECONDS,
    ).function
    path.receipts.feed(function, at_once=options.invocations_at_once, messages=10)
    path.documents.grant(function, ["s3:GetObject"], "The function reads any document that was indexed")
    path.registry.grant(function, READ)
    path.registry.grant(function, [PUT, UPDATE])
    path.knowledge_base.grant(function, SEARCH)
    path.bus.grant_put_events_to(function)
    for receiver in (path.changes, path.jobs, path.dead_letters):
        receiver.queue.grant_send_messages(function)
    return function


def converter_function(scope: Construct, path: IngestionPath, options: Options) -> lambda_.Function:
    """Create the function that reads the text of documents whose format the knowledge base does not read."""
    own = Construct(scope, "Converter")
    function = PythonFunction(
        own,
        "Converter",
        consequence="Documents that need it wait until it succeeds; the others go on, and none is lost.",
        description="Converts documents to Markdown for the knowledge base",
        environment=path.environment(IngestionSettings),
        folder="converter",
        layers=[reading_layer(own, options)],
        # The process that reads files gets most of it.
        memory_mb=3008,
        options=options,
        reads_access=True,
        settings=[IngestionSettings],
        timeout_seconds=CONVERTER_TIMEOUT_SECONDS,
    ).function
    for queue in (path.conversions, path.large_conversions):
        queue.feed(function, at_once=options.invocations_at_once, messages=1)
    path.documents.grant(function, ["s3:GetObject"], "The function reads any document that it converts")
    path.documents.grant(
        function,
        ["s3:PutObject", "s3:DeleteObject"],
        "The function writes what it makes of documents next to them",
        keys=MADE,
    )
    for receiver in (path.changes, path.dead_letters):
        receiver.queue.grant_send_messages(function)
    if options.ingestion.recognition == TEXTRACT:
        iam.Grant.add_to_principal(actions=["textract:DetectDocumentText"], grantee=function, resource_arns=["*"])
        assert function.role is not None
        acknowledge(function.role, "IAM5", "Textract has no resources", finding="Resource::*")
    return function


def ingestion_functions(scope: Construct, path: IngestionPath, options: Options) -> dict[str, lambda_.Function]:
    """Create the functions that submit documents to the knowledge base, and follow them to their final status."""
    submit, follow = (
        PythonFunction(
            Construct(scope, construct_id),
            construct_id,
            consequence=consequence,
            description=description,
            environment=path.environment(IngestionSettings),
            folder=folder,
            memory_mb=512,
            options=options,
            reads_access=True,
            settings=[IngestionSettings],
            timeout_seconds=INGESTION_TIMEOUT_SECONDS,
        ).function
        for construct_id, folder, description, consequence in (
            (
                "Ingestion",
                "ingestion",
                "Submits new, changed and deleted documents to the knowledge base",
                "Documents wait, but none is lost: the queue redelivers their changes.",
            ),
            (
                "Status",
                "ingestion_status",
                "Follows submitted documents to their final status",
                "Documents stay INDEXING until it succeeds; none is lost: the queue redelivers its messages.",
            ),
        )
    )
    for function, queue, actions in ((submit, path.changes, INGEST), (follow, path.status, FOLLOW)):
        queue.feed(
            function,
            at_once=options.invocations_at_once,
            # Ten calls of ten documents. Source: bedrock-agent, KnowledgeBaseDocuments.
            messages=100,
            window_seconds=options.ingestion_batch_window_seconds,
        )
        path.registry.grant(function, READ)
        path.registry.grant(function, [PUT, UPDATE])
        path.knowledge_base.grant(function, actions)
        path.bus.grant_put_events_to(function)
        for receiver in (path.changes, path.status, path.receipts, path.jobs, path.dead_letters):
            receiver.queue.grant_send_messages(function)
    for receiver in (path.conversions, path.large_conversions):
        receiver.queue.grant_send_messages(submit)
    path.documents.grant(
        submit, ["s3:DeleteObject"], "The function deletes what was made of documents that are gone", keys=MADE
    )
    path.documents.grant(
        submit,
        ["s3:PutObject"],
        "The function copies the sidecars of documents to their converted text",
        keys=f"*{TEXT_SUFFIX}{SIDECAR_SUFFIX}",
    )
    path.documents.grant(submit, ["s3:GetObject"], "The function looks at any document of the bucket")
    if options.access_file:
        path.documents.grant(
            submit,
            ["s3:PutObject"],
            "The function writes the access labels of documents into their sidecars",
            keys=f"*{SIDECAR_SUFFIX}",
        )
    return {
        "ingestion": submit,
        "converter": converter_function(scope, path, options),
        "ingestion_status": follow,
        "receipts": receipts_function(scope, path, options),
    }


def reconcile_function(stack: Construct, path: IngestionPath, options: Options) -> lambda_.Function:
    """Create the function that compares bucket, registry and knowledge base, and the rule that starts it."""
    scope = Construct(stack, "Reconcile")
    function = PythonFunction(
        scope,
        "Reconcile",
        consequence="`ragstack reconcile` starts it again.",
        description="Compares bucket, registry and knowledge base, and repairs what differs",
        environment=path.environment(ReconcileSettings),
        folder="reconcile",
        # One whole processor, which reading pages keeps busy. Source: Lambda developer guide, memory and computing
        # power.
        memory_mb=1769,
        options=options,
        reads_access=True,
        settings=[ReconcileSettings],
        timeout_seconds=RECONCILE_TIMEOUT_SECONDS,
    ).function
    path.jobs.feed(function, messages=1)
    path.documents.grant(function)
    path.registry.grant(function, READ)
    path.registry.grant(function, LIST)
    path.registry.grant(function, SCAN)
    # Jobs with their reports, the gate of a full synchronisation, the rate of calls, corrected counts, and requests for
    # a snapshot.
    path.registry.grant(
        function, [PUT, UPDATE, DELETE], (*JOBS, GATE, f"{RATE}#*", CATALOGUE, f"{CATALOGUE}#*", SNAPSHOT)
    )
    path.snapshot.grant(function, "s3:GetObject", "s3:PutObject")
    # A document can be in the knowledge base of another tenant, or twice in its own, as a file and as converted text:
    # only this function removes it there.
    path.knowledge_base.grant(function, (*RECONCILE, *REMOVE))
    for receiver in (path.changes, path.jobs):
        receiver.queue.grant_send_messages(function)
    if options.reconcile_schedule != OFF:
        start = events.RuleTargetInput.from_object({"start": "reconcile", "by": "schedule"})
        events.Rule(
            scope,
            "Schedule",
            description="Starts a reconciliation",
            schedule=events.Schedule.expression(options.reconcile_schedule),
            targets=[targets.SqsQueue(path.jobs.queue, message=start)],
        )
    raise_alarm(
        scope,
        "JobAlarm",
        at_least=1,
        metric=own_metric(JOBS_NOT_COMPLETE, service="reconcile", options=options, period=Duration.minutes(15)),
        what_to_do=(
            "A reconciliation or synchronisation ended FAILED or INCOMPLETE: `ragstack failures` and the job's"
            " reason (GET /api/ingestion-jobs) say why. Remove the cause, then `ragstack reconcile` starts another"
        ),
    )
    raise_alarm(
        scope,
        "DifferenceAlarm",
        at_least=1,
        metric=own_metric(
            "ReconciliationDifferences",
            service="reconcile",
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
    return function
