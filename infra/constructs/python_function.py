"""One function of ``lambdas/``: its code, layers, role, logs and alarms."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from aws_cdk import Acknowledgment, Duration, RemovalPolicy, Stack, Validations
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra.acknowledgements import acknowledge
from infra.alarms import METRICS_NAMESPACE, watch_function
from infra.checks import check_variables
from infra.layers import (
    ACCESS_FILE,
    VIEWER,
    common_layer,
    dependencies_layer,
    extra_layer,
    function_code,
    local_access_file,
)
from infra.options import Options
from infra.target import Target
from ragstack_common.core.metrics import STACK
from ragstack_common.http.route_table import ROUTES
from ragstack_common.settings.base import Settings

ARCHITECTURE: Final = lambda_.Architecture.ARM_64
LOG_RETENTION: Final = logs.RetentionDays.ONE_MONTH
AUDIT_RETENTION: Final = logs.RetentionDays.ONE_YEAR

API_FUNCTIONS: Final = frozenset(route.function for route in ROUTES.values())
"""The functions that the API calls, which get the names of API keys."""

DEPLOYED_ACCESS_FILE: Final = f"/var/task/{ACCESS_FILE}"
"""Source: Lambda developer guide, deployment packages: a function's code is in /var/task."""


ALIAS: Final = "live"
"""Name of the latest version of a function that starts from a snapshot; only versions have one."""


