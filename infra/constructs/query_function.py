"""The function that searches."""

import math
from typing import Final

from aws_cdk import Stack
from constructs import Construct

from infra.constructs.document_registry import DocumentRegistry
from infra.constructs.knowledge_base import KnowledgeBase
from infra.constructs.python_function import PythonFunction
from infra.options import Auth, Options
from ragstack_common import config
from ragstack_common.registry.table import CATALOGUE

QUERY_MEMORY_MB: Final = 1024
"""Processor time comes with memory, and a cold start is mostly imports."""

COLD_START_SECONDS: Final = 5
"""What a first request may take on top of its search."""


class QueryFunction(Construct):
    """Searches the knowledge base, or the engine that the deployer chose; corpora and versions are in the catalogue.

    Attributes:
        function: The function.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        knowledge_base: KnowledgeBase,
        options: Options,
        registry: DocumentRegistry,
    ) -> None:
        super().__init__(scope, construct_id)
        self.function = PythonFunction(
            self,
            "Query",
            consequence="Searches fail meanwhile, with 5xx.",
            description="Searches the knowledge base",
            environment={
                config.KNOWLEDGE_BASE_ID: knowledge_base.knowledge_base_id,
                config.REGISTRY_TABLE: registry.table.table_name,
                config.VECTOR_STORE: knowledge_base.vector_store,
                **_auth(options),
                config.RETRIEVAL_TIMEOUT_SECONDS: f"{options.retrieval_timeout_seconds:g}",
                **options.query_variables,
            },
            folder="query",
            memory_mb=QUERY_MEMORY_MB,
            options=options,
            timeout_seconds=math.ceil(options.retrieval_timeout_seconds) + COLD_START_SECONDS,
        ).function
        knowledge_base.grant_query(self.function, Stack.of(self))
        registry.grant_list_of(self.function, CATALOGUE)
        for engine in options.engines:
            engine.grant(self.function, Stack.of(self))


def _auth(options: Options) -> dict[str, str]:
    """Return the variable that sets the security scheme in the API's description."""
    return {} if options.auth is Auth.NONE else {config.API_AUTH: options.auth.value}
