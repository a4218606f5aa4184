"""Every check of the services matches the local Bedrock, and notices when its fact changes."""

from dataclasses import replace

import pytest

from ragstack_local.certify.catalogue import SERVICES
from ragstack_local.certify.check import Check, Verdict
from ragstack_local.certify.runner import run_check
from ragstack_local.certify.site import Site
from tests.ragstack_local.certify.faults import Facts, fault_of, on_aws

pytestmark = pytest.mark.xdist_group("certify-services")


NEVER_TRIED = ("account.accepting",)
"""Named in reports with the reason why no run tries them."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "check", [check for check in SERVICES if check.name not in NEVER_TRIED], ids=lambda check: check.name
)
def test_a_check_matches_until_its_fact_changes(site: Site, facts: Facts, check: Check) -> None:
    tried = replace(check, aws_only="")  # with the answers that AWS is believed to give
    fault = fault_of(check)
    assert fault is not None

    with facts.changed(on_aws(check), site):
        before = run_check(site, tried)
    with facts.changed(fault, site):
        after = run_check(site, tried)

    assert (before.verdict, before.reason) == (Verdict.MATCHES, ""), before
    assert (after.verdict, after.reason) == (Verdict.DIFFERS, ""), after
