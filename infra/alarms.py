"""The one way to make an alarm: it rings at the first period that reaches its threshold, and says what to do."""

from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct


def raise_alarm(
    scope: Construct, construct_id: str, *, at_least: float, metric: cloudwatch.IMetric, what_to_do: str
) -> None:
    """Ring while *metric* is *at_least* so much; silence is no reason to ring."""
    cloudwatch.Alarm(
        scope,
        construct_id,
        alarm_description=what_to_do,
        comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
        evaluation_periods=1,
        metric=metric,
        threshold=at_least,
        treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
    )
