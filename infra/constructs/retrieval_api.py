"""The HTTP interface: a REST API in front of the functions."""

import json
from collections.abc import Mapping
from typing import Any, Final

from aws_cdk import Aws, Duration
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_certificatemanager as acm
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_wafv2 as wafv2
from constructs import Construct

from infra.access_options import DEFAULT_KEY
from infra.acknowledgements import acknowledge
from infra.alarms import FAILURES, PERIOD, raise_alarm
from infra.constructs.python_function import invoked, new_log_group
from infra.context_values import ApiLogging
from infra.options import Options
from infra.target import Target
from ragstack_common.http.route_table import ANSWERS, QUERY, ROUTES
from ragstack_common.settings.access import TOKEN_KINDS, AuthKind

STAGE_NAME: Final = "prod"

ACCEPTED: Final = {
    "APIG2": "The functions check requests against their models, and say what is wrong with them",
    "APIG3": "Callers are authenticated and throttled; the deployer adds a web ACL, which is billed, with web_acls",
    "COG4": "Programs sign their requests or hold a key; a function verifies the tokens of people, of any issuer",
}
AUTHORIZED_FOR: Final = Duration.minutes(1)
"""How long API Gateway caches that a token is valid. The functions check its expiry with every request."""

AUTHORIZATION: Final = r"^[Bb][Ee][Aa][Rr][Ee][Rr] +[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+ *$"
"""The header with a token that may be valid: three parts of Base64url. API Gateway answers others with 401 itself.

Source: RFC 6750, section 2.1; RFC 7515, section 3.1.
"""

LOGGED: Final = {
    "requestId": "$context.requestId",
    "requestTime": "$context.requestTime",
    "route": "$context.httpMethod $context.resourcePath",
    "status": "$context.status",
    "milliseconds": "$context.responseLatency",
    "bytes": "$context.responseLength",
    "sourceIp": "$context.identity.sourceIp",
    "person": "$context.authorizer.principalId",
    "apiKeyId": "$context.identity.apiKeyId",
    "role": "$context.identity.userArn",
}
"""A line of the access log: who called which route, and what came of it. Parameters and bodies are not in it.

Source: API Gateway developer guide, variables for access logging.
"""

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
    # As the functions answer when a token expired since API Gateway looked at it.
    "UNAUTHORIZED": _OUR_ERROR.replace("$context.error.responseType", "NotAuthenticated").replace(
        "MESSAGE", "Sign in: the request has no valid token"
    ),
}


