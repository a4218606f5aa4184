"""People in Amazon Cognito: their pool, which nobody loses, their groups, and how they sign in."""

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import boto3
import pytest
from moto import mock_aws

from infra.access_options import DEFAULT_CALLBACKS, MAX_API_KEYS
from infra.constructs import user_pool
from ragstack_local.signin import browser

from .conftest import ACCESS, AT_THE_EDGE

pytestmark = pytest.mark.xdist_group("synthesized stacks")

POOL = "eu-central-1_aBcDeFgHi"


@pytest.fixture(scope="session")
def cognito(synthesize: Any) -> Any:
    return synthesize(auth="cognito", access=str(ACCESS))


@pytest.fixture(scope="session")
def adopted(synthesize: Any) -> Any:
    return synthesize(auth="cognito", access=str(ACCESS), user_pool=POOL)


def test_a_first_deployment_that_fails_leaves_the_pool_and_can_be_rolled_back(cognito: Any) -> None:
    """CloudFormation deletes a resource with RetainExceptOnCreate then, which the protection refuses."""
    (pool,) = cognito.resources("AWS::Cognito::UserPool").values()

    assert pool["Properties"]["DeletionProtection"] == "ACTIVE"
    assert (pool["DeletionPolicy"], pool["UpdateReplacePolicy"]) == ("Retain", "Retain")


@pytest.mark.slow
def test_an_existing_pool_is_used_and_gets_groups_and_a_client(adopted: Any, lint: Any) -> None:
    issuer = "".join(
        part if isinstance(part, str) else part["Ref"]
        for part in adopted.function("authorizer")["Environment"]["Variables"]["OIDC_ISSUER"]["Fn::Join"][1]
    )

    assert adopted.resources("AWS::Cognito::UserPool") == {}
    assert issuer == f"https://cognito-idp.AWS::Region.AWS::URLSuffix/{POOL}"
    for kind in ("AWS::Cognito::UserPoolClient", "AWS::Cognito::UserPoolDomain"):
        assert adopted.only(kind)["UserPoolId"] == POOL
    assert adopted.only("Custom::UserPoolGroups")["Pool"] == POOL
    assert adopted.violations == []
    lint(adopted.folder / "RagStackApi.template.json")


@pytest.mark.parametrize("fixture", ["cognito", "adopted"])
def test_the_function_of_the_groups_creates_groups_of_the_pool_alone(
    request: pytest.FixtureRequest, fixture: str
) -> None:
    assembly = request.getfixturevalue(fixture)
    (role,) = [name for name in assembly.resources("AWS::IAM::Role") if name.startswith("PeopleRole")]

    rights = assembly.rights_of(role)

    assert [*rights] == ["cognito-idp:CreateGroup"]
    assert "PeoplePool" in rights["cognito-idp:CreateGroup"] or POOL in rights["cognito-idp:CreateGroup"]
    ((_, resource),) = assembly.resources("Custom::UserPoolGroups").items()
    assert any(name.startswith("PeopleRoleDefaultPolicy") for name in resource["DependsOn"])


