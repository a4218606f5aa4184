"""Which local stacks are tried."""

from pathlib import Path

import pytest

from ragstack_local.certify.check import NotTried
from ragstack_local.certify.deployed import deployment
from ragstack_local.certify.journal import Journal
from ragstack_local.certify.site import Place, Site
from ragstack_local.connection.connection import Connection
from tests.ragstack_local.certify.deployed.account import Account
from tests.ragstack_local.support import NOWHERE, stack_at

HERE = Place("us-east-1", endpoints={"": NOWHERE})


def site_with(account: Account, folder: Path, connection: Connection | None) -> Site:
    journal = Journal.begin(folder, "0123456789", HERE.fields)
    return Site(account.session(), HERE, "0123456789", journal, connection=connection)


@pytest.mark.parametrize(
    ("connection", "reason"),
    [(None, "ragstack up"), (stack_at(people_url=NOWHERE), "everybody must sign in")],
)
def test_a_stack_without_an_api_of_programs_is_not_tried(
    account: Account, tmp_path: Path, connection: Connection | None, reason: str
) -> None:
    made = site_with(account, tmp_path, connection)

    with pytest.raises(NotTried, match=reason):
        deployment.of(made)

    assert made.journal.remaining() == []
    made.journal.end()


def test_what_a_local_run_creates_is_in_the_journal(account: Account, tmp_path: Path) -> None:
    made = site_with(account, tmp_path, stack_at())

    deployment.of(made)

    assert [(each.kind, each.name, each.within) for each in made.journal.remaining()] == [
        ("documents", "ragstack-certify-0123456789/", "documents"),
        ("dead letters", "ragstack-certify-0123456789/", f"{NOWHERE}/000000000000/dead"),
    ]
    made.journal.end()