class RetrievalApi(Construct):
    """Routes requests to the functions, for callers who may.

    Args:
        kind: How its callers authenticate.
        functions: The functions by the names of their folders.
        authorizer: The function that verifies tokens, for the kinds with tokens.

    Attributes:
        url: Base URL, without a slash at its end.
        domain_target: Where the deployer's own domain must refer to; None without one.
        key_ids: Ids of the API keys by their names, where callers need one.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        kind: AuthKind,
        functions: Mapping[str, lambda_.Function],
        options: Options,
        authorizer: lambda_.Function | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        self.kind = kind
        is_first = kind is options.auth[0]
        # CloudWatch tells APIs apart by this name alone.
        api = self._rest_api(options, kind, options.prefix if is_first else f"{options.prefix}-{construct_id.lower()}")
        authenticated = _method_options(self, kind, authorizer)
        for route in ROUTES.values():
            function = functions[route.function]
            integration: apigateway.Integration
            if route.function != ANSWERS:
                integration = apigateway.LambdaIntegration(invoked(function), scope_permission_to_method=False)
            elif options.target is Target.LOCAL:
                url = f"{options.answers_endpoint}{route.path}"
                integration = apigateway.HttpIntegration(url, http_method=route.method, proxy=True)
            else:
                integration = _streaming_integration(function)
            is_public = route.right is None
            method = api.root.resource_for_path(route.path).add_method(
                route.method, integration, **(_PUBLIC if is_public else authenticated)
            )
            if is_public and kind is AuthKind.IAM:
                acknowledge(method, "APIG4", "The route is for everybody, and answers without data")
        self.stage = api.deployment_stage
        self.url, self.domain_target = _url(api, options), None
        if is_first and options.api_domain:
            self.url, self.domain_target = f"https://{options.api_domain}", self._map_domain(api, options)
        if options.api_web_acl:
            wafv2.CfnWebACLAssociation(
                self, "WebAcl", resource_arn=self.stage.stage_arn, web_acl_arn=options.api_web_acl
            )
        if kind in TOKEN_KINDS:
            challenge = f'Bearer resource_metadata="{self.url}{ROUTES["mcp_metadata"].path}"'
            _add_error(api, "UNAUTHORIZED", {"WWW-Authenticate": f"'{challenge}'"})
        self._watch(api)
        if is_first:
            self._watch_latency(functions[QUERY], options)
        names = options.api_keys if kind is AuthKind.API_KEY else ()
        self.key_ids = {name: self._api_key(api, name, options) for name in names}

    def _rest_api(self, options: Options, kind: AuthKind, name: str) -> apigateway.RestApi:
        requests_per_second = options.api_requests_per_second
        questions_per_second = min(options.ask_requests_per_second, requests_per_second)
        logging = {} if options.api_logging is ApiLogging.OFF else self._logging(options)
        api = apigateway.RestApi(
            self,
            "Api",
            cloud_watch_role=options.api_logging is ApiLogging.WITH_ACCOUNT_ROLE,
            deploy_options=apigateway.StageOptions(
                **logging,
                method_options={
                    f"{route.path}/{route.method}": apigateway.MethodDeploymentOptions(
                        logging_level=logging.get("logging_level"),
                        throttling_burst_limit=2 * questions_per_second,
                        throttling_rate_limit=questions_per_second,
                    )
                    for route in ROUTES.values()
                    if route.function == ANSWERS and route.method == "POST"
                },
                stage_name=STAGE_NAME,
                # The requests of two seconds may come at once.
                throttling_burst_limit=2 * requests_per_second,
                throttling_rate_limit=requests_per_second,
                tracing_enabled=True,
            ),
            description="Documents, and retrieval over them",
            endpoint_types=[apigateway.EndpointType.REGIONAL],
            rest_api_name=name,
        )
        # The CDK's own output of the address is wrong for the local target, and its name is not ours.
        api.node.try_remove_child("Endpoint")
        for error in sorted(_ERRORS.keys() - {"UNAUTHORIZED"}):
            _add_error(api, error, {"Retry-After": "'1'"} if error == "THROTTLED" else None)
        for rule, reason in ACCEPTED.items():
            acknowledge(api, rule, reason)
        if options.api_logging is ApiLogging.WITH_ACCOUNT_ROLE:
            policy = "Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/AmazonAPIGatewayPushToCloudWatchLogs"
            acknowledge(api, "IAM4", "The one policy with which API Gateway may write logs", finding=policy)
        if options.api_logging is ApiLogging.OFF:
            for rule in ("APIG1", "APIG6"):
                acknowledge(api, rule, "Without a role in the account's settings, no stage with logs can be created")
        if kind is not AuthKind.IAM:
            acknowledge(api, "APIG4", "Callers need an API key or a token, unless only this machine reaches the target")
        return api

    def _map_domain(self, api: apigateway.RestApi, options: Options) -> str:
        """Map the whole domain to the stage: with a base path, the functions would get another path."""
        assert options.api_domain is not None
        assert options.api_certificate is not None
        certificate = acm.Certificate.from_certificate_arn(self, "Certificate", options.api_certificate)
        domain = apigateway.DomainName(
            self,
            "Domain",
            certificate=certificate,
            domain_name=options.api_domain,
            endpoint_type=apigateway.EndpointType.REGIONAL,
            mapping=api,
            security_policy=apigateway.SecurityPolicy.TLS_1_2,
        )
        return domain.domain_name_alias_domain_name

    def _watch(self, api: apigateway.RestApi) -> None:
        raise_alarm(
            self,
            "ServerErrorAlarm",
            at_least=FAILURES,
            metric=api.deployment_stage.metric_server_error(period=PERIOD, statistic=cloudwatch.Stats.SUM),
            what_to_do=(
                "Requests are answered with 5xx: the logs of the functions query, answers and documents say why, most"
                " likely that the knowledge base does not answer in time, or refuses the function's role"
            ),
        )

    def _watch_latency(self, query: lambda_.Function, options: Options) -> None:
        raise_alarm(
            self,
            "LatencyAlarm",
            at_least=options.query.timeout_seconds * 1000,
            metric=query.metric_duration(period=PERIOD, statistic="p95"),
            # A quarter of an hour, so that a few cold starts of a rarely used API do not trigger the alarm.
            periods=3,
            what_to_do=(
                "One request in twenty takes as long as a search may: the traces say what it waits for. Searches that"
                " reach their deadline are incomplete (`complete` is false)"
            ),
        )

    def _logging(self, options: Options) -> dict[str, Any]:
        access_logs = new_log_group(self, "AccessLogs", options)
        return {
            "access_log_destination": apigateway.LogGroupLogDestination(access_logs),
            "access_log_format": apigateway.AccessLogFormat.custom(json.dumps(LOGGED)),
            "logging_level": apigateway.MethodLoggingLevel.ERROR,
        }

    def _api_key(self, api: apigateway.RestApi, name: str, options: Options) -> str:
        """Add a key with a plan of its own, because the limits of a plan count all of its keys' requests."""
        part = "" if name == DEFAULT_KEY else f"-{name}"
        rate = options.api_key_requests_per_second
        plan = api.add_usage_plan(
            f"Callers{part}",
            quota=apigateway.QuotaSettings(limit=options.api_key_requests_per_day, period=apigateway.Period.DAY),
            throttle=apigateway.ThrottleSettings(burst_limit=2 * rate, rate_limit=rate),
        )
        plan.add_api_stage(stage=api.deployment_stage)
        # A key that the API adds itself waits for the stage, and so for the functions, which know its id.
        key = apigateway.ApiKey(api, f"Key{part}", description=f"{options.prefix}: {name}")
        plan.add_api_key(key)
        return key.key_id


