"""Functions that start from snapshots: versions, their alias, and who invokes it."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from infra.checks import check_region
from infra.options import OptionError, Options

from .conftest import LOCAL, SNAPSHOTS

pytestmark = pytest.mark.xdist_group("synthesized stacks")

WAITED_FOR = {"authorizer", "documents", "query"}


def services(assembly: Any) -> dict[str, str]:
    """Return the names of the functions by their logical ids."""
    return {
        name: each["Properties"]["Environment"]["Variables"]["POWERTOOLS_SERVICE_NAME"]
        for name, each in assembly.functions().items()
    }


def aliases(assembly: Any) -> dict[str, str]:
    """Return the names of the functions by the logical ids of their aliases."""
    names, versions = services(assembly), assembly.resources("AWS::Lambda::Version")
    found = {}
    for alias, each in assembly.resources("AWS::Lambda::Alias").items():
        version = each["Properties"]["FunctionVersion"]["Fn::GetAtt"][0]
        function = versions[version]["Properties"]["FunctionName"]["Ref"]
        assert each["Properties"]["FunctionName"] == {"Ref": function}
        found[alias] = names[function]
    return found


def test_functions_that_callers_wait_for_have_a_snapshot_of_their_version(snapshots: Any) -> None:
    applied = {
        name: snapshots.functions()[function]["Properties"].get("SnapStart")
        for function, name in services(snapshots).items()
    }

    assert {name for name, value in applied.items() if value == {"ApplyOn": "PublishedVersions"}} == WAITED_FOR
    assert {value is None for name, value in applied.items() if name not in WAITED_FOR} == {True}
    assert sorted(aliases(snapshots).values()) == sorted(WAITED_FOR)


def test_api_gateway_invokes_the_versions_and_may(snapshots: Any) -> None:
    by_alias, by_function = aliases(snapshots), services(snapshots)
    methods = [each["Properties"]["Integration"] for each in snapshots.resources("AWS::ApiGateway::Method").values()]
    authorizers = snapshots.resources("AWS::ApiGateway::Authorizer").values()
    addresses = [
        json.dumps(uri)
        for uri in (
            *(method["Uri"] for method in methods if "Uri" in method),
            *(each["Properties"]["AuthorizerUri"] for each in authorizers),
        )
    ]

    permitted = {
        json.dumps(each["Properties"]["FunctionName"])
        for each in snapshots.resources("AWS::Lambda::Permission").values()
        if each["Properties"]["Principal"] == "apigateway.amazonaws.com"
    }

    invoked = {name for alias, name in by_alias.items() if any(f'"{alias}"' in address for address in addresses)}
    direct = {name for function, name in by_function.items() if any(f'"{function}"' in each for each in addresses)}
    assert invoked == WAITED_FOR
    assert direct == {"answers", "viewer"}
    assert {name for alias, name in by_alias.items() if any(f'"{alias}"' in each for each in permitted)} == WAITED_FOR
    assert {name for function, name in by_function.items() if any(f'"{function}"' in each for each in permitted)} == {
        "answers",
        "viewer",
    }


def test_a_change_of_a_setting_publishes_a_version(snapshots: Any, synthesize: Any) -> None:
    changed = synthesize(**SNAPSHOTS, search_k="12")

    before, after = (
        {name for name in each.resources("AWS::Lambda::Version") if "Query" in name} for each in (snapshots, changed)
    )

    assert before
    assert before.isdisjoint(after)


def test_other_packages_publish_a_version(snapshots: Any, synthesize: Any, tmp_path: Path) -> None:
    """As other code of `ragstack_common` does, which is in a layer, too."""
    with zipfile.ZipFile(tmp_path / "layer.zip", "w") as layer:
        layer.writestr("python/other.py", "")

    changed = synthesize(**SNAPSHOTS, dependencies_layer=str(tmp_path / "layer.zip"))

    before, after = (set(each.resources("AWS::Lambda::Version")) for each in (snapshots, changed))
    assert len(before) == len(after) == len(WAITED_FOR)
    assert before.isdisjoint(after)


@pytest.mark.slow
def test_templates_with_snapshots_pass_cdk_nag_and_cfn_lint(snapshots: Any, lint: Any) -> None:
    assert snapshots.violations == []
    lint(*(snapshots.folder / f"{name}.template.json" for name in snapshots.templates))


def test_without_the_option_no_version_is_published(aws: Any) -> None:
    assert aws.resources("AWS::Lambda::Version") == {}
    assert aws.resources("AWS::Lambda::Alias") == {}


@pytest.mark.parametrize("region", ["ap-southeast-6", "us-gov-west-1"])
def test_a_region_without_snapshots_is_refused(region: str) -> None:
    options = Options(snap_start=True, web_adapter_layer="arn:aws:lambda:us-east-1:123456789012:layer:Adapter:1")

    with pytest.raises(OptionError, match=f"no SnapStart in {region}"):
        check_region(options, region)

    check_region(options, "eu-central-1")


def test_the_local_stack_has_no_snapshots() -> None:
    with pytest.raises(OptionError, match="snap_start is for target=aws"):
        Options.from_context({**LOCAL, "snap_start": "on"})
