"""A deployment without an access file says so in words, and is refused if the registry says who sees what."""

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import boto3
import pytest
from moto import mock_aws

from infra.constructs import open_access
from infra.options import OptionError, Options
from ragstack_common.access.changes import AccessTable
from ragstack_common.access.rules import Effect
from ragstack_common.registry.documents import DocumentRegistry, RecordChange
from ragstack_common.registry.records import DocumentRecord
from tests.infra.conftest import PEOPLE_ADDED
from tests.support.registry_table import TABLE, create_table

pytestmark = pytest.mark.xdist_group("synthesized stacks")


@pytest.mark.parametrize(
    "context",
    [{"auth": "api_key"}, {"auth": "cognito"}, {"auth": "iam,cognito"}, {"auth": "iam,oidc", **PEOPLE_ADDED}],
)
def test_people_and_keys_need_a_word_about_access(context: dict[str, str]) -> None:
    context = {name: value for name, value in context.items() if name != "access"} | {"auth": context["auth"]}

    with pytest.raises(OptionError, match=r"needs access: .*--context access=FILE\. Or .* --context access=none"):
        Options.from_context(context)
    options = Options.from_context({**context, "access": "none"})
    assert (options.access_file, options.policy) == (None, None)


@pytest.mark.parametrize("auth", [{}, {"auth": "api_key"}, {"target": "local"}])
def test_an_access_file_from_an_unset_variable_is_an_error(auth: dict[str, str]) -> None:
    with pytest.raises(OptionError, match="access is empty"):
        Options.from_context({**auth, "access": ""})


def test_only_a_deployment_without_an_access_file_checks_the_registry(synthesize: Any, aws: Any) -> None:
    keys = synthesize(auth="api_key", access="none")
    file = synthesize(auth="api_key", access=str(Path("samples/access.json").absolute()))

    assert file.resources("Custom::OpenAccess") == {}
    for assembly in (aws, keys):
        ((name, _),) = assembly.resources("Custom::OpenAccess").items()
        functions = assembly.resources("AWS::Lambda::Function").values()
        waiting = {
            each["Properties"]["Environment"]["Variables"].get("POWERTOOLS_SERVICE_NAME")
            for each in functions
            if name in each.get("DependsOn", ())
        }
        assert waiting == {"answers", "documents", "query", "viewer"}
    warned = [
        "Every caller may see every document" in "".join(each.read_text() for each in assembly.folder.glob("*.json"))
        for assembly in (aws, keys)
    ]
    assert warned == [True, False], "who says so in words is not warned"
    assert keys.violations == []


@mock_aws
def test_a_registry_with_rules_or_labels_refuses_the_deployment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    sent: list[tuple[Any, ...]] = []
    module = ModuleType("cfnresponse")
    vars(module).update(SUCCESS="SUCCESS", FAILED="FAILED", send=lambda *answer, reason: sent.append((*answer, reason)))
    monkeypatch.setitem(sys.modules, "cfnresponse", module)
    names: dict[str, Any] = {}
    exec(open_access._CHECK, names)
    client = boto3.client("dynamodb")
    create_table(client, TABLE)
    table, registry = AccessTable(client, TABLE), DocumentRegistry(TABLE, client)
    open_document, labelled = DocumentRecord("s3://docs/a.md"), DocumentRecord("s3://docs/b.md", label="people")

    def check(kind: str = "Update", name: str = TABLE) -> tuple[str, str]:
        names["handler"]({"RequestType": kind, "ResourceProperties": {"Table": name}}, None)
        return sent[-1][2], sent[-1][-1] or ""

    registry.write([RecordChange(DocumentRecord(open_document.uri), open_document)])
    assert (check("Create")[0], table.is_in_use()) == ("SUCCESS", False)
    table.change("people", "user:bob", Effect.DENY, "user:olga")
    assert (check()[0], "changes of access rules" in check()[1], table.is_in_use()) == ("FAILED", True, True)
    table.change("people", "user:bob", None, "user:olga")
    assert (check()[0], table.is_in_use()) == ("SUCCESS", False)
    registry.write([RecordChange(DocumentRecord(labelled.uri), labelled)])
    assert (check()[0], "documents with access labels" in check()[1], table.is_in_use()) == ("FAILED", True, True)
    assert "deploy with access=FILE" in check()[1]
    assert check("Delete")[0] == "SUCCESS"
    assert check("Create", "absent")[0] == "FAILED"