def _streaming_integration(function: lambda_.Function) -> apigateway.Integration:
    """Stream the responses; then API Gateway may wait as long as the function works, instead of 29 seconds.

    Source: API Gateway developer guide, response-transfer-mode.
    """
    return apigateway.LambdaIntegration(
        function,
        scope_permission_to_method=False,
        response_transfer_mode=apigateway.ResponseTransferMode.STREAM,
        timeout=function.timeout,
    )


def _add_error(api: apigateway.RestApi, kind: str, headers: Mapping[str, str] | None = None) -> None:
    api.add_gateway_response(
        kind.title().replace("_", ""),
        response_headers=headers,
        templates={"application/json": _ERRORS[kind]},
        type=apigateway.ResponseType.of(kind),
    )


_PUBLIC: Final[Mapping[str, Any]] = {"authorization_type": apigateway.AuthorizationType.NONE}


def _method_options(scope: Construct, kind: AuthKind, authorizer: lambda_.Function | None) -> Mapping[str, Any]:
    if kind in TOKEN_KINDS:
        assert authorizer is not None, "kinds with tokens have an authorizer"
        return {
            "authorizer": apigateway.TokenAuthorizer(
                scope,
                "Authorizer",
                handler=invoked(authorizer),
                results_cache_ttl=AUTHORIZED_FOR,
                validation_regex=AUTHORIZATION,
            )
        }
    if kind is AuthKind.IAM:
        return {"authorization_type": apigateway.AuthorizationType.IAM}
    return {**_PUBLIC, "api_key_required": kind is AuthKind.API_KEY}


def _url(api: apigateway.RestApi, options: Options) -> str:
    """The address of the stage; the local one needs no name to be resolved."""
    if options.target is Target.LOCAL:
        return f"{options.aws_endpoint}/_aws/execute-api/{api.rest_api_id}/{STAGE_NAME}"
    return f"https://{api.rest_api_id}.execute-api.{Aws.REGION}.{Aws.URL_SUFFIX}/{STAGE_NAME}"
