"""The one way to make a function."""

from collections.abc import Mapping
from typing import Final

from aws_cdk import Duration, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra.acknowledgements import acknowledge
from infra.alarms import METRICS_NAMESPACE, watch_function
from infra.layers import ROOT, common_layer, dependencies_layer
from infra.options import Options
from ragstack_common import config

RUNTIME: Final = lambda_.Runtime.PYTHON_3_14
ARCHITECTURE: Final = lambda_.Architecture.ARM_64
LOG_RETENTION: Final = logs.RetentionDays.ONE_MONTH
NOT_DEPLOYED: Final = ("__pycache__", "*.pyc")


class PythonFunction(Construct):
    """A function of ``lambdas/``, on arm64 and Lambda's newest Python, with the shared layers.

    Attributes:
        function: The function.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        consequence: str,
        description: str,
        environment: Mapping[str, str],
        folder: str,
        memory_mb: int,
        options: Options,
        timeout_seconds: int,
    ) -> None:
        super().__init__(scope, construct_id)
        log_group = logs.LogGroup(self, "Logs", removal_policy=RemovalPolicy.DESTROY, retention=LOG_RETENTION)
        # Lambda's own managed policy would allow every log group of the account.
        role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        log_group.grant_write(role)
        acknowledge(role, "IAM5", "X-Ray has no resources that a policy could name", finding="Resource::*")
        self.function = lambda_.Function(
            self,
            "Function",
            architecture=ARCHITECTURE,
            code=lambda_.Code.from_asset(str(ROOT / "lambdas" / folder), exclude=[*NOT_DEPLOYED]),
            description=description,
            environment={
                "LOG_LEVEL": "INFO",
                "POWERTOOLS_METRICS_NAMESPACE": METRICS_NAMESPACE,
                "POWERTOOLS_SERVICE_NAME": folder,
                config.STACK: options.prefix,
                **_local_endpoints(options),
                **environment,
            },
            handler="handler.handler",
            layers=shared_layers(Stack.of(self), options),
            log_group=log_group,
            memory_size=memory_mb,
            role=role,
            runtime=RUNTIME,
            timeout=Duration.seconds(timeout_seconds),
            tracing=lambda_.Tracing.ACTIVE,
        )
        watch_function(self, self.function, name=folder, timeout_seconds=timeout_seconds, consequence=consequence)


def shared_layers(stack: Stack, options: Options) -> list[lambda_.ILayerVersion]:
    """The layers of *stack*. Each stack has its own: a version that another stack imports could never be replaced."""
    assets = {
        "DependenciesLayer": options.dependencies_layer or dependencies_layer(options.target),
        "CommonLayer": common_layer(),
    }
    return [_layer(stack, construct_id, str(path)) for construct_id, path in assets.items()]


def _layer(stack: Stack, construct_id: str, path: str) -> lambda_.ILayerVersion:
    existing = stack.node.try_find_child(construct_id)
    if isinstance(existing, lambda_.LayerVersion):
        return existing
    return lambda_.LayerVersion(
        stack,
        construct_id,
        code=lambda_.Code.from_asset(path),
        compatible_architectures=[ARCHITECTURE],
        compatible_runtimes=[RUNTIME],
    )


def _local_endpoints(options: Options) -> dict[str, str]:
    """Send the unmodified clients to the local Bedrock. Source: botocore, service-specific endpoints."""
    if options.bedrock_endpoint is None:
        return {}
    names = ("AWS_ENDPOINT_URL_BEDROCK_AGENT", "AWS_ENDPOINT_URL_BEDROCK_AGENT_RUNTIME")
    return dict.fromkeys(names, options.bedrock_endpoint)
