"""A run in a programmed account whose stacks are deployed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ragstack_local.certify import site as site_module
from ragstack_local.certify.deployed import stacks
from ragstack_local.certify.journal import Journal
from ragstack_local.certify.site import Place, Site
from ragstack_local.connection.connection import Connection
from tests.ragstack_local.certify.deployed.account import Account, install

TOKEN = "0123456789"
PREFIX = f"RagStackCertify{TOKEN}"
PROGRAMS = "https://programs.example.com/prod"
PEOPLE = "https://people.example.com/prod"
CONSOLE = "https://console.example.com/"
ISSUER = "https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_abcdefghi"
CLIENT = "abcdefghijklmnopqrstuvwxyz"

CONNECTION = Connection(
    api_url=PROGRAMS,
    bucket="documents",
    knowledge_base_id="ABCDEFGHIJ",
    data_source_id="KLMNOPQRST",
    queue_url="https://sqs.example.com/events",
    dead_letter_queue_url="https://sqs.example.com/dead",
    status_queue_url="https://sqs.example.com/status",
    conversion_queue_url="https://sqs.example.com/conversions",
    large_conversion_queue_url="https://sqs.example.com/large",
    receipts_queue_url="https://sqs.example.com/receipts",
    jobs_queue_url="https://sqs.example.com/jobs",
    registry_table="registry",
    console_url=CONSOLE,
    people_url=PEOPLE,
    oidc_issuer=ISSUER,
    oidc_audience=CLIENT,
    deployed_to="eu-west-1",
)


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Account:
    made = Account()
    install(made, monkeypatch)
    monkeypatch.setattr(site_module, "AWS_POLL_SECONDS", 0.001)
    for name, value in (("AWS_ACCESS_KEY_ID", "test"), ("AWS_SECRET_ACCESS_KEY", "test")):
        monkeypatch.setenv(name, value)  # of signed requests
    return made


@pytest.fixture
def undeployed(account: Account, tmp_path: Path) -> Iterator[Site]:
    place = Place("eu-west-1", "123456789012")
    journal = Journal.begin(tmp_path / "journals", TOKEN, place.fields)
    yield Site(account.session(), place, TOKEN, journal, seconds=10**6)
    journal.end()


@pytest.fixture
def site(undeployed: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setattr(stacks, "deploy", lambda _: CONNECTION)
    return undeployed
