"""The deployed stacks, as the checks use them: on AWS those of the run, locally those of ``ragstack up``."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from ragstack_local.certify.check import Json, NotTried
from ragstack_local.certify.deployed import calls, stacks
from ragstack_local.certify.deployed.calls import Answer
from ragstack_local.certify.deployed.removal import DEAD_LETTERS, DOCUMENTS
from ragstack_local.certify.site import Site
from ragstack_local.connection.address import Address
from ragstack_local.connection.connection import DEFAULT_PREFIX, Connection

SECONDS: Final = 40 * 60.0
"""How long a check may wait: alarms ring late. The deployment has its own time."""


@dataclass(frozen=True)
class Deployment:
    """The stacks, and who operates them.

    Attributes:
        prefix: First part of the names of the stacks.
        operator: The API of programs, for a caller who may do and see everything.
        since: When the run began to use them, in seconds since 1970.
    """

    site: Site
    connection: Connection
    prefix: str
    operator: Address
    since: float

    @property
    def folder(self) -> str:
        """The beginning of the keys of all documents of the run."""
        return f"{self.site.name()}/"

    def call(
        self,
        method: str,
        path: str,
        body: Json | bytes = None,
        *,
        caller: Address | None = None,
        headers: Mapping[str, str] | None = None,
        streams: bool = False,
    ) -> Answer:
        """Send a request to the API, again while it throttles the checks, which run at the same time.

        Args:
            method: HTTP method.
            path: The path below the stage.
            body: Sent as JSON, unless it is bytes.
            caller: Who sends it; by default the operator.
            headers: More headers than the caller has.
            streams: Whether the answer streams.
        """
        address = caller or self.operator
        url = f"{(address.answers_url if streams else None) or address.api_url}{path}"
        payload = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        while True:
            self.site.calls["execute-api.Request"] += 1
            signed = {**address.headers(method, url, payload), **(headers or {})}
            answer = calls.send(method, url, payload, signed)
            if answer.status != HTTPStatus.TOO_MANY_REQUESTS:
                return answer
            self.site.pause(1.0)

    def read(self, method: str, path: str, body: Json = None, *, caller: Address | None = None) -> Any:
        """Send a request that must succeed, and return its JSON.

        Raises:
            UnexpectedStatusError: It did not.
        """
        answer = self.call(method, path, body, caller=caller)
        if not answer.succeeded:
            raise UnexpectedStatusError(f"{method} {path}: {answer.status} {answer.error_code}")
        return answer.content

    def anonymous(self) -> Address:
        """Return a caller of the API of programs without any proof of identity."""
        return Address(self.operator.api_url)

    def function_groups(self) -> dict[str, str]:
        """Return the log groups of the functions, by the names of their folders in ``lambdas/``."""
        pages = self.site.client("lambda").get_paginator("list_functions").paginate()
        found = {}
        for function in (each for page in pages for each in page["Functions"]):
            name = function.get("Environment", {}).get("Variables", {}).get("POWERTOOLS_SERVICE_NAME")
            if name and function["FunctionName"].startswith(self.prefix):
                found[name] = function["LoggingConfig"]["LogGroup"]
        return found

    def outputs(self, stack: str) -> dict[str, str]:
        """Return the outputs of a stack, by its name after the prefix."""
        described = self.site.client("cloudformation").describe_stacks(StackName=self.prefix + stack)["Stacks"][0]
        return {each["OutputKey"]: each["OutputValue"] for each in described.get("Outputs", [])}


class UnexpectedStatusError(Exception):
    """The API answered a request of a fixture with another status than a success."""


def deployment(site: Site) -> Deployment:
    """The deployed stacks."""
    if site.is_aws:
        connection = stacks.deploy(site)
        operator = Address(connection.api_url, sign=True, region=site.region)
        return Deployment(site, connection, site.stack_prefix, operator, time.time())
    if site.connection is None:
        raise NotTried("no local stack is running: `ragstack up` starts one")
    connection = site.connection
    if connection.people_url == connection.api_url:
        raise NotTried(
            "everybody must sign in to this stack: `ragstack up --auth none,oidc` has an API of programs too"
        )
    operator = Address(connection.api_url, answers_url=connection.answers_url)
    made = Deployment(site, connection, DEFAULT_PREFIX, operator, time.time())
    # The stack is older than the run, so what the run puts there is removed by these two.
    with site.creating(DEAD_LETTERS, made.folder, connection.dead_letter_queue_url):
        pass
    with site.creating(DOCUMENTS, made.folder, connection.bucket):
        pass
    return made


def of(site: Site) -> Deployment:
    """Return the deployed stacks, deployed by the first check that needs them.

    Raises:
        NotTried: There are none.
    """
    return site.shared(deployment)
