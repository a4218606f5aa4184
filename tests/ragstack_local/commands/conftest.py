"""The command line against the documents function behind HTTP, on moto's S3, DynamoDB and SQS."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from lambdas.documents import handler as documents
from ragstack_common.services import dead_letters
from ragstack_local.cli import app
from ragstack_local.show import display
from tests.ragstack_common.services.conftest import Aws, account, aws, clients
from tests.support.api_server import BASE_PATH, api_server

__all__ = ["account", "aws", "clients"]

Run = Callable[..., Result]


@pytest.fixture
def run(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Run a command with the URL of the API."""
    monkeypatch.setattr(dead_letters, "WAIT_SECONDS", 0)
    for console in (display.console, display.errors):
        monkeypatch.setattr(console, "_width", 250)
    # The handler would also print its metrics, in the command's output.
    with api_server(lambda _: documents.app.resolve, {}) as url:

        def invoke(*arguments: str, **options: Any) -> Result:
            return CliRunner().invoke(app, [*arguments, "--api-url", url + BASE_PATH], **options)

        yield invoke
