"""What is between callers and the functions: domains, web ACLs, caches, access logs; and what it may cost."""

import json
from typing import Any

import pytest

from infra.checks import check_region
from infra.options import OptionError, Options

from .conftest import ACCESS, AT_THE_EDGE, EXISTING

pytestmark = pytest.mark.xdist_group("synthesized stacks")

COGNITO = {"auth": "cognito", "access": str(ACCESS)}
INDEX = "arn:aws:s3vectors:eu-central-1:123456789012:bucket/vectors/index/documents"
KEY = "arn:aws:kms:eu-central-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
TOPIC = "arn:aws:sns:eu-central-1:123456789012:operations"


def outputs(assembly: Any) -> dict[str, Any]:
    return {name: each["Value"] for name, each in assembly.templates["RagStackApi"]["Outputs"].items()}


@pytest.mark.slow
def test_a_deployment_with_everything_passes_cdk_nag_and_cfn_lint(edge: Any, lint: Any) -> None:
    assert edge.violations == []
    lint(*(edge.folder / f"{name}.template.json" for name in edge.templates))


def test_everything_that_can_has_the_tags_of_the_deployer(edge: Any, aws: Any) -> None:
    def tagged(assembly: Any) -> set[str]:
        resources = assembly.resources().values()
        return {each["Type"] for each in resources if "ragstack" in json.dumps(each["Properties"].get("Tags", ""))}

    assert tagged(edge) >= {
        *("AWS::ApiGateway::Stage", "AWS::CloudFront::Distribution", "AWS::DynamoDB::Table", "AWS::Lambda::Function"),
        *("AWS::Logs::LogGroup", "AWS::S3::Bucket", "AWS::S3Vectors::Index", "AWS::SQS::Queue"),
    }
    assert {"Key": "cost center", "Value": "a=b"} in edge.only("AWS::DynamoDB::Table")["Tags"]
    assert tagged(aws) == set()


def test_the_console_has_the_domain_of_the_deployer(edge: Any) -> None:
    config = edge.only("AWS::CloudFront::Distribution")["DistributionConfig"]
    client = edge.only("AWS::Cognito::UserPoolClient")
    (rule,) = [
        rule
        for bucket in edge.resources("AWS::S3::Bucket").values()
        for rule in bucket["Properties"].get("CorsConfiguration", {}).get("CorsRules", [])
    ]

    assert config["Aliases"] == ["docs.example.com"]
    assert config["ViewerCertificate"]["AcmCertificateArn"] == AT_THE_EDGE["console_certificate"]
    assert config["ViewerCertificate"]["MinimumProtocolVersion"] == "TLSv1.2_2021"
    assert outputs(edge)["ConsoleUrl"] == "https://docs.example.com/"
    assert "ConsoleDistribution" in json.dumps(outputs(edge)["ConsoleDomainTarget"])
    assert client["CallbackURLs"][-1] == client["LogoutURLs"][0] == "https://docs.example.com/"
    assert rule["AllowedOrigins"] == ["https://docs.example.com"]


def test_the_console_suggests_the_questions_of_the_deployer(edge: Any) -> None:
    (settings,) = edge.folder.rglob("console.json")

    # Values of the deployment are markers, which are no JSON.
    assert '"questions":["Who approves travel?","When is payday?"]' in settings.read_text()


def test_the_first_api_has_the_domain_of_the_deployer(edge: Any) -> None:
    domain = edge.only("AWS::ApiGateway::DomainName")
    mapping = edge.only("AWS::ApiGateway::BasePathMapping")

    assert (domain["DomainName"], domain["SecurityPolicy"]) == ("api.example.com", "TLS_1_2")
    assert domain["RegionalCertificateArn"] == AT_THE_EDGE["api_certificate"]
    assert mapping["RestApiId"]["Ref"].startswith("RetrievalApi")
    assert "BasePath" not in mapping, "the functions would get another path"
    assert outputs(edge)["ApiUrl"] == "https://api.example.com"
    assert "RegionalDomainName" in json.dumps(outputs(edge)["ApiDomainTarget"])
    assert "execute-api" in json.dumps(outputs(edge)["ProgramsApiUrl"])
    challenge = [each for each in edge.resources("AWS::ApiGateway::GatewayResponse").values() if "People" not in each]
    assert "https://api.example.com/.well-known/oauth-protected-resource" in json.dumps(challenge)


def test_web_acls_are_those_of_the_deployer(edge: Any, aws: Any) -> None:
    of_console, of_api = AT_THE_EDGE["web_acls"].split(",")
    associated = [each["Properties"] for each in edge.resources("AWS::WAFv2::WebACLAssociation").values()]

    assert edge.only("AWS::CloudFront::Distribution")["DistributionConfig"]["WebACLId"] == of_console
    assert [each["WebACLArn"] for each in associated] == [of_api] * 2
    assert all("/stages/" in json.dumps(each["ResourceArn"]) for each in associated)
    assert len({json.dumps(each["ResourceArn"]) for each in associated}) == 2
    assert aws.resources("AWS::WAFv2::WebACLAssociation") == {}


