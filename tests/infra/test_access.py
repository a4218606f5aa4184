"""Who may call: each way to prove it, what functions know of it, and what they may read and write for it."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jwt
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from infra.constructs.retrieval_api import AUTHORIZATION
from infra.layers import ACCESS_FILE
from ragstack_common.access.policy import read_policy
from ragstack_common.access.tokens import verifier_from_env
from ragstack_common.http.route_table import ROUTES
from ragstack_common.settings.access import AccessSettings

from .conftest import ACCESS, EVERYTHING, LOCAL, PEOPLE_ADDED

pytestmark = pytest.mark.xdist_group("synthesized stacks")

READING = (
    *("answers", "converter", "documents", "ingestion", "ingestion_status", "query", "receipts", "reconcile"),
    "viewer",
)
OF_THE_API = ("answers", "documents", "query", "viewer")
PUBLIC = {"/health", "/.well-known/oauth-protected-resource"}
OIDC = {**PEOPLE_ADDED, "auth": "oidc"}
VARIANTS: dict[str, dict[str, str]] = {
    "keys": {"auth": "api_key", "api_keys": "reader,uploader", "audit_bus": "audit"},
    "cognito": {"auth": "cognito", "callback_urls": "https://app.example.com/callback"}
    | {"questions_per_day": "0", "conversations": "0"},
    "oidc": {**OIDC, "answers_concurrency": "5"},
    "both": EVERYTHING,
    "local": {**LOCAL, **OIDC, "oidc_issuer": "http://localhost:4570"},
}


@pytest.fixture(scope="session")
def variant(synthesize: Any) -> Any:
    """Synthesize a variant with the access file of the samples."""
    return lambda name: synthesize(**{**VARIANTS[name], "access": str(ACCESS)})


def methods(assembly: Any, api: str = "Retrieval") -> dict[str, set[tuple[str, bool, bool]]]:
    """Return the forms of authorization of one API: type, whether it has an authorizer, and whether it needs a key."""
    resources = assembly.resources("AWS::ApiGateway::Resource")

    def path(reference: Mapping[str, Any]) -> str:
        part = resources.get(reference.get("Ref", ""))
        return "" if part is None else f"{path(part['Properties']['ParentId'])}/{part['Properties']['PathPart']}"

    found: dict[str, set[tuple[str, bool, bool]]] = {}
    for name, method in assembly.resources("AWS::ApiGateway::Method").items():
        if name.startswith(api):
            properties = method["Properties"]
            form = (
                properties["AuthorizationType"],
                "AuthorizerId" in properties,
                properties.get("ApiKeyRequired", False),
            )
            found.setdefault(path(properties["ResourceId"]), set()).add(form)
    return found


def outputs(assembly: Any) -> set[str]:
    return set(assembly.templates["RagStackApi"]["Outputs"])


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(VARIANTS))
def test_cdk_nag_finds_nothing_in_a_variant(variant: Any, name: str) -> None:
    assert variant(name).violations == []


@pytest.mark.slow
def test_cfn_lint_finds_no_error_in_a_variant(variant: Any, lint: Any) -> None:
    lint(*(variant(name).folder / "RagStackApi.template.json" for name in ("both", "keys")))


@pytest.mark.parametrize(
    ("name", "api", "form"),
    [
        ("keys", "Retrieval", ("NONE", False, True)),
        ("cognito", "Retrieval", ("CUSTOM", True, False)),
        ("oidc", "Retrieval", ("CUSTOM", True, False)),
        ("both", "Retrieval", ("CUSTOM", True, False)),
        ("both", "Programs", ("AWS_IAM", False, False)),
        ("local", "Retrieval", ("CUSTOM", True, False)),
    ],
)
def test_every_route_but_the_public_ones_authenticates(
    variant: Any, name: str, api: str, form: tuple[str, bool, bool]
) -> None:
    found = methods(variant(name), api)

    assert found.keys() == {route.path for route in ROUTES.values()}
    assert {path for path, forms in found.items() if forms == {("NONE", False, False)}} == PUBLIC
    assert set().union(*(forms for path, forms in found.items() if path not in PUBLIC)) == {form}


def test_signatures_are_the_default(aws: Any) -> None:
    found = methods(aws)

    assert {path for path, forms in found.items() if forms == {("NONE", False, False)}} == PUBLIC
    assert set().union(*(forms for path, forms in found.items() if path not in PUBLIC)) == {("AWS_IAM", False, False)}
    assert aws.environment("query")["API_AUTH"] == "iam"


def test_only_the_local_target_needs_no_authentication(local: Any) -> None:
    assert set().union(*methods(local).values()) == {("NONE", False, False)}
    assert {local.environment(service)["API_AUTH"] for service in OF_THE_API} == {"none"}


@pytest.mark.parametrize(
    ("name", "expected"), [("keys", "api_key"), ("cognito", "cognito"), ("both", "cognito,iam"), ("local", "oidc")]
)
def test_functions_of_the_api_know_the_kinds_of_proof(variant: Any, name: str, expected: str) -> None:
    assembly = variant(name)

    for service in OF_THE_API:
        environment = assembly.environment(service)
        assert environment["API_AUTH"] == expected
        AccessSettings.from_env({**environment, "API_KEYS": "{}"})


@pytest.mark.parametrize("name", ["oidc", "local"])
def test_the_issuer_of_the_deployer_is_verified_by_functions(variant: Any, name: str) -> None:
    for service in (*OF_THE_API, "authorizer"):
        environment = variant(name).environment(service)

        assert environment["OIDC_ISSUER"] == VARIANTS[name]["oidc_issuer"]
        assert AccessSettings.from_env(environment).oidc_audience == ("ragstack", "other")
        assert verifier_from_env(environment) is not None


def test_the_user_pool_is_the_issuer_of_its_tokens(variant: Any) -> None:
    assembly = variant("cognito")
    variables = assembly.function("authorizer")["Environment"]["Variables"]
    (pool,) = assembly.resources("AWS::Cognito::UserPool")
    (client,) = assembly.resources("AWS::Cognito::UserPoolClient")

    assert variables["OIDC_ISSUER"] == {"Fn::GetAtt": [pool, "ProviderURL"]}
    assert variables["OIDC_AUDIENCE"] == {"Ref": client}
    assert outputs(assembly) >= {"OidcIssuer", "OidcAudience", "LoginDomain"}
    assert "LoginDomain" not in outputs(variant("oidc"))


def test_a_user_pool_has_invited_people_and_the_groups_of_the_file(variant: Any) -> None:
    assembly = variant("cognito")
    (pool,) = assembly.resources("AWS::Cognito::UserPool").values()
    client = assembly.only("AWS::Cognito::UserPoolClient")
    groups = json.loads(assembly.only("Custom::UserPoolGroups")["Groups"])

    assert pool["Properties"]["AdminCreateUserConfig"] == {"AllowAdminCreateUserOnly": True}
    assert pool["Properties"]["Policies"]["PasswordPolicy"]["MinimumLength"] == 12
    assert groups == ["engineering", "operators", "people", "sales"]
    assert not client["GenerateSecret"]
    assert (client["AllowedOAuthFlows"], client["ExplicitAuthFlows"]) == (["code"], ["ALLOW_REFRESH_TOKEN_AUTH"])
    assert client["CallbackURLs"][0] == "https://app.example.com/callback"
    assert [json.dumps(url).count("ConsoleDistribution") for url in client["CallbackURLs"]] == [0, 1]


def test_people_and_programs_have_an_api_each(variant: Any) -> None:
    assembly = variant("both")
    names = {each["Properties"]["Name"] for each in assembly.resources("AWS::ApiGateway::RestApi").values()}
    authorizer = assembly.only("AWS::ApiGateway::Authorizer")

    assert names == {"RagStack", "RagStack-programs"}
    assert outputs(assembly) >= {"ApiUrl", "ProgramsApiUrl"}
    assert authorizer["RestApiId"]["Ref"].startswith("RetrievalApi")


def test_an_api_has_one_permission_for_each_function(variant: Any) -> None:
    """The policy of a function takes 20 KB, which a permission for each route of two APIs nearly fills."""
    permissions = variant("both").resources("AWS::Lambda::Permission")

    assert len([name for name in permissions if "ApiScoped" in name]) == 2 * len(OF_THE_API)
    assert len([name for name in permissions if "Authorizer" in name]) == 1
    assert len(permissions) == 2 * len(OF_THE_API) + 1


def test_the_address_of_programs_stays_if_people_are_added(synthesize: Any, aws: Any) -> None:
    added = synthesize(**PEOPLE_ADDED)

    first = added.templates["RagStackApi"]["Outputs"]["ApiUrl"]
    assert first == aws.templates["RagStackApi"]["Outputs"]["ApiUrl"]
    assert methods(added)["/api/retrieve"] == {("AWS_IAM", False, False)}
    assert "PeopleApiUrl" in outputs(added)


def test_people_sign_in_to_the_console_if_programs_come_first(synthesize: Any) -> None:
    added = synthesize(**{**PEOPLE_ADDED, "auth": "api_key,oidc"})

    origins = added.only("AWS::CloudFront::Distribution")["DistributionConfig"]["Origins"]
    (api,) = [each["DomainName"] for each in origins if "CustomOriginConfig" in each]
    assert "PeopleApi" in json.dumps(api)


@pytest.mark.slow
def test_a_user_pool_is_the_same_whoever_comes_first(variant: Any, synthesize: Any, aws: Any, lint: Any) -> None:
    added = synthesize(auth="iam,cognito", access=str(ACCESS))
    of_people = {"AWS::Cognito::UserPool", "AWS::Cognito::UserPoolClient", "AWS::Cognito::UserPoolDomain"}

    for kind in of_people:
        assert added.resources(kind).keys() == variant("cognito").resources(kind).keys()
    stack = added.templates["RagStackApi"]["Outputs"]
    assert stack["ApiUrl"] == aws.templates["RagStackApi"]["Outputs"]["ApiUrl"]
    assert stack.keys() >= {"PeopleApiUrl", "ConsoleUrl", "LoginDomain"}
    assert "ConsoleDistribution" in json.dumps(added.only("AWS::Cognito::UserPoolClient")["CallbackURLs"][-1])
    assert added.violations == []
    lint(added.folder / "RagStackApi.template.json")


@pytest.mark.parametrize("name", ["cognito", "oidc", "local"])
def test_a_request_without_a_token_learns_where_to_sign_in(variant: Any, name: str) -> None:
    authorizer = variant(name).only("AWS::ApiGateway::Authorizer")
    (answer,) = [
        each["Properties"]
        for each in variant(name).resources("AWS::ApiGateway::GatewayResponse").values()
        if each["Properties"]["ResponseType"] == "UNAUTHORIZED"
    ]

    challenge = "".join(
        part if isinstance(part, str) else "..."
        for part in answer["ResponseParameters"]["gatewayresponse.header.WWW-Authenticate"]["Fn::Join"][1]
    )
    assert challenge.startswith("'Bearer resource_metadata=\"http")
    assert challenge.endswith("/prod/.well-known/oauth-protected-resource\"'")
    assert json.loads(answer["ResponseTemplates"]["application/json"])["error"]["message"].startswith("Sign in")
    assert (authorizer["Type"], authorizer["AuthorizerResultTtlInSeconds"]) == ("TOKEN", 60)
    assert authorizer["IdentitySource"] == "method.request.header.Authorization"
    assert authorizer["IdentityValidationExpression"] == AUTHORIZATION


@given(header=st.text())
@example(header="")
@example(header="Bearer junk")
@example(header="Bearer a.b")
@example(header="Bearer a.b.c.d")
@example(header="Basic YTpi")
def test_what_is_no_token_starts_no_function(header: str) -> None:
    assume(header.count(".") != 2)

    assert not re.fullmatch(AUTHORIZATION, header)


@given(
    scheme=st.sampled_from(["Bearer", "bearer", "BEARER"]),
    claims=st.dictionaries(st.text(), st.text()),
    headers=st.dictionaries(st.text(), st.text()),
)
def test_every_signed_token_reaches_the_function(scheme: str, claims: dict[str, str], headers: dict[str, str]) -> None:
    token = jwt.encode({"claims": claims}, "k" * 32, algorithm="HS256", headers={"x": headers})

    assert re.fullmatch(AUTHORIZATION, f"{scheme} {token}")


def test_the_authorizer_has_its_packages_and_may_do_nothing(variant: Any) -> None:
    assembly = variant("both")
    layers = [json.dumps(assembly.function(service)["Layers"]) for service in ("authorizer", "answers")]

    assert assembly.rights("authorizer") == {}
    assert all("PackagesLayer" in each for each in layers)
    assert len(assembly.function("authorizer")["Layers"]) == 3


def test_each_key_has_limits_of_its_own(variant: Any) -> None:
    assembly = variant("keys")
    plans = [each["Properties"] for each in assembly.resources("AWS::ApiGateway::UsagePlan").values()]
    keys = assembly.resources("AWS::ApiGateway::ApiKey")
    held = [each["Properties"] for each in assembly.resources("AWS::ApiGateway::UsagePlanKey").values()]

    assert len({str(each["UsagePlanId"]) for each in held}) == len(held) == len(keys) == 2
    assert [each["Throttle"] for each in plans] == [{"BurstLimit": 20, "RateLimit": 10}] * 2
    assert [each["Quota"] for each in plans] == [{"Limit": 20_000, "Period": "DAY"}] * 2


def test_functions_know_the_names_of_the_keys(variant: Any) -> None:
    assembly = variant("keys")
    keys = assembly.resources("AWS::ApiGateway::ApiKey")
    ids = {name: f"id{number}" for number, name in enumerate(keys)}

    def text(joined: Any) -> str:
        return "".join(each if isinstance(each, str) else ids[each["Ref"]] for each in joined["Fn::Join"][1])

    for service in OF_THE_API:
        variables = assembly.function(service)["Environment"]["Variables"]
        known = AccessSettings.from_env({"API_KEYS": text(variables["API_KEYS"])}).api_keys or {}
        assert known.keys() == {*ids.values()}
        assert [*known.values()] == ["reader", "uploader"]
    listed = text(assembly.templates["RagStackApi"]["Outputs"]["ApiKeyIds"]["Value"])
    assert dict(each.split("=") for each in listed.split(",")) == {name: key for key, name in known.items()}


def test_a_deployment_with_one_key_keeps_it(synthesize: Any) -> None:
    """The ids of the resources are those of a key without a name."""
    assembly = synthesize(auth="api_key", access="none")

    assert [name[:-8] for name in assembly.resources("AWS::ApiGateway::ApiKey")] == ["RetrievalApiKey"]
    assert outputs(assembly) >= {"ApiKeyId", "ApiKeyIds"}


def test_functions_find_the_access_file_in_their_code(variant: Any) -> None:
    assembly = variant("both")

    for service in (*READING, "authorizer"):
        assert assembly.environment(service)["ACCESS_FILE"] == f"/var/task/{ACCESS_FILE}"
        key = assembly.function(service)["Code"]["S3Key"]
        assert (assembly.folder / f"asset.{key.removesuffix('.zip')}" / ACCESS_FILE).read_bytes() == ACCESS.read_bytes()
    assert "ACCESS_FILE" not in assembly.environment("contextual_headers")


def test_local_functions_find_it_on_this_machine(variant: Any) -> None:
    files = {variant("local").environment(service)["ACCESS_FILE"] for service in (*READING, "authorizer")}

    (file,) = files
    assert Path(file).is_absolute()
    assert read_policy(Path(file)) == read_policy(ACCESS)


def test_without_an_access_file_synthesis_warns(aws: Any, variant: Any, local: Any) -> None:
    warned = "Every caller may see every document"

    for assembly, expected in ((aws, True), (variant("keys"), False), (local, False)):
        manifest = (assembly.folder / "manifest.json").read_text()
        metadata = "".join(file.read_text() for file in assembly.folder.glob("*.metadata.json"))
        assert (warned in manifest + metadata) is expected
    assert "ACCESS_FILE" not in aws.environment("query")


def keys_of(rights: Mapping[str, str], action: str) -> list[str]:
    """Return the partitions of the registry that an action may touch, in each of its statements."""
    decoder, text = json.JSONDecoder(), rights.get(action, "")
    found: list[str] = []
    while text:
        (_, condition), end = decoder.raw_decode(text)
        text = text[end:]
        found += condition["ForAllValues:StringLike"]["dynamodb:LeadingKeys"] if condition else ["everything"]
    return sorted(found)


def test_functions_read_labels_and_rules_and_no_more(variant: Any, aws: Any) -> None:
    query, documents, answers = (variant("oidc").rights(service) for service in ("query", "documents", "answers"))
    labels, own = ["ACCESS", "CATALOGUE", "CATALOGUE#*", "everything"], ["CONVERSATION#*"]

    assert "/index/by_uri" in query["dynamodb:Query"], "everything of the index of names"
    assert keys_of(answers, "dynamodb:Query") == sorted([*labels, *own])
    assert keys_of(query, "dynamodb:Query") == sorted([*labels, "JUDGMENT", "JUDGMENT#*"]), "for their export"
    read = ["ACCESS", "DOCUMENT#*", "PERSON"]
    assert keys_of(query, "dynamodb:BatchGetItem") == keys_of(query, "dynamodb:GetItem") == read
    assert keys_of(query, "dynamodb:UpdateItem") == ["PERSON"]
    assert "dynamodb:PutItem" not in query
    assert "/index/by_label" in documents["dynamodb:Query"]
    written = {"ACCESS", "JOB", "JOB#*", "JUDGMENT", "JUDGMENT#*", *own}
    assert written == {*keys_of(documents, "dynamodb:PutItem")}
    assert written | {"PERSON"} == {*keys_of(documents, "dynamodb:DeleteItem")}
    assert written | {"BUDGET#*", "GAP", "PERSON"} == {*keys_of(documents, "dynamodb:UpdateItem")}
    assert keys_of(answers, "dynamodb:UpdateItem") == ["BUDGET#*", *own, "PERSON"]
    for action in ("dynamodb:PutItem", "dynamodb:DeleteItem", "dynamodb:BatchWriteItem"):
        assert keys_of(answers, action) == own
    assert keys_of(documents, "dynamodb:BatchWriteItem") == [*own, "GAP"]
    expected = ["ACCESS", "CATALOGUE", "CATALOGUE##entry", "JUDGMENT", "JUDGMENT#*", "everything"]
    assert keys_of(aws.rights("query"), "dynamodb:Query") == expected
    assert "dynamodb:Scan" not in query
    for service in OF_THE_API:
        assert "/index/by_label" in aws.rights(service)["dynamodb:Scan"]


def test_without_a_limit_of_questions_none_are_counted(variant: Any) -> None:
    assert keys_of(variant("cognito").rights("answers"), "dynamodb:UpdateItem") == ["PERSON"]
    assert variant("cognito").environment("answers")["QUESTIONS_PER_DAY"] == "0"


def test_if_no_conversations_are_kept_people_can_still_delete_theirs(variant: Any) -> None:
    without = variant("cognito")

    assert without.environment("answers")["CONVERSATIONS"] == without.environment("documents")["CONVERSATIONS"] == "0"
    assert "dynamodb:PutItem" not in without.rights("answers")
    assert keys_of(without.rights("documents"), "dynamodb:BatchWriteItem") == ["CONVERSATION#*", "GAP"]


def test_without_people_who_sign_in_no_function_writes_conversations(aws: Any) -> None:
    for service in OF_THE_API:
        assert "CONVERSATION" not in str(aws.rights(service)), service


def test_ingestion_writes_labels_into_sidecars_alone(variant: Any, aws: Any) -> None:
    assert "/*.metadata.json" in variant("oidc").rights("ingestion")["s3:PutObject"]
    assert '/*"' not in variant("oidc").rights("ingestion")["s3:PutObject"]
    assert "s3:PutObject" not in variant("oidc").rights("ingestion_status")
    assert "/*.metadata.json" not in aws.rights("ingestion")["s3:PutObject"]


def test_what_is_made_of_documents_is_all_that_the_converter_writes(aws: Any) -> None:
    for service, action in (
        ("converter", "s3:PutObject"),
        ("converter", "s3:DeleteObject"),
        ("ingestion", "s3:PutObject"),
        ("ingestion", "s3:DeleteObject"),
    ):
        assert "/*.ragstack" in aws.rights(service)[action]
        assert '/*"' not in aws.rights(service)[action]


def test_audit_events_go_to_the_bus_that_the_deployer_names(variant: Any, aws: Any) -> None:
    for service in OF_THE_API:
        assert variant("keys").environment(service)["AUDIT_BUS"] == "audit"
        assert ":event-bus/audit" in variant("keys").rights(service)["events:PutEvents"]
        assert "events:PutEvents" not in aws.rights(service)


def test_tokens_that_are_not_valid_raise_no_alarm(variant: Any) -> None:
    """The authorizer fails for each of them, as API Gateway wants it; its faults have a metric of their own."""
    assembly = variant("both")
    (function,) = [
        name
        for name, each in assembly.functions().items()
        if each["Properties"]["Environment"]["Variables"]["POWERTOOLS_SERVICE_NAME"] == "authorizer"
    ]
    alarms = [each["Properties"] for each in assembly.resources("AWS::CloudWatch::Alarm").values()]

    own = [each["MetricName"] for each in alarms if _names(each, "authorizer") or _names(each, {"Ref": function})]

    assert sorted(own) == ["DeploymentFaults", "Throttles"]


def _names(alarm: Mapping[str, Any], value: Any) -> bool:
    return any(each["Value"] == value for each in alarm.get("Dimensions", []))


def test_answers_can_reserve_concurrency(variant: Any, aws: Any) -> None:
    report = (variant("oidc").folder / "validation-report.json").read_text()

    assert variant("oidc").function("answers")["ReservedConcurrentExecutions"] == 5
    assert "answers_concurrency=5 needs a quota of at least 105 concurrent executions" in report
    assert "ReservedConcurrentExecutions" not in aws.function("answers")
