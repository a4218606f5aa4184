"""The console: its files in a bucket, and CloudFront, which gives them and the API one origin."""

from pathlib import Path
from typing import Any, Final

from aws_cdk import Aws, Duration, RemovalPolicy, Stack
from aws_cdk import aws_certificatemanager as acm
from aws_cdk import aws_cloudfront as cloudfront
from aws_cdk import aws_cloudfront_origins as origins
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_s3_deployment as deployment
from constructs import Construct

from infra.access_options import parse_origin
from infra.acknowledgements import acknowledge
from infra.constructs.python_function import LOG_RETENTION
from infra.constructs.retrieval_api import STAGE_NAME, RetrievalApi
from infra.constructs.user_pool import Issuer
from infra.options import Options
from ragstack_common.http.console import (
    API_PATHS,
    ASK_AGAIN,
    ASSETS,
    FOREVER,
    SETTINGS_FILE,
    content_security_policy,
    page_settings,
)
from ragstack_common.settings.access import TOKEN_KINDS

SCOPE: Final = "openid email profile"
"""Amazon Cognito issues refresh tokens without another scope."""

OFFLINE: Final = "offline_access"
"""The scope that other issuers need for refresh tokens. Source: OpenID Connect Core, section 11."""

READ_TIMEOUT: Final = Duration.seconds(60)
"""Maximum time between two parts of a response. Source: CloudFront quotas, response timeout per origin."""

ACCEPTED: Final = {
    "CFR1": "People may sign in from everywhere",
    "CFR2": "Callers are authenticated and throttled; the deployer adds a web ACL, which is billed, with web_acls",
    "CFR3": "The API and its functions log what is asked; the files are the same for everybody",
    "CFR4": "The certificate is CloudFront's own, with which no other minimum of TLS can be chosen",
}

CACHED_ERRORS: Final = (400, 403, 404, 405, 414, 416, 500, 501, 502, 503, 504)
"""Errors that CloudFront keeps for ten seconds by default, also those of requests that it does not cache.

Source: CloudFront developer guide, HTTP status codes that CloudFront caches.
"""


