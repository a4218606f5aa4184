"""Quotas: calls a second, concurrent work and sizes. The defaults are AWS's figures.

Sources: [doc] is AWS General Reference, "Amazon Bedrock endpoints and quotas"; [managed] is Amazon Bedrock User Guide,
kb-managed-quotas, for managed knowledge bases; [reported] are reports by users of the service. AWS counts tokens, not
calls, for the models of bedrock-runtime, so their operations have no quota here.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import fields, replace
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field, ValidationError
from pydantic.dataclasses import dataclass

OFF: Final = "off"

Limit = Annotated[float, Field(gt=0), BeforeValidator(lambda value: math.inf if value == OFF else value)]
"""A positive number, or ``off``."""


class QuotaError(ValueError):
    """A quota is unknown, or its value is invalid."""


@dataclass(frozen=True, config={"extra": "forbid"})
class Quotas:
    """The quotas of an account; ``math.inf`` for no limit.

    Attributes:
        concurrent_document_requests: Accepted calls of IngestKnowledgeBaseDocuments and DeleteKnowledgeBaseDocuments
            with unfinished documents. [doc]
        concurrent_ingestion_jobs: Concurrent ingestion jobs of self-managed knowledge bases. The limit of one for each
            knowledge base always applies. [doc]
        concurrent_ingestion_jobs_per_managed: Those of one managed knowledge base; the limit of one for each data
            source always applies. [managed]
        knowledge_bases: [doc]
        managed_knowledge_bases: [managed]
        data_sources_per_knowledge_base: [reported]
        data_sources_per_managed: [managed]
        ingest_payload_bytes: Body of one call of IngestKnowledgeBaseDocuments. [doc]
        query_characters: Query of Retrieve, RetrieveAndGenerate and RetrieveAndGenerateStream. [reported]
        query_characters_of_managed: Query of Retrieve on a managed knowledge base. [managed]
    """

    # Calls a second, by operation. [doc]
    create_knowledge_base_per_second: Limit = 2.0
    get_knowledge_base_per_second: Limit = 10.0
    list_knowledge_bases_per_second: Limit = 10.0
    update_knowledge_base_per_second: Limit = 2.0
    delete_knowledge_base_per_second: Limit = 2.0
    create_data_source_per_second: Limit = 2.0
    get_data_source_per_second: Limit = 10.0
    list_data_sources_per_second: Limit = 10.0
    update_data_source_per_second: Limit = 2.0
    delete_data_source_per_second: Limit = 2.0
    start_ingestion_job_per_second: Limit = 0.1
    get_ingestion_job_per_second: Limit = 10.0
    list_ingestion_jobs_per_second: Limit = 10.0
    ingest_knowledge_base_documents_per_second: Limit = 5.0
    get_knowledge_base_documents_per_second: Limit = 5.0
    list_knowledge_base_documents_per_second: Limit = 5.0
    delete_knowledge_base_documents_per_second: Limit = 5.0
    retrieve_per_second: Limit = 20.0
    retrieve_and_generate_per_second: Limit = 20.0
    retrieve_and_generate_stream_per_second: Limit = 20.0
    agentic_retrieve_stream_per_second: Limit = 1.0  # 60 a minute [managed]
    rerank_per_second: Limit = 10.0

    concurrent_document_requests: Limit = 10
    concurrent_ingestion_jobs: Limit = 5
    concurrent_ingestion_jobs_per_managed: Limit = 50
    knowledge_bases: Limit = 100
    managed_knowledge_bases: Limit = 10_000
    data_sources_per_knowledge_base: Limit = 5
    data_sources_per_managed: Limit = 200
    ingest_payload_bytes: Limit = 6 * 1024 * 1024
    query_characters: Limit = 1000
    query_characters_of_managed: Limit = 10_000

    def __str__(self) -> str:
        """Describe the differences from AWS's quotas."""
        values = {field.name: (getattr(self, field.name), field.default) for field in fields(self)}
        changed = [
            f"{name}={OFF if value == math.inf else f'{value:g}'}"
            for name, (value, default) in values.items()
            if value != default
        ]
        return f"those of AWS, except {', '.join(changed)}" if changed else "those of AWS"

    def calls_per_second(self, operation: str) -> float:
        """Return the rate of an operation; ``math.inf`` if it has none."""
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", operation).lower()
        return float(getattr(self, f"{name}_per_second", math.inf))

    def with_settings(self, settings: Iterable[str]) -> "Quotas":
        """Return these quotas with some of them changed.

        Args:
            settings: Each ``NAME=NUMBER``, or ``NAME=off``.

        Raises:
            QuotaError: A quota is unknown, or its value isn't a positive number.
        """
        parts = (text.partition("=") for text in settings)
        changed: dict[str, Any] = {name.strip(): value.strip() for name, _, value in parts}
        try:
            return replace(self, **changed)
        except ValidationError as error:
            reasons = "; ".join(f"{each['loc'][0]}: {each['msg']}" for each in error.errors())
            raise QuotaError(f"{reasons}. Write a quota as retrieve_per_second=2 or retrieve_per_second=off") from error