@pytest.fixture
def create_groups(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run the code of the function, and return what CloudFormation is told."""
    told: list[tuple[str, str | None]] = []
    module = ModuleType("cfnresponse")
    vars(module).update(SUCCESS="SUCCESS", FAILED="FAILED")
    vars(module)["send"] = lambda *args, reason=None: told.append((args[2], reason))
    monkeypatch.setitem(sys.modules, "cfnresponse", module)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    code: dict[str, Any] = {}
    exec(user_pool._CREATE_GROUPS, code)

    def run(kind: str, pool: str, *groups: str) -> tuple[str, str | None]:
        code["handler"]({"RequestType": kind, "ResourceProperties": {"Pool": pool, "Groups": json.dumps(groups)}}, None)
        return told[-1]

    return run


@mock_aws
def test_groups_and_their_members_outlive_the_access_file(create_groups: Any) -> None:
    client = boto3.client("cognito-idp", region_name="eu-west-1")
    pool = client.create_user_pool(PoolName="people")["UserPool"]["Id"]

    def found() -> set[str]:
        return {group["GroupName"] for group in client.list_groups(UserPoolId=pool)["Groups"]}

    assert create_groups("Create", pool, "people", "operators") == ("SUCCESS", None)
    client.admin_create_user(UserPoolId=pool, Username="olga")
    client.admin_add_user_to_group(UserPoolId=pool, Username="olga", GroupName="operators")
    assert create_groups("Update", pool, "people", "sales") == ("SUCCESS", None)
    assert create_groups("Update", pool, "people", "operators") == ("SUCCESS", None)
    assert create_groups("Delete", pool, "people") == ("SUCCESS", None)

    assert found() == {"people", "operators", "sales"}
    members = client.list_users_in_group(UserPoolId=pool, GroupName="operators")["Users"]
    assert [each["Username"] for each in members] == ["olga"]


@mock_aws
def test_a_pool_that_does_not_exist_fails_the_deployment(create_groups: Any) -> None:
    status, reason = create_groups("Create", "eu-west-1_nothing00", "people")

    assert status == "FAILED"
    assert reason.startswith("The groups cannot be created: ")
    assert create_groups("Delete", "eu-west-1_nothing00", "people") == ("SUCCESS", None), "a rollback must end"


def test_a_second_factor_is_required_or_off(cognito: Any, edge: Any) -> None:
    """If it is optional, the sign-in page has no place to register one."""
    off, required = (assembly.only("AWS::Cognito::UserPool") for assembly in (cognito, edge))

    assert (off["MfaConfiguration"], off.get("EnabledMfas")) == ("OFF", None)
    assert (required["MfaConfiguration"], required["EnabledMfas"]) == ("ON", ["SOFTWARE_TOKEN_MFA"])


def test_invitations_come_from_the_verified_domain_of_the_deployer(cognito: Any, edge: Any) -> None:
    email = edge.only("AWS::Cognito::UserPool")["EmailConfiguration"]

    assert email["EmailSendingAccount"] == "DEVELOPER"
    assert email["From"] == "no-reply@example.com"
    assert ":identity/example.com" in json.dumps(email["SourceArn"])
    assert "EmailConfiguration" not in cognito.only("AWS::Cognito::UserPool")


def test_the_pool_allows_every_port_on_which_login_waits(cognito: Any) -> None:
    assert tuple(f"http://localhost:{port}{browser.PATH}" for port in browser.PORTS) == DEFAULT_CALLBACKS
    assert cognito.only("AWS::Cognito::UserPoolClient")["CallbackURLs"][:-1] == [*DEFAULT_CALLBACKS]


def test_an_address_that_is_named_twice_is_allowed_once(synthesize: Any) -> None:
    console = {name: value for name, value in AT_THE_EDGE.items() if name.startswith("console_")}
    client = synthesize(auth="cognito", access=str(ACCESS), callback_urls="https://docs.example.com/", **console).only(
        "AWS::Cognito::UserPoolClient"
    )

    assert client["CallbackURLs"] == ["https://docs.example.com/"]


def test_many_groups_and_keys_fit_into_the_stack(synthesize: Any, tmp_path: Path) -> None:
    """CloudFormation takes 500 resources in a stack."""
    file = tmp_path / "access.json"
    file.write_text(json.dumps({"rights": {"read": [f"group:{number}" for number in range(600)]}}))
    names = ",".join(f"program-{number:02}-of-the-company" for number in range(MAX_API_KEYS))

    assembly = synthesize(auth="cognito,api_key", access=str(file), api_keys=names)

    assert len(json.loads(assembly.only("Custom::UserPoolGroups")["Groups"])) == 600
    assert len(assembly.resources("AWS::ApiGateway::ApiKey")) == MAX_API_KEYS
    assert len(assembly.templates["RagStackApi"]["Resources"]) < 500
