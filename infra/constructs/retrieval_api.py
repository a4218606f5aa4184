"""The HTTP interface: a REST API in front of the functions."""

import json
from collections.abc import Mapping
from typing import Any, Final

from aws_cdk import Aws, Duration, RemovalPolicy
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra.acknowledgements import acknowledge
from infra.alarms import FAILURES, raise_alarm
from infra.constructs.python_function import LOG_RETENTION
from infra.options import ApiLogging, Auth, Options
from infra.target import Target
from ragstack_common.api.route_table import ANSWERS, QUERY, ROUTES

STAGE_NAME: Final = "prod"

WATCH_PERIOD: Final = Duration.minutes(5)

ACCEPTED: Final = {
    "APIG2": "The functions check requests against their models, and say what is wrong with them",
    "APIG3": "A web ACL costs more than everything else in an idle stack; callers are authenticated and throttled",
    "COG4": "Callers are programs that sign their requests or hold a key; people need the console's user pool",
}
LOGGING_POLICY: Final = "Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/AmazonAPIGatewayPushToCloudWatchLogs"

_OUR_ERROR: Final = json.dumps(
    {
        "error": {
            "code": "$context.error.responseType",
            "message": "MESSAGE",
            "details": [],
            "requestId": "$context.requestId",
        }
    }
)
"""The form of every other error of this API."""

_ERRORS: Final = {
    # API Gateway puts the quotes around its message itself.
    "DEFAULT_4XX": _OUR_ERROR.replace('"MESSAGE"', "$context.error.messageString"),
    "DEFAULT_5XX": _OUR_ERROR.replace('"MESSAGE"', "$context.error.messageString"),
    # As the functions answer when the knowledge base throttles.
    "THROTTLED": _OUR_ERROR.replace("$context.error.responseType", "Throttled").replace(
        "MESSAGE", "Too many requests a second: send fewer, or deploy with a higher api_requests_per_second"
    ),
    # Its own message names the caller's ARN and the account.
    "ACCESS_DENIED": _OUR_ERROR.replace("MESSAGE", "The caller lacks the permission execute-api:Invoke for this route"),
}


