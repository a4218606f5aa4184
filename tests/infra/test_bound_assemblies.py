"""Assemblies of the local stack, which get their ports and ids when they are deployed."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ragstack_local.stack import assembly
from tests.infra.conftest import ACCESS, LOCAL, Assembly

VALUES = {
    "aws_endpoint": "http://127.0.0.1:5566",
    "bedrock_endpoint": "http://127.0.0.1:5567",
    "answers_endpoint": "http://127.0.0.1:5568",
    "oidc_issuer": "http://127.0.0.1:5569",
    "knowledge_base_id": "ABCDEFGHIJ",
    "data_source_id": "KLMNOPQRST",
}
PEOPLE = {"auth": "none,oidc", "oidc_audience": "ragstack", "access": str(ACCESS)}


def templates(folder: Path) -> dict[str, Any]:
    """Return the templates, without the digests in the names of the deployments of APIs."""
    return {
        file.name: json.loads(re.sub(r"(ApiDeployment[0-9A-F]{8})[0-9a-f]{32}", r"\1", file.read_text()))
        for file in folder.glob("*.template.json")
    }


@pytest.mark.slow
def test_a_bound_assembly_is_the_one_that_its_values_would_give(
    synthesize: Callable[..., Assembly], tmp_path: Path
) -> None:
    context = LOCAL | PEOPLE | VALUES
    inputs = assembly.Inputs(context, "")
    expected = synthesize(**context).folder
    made = assembly.Assembly(synthesize(**inputs.for_synthesis.context).folder)

    made.bind(inputs.bound_later, tmp_path / "bound")

    assert {*inputs.bound_later.values()} == {*VALUES.values()}
    assert templates(tmp_path / "bound") == templates(expected)
    assert templates(made.path) != templates(expected)


def test_each_change_of_a_port_is_a_new_deployment_of_an_api(
    synthesize: Callable[..., Assembly], tmp_path: Path
) -> None:
    """Without one, the stage of an API would still call the server of answers at its old port."""
    inputs = assembly.Inputs(LOCAL | PEOPLE | VALUES, "")
    made = assembly.Assembly(synthesize(**inputs.for_synthesis.context).folder)
    deployed = []
    for port in ("5568", "5570", "5568"):
        values = {**inputs.bound_later, assembly.LATER["answers_endpoint"]: f"http://127.0.0.1:{port}"}
        made.bind(values, tmp_path / "bound")
        resources = json.loads((tmp_path / "bound/RagStackApi.template.json").read_text())["Resources"]
        deployed.append({name for name, each in resources.items() if each["Type"] == "AWS::ApiGateway::Deployment"})

    assert len(deployed[0]) == 2
    assert deployed[0].isdisjoint(deployed[1])
    assert deployed[0] == deployed[2]
