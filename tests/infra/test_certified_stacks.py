"""The stacks of ``ragstack certify --aws``: they are synthesized, and all that they keep can be removed."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from ragstack_local.certify.deployed import operations, stacks
from ragstack_local.certify.deployed.removal import KEPT
from ragstack_local.certify.journal import Journal
from ragstack_local.certify.site import Place, Site

pytestmark = pytest.mark.xdist_group("synthesized stacks")

ARN = "arn:aws:sts::123456789012:assumed-role/Operator/me"


@pytest.fixture(scope="session")
def certified(synthesize: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("certified")
    place = Place("eu-west-1", "123456789012")
    journal = Journal.begin(folder, "0123456789", place.fields)
    site, access = Site(None, place, "0123456789", journal), folder / "access.json"
    journal.end()
    access.write_text(json.dumps(stacks.access_file(site, ARN)))
    return synthesize(**stacks.context(site, access))


def test_the_stacks_have_the_names_that_the_journal_has(certified: Any) -> None:
    assert {*certified.templates} == {f"RagStackCertify0123456789{part}" for part in stacks.PARTS}


def test_every_type_of_resource_that_is_kept_can_be_removed(certified: Any) -> None:
    kept = {
        resource["Type"]
        for resource in certified.resources().values()
        if resource.get("DeletionPolicy", "Delete").startswith("Retain")
    }

    assert kept
    assert kept <= {*KEPT}


def test_the_run_knows_all_functions(certified: Any) -> None:
    found = certified.functions().values()

    names = {each["Properties"]["Environment"]["Variables"]["POWERTOOLS_SERVICE_NAME"] for each in found}
    assert names == {*operations.FUNCTIONS}


def test_the_stacks_have_as_many_alarms_as_the_documentation_says(certified: Any) -> None:
    assert len(certified.resources("AWS::CloudWatch::Alarm")) == 49