class PythonFunction(Construct):
    """A function of ``lambdas/``, with the shared layers, logs, traces and alarms.

    Args:
        consequence: What the alarms say about a failure: one or more sentences.
        folder: Its folder in ``lambdas/``, which also names it in logs and metrics.
        settings: The models of the settings that it reads; the deployer's choices for them become variables.
        environment: The variables that only the stacks know.
        handler: What Lambda calls, or starts.
        layers: Layers that only this function has.
        searches: Whether it searches: it gets the layers of engines and of the export of spans, and is in the VPC that
            the deployer chose.
        reads_access: Whether it reads the access file, if the deployer gave one.
        fails_on_purpose: Whether its errors need no alarm.
        reserved_concurrency: Maximum concurrent executions, which other functions cannot use.
        starts_from_snapshot: Whether callers wait for it, so that its versions have a snapshot if the deployer chose
            `snap_start`; then :func:`invoked` is what callers invoke.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        consequence: str,
        description: str,
        folder: str,
        memory_mb: int,
        options: Options,
        timeout_seconds: int,
        settings: Sequence[type[Settings]] = (),
        environment: Mapping[str, str] | None = None,
        handler: str = "handler.handler",
        layers: Sequence[lambda_.ILayerVersion] = (),
        searches: bool = False,
        reads_access: bool = False,
        fails_on_purpose: bool = False,
        reserved_concurrency: int | None = None,
        starts_from_snapshot: bool = False,
    ) -> None:
        super().__init__(scope, construct_id)
        log_group = new_log_group(self, "Logs", options)
        # Lambda's own managed policy would allow every log group of the account.
        role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        log_group.grant_write(role)
        acknowledge(role, "IAM5", "X-Ray has no resources that a policy could name", finding="Resource::*")
        access = options.access_file if reads_access else None
        is_local = options.target is Target.LOCAL
        has_snapshot = starts_from_snapshot and options.snap_start
        access_path = local_access_file(access) if access and is_local else DEPLOYED_ACCESS_FILE
        variables = {
            "LOG_LEVEL": "INFO",
            "POWERTOOLS_METRICS_NAMESPACE": METRICS_NAMESPACE,
            "POWERTOOLS_SERVICE_NAME": folder,
            STACK: options.prefix,
            **_local_endpoints(options),
            **(environment or {}),
            **({"ACCESS_FILE": str(access_path)} if access else {}),
            **options.environment(*settings),
        }
        api_keys = options.api_keys if folder in API_FUNCTIONS else ()
        check_variables(folder, Stack.of(self).resolve(variables), api_keys)
        self.function = lambda_.Function(
            self,
            "Function",
            architecture=ARCHITECTURE,
            code=lambda_.Code.from_asset(str(function_code(folder, options.target, None if is_local else access))),
            description=description,
            environment=variables,
            handler=handler,
            layers=[*_shared_layers(Stack.of(self), options, with_engines=searches), *layers],
            log_group=log_group,
            memory_size=memory_mb,
            reserved_concurrent_executions=reserved_concurrency,
            role=role,
            runtime=lambda_.Runtime.PYTHON_3_14,
            snap_start=lambda_.SnapStartConf.ON_PUBLISHED_VERSIONS if has_snapshot else None,
            timeout=Duration.seconds(timeout_seconds),
            tracing=lambda_.Tracing.ACTIVE,
        )
        if searches and options.vpc_subnet_ids and options.vpc_security_group_ids:
            self._join(options.vpc_subnet_ids, options.vpc_security_group_ids)
        if has_snapshot:
            # The version before it is deleted, with its snapshot, when nothing refers to it any more.
            self.function.add_alias(ALIAS)
            finding = "Annotation::@aws-cdk/aws-lambda:snapStartRequirePublish"
            Validations.of(self.function).acknowledge(Acknowledgment(id=finding, reason="The alias has a version"))
        watch_function(self, self.function, name=folder, consequence=consequence, fails_on_purpose=fails_on_purpose)

    def _join(self, subnet_ids: Sequence[str], security_group_ids: Sequence[str]) -> None:
        resource = self.function.node.default_child
        assert isinstance(resource, lambda_.CfnFunction)
        resource.vpc_config = lambda_.CfnFunction.VpcConfigProperty(
            subnet_ids=[*subnet_ids], security_group_ids=[*security_group_ids]
        )
        # Source: Lambda developer guide, required IAM permissions for functions in a VPC.
        self.function.add_to_role_policy(
            iam.PolicyStatement(
                actions=[
                    "ec2:AssignPrivateIpAddresses",
                    "ec2:CreateNetworkInterface",
                    "ec2:DeleteNetworkInterface",
                    "ec2:DescribeNetworkInterfaces",
                    "ec2:DescribeSubnets",
                    "ec2:UnassignPrivateIpAddresses",
                ],
                resources=["*"],
            )
        )


def invoked(function: lambda_.Function) -> lambda_.IFunction:
    """Return what callers of a function invoke: the alias of its latest version if it has snapshots, or itself."""
    alias = function.node.try_find_child(f"Alias{ALIAS}")
    return alias if isinstance(alias, lambda_.Alias) else function


def new_log_group(scope: Construct, construct_id: str, options: Options) -> logs.LogGroup:
    """Create a log group. A deployment that records reads keeps it longer, and when its stack is deleted."""
    is_audit = options.access_settings.audit_reads
    return logs.LogGroup(
        scope,
        construct_id,
        removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE if is_audit else RemovalPolicy.DESTROY,
        retention=AUDIT_RETENTION if is_audit else LOG_RETENTION,
    )


def _shared_layers(stack: Stack, options: Options, *, with_engines: bool) -> list[lambda_.LayerVersion]:
    """Return the layers of *stack*. A version that another stack imports could never be replaced."""
    assets = {
        "DependenciesLayer": options.dependencies_layer or dependencies_layer(options.target),
        "CommonLayer": common_layer(options.target),
    }
    if with_engines:
        assets |= {f"{name.title().replace('-', '')}Layer": path for name, path in options.extra_layers.items()}
    return [shared_layer(stack, construct_id, path) for construct_id, path in assets.items()]


def shared_layer(scope: Construct, construct_id: str, path: Path) -> lambda_.LayerVersion:
    """Return the layer with this id below *scope*, created when it is first needed."""
    existing = scope.node.try_find_child(construct_id)
    if isinstance(existing, lambda_.LayerVersion):
        return existing
    return lambda_.LayerVersion(
        scope,
        construct_id,
        code=lambda_.Code.from_asset(str(path)),
        compatible_architectures=[ARCHITECTURE],
        compatible_runtimes=[lambda_.Runtime.PYTHON_3_14],
    )


def _local_endpoints(options: Options) -> dict[str, str]:
    """Send the unmodified clients to the local Bedrock. Source: botocore, service-specific endpoints."""
    if options.bedrock_endpoint is None:
        return {}
    names = ("BEDROCK_AGENT", "BEDROCK_AGENT_RUNTIME", "BEDROCK_RUNTIME", "S3VECTORS")
    return dict.fromkeys((f"AWS_ENDPOINT_URL_{name}" for name in names), options.bedrock_endpoint)


def reading_layer(scope: Construct, options: Options) -> lambda_.LayerVersion:
    """Return the layer of the packages that read files."""
    return shared_layer(scope, "ViewerLayer", options.viewer_layer or extra_layer(VIEWER, options.target))
