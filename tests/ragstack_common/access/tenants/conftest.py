"""Two tenants in one knowledge base or in two, with everything between bucket and search."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from ragstack_common.access.callers import Caller
from ragstack_common.access.changes import AccessTable
from ragstack_common.access.guard import Guard
from ragstack_common.access.policy import AccessPolicy
from ragstack_common.core.telemetry import NO_METRICS
from ragstack_common.registry.jobs import Job
from ragstack_common.services.search import QueryService, make_engine
from ragstack_common.services.search_models import RetrievedResult, RetrieveRequest
from ragstack_common.settings.names import MANAGED, OPENSEARCH_SERVERLESS
from ragstack_common.settings.search import QuerySettings
from tests.local_bedrock.support import Bedrock
from tests.ragstack_common.reconciliation.conftest import (  # noqa: F401 - fixtures
    aws,
    aws_clients,
    aws_url,
    bedrock,
    new_stack,
)
from tests.ragstack_common.reconciliation.stack import Stack

POLICY = AccessPolicy.model_validate(
    {
        "claims": {"tenant": "org"},
        "rights": {"read": ["everyone"], "operate": ["group:operators"]},
        "labels": {
            "public": {"allow": ["everyone"]},
            "acme": {"allow": ["tenant:acme", "group:support"]},
            "acme-board": {"allow": ["user:ada"]},
            "zenith": {"allow": ["tenant:zenith", "group:support"]},
        },
        "prefixes": {
            "public/": {"default": "public"},
            "tenants/acme/": {"default": "acme"},
            "tenants/acme/board/": {"default": "acme-board"},
            "tenants/zenith/": {"default": "zenith"},
        },
        "tenants": {"acme": {"prefix": "tenants/acme/"}, "zenith": {"prefix": "tenants/zenith/"}},
    }
)


def caller(name: str, *principals: str) -> Caller:
    return Caller(f"user:{name}", frozenset({"everyone", f"user:{name}", *principals}))


ADA = caller("ada", "tenant:acme")
ZOE = caller("zoe", "tenant:zenith")
SAM = caller("sam", "group:support")
NEW = caller("new", "tenant:unknown")
OPS = caller("ops", "group:operators")


@dataclass
class Deployment:
    """A deployment with tenants."""

    stack: Stack

    def searches(self, search_type: str | None = None) -> QueryService:
        stack = self.stack
        settings = QuerySettings(
            knowledge_base_id=stack.source.knowledge_base_id,
            tenant_knowledge_bases=stack.tenant_ids,
            registry_table=stack.bucket,
            vector_store=MANAGED if stack.vector_store == MANAGED else OPENSEARCH_SERVERLESS,
            search_type=search_type,
        )
        guard = Guard(POLICY, AccessTable(stack.aws.dynamodb, stack.bucket))
        return QueryService(settings, make_engine(settings, NO_METRICS, policy=POLICY), guard=guard)

    def found(self, caller: Caller, query: str, **options: Any) -> list[str]:
        """Return the keys that a search finds, best first."""
        return [str(each.source).removeprefix(self.stack.uri("")) for each in self.results(caller, query, **options)]

    def results(
        self, caller: Caller, query: str, search_type: str | None = None, **options: Any
    ) -> list[RetrievedResult]:
        answer = self.searches(search_type).retrieve(RetrieveRequest(query=query, **options), caller)
        assert answer.complete
        return answer.results

    def reconciled(self) -> Job:
        """Compare everything, and carry out what follows."""
        job = self.stack.reconcile()
        self.stack.rest()
        self.stack.clock.ahead += 3600
        return job


@pytest.fixture(params=["label", "index", "managed"])
def deployment(
    request: pytest.FixtureRequest,
    new_stack: Callable[..., Stack],  # noqa: F811
    bedrock: Bedrock,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> Deployment:
    """With one knowledge base for all, and with one for each tenant, also managed ones."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_AGENT_RUNTIME", bedrock.url)
    stack = new_stack(MANAGED) if request.param == "managed" else new_stack()
    return with_tenants(stack, bedrock, request.param)


def with_tenants(stack: Stack, bedrock: Bedrock, kind: str) -> Deployment:  # noqa: F811
    tenants = {}
    if kind == "index":
        for name, tenant in POLICY.tenants.items():
            knowledge_base = bedrock.knowledge_base(f"{stack.bucket}-{name}")
            only = {"inclusionPrefixes": [tenant.prefix]}
            tenants[name] = bedrock.s3_source(knowledge_base, stack.bucket, s3=only)
    elif kind == "managed":
        tenants = {name: bedrock.connector(bedrock.managed_base(name), "CUSTOM") for name in POLICY.tenants}
    return Deployment(replace(stack, tenants=tenants, policy=POLICY))
