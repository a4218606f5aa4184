"""The console on AWS: what is served, from where, and who may reach it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import Stack
from aws_cdk import aws_s3 as s3

from infra.constructs.console import page_policy
from infra.constructs.user_pool import Issuer
from infra.options import OptionError, Options
from ragstack_common.core import clients
from ragstack_common.http.console import API_PATHS
from ragstack_common.http.route_table import ROUTES
from ragstack_common.services.bucket import DocumentsBucket

from .conftest import ACCESS, EVERYTHING, LOCAL
from .test_access import VARIANTS

pytestmark = pytest.mark.xdist_group("synthesized stacks")


@pytest.fixture(scope="session")
def cognito(synthesize: Any) -> Any:
    return synthesize(**{**VARIANTS["cognito"], "access": str(ACCESS)})


def text(value: Any) -> str:
    """Write a joined value, with the logical ids of what it refers to."""
    if isinstance(value, str):
        return value
    if "Fn::Join" in value:
        return str(value["Fn::Join"][0]).join(map(text, value["Fn::Join"][1]))
    return f"<{json.dumps(value)}>"


def distribution(assembly: Any) -> dict[str, Any]:
    found: dict[str, Any] = assembly.only("AWS::CloudFront::Distribution")["DistributionConfig"]
    return found


def test_the_files_are_private(cognito: Any) -> None:
    (name,) = [name for name in cognito.resources("AWS::S3::Bucket") if name.startswith("ConsoleFiles")]
    bucket = cognito.resources("AWS::S3::Bucket")[name]["Properties"]
    origin = distribution(cognito)["Origins"][0]
    (readers,) = [
        statement
        for _, statement in cognito.statements()
        if statement["Action"] == "s3:GetObject" and name in json.dumps(statement["Resource"])
    ]

    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
    assert "OriginAccessControlId" in origin
    assert readers["Principal"] == {"Service": "cloudfront.amazonaws.com"}
    assert "AWS:SourceArn" in readers["Condition"]["StringEquals"]


def test_every_route_goes_to_the_api_and_nothing_is_kept(cognito: Any) -> None:
    behaviors = {each["PathPattern"]: each for each in distribution(cognito)["CacheBehaviors"]}

    assert behaviors.keys() == {f"{path}*" for path in API_PATHS}
    assert len(behaviors) < 10, "CloudFront's plan Pro takes no more, with the one of the files"
    assert all(any(f"{route.path}/".startswith(f"{path}/") for path in API_PATHS) for route in ROUTES.values())
    # Source: CloudFront developer guide, managed policies: CachingDisabled and AllViewerExceptHostHeader.
    assert {each["CachePolicyId"] for each in behaviors.values()} == {"4135ea2d-6df8-44a3-9df3-4b5a84be39ad"}
    assert {each["OriginRequestPolicyId"] for each in behaviors.values()} == {"b689b0a8-53d0-40ab-baf2-68738e2966ac"}
    assert all("DELETE" in each["AllowedMethods"] and not each["Compress"] for each in behaviors.values())


def test_the_api_of_people_is_behind_it(synthesize: Any) -> None:
    """Programs have another one."""
    origin = distribution(synthesize(**EVERYTHING))["Origins"][1]

    assert origin["OriginPath"] == "/prod"
    assert text(origin["DomainName"]).startswith('<{"Ref": "RetrievalApi')
    assert origin["CustomOriginConfig"]["OriginProtocolPolicy"] == "https-only"


def test_the_page_may_reach_its_bucket_and_the_issuer_alone(cognito: Any) -> None:
    headers = cognito.only("AWS::CloudFront::ResponseHeadersPolicy")["ResponseHeadersPolicyConfig"]
    security = headers["SecurityHeadersConfig"]
    policy = text(security["ContentSecurityPolicy"]["ContentSecurityPolicy"])
    (connections,) = [part.split() for part in policy.split("; ") if part.startswith("connect-src")]

    assert connections[1] == "'self'"
    assert "https://s3." in policy
    assert "https://cognito-idp." in policy
    assert "PeoplePoolDomain" in policy
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert security["ReferrerPolicy"]["ReferrerPolicy"] == "no-referrer"


@pytest.mark.parametrize(
    ("token_endpoint", "hosts"),
    [
        (None, ["https://accounts.google.com"]),
        ("https://accounts.google.com/token", ["https://accounts.google.com"]),
        ("https://oauth2.googleapis.com/token", ["https://accounts.google.com", "https://oauth2.googleapis.com"]),
    ],
)
def test_the_page_may_reach_where_another_issuer_gives_tokens(token_endpoint: str | None, hosts: list[str]) -> None:
    bucket = s3.Bucket.from_bucket_name(Stack(), "Documents", "documents")

    policy = page_policy(bucket, Issuer("https://accounts.google.com", "api", token_endpoint=token_endpoint))

    (connections,) = [part.split() for part in policy.split("; ") if part.startswith("connect-src")]
    assert [each.rstrip(";") for each in connections[4:]] == hosts


SUFFIXES = {
    **dict.fromkeys(("us-east-1", "us-east-2", "us-west-2", "eu-central-1", "ap-southeast-7"), "amazonaws.com"),
    "us-gov-west-1": "amazonaws.com",
    "cn-north-1": "amazonaws.com.cn",
    "eusc-de-east-1": "amazonaws.eu",
}
"""What CloudFormation writes for AWS::URLSuffix."""


@pytest.mark.parametrize(("region", "suffix"), SUFFIXES.items())
def test_the_page_may_upload_to_the_address_that_the_api_signs(
    cognito: Any, monkeypatch: pytest.MonkeyPatch, region: str, suffix: str
) -> None:
    """In us-east-1, botocore signs for the global host by default."""
    for name, value in (("REGION", region), ("ACCESS_KEY_ID", "test"), ("SECRET_ACCESS_KEY", "test")):
        monkeypatch.setenv(f"AWS_{name}", value)
    clients.s3_signer.cache_clear()
    bucket = DocumentsBucket("documents", clients.s3_signer())

    form, _ = bucket.sign_upload("people/leave.md", "text/markdown", 5, 60)
    new, _ = bucket.sign_new("people/leave.md", "text/markdown", 5, 60)

    clients.s3_signer.cache_clear()
    headers = cognito.only("AWS::CloudFront::ResponseHeadersPolicy")["ResponseHeadersPolicyConfig"]
    written = text(headers["SecurityHeadersConfig"]["ContentSecurityPolicy"]["ContentSecurityPolicy"])
    written = written.replace('<{"Ref": "AWS::Region"}>', region).replace('<{"Ref": "AWS::URLSuffix"}>', suffix)
    written = re.sub("<[^<>]*DocumentsBucket[^<>]*>", "documents", written)
    (allowed,) = [part.split()[1:] for part in written.split("; ") if part.startswith("connect-src")]
    assert form in allowed, "a source without a slash at its end is the address itself"
    assert any(new.startswith(each) for each in allowed if each.endswith("/documents/"))


def test_the_sign_in_page_may_send_people_back(cognito: Any) -> None:
    client = cognito.only("AWS::Cognito::UserPoolClient")
    first, own = client["CallbackURLs"]

    assert first == "https://app.example.com/callback"
    assert text(own).startswith('https://<{"Fn::GetAtt": ["ConsoleDistribution')
    assert client["LogoutURLs"] == [own]
    assert text(cognito.templates["RagStackApi"]["Outputs"]["ConsoleUrl"]["Value"]) == text(own)


def test_documents_can_be_uploaded_from_a_page(cognito: Any, aws: Any) -> None:
    rules = [
        bucket["Properties"]["CorsConfiguration"]["CorsRules"]
        for bucket in cognito.resources("AWS::S3::Bucket").values()
        if "CorsConfiguration" in bucket["Properties"]
    ]

    assert rules == [
        [
            {
                "AllowedHeaders": ["content-type", "if-none-match"],
                "AllowedMethods": ["POST", "PUT"],
                "AllowedOrigins": ["https://*.cloudfront.net"],
                "MaxAge": 3000,
            }
        ]
    ]
    assert not [each for each in aws.resources("AWS::S3::Bucket").values() if "CorsConfiguration" in each["Properties"]]


def test_the_page_comes_after_its_assets_and_is_asked_for_again(cognito: Any) -> None:
    deployments = cognito.resources("Custom::CDKBucketDeployment")
    (page,) = [each for each in deployments.values() if "DistributionId" in each["Properties"]]
    (assets,) = [name for name, each in deployments.items() if each is not page]

    assert assets in page["DependsOn"]
    assert page["Properties"]["SystemMetadata"] == {"cache-control": "no-cache"}
    assert "immutable" in deployments[assets]["Properties"]["SystemMetadata"]["cache-control"]
    assert page["Properties"]["DistributionPaths"] == ["/*"]


@pytest.mark.parametrize("fixture", ["aws", "local"])
def test_programs_and_the_local_stack_have_none(request: pytest.FixtureRequest, fixture: str) -> None:
    assembly = request.getfixturevalue(fixture)

    assert not assembly.resources("AWS::CloudFront::Distribution")
    assert "ConsoleUrl" not in assembly.templates["RagStackApi"]["Outputs"]


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("infra.options.CONSOLE_FILES", tmp_path)
    (tmp_path / "index.html").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        ({"auth": "api_key", "access": "none"}, True),
        ({"auth": "iam"}, False),
        ({"auth": "api_key", "access": "none", "console": "off"}, False),
        ({"auth": "api_key", "access": "none", "console": "on"}, True),
    ],
)
def test_browsers_decide_whether_there_is_one(built: Path, context: dict[str, str], expected: bool) -> None:
    assert (Options.from_context(context).console_files is not None) is expected


def test_without_a_build_no_console_is_deployed(built: Path) -> None:
    (built / "index.html").unlink()

    assert Options.from_context({"auth": "api_key", "access": "none"}).console_files is None


@pytest.mark.parametrize(
    ("context", "message", "is_built"),
    [
        ({"auth": "iam"}, "console=on needs auth=cognito, oidc or api_key", True),
        (LOCAL, "console=on is for target=aws", True),
        ({"auth": "api_key", "access": "none"}, "run `make setup`", False),
        ({"auth": "api_key", "access": "none", "console_client_id": "x"}, "console_client_id needs auth=oidc", True),
    ],
)
def test_a_console_that_cannot_be_is_refused(
    built: Path, context: dict[str, str], message: str, is_built: bool
) -> None:
    if not is_built:
        (built / "index.html").unlink()

    with pytest.raises(OptionError, match=message):
        Options.from_context({"console": "on", **context})