def test_the_console_can_be_deployed_in_two_regions(edge: Any) -> None:
    """CloudFront's names are unique in an account, for all Regions."""
    headers = edge.only("AWS::CloudFront::ResponseHeadersPolicy")["ResponseHeadersPolicyConfig"]["Name"]
    control = edge.only("AWS::CloudFront::OriginAccessControl")["OriginAccessControlConfig"]["Name"]

    assert headers == control == {"Fn::Join": ["", ["RagStackApi-", {"Ref": "AWS::Region"}]]}


def test_no_error_of_one_caller_answers_another(edge: Any) -> None:
    """CloudFront keeps errors for ten seconds by default, also of requests that it does not cache."""
    errors = edge.only("AWS::CloudFront::Distribution")["DistributionConfig"]["CustomErrorResponses"]

    assert {each["ErrorCode"] for each in errors} >= {400, 403, 404, 500, 502, 503, 504}
    assert {each["ErrorCachingMinTTL"] for each in errors} == {0}
    assert not any("ResponsePagePath" in each for each in errors), "the API's own body is the answer"


def test_a_budget_of_the_account_warns_by_email_or_topic(edge: Any, synthesize: Any, aws: Any) -> None:
    to_topic = synthesize(alarm_topic=TOPIC, monthly_budget="50")

    for assembly, amount, subscriber in (
        (edge, 250, {"Address": "ops@example.com", "SubscriptionType": "EMAIL"}),
        (to_topic, 50, {"Address": TOPIC, "SubscriptionType": "SNS"}),
    ):
        budget = assembly.only("AWS::Budgets::Budget")
        assert budget["Budget"]["BudgetLimit"] == {"Amount": amount, "Unit": "USD"}
        assert "BudgetName" not in budget["Budget"], "it could not be replaced"
        notified = budget["NotificationsWithSubscribers"]
        assert [each["Notification"]["NotificationType"] for each in notified] == ["FORECASTED", "ACTUAL"]
        assert [each["Subscribers"] for each in notified] == [[subscriber]] * 2
    assert aws.resources("AWS::Budgets::Budget") == {}


def test_the_access_log_says_who_called_which_route(edge: Any) -> None:
    stages = [each["Properties"] for each in edge.resources("AWS::ApiGateway::Stage").values()]

    formats = [json.loads(stage["AccessLogSetting"]["Format"]) for stage in stages]

    assert len(formats) == 2
    for line in formats:
        assert {"requestId", "route", "status", "person", "apiKeyId", "role"} <= line.keys()
        assert "$context.path" not in line.values(), "a path names documents"


def test_logs_of_an_audit_are_kept(edge: Any, chosen: Any) -> None:
    def kept(assembly: Any) -> set[tuple[str, int]]:
        groups = assembly.resources("AWS::Logs::LogGroup").items()
        own = [each for name, each in groups if name.startswith(("Query", "Answers", "Retrieval", "Programs", "View"))]
        assert len(own) >= 4
        return {(each["DeletionPolicy"], each["Properties"]["RetentionInDays"]) for each in own}

    assert kept(edge) == {("RetainExceptOnCreate", 365)}
    assert kept(chosen) == {("Delete", 30)}
    assert edge.environment("query")["AUDIT_READS"] == "true"


@pytest.mark.parametrize(
    ("context", "message"),
    [
        ({"alarm_topic": TOPIC}, "alarm_topic is in eu-central-1, and the stacks are in eu-west-1"),
        ({**COGNITO, "user_pool": "us-east-1_aBcDeFgHi"}, "user_pool is in us-east-1"),
        ({"web_acls": AT_THE_EDGE["web_acls"].split(",")[1]}, "web_acls is in eu-central-1"),
        (
            {"api_domain": "api.example.com", "api_certificate": AT_THE_EDGE["api_certificate"]},
            "api_certificate is in eu-central-1",
        ),
        ({"kms_key_arn": KEY}, "kms_key_arn is in eu-central-1"),
        (
            {"documents_bucket": "handbook", "documents_bucket_key_arn": KEY},
            "documents_bucket_key_arn is in eu-central-1",
        ),
        (
            {**EXISTING, "vector_store": "S3_VECTORS", "vector_index_arn": INDEX},
            "vector_index_arn is in eu-central-1",
        ),
    ],
)
def test_a_resource_of_another_region_is_refused(context: dict[str, str], message: str) -> None:
    options = Options.from_context(context)

    with pytest.raises(OptionError, match=message):
        check_region(options, "eu-west-1")
    check_region(options, "us-east-1" if "user_pool" in context else "eu-central-1")
    check_region(options, None)
