"""The setting that says where the knowledge bases of tenants are."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field

from ragstack_common.settings.base import Allowed, Settings, json_object

_BEDROCK_ID: Final = re.compile(r"[0-9a-zA-Z]{10}")
"""Source: bedrock-agent, shape Id."""


def _tenant_ids(value: Any) -> dict[str, tuple[str, str]]:
    """Read the ids of knowledge base and data source of each tenant, which a slash separates."""
    found = {}
    for tenant, ids in json_object(value).items():
        first, _, second = str(ids).partition("/")
        if not (_BEDROCK_ID.fullmatch(first) and _BEDROCK_ID.fullmatch(second)):
            raise ValueError(f"the tenant {tenant!r:.60} needs two ids of ten characters, KNOWLEDGE_BASE/DATA_SOURCE")
        found[tenant] = first, second
    return found


TenantKnowledgeBases = Annotated[
    Mapping[str, tuple[str, str]],
    BeforeValidator(_tenant_ids),
    Allowed('a JSON object such as {"acme": "KNOWLEDGE_BASE_ID/DATA_SOURCE_ID"}'),
]
"""The ids of knowledge base and data source by tenant."""

SHARED: Final = "shared"
"""The name of the knowledge base of documents without a tenant. No tenant can have it."""


class TenantSettings(Settings):
    """Where the documents of tenants are."""

    tenant_knowledge_bases: TenantKnowledgeBases = Field(
        {},
        description="with `tenants=index` and `knowledge_base=existing`: the ids of each tenant's knowledge base and"
        " data source",
    )