class RetrievalApi(Construct):
    """Routes requests to the functions, for callers who may.

    Attributes:
        stage: The stage.
        url: Base URL of the stage, without a slash at its end.
        api_key_id: Id of the API key, where callers need one.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, functions: Mapping[str, lambda_.Function], options: Options
    ) -> None:
        super().__init__(scope, construct_id)
        api = self._rest_api(options)
        for route in ROUTES.values():
            function = functions[route.function]
            integration: apigateway.Integration
            if route.function != ANSWERS:
                integration = apigateway.LambdaIntegration(function, allow_test_invoke=False)
            elif options.target is Target.LOCAL:
                url = f"{options.answers_endpoint}{route.path}"
                integration = apigateway.HttpIntegration(url, http_method=route.method, proxy=True)
            else:
                integration = _streaming_integration(function)
            api.root.resource_for_path(route.path).add_method(route.method, integration)
        self.stage = api.deployment_stage
        self.url = _url(api, options)
        self._watch(api, functions[QUERY], options)
        self.api_key_id = self._api_key(api) if options.auth is Auth.API_KEY else None

    def _rest_api(self, options: Options) -> apigateway.RestApi:
        requests_per_second = options.api_requests_per_second
        api = apigateway.RestApi(
            self,
            "Api",
            cloud_watch_role=options.api_logging is ApiLogging.WITH_ACCOUNT_ROLE,
            default_method_options=_method_options(options.auth),
            deploy_options=apigateway.StageOptions(
                **({} if options.api_logging is ApiLogging.OFF else self._logging()),
                stage_name=STAGE_NAME,
                # The requests of two seconds may come at once.
                throttling_burst_limit=2 * requests_per_second,
                throttling_rate_limit=requests_per_second,
                tracing_enabled=True,
            ),
            description="Documents, and retrieval over them",
            endpoint_types=[apigateway.EndpointType.REGIONAL],
            # CloudWatch tells APIs apart by this name alone.
            rest_api_name=options.prefix,
        )
        # The CDK's own output of the address is wrong for the local target, and its name is not ours.
        api.node.try_remove_child("Endpoint")
        for kind, template in _ERRORS.items():
            api.add_gateway_response(
                kind.title().replace("_", ""),
                response_headers={"Retry-After": "'1'"} if kind == "THROTTLED" else None,
                templates={"application/json": template},
                type=apigateway.ResponseType.of(kind),
            )
        for rule, reason in ACCEPTED.items():
            acknowledge(api, rule, reason)
        if options.api_logging is ApiLogging.WITH_ACCOUNT_ROLE:
            acknowledge(api, "IAM4", "The one policy with which API Gateway may write logs", finding=LOGGING_POLICY)
        if options.api_logging is ApiLogging.OFF:
            for rule in ("APIG1", "APIG6"):
                acknowledge(api, rule, "Without a role in the account's settings, no stage with logs can be created")
        if options.auth is not Auth.IAM:
            acknowledge(api, "APIG4", "The deployer chose API keys, or a target that only this machine reaches")
        return api

    def _watch(self, api: apigateway.RestApi, query: lambda_.Function, options: Options) -> None:
        raise_alarm(
            self,
            "ServerErrorAlarm",
            at_least=FAILURES,
            metric=api.deployment_stage.metric_server_error(period=WATCH_PERIOD, statistic=cloudwatch.Stats.SUM),
            what_to_do=(
                "Requests are answered with 5xx: the logs of the functions query, answers and documents say why, most"
                " likely that the knowledge base does not answer in time, or refuses the function's role"
            ),
        )
        raise_alarm(
            self,
            "LatencyAlarm",
            at_least=options.query.timeout_seconds * 1000,
            metric=query.metric_duration(period=WATCH_PERIOD, statistic="p95"),
            # A quarter of an hour, so that a few cold starts of a rarely used API do not trigger the alarm.
            periods=3,
            what_to_do=(
                "One request in twenty takes as long as a search may: the traces say what it waits for. Searches that"
                " reach their deadline are incomplete (`complete` is false)"
            ),
        )

    def _logging(self) -> dict[str, Any]:
        access_logs = logs.LogGroup(self, "AccessLogs", removal_policy=RemovalPolicy.DESTROY, retention=LOG_RETENTION)
        return {
            "access_log_destination": apigateway.LogGroupLogDestination(access_logs),
            "access_log_format": apigateway.AccessLogFormat.json_with_standard_fields(
                caller=True,
                http_method=True,
                ip=True,
                protocol=True,
                request_time=True,
                resource_path=True,
                response_length=True,
                status=True,
                user=True,
            ),
            "logging_level": apigateway.MethodLoggingLevel.ERROR,
        }

    def _api_key(self, api: apigateway.RestApi) -> str:
        plan = api.add_usage_plan("Callers")
        plan.add_api_stage(stage=api.deployment_stage)
        key = api.add_api_key("Key")
        plan.add_api_key(key)
        return key.key_id


def _streaming_integration(function: lambda_.Function) -> apigateway.Integration:
    """Stream the responses; then API Gateway may wait as long as the function works, instead of 29 seconds.

    Source: API Gateway developer guide, response-transfer-mode.
    """
    return apigateway.LambdaIntegration(
        function,
        allow_test_invoke=False,
        response_transfer_mode=apigateway.ResponseTransferMode.STREAM,
        timeout=function.timeout,
    )


def _method_options(auth: Auth) -> apigateway.MethodOptions:
    if auth is Auth.IAM:
        return apigateway.MethodOptions(authorization_type=apigateway.AuthorizationType.IAM)
    return apigateway.MethodOptions(api_key_required=auth is Auth.API_KEY)


def _url(api: apigateway.RestApi, options: Options) -> str:
    """The address of the stage; the local one needs no name to be resolved."""
    if options.target is Target.LOCAL:
        return f"{options.aws_endpoint}/_aws/execute-api/{api.rest_api_id}/{STAGE_NAME}"
    return f"https://{api.rest_api_id}.execute-api.{Aws.REGION}.{Aws.URL_SUFFIX}/{STAGE_NAME}"