class Console(Construct):
    """Serves the console, and passes its requests on to the API.

    Args:
        api: The API whose callers use it.
        documents: The bucket to which the page uploads documents.
        files: Folder of the built files.

    Attributes:
        domain_target: Where the deployer's own domain must refer to; None without one.
        url: Its address, with a slash at the end.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        api: RetrievalApi,
        documents: s3.IBucket,
        files: Path,
        issuer: Issuer | None,
        options: Options,
    ) -> None:
        super().__init__(scope, construct_id)
        signs_in = issuer if api.kind in TOKEN_KINDS else None
        bucket = s3.Bucket(
            self,
            "Files",
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            encryption=s3.BucketEncryption.S3_MANAGED,
            enforce_ssl=True,
            removal_policy=RemovalPolicy.DESTROY,  # a deployment writes them again
        )
        acknowledge(bucket, "S1", "Only CloudFront reads the files, which are the same for everybody")
        distribution = self._distribution(bucket, api, page_policy(documents, signs_in), options)
        self.url = f"https://{options.console_domain or distribution.distribution_domain_name}/"
        self.domain_target = distribution.distribution_domain_name if options.console_domain else None
        self._deploy(bucket, distribution, files, _settings(api, signs_in, options))

    def _distribution(
        self, bucket: s3.Bucket, api: RetrievalApi, policy: str, options: Options
    ) -> cloudfront.Distribution:
        # All Regions of an account share these names. A change renames the resource in place.
        name = f"{Stack.of(self).stack_name}-{Aws.REGION}"
        headers = cloudfront.ResponseHeadersPolicy(
            self,
            "Headers",
            response_headers_policy_name=name,
            security_headers_behavior=cloudfront.ResponseSecurityHeadersBehavior(
                content_security_policy=cloudfront.ResponseHeadersContentSecurityPolicy(
                    content_security_policy=policy, override=True
                ),
                content_type_options=cloudfront.ResponseHeadersContentTypeOptions(override=True),
                referrer_policy=cloudfront.ResponseHeadersReferrerPolicy(
                    override=True, referrer_policy=cloudfront.HeadersReferrerPolicy.NO_REFERRER
                ),
                strict_transport_security=cloudfront.ResponseHeadersStrictTransportSecurity(
                    access_control_max_age=Duration.days(365), override=True
                ),
            ),
        )
        # Not the stage's URL: the stage waits for the functions, which wait for the user pool's client, which names
        # this distribution.
        host = f"{api.stage.rest_api.rest_api_id}.execute-api.{Aws.REGION}.{Aws.URL_SUFFIX}"
        to_api = cloudfront.BehaviorOptions(
            allowed_methods=cloudfront.AllowedMethods.ALLOW_ALL,
            cache_policy=cloudfront.CachePolicy.CACHING_DISABLED,
            compress=False,  # answers stream
            origin=origins.HttpOrigin(
                host,
                origin_path=f"/{STAGE_NAME}",
                origin_ssl_protocols=[cloudfront.OriginSslPolicy.TLS_V1_2],
                protocol_policy=cloudfront.OriginProtocolPolicy.HTTPS_ONLY,
                read_timeout=READ_TIMEOUT,
            ),
            origin_request_policy=cloudfront.OriginRequestPolicy.ALL_VIEWER_EXCEPT_HOST_HEADER,
            response_headers_policy=headers,
            viewer_protocol_policy=cloudfront.ViewerProtocolPolicy.HTTPS_ONLY,
        )
        distribution = cloudfront.Distribution(
            self,
            "Distribution",
            # One pattern for each: CloudFront's plan Pro takes ten behaviors.
            additional_behaviors={f"{path}*": to_api for path in API_PATHS},
            comment=f"{Stack.of(self).stack_name}: console",
            default_behavior=cloudfront.BehaviorOptions(
                cache_policy=cloudfront.CachePolicy.CACHING_OPTIMIZED,
                origin=origins.S3BucketOrigin.with_origin_access_control(
                    bucket,
                    origin_access_control=cloudfront.S3OriginAccessControl(
                        self, "AccessControl", origin_access_control_name=name
                    ),
                ),
                response_headers_policy=headers,
                viewer_protocol_policy=cloudfront.ViewerProtocolPolicy.REDIRECT_TO_HTTPS,
            ),
            default_root_object="index.html",
            error_responses=[
                cloudfront.ErrorResponse(http_status=status, ttl=Duration.seconds(0)) for status in CACHED_ERRORS
            ],
            http_version=cloudfront.HttpVersion.HTTP2_AND_3,
            web_acl_id=options.console_web_acl,
            **self._domain(options),
        )
        for rule, reason in ACCEPTED.items():
            acknowledge(distribution, rule, reason)
        return distribution

    def _domain(self, options: Options) -> dict[str, Any]:
        if not (options.console_domain and options.console_certificate):
            return {}
        return {
            "certificate": acm.Certificate.from_certificate_arn(self, "Certificate", options.console_certificate),
            "domain_names": [options.console_domain],
            "minimum_protocol_version": cloudfront.SecurityPolicyProtocol.TLS_V1_2_2021,
        }

    def _deploy(
        self, bucket: s3.Bucket, distribution: cloudfront.Distribution, files: Path, settings: dict[str, Any]
    ) -> None:
        """Upload the assets, then the page that names them; assets of earlier pages stay for those who have one."""
        log_group = logs.LogGroup(self, "Logs", removal_policy=RemovalPolicy.DESTROY, retention=LOG_RETENTION)
        common: dict[str, Any] = {
            "destination_bucket": bucket,
            "log_group": log_group,
            "prune": False,
            "retain_on_delete": False,
        }
        assets = deployment.BucketDeployment(
            self,
            "Assets",
            cache_control=[deployment.CacheControl.from_string(FOREVER)],
            destination_key_prefix=ASSETS,
            sources=[deployment.Source.asset(str(files / ASSETS))],
            **common,
        )
        page = deployment.BucketDeployment(
            self,
            "Page",
            cache_control=[deployment.CacheControl.from_string(ASK_AGAIN)],
            distribution=distribution,
            distribution_paths=["/*"],
            sources=[
                deployment.Source.asset(str(files), exclude=[ASSETS]),
                deployment.Source.json_data(SETTINGS_FILE, settings),
            ],
            **common,
        )
        page.node.add_dependency(assets)
        stack = Stack.of(self)
        resource = bucket.node.default_child
        assert isinstance(resource, s3.CfnBucket), "a bucket's default child is its resource"
        findings = [
            *(f"Action::s3:{action}*" for action in ("Abort", "DeleteObject", "GetBucket", "GetObject", "List")),
            "Resource::*",  # of invalidations
            "Resource::arn:<AWS::Partition>:s3:::cdk-hnb659fds-assets-<AWS::AccountId>-<AWS::Region>/*",
            f"Resource::<{stack.get_logical_id(resource)}.Arn>/*",
        ]
        (function,) = [each for each in stack.node.children if each.node.id.startswith("Custom::CDKBucketDeployment")]
        log_policy = "Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole"
        acknowledge(function, "IAM4", "The CDK's own function, with the policy to write its log", finding=log_policy)
        acknowledge(function, "L1", "The CDK's own function, whose runtime the CDK chooses")
        for finding in findings:
            acknowledge(function, "IAM5", "The CDK's own function copies files from its assets", finding=finding)


def page_policy(documents: s3.IBucket, issuer: Issuer | None) -> str:
    """Return the page's content security policy: it may call the bucket, the issuer and its token endpoint."""
    # As the API signs uploads, see ragstack_common.services.bucket.
    bucket_url = f"https://s3.{Aws.REGION}.{Aws.URL_SUFFIX}/{documents.bucket_name}"
    connections: list[str] = []
    if issuer is not None and issuer.login_domain:
        connections += [f"https://cognito-idp.{Aws.REGION}.{Aws.URL_SUFFIX}", issuer.login_domain]
    elif issuer is not None:
        origins = [parse_origin(url) for url in (issuer.url, issuer.token_endpoint) if url is not None]
        connections += dict.fromkeys(filter(None, origins))
    return content_security_policy(bucket_url, connections)


def _settings(api: RetrievalApi, issuer: Issuer | None, options: Options) -> dict[str, Any]:
    if issuer is None:
        return page_settings(api.kind, questions=options.console_questions)
    is_ours = issuer.login_domain is not None
    audiences = [issuer.audience] if is_ours else [each.strip() for each in issuer.audience.split(",")]
    return page_settings(
        "oidc",
        issuer=issuer.url,
        client_id=audiences[0] if is_ours else options.console_client_id or audiences[0],
        audiences=audiences,
        scope=SCOPE if is_ours else f"{SCOPE} {OFFLINE}",
        sign_out_url=f"{issuer.login_domain}/logout" if is_ours else None,
        questions=options.console_questions,
    )
