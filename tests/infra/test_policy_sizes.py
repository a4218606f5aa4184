"""Policies that IAM would refuse are refused before the first stack is deployed."""

import json
from pathlib import Path
from typing import Any

import pytest

from infra.options import OptionError
from infra.policy_sizes import MAX_INLINE_CHARACTERS, MAX_MANAGED_CHARACTERS, check_policies


def statement(knowledge_bases: int) -> dict[str, Any]:
    arn = ["arn:", {"Ref": "AWS::Partition"}, ":bedrock:", {"Ref": "AWS::Region"}, ":", {"Ref": "AWS::AccountId"}]
    arns = [
        {"Fn::Join": ["", [*arn, ":knowledge-base/", {"Fn::GetAtt": [f"Base{number}", "KnowledgeBaseId"]}]]}
        for number in range(knowledge_bases)
    ]
    return {"Statement": [{"Action": "bedrock:Retrieve", "Effect": "Allow", "Resource": arns}]}


def assembly(folder: Path, **resources: Any) -> Path:
    (folder / "Stack.template.json").write_text(json.dumps({"Resources": resources}))
    return folder


def policy(kind: str, knowledge_bases: int) -> dict[str, Any]:
    document = statement(knowledge_bases)
    return {"Type": f"AWS::IAM::{kind}", "Properties": {"PolicyDocument": document, "Roles": [{"Ref": "Role"}]}}


@pytest.mark.parametrize(("region", "refused"), [("us-east-1", 91), ("ap-southeast-1", 85), (None, 85)])
def test_a_managed_policy_is_counted_as_iam_counts_it(tmp_path: Path, region: str | None, refused: int) -> None:
    check_policies(assembly(tmp_path, Policy=policy("ManagedPolicy", refused - 1)), region)

    with pytest.raises(OptionError, match=rf"Policy have about 6,\d+ .* takes {MAX_MANAGED_CHARACTERS:,}"):
        check_policies(assembly(tmp_path, Policy=policy("ManagedPolicy", refused)), region)


def test_the_inline_policies_of_a_role_count_together(tmp_path: Path) -> None:
    own = {"Type": "AWS::IAM::Role", "Properties": {"Policies": [{"PolicyDocument": statement(60)}]}}
    check_policies(assembly(tmp_path, Role=own, Policy=policy("Policy", 60)), "us-east-1")

    with pytest.raises(OptionError, match=rf"Role have about 1\d,\d+ .* takes {MAX_INLINE_CHARACTERS:,}"):
        check_policies(
            assembly(tmp_path, Role=own, First=policy("Policy", 60), Second=policy("Policy", 60)), "us-east-1"
        )


def test_a_role_has_ten_managed_policies(tmp_path: Path) -> None:
    policies = {f"Policy{number}": policy("ManagedPolicy", 1) for number in range(11)}

    with pytest.raises(OptionError, match="Role has 11 managed policies"):
        check_policies(assembly(tmp_path, **policies), None)
