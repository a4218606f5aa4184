"""What would fail in the last stack is refused before the first is deployed."""

import importlib.util
import json
from typing import Any

import pytest
from aws_cdk import Stack

from infra.checks import MAX_VARIABLES_BYTES, check_region
from infra.options import OptionError, Options
from infra.target import KNOWLEDGE_BASE_REGIONS

from .conftest import LOCAL, ROOT

pytestmark = pytest.mark.xdist_group("synthesized stacks")

LAYER = "arn:aws:lambda:me-south-1:123456789012:layer:LambdaAdapterLayerArm64:1"


def collections(number: int) -> str:
    return json.dumps(
        {f"collection_{index:03}": {"type": "bedrock", "knowledge_base_id": f"KB{index:08}"} for index in range(number)}
    )


def test_an_environment_over_the_limit_of_lambda_is_refused(synthesize: Any) -> None:
    with pytest.raises(OptionError) as refused:
        synthesize(retriever_tool_collections=collections(80))

    assert "environment of the function answers" in str(refused.value)
    assert f"Lambda takes {MAX_VARIABLES_BYTES:,}" in str(refused.value)
    assert "RETRIEVER_TOOL_COLLECTIONS (" in str(refused.value)


def test_the_names_of_api_keys_count_although_their_ids_are_not_known_yet(synthesize: Any) -> None:
    names = ",".join(f"of-the-company-and-its-many-partners-{number:02}" for number in range(50))

    with pytest.raises(OptionError, match=r"environment of the function documents .* API_KEYS \([23],"):
        synthesize(auth="api_key", access="none", api_keys=names)


def test_an_environment_below_the_limit_is_synthesized(synthesize: Any) -> None:
    assembly = synthesize(retriever_tool_collections=collections(30))

    assert len(assembly.environment("query")["RETRIEVER_TOOL_COLLECTIONS"]) > 2000


@pytest.mark.parametrize(
    "region",
    ["me-south-1", "us-gov-west-1", "us-iso-east-1", "us-isob-east-1", "eusc-de-east-1", "cn-north-1"],
)
def test_a_region_without_the_web_adapter_is_refused(region: str) -> None:
    with pytest.raises(OptionError, match=f"no Lambda Web Adapter for arm64 in {region}.*web_adapter_layer"):
        check_region(Options(), region)

    check_region(Options(web_adapter_layer=LAYER), region)
    check_region(Options.from_context(LOCAL), region)


@pytest.mark.parametrize("region", ["us-east-1", "eu-central-1", "xx-new-1", None])
def test_a_region_with_the_web_adapter_or_an_unknown_one_passes(region: str | None) -> None:
    check_region(Options(), region)


def test_every_region_with_knowledge_bases_is_decided() -> None:
    def passes(region: str) -> bool:
        try:
            check_region(Options(), region)
        except OptionError:
            return False
        return True

    refused = {region for region in KNOWLEDGE_BASE_REGIONS if not passes(region)}

    others = ("us-gov-", "us-iso", "eu-iso", "eusc-", "me-south-1")
    assert refused == {region for region in KNOWLEDGE_BASE_REGIONS if region.startswith(others)}


def test_the_app_checks_the_region_before_any_stack(node: None) -> None:
    specification = importlib.util.spec_from_file_location("cdk_app", ROOT / "app.py")
    assert specification is not None
    assert specification.loader is not None
    cdk_app = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(cdk_app)
    app = cdk_app.App()

    with pytest.raises(OptionError, match="me-south-1"):
        cdk_app.build(app, "me-south-1")

    assert [child for child in app.node.children if isinstance(child, Stack)] == []
