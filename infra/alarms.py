"""CloudWatch alarms: their thresholds, descriptions and notifications."""

from typing import Final

from aws_cdk import CrossStackReferences, Duration, ReferenceStrength, Stack
from aws_cdk import aws_budgets as budgets
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct, IConstruct

from infra.options import Options
from ragstack_common.core.metrics import (
    ANSWERS_FAILED,
    DEPLOYMENT_FAULTS,
    MCP_FAILURES,
    SLICE_FAILURES,
    STACK_DIMENSION,
    UPSTREAM_THROTTLES,
)

METRICS_NAMESPACE: Final = "RAGStack"

PERIOD: Final = Duration.minutes(5)

FAILURES: Final = 5
"""Failures within five minutes; a single one may be a request during a deployment, which callers retry."""


def own_metric(
    name: str,
    *,
    service: str,
    options: Options,
    period: Duration = PERIOD,
    statistic: str = cloudwatch.Stats.SUM,
) -> cloudwatch.Metric:
    """A metric that the function in the folder *service* records, for this deployment only."""
    return cloudwatch.Metric(
        dimensions_map={"service": service, STACK_DIMENSION: options.prefix},
        metric_name=name,
        namespace=METRICS_NAMESPACE,
        period=period,
        statistic=statistic,
    )


def raise_alarm(
    scope: Construct,
    construct_id: str,
    *,
    at_least: float,
    metric: cloudwatch.IMetric,
    what_to_do: str,
    periods: int = 1,
) -> None:
    """Add an alarm that fires when *metric* is *at_least* this for *periods*; missing data doesn't trigger it."""
    cloudwatch.Alarm(
        scope,
        construct_id,
        alarm_description=what_to_do,
        comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
        evaluation_periods=periods,
        metric=metric,
        threshold=at_least,
        treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
    )


def watch_function(
    scope: Construct, function: lambda_.Function, *, name: str, consequence: str, fails_on_purpose: bool = False
) -> None:
    """Add the alarms that every function has; a timeout counts as an error. *consequence* is added to both texts.

    A function that *fails_on_purpose* has no alarm about errors.
    """
    refused = (
        f"Lambda refused to run the function {name}: the account's concurrent executions are used up. Look for the"
        " function that uses them, or request a higher quota."
    )
    alarms = {
        "FailureAlarm": (function.metric_errors, f"The function {name} failed: its log says why."),
        "ThrottleAlarm": (function.metric_throttles, refused),
    }
    if fails_on_purpose:
        del alarms["FailureAlarm"]
    for construct_id, (metric, cause) in alarms.items():
        raise_alarm(
            scope,
            construct_id,
            at_least=1,
            metric=metric(period=PERIOD),
            what_to_do=f"{cause} {consequence}",
        )


def watch_service(
    scope: Construct, *, service: str, options: Options, searches: bool = False, answers: bool = False
) -> None:
    """Alarm on what callers of the function *service* cannot change, or API Gateway counts as a success."""

    def alarm(construct_id: str, name: str, what_to_do: str, at_least: int = FAILURES) -> None:
        metric = own_metric(name, service=service, options=options)
        raise_alarm(scope, construct_id, at_least=at_least, metric=metric, what_to_do=what_to_do)

    log = f"the log of the function {service} says why"
    alarm(
        "FaultsAlarm",
        DEPLOYMENT_FAULTS,
        f"The function {service} lost something that it needs, and callers get 5xx until it is restored: a permission"
        " of its role, the knowledge base, a table, queue or bucket, access to a model, or the issuer of tokens. Or a"
        " caller has more access labels than a search can have. Its log says which",
        at_least=1,
    )
    if searches:
        alarm(
            "UpstreamThrottlesAlarm",
            UPSTREAM_THROTTLES,
            f"Requests to the function {service} get 429, because Amazon Bedrock, another store or the model throttles"
            " them. If it lasts, request a higher quota, or lower api_requests_per_second",
        )
        alarm(
            "SliceFailuresAlarm",
            SLICE_FAILURES,
            "Parts of searches fail or miss the deadline, and callers get the results of the others (status 200,"
            f" `complete` is false): {log}",
        )
    if answers:
        alarm(
            "FailedAlarm",
            ANSWERS_FAILED,
            "Questions end with an error of the service, some after their stream has begun, which API Gateway counts as"
            f" a success: {log}, most likely that the model or the search fails or does not answer in time",
        )
        alarm(
            "McpFailuresAlarm",
            MCP_FAILURES,
            f"Tools of the Model Context Protocol fail, which API Gateway counts as a success: {log}",
        )


def choose_topic(scope: Construct, options: Options) -> sns.ITopic | None:
    """The topic that alarms notify: the deployer's, one that sends e-mail, or None if neither was chosen."""
    if options.alarm_topic:
        return sns.Topic.from_topic_arn(scope, "AlarmTopic", options.alarm_topic)
    if not options.alarm_email:
        return None
    topic = sns.Topic(scope, "Alarms", display_name=f"{options.prefix} alarms", enforce_ssl=True)
    # A custom policy replaces the default one, which lets the account's alarms publish.
    own_account = {"StringEquals": {"aws:SourceAccount": Stack.of(scope).account}}
    topic.add_to_resource_policy(
        iam.PolicyStatement(
            actions=["sns:Publish"],
            conditions=own_account,
            principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
            resources=[topic.topic_arn],
        )
    )
    topic.add_subscription(subscriptions.EmailSubscription(options.alarm_email))
    # Exported, it could not be removed while another stack's alarms name it.
    CrossStackReferences.of(topic).produce(ReferenceStrength.WEAK)
    return topic


def add_budget(scope: Construct, options: Options) -> None:
    """Add the budget that the deployer chose, which notifies as the alarms do, by AWS's own e-mail.

    Without a name, because CloudFormation replaces a budget whose notifications change, and names are unique.
    """
    if options.monthly_budget is None:
        return
    is_topic = options.alarm_topic is not None
    subscriber = budgets.CfnBudget.SubscriberProperty(
        address=str(options.alarm_topic or options.alarm_email), subscription_type="SNS" if is_topic else "EMAIL"
    )
    budgets.CfnBudget(
        scope,
        "Budget",
        budget=budgets.CfnBudget.BudgetDataProperty(
            budget_limit=budgets.CfnBudget.SpendProperty(amount=options.monthly_budget, unit="USD"),
            budget_type="COST",
            time_unit="MONTHLY",
        ),
        notifications_with_subscribers=[
            budgets.CfnBudget.NotificationWithSubscribersProperty(
                notification=budgets.CfnBudget.NotificationProperty(
                    comparison_operator="GREATER_THAN", notification_type=kind, threshold=100
                ),
                subscribers=[subscriber],
            )
            for kind in ("FORECASTED", "ACTUAL")
        ],
    )


def notify(topic: sns.ITopic | None, scope: IConstruct) -> None:
    """Notify a topic of every alarm below *scope*."""
    if topic is None:
        return
    action = actions.SnsAction(topic)
    for construct in scope.node.find_all():
        if isinstance(construct, cloudwatch.Alarm):
            construct.add_alarm_action(action)  # and no OK action: every new alarm goes to OK once
