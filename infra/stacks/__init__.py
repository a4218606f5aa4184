"""Stacks compose constructs, and own no resource."""

from infra.stacks.api import ApiStack
from infra.stacks.ingestion import IngestionStack
from infra.stacks.knowledge_base import choose_knowledge_base
from infra.stacks.storage import StorageStack

__all__ = ["ApiStack", "IngestionStack", "StorageStack", "choose_knowledge_base"]
